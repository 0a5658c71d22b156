"""The demo's last screen: three questions, answered from the audit table. Fits 80 columns."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from rich.box import SIMPLE_HEAD
from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from mnemoscope.adapters.customer_requests.erasure_screen import erasure_screen
from mnemoscope.audit.queries.reading import Remembered, Spend, StoreLatency
from mnemoscope.audit.queries.text_extraction import text_of
from mnemoscope.telemetry.text import utc_text

from .export_and_erase import TENANT, CustomerRequests
from .figures import (
    Fate,
    Figures,
    Memories,
    SinkCounts,
    culprit,
    time_sentence,
    unanswered,
)
from .surge import FACTOR, SurgeReport

if TYPE_CHECKING:
    from .memory_server import ServerChange, ToolCall
    from .replay import AnsweredTurn

SHOWN = 3
"""Memories shown from the beginning, and as many from the end."""

_AS_DESIGNED = {
    "mem0": "Recalls returned neutral results; writes waited in the journal.",
    "qdrant": "Searches returned neutral results, so answers lack the hotel's documents.",
    "store": "Reads returned neutral results; writes waited in the journal.",
    "checkpointer": (
        "It fails closed, so its runs raised: continuing from an empty state would overwrite the "
        "thread."
    ),
}


def show(figures: Figures, console: Console, out: Path | None) -> None:
    """Print the last screen, and how to go on with the data in the folder *out*."""
    memories = figures.memories
    console.print(
        _head(figures),
        _question(f"What {memories.name} asked, what the agent recalled, and its answer"),
        *map(_turn, figures.shown),
        _question("1  When recall is slow, which store is to blame?"),
        _latency(figures.stores),
        _answer(time_sentence(figures.time)),
        _answer(culprit(figures)),
        _question("2  When spend triples, which feature caused it?"),
        _spend(figures.spend),
        _answer(_dearest(figures.spend)),
        *([_answer(figures.surge.answer)] if figures.surge else []),
        _question(f"3  What does the agent remember about {memories.name}, and since when?"),
        _memories(memories.written),
        _answer(_remembered(memories)),
        *(_server_change(figures.server_change) if figures.server_change else []),
        *(_requests(figures.requests) if figures.requests else []),
        _question("Number of events in each of the five sinks"),
        _sinks(figures.sinks),
    )
    if out:
        # Not wrapped, so that it can be copied.
        console.print(_next_commands(figures, out), soft_wrap=True)


def _head(figures: Figures) -> RenderableType:
    title = Text.assemble(
        ("mnemoscope demo", "bold"),
        f"   {figures.answered} of {figures.turns} messages answered in {figures.seconds:.1f} s",
    )
    lines = [title, Text(_model(figures), style="dim")]
    if figures.broken:
        lines.append(Text(_fault(figures, *figures.broken), style="yellow"))
    elif figures.surge:
        lines.append(Text(_surge(figures.surge), style="yellow"))
    elif figures.failures:
        lines.append(Text(f"Runs raised: {_listed(figures.failures)}", style="bold red"))
    return Padding(Group(*lines), (1, 1, 0, 1))


def _model(figures: Figures) -> str:
    names = ", ".join(each.name or "unnamed" for each in figures.models) or "no model"
    if figures.scripted:
        return f"{names}: a script, not a language model; its prices are invented"
    return f"{names}, at list prices"


def _fault(figures: Figures, store: str, how: str) -> str:
    fault = f"From half-way on, {store} was {how}. {_AS_DESIGNED[store]} {_fates(figures.writes)}"
    if figures.failures:
        return f"{fault} Raised: {_listed(figures.failures)}."
    return f"{fault} Every message was answered."


def _fates(writes: dict[Fate, int]) -> str:
    return (
        f"Calls that it was not asked: {writes[Fate.REFUSED]}. Writes: "
        f"{writes[Fate.JOURNALLED]} kept in the journal, {writes[Fate.REPLAYED]} of them made "
        f"again when it was back, {writes[Fate.LOST]} lost."
    )


def _surge(surge: SurgeReport) -> str:
    return f"From half-way on, {surge.feature} used {FACTOR} times its tokens."


def _listed(counts: dict[str, int]) -> str:
    return ", ".join(f"{n} {name}" for name, n in counts.items())


def _turn(turn: AnsweredTurn) -> RenderableType:
    recalled = [*turn.recalled[:SHOWN]] or ["nothing"]
    if (more := len(turn.recalled) - SHOWN) > 0:
        recalled.append(f"({more} more)")
    lines = [
        _said("asked", turn.asked, "bold"),
        *(
            _said("recalled" if place == 0 else "", each, "dim")
            for place, each in enumerate(recalled)
        ),
        _said("answered", turn.answer, ""),
    ]
    return Padding(Group(*lines), (0, 1, 1, 1))


def _said(who: str, text: str, style: str) -> RenderableType:
    row = Table.grid(padding=(0, 1, 0, 0))
    row.add_column(width=9, style="cyan")
    row.add_column(overflow="fold")
    row.add_row(who, Text(text, style=style))
    return row


def _question(text: str) -> RenderableType:
    title = Text(text, style="bold cyan")
    return Padding(Rule(title, align="left", style="dim"), (1, 0, 0, 0))


def _answer(text: str) -> RenderableType:
    return Padding(Text(f"→ {text}", style="bold"), (0, 1))


def _table(first: str, *others: str) -> Table:
    table = Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0), header_style="dim")
    table.add_column(first, no_wrap=True)
    for name in others:
        table.add_column(name, justify="right")
    return table


def _latency(stores: tuple[StoreLatency, ...]) -> RenderableType:
    table = _table("store", "calls", "p50 ms", "p95 ms", "max ms", "total s", "not answered")
    for each in sorted(stores, key=lambda store: -store.total_s):
        timings = (each.p50_ms, each.p95_ms, each.max_ms, each.total_s)
        table.add_row(
            each.store,
            f"{each.operations:,}",
            *(f"{timing:,.1f}" for timing in timings),
            _not_answered(each),
        )
    return Padding(table, (0, 1))


def _not_answered(store: StoreLatency) -> Text:
    found = unanswered(store)
    if not found:
        return Text("0", style="green")
    return Text("\n".join(f"{n} {status}" for status, n in found.items()), style="bold red")


def _spend(spend: tuple[Spend, ...]) -> RenderableType:
    table = _table("feature", "calls", "input", "cached", "output", "reasoning", "USD")
    for each in spend:
        tokens = (each.input_tokens, each.cached_tokens, each.output_tokens, each.reasoning_tokens)
        table.add_row(
            each.name or "none",
            f"{each.calls:,}",
            *(f"{count:,}" for count in tokens),
            "no price" if each.unpriced_tokens else f"{each.cost_usd:.4f}",
        )
    return Padding(table, (0, 1))


def _dearest(spend: tuple[Spend, ...]) -> str:
    total = sum(each.cost_usd for each in spend)
    if not total:
        return "No call had a known price."
    dearest = max(spend, key=lambda each: each.cost_usd)
    return f"{dearest.name} caused {dearest.cost_usd / total:.0%} of ${total:.4f}."


def _memories(written: tuple[Remembered, ...]) -> RenderableType:
    table = Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0), header_style="dim", expand=True)
    for name in ("written", "store", "reads", "last read"):
        table.add_column(name, no_wrap=True, justify="right" if name == "reads" else "left")
    table.add_column("content, as stored", no_wrap=True, overflow="ellipsis", ratio=1)
    hidden = len(written) - 2 * SHOWN
    for each in written if hidden <= 0 else written[:SHOWN]:
        table.add_row(*_memory(each))
    if hidden > 0:
        table.add_row("⋮", "", "", "", f"({hidden} more)")
        for each in written[-SHOWN:]:
            table.add_row(*_memory(each))
    return Padding(table, (0, 1))


def _memory(memory: Remembered) -> tuple[str, ...]:
    return (
        _clock(memory.written_us[-1]),
        memory.store.removeprefix("langgraph."),
        f"{memory.reads}",
        _clock(memory.last_read_us) if memory.last_read_us else "never",
        text_of(memory.content),
    )


def _clock(micros: int) -> str:
    return f"{datetime.fromtimestamp(micros / 1e6, tz=UTC):%H:%M:%S}"


def _remembered(memories: Memories) -> str:
    replaced = _listed(memories.redacted) or "nothing"
    return (
        f"{len(memories.written)} memories, read {memories.reads:,} times. "
        f"Redacted before they were stored: {replaced}."
    )


def _requests(requests: CustomerRequests) -> Iterator[RenderableType]:
    wanted = [
        name
        for name, done in (("export", requests.bundle), ("erasure", requests.erasure))
        if done is not None
    ]
    yield _question(f"{requests.name} leaves and requests {' and '.join(wanted)}")
    if requests.bundle is not None:
        bundle = requests.bundle
        yield _answer(
            f"{bundle.path}: {bundle.memories:,} memories and {bundle.events:,} operations "
            "with proofs, a page to read and a program to check them."
        )
    if requests.erasure is not None:
        yield erasure_screen(requests.erasure)
        yield _answer(f"The audit trail has {requests.remaining:,} of their operations left.")


def _server_change(change: ServerChange) -> Iterator[RenderableType]:
    yield _question("Another agent asks the same memory over MCP, and its server changes")
    before, blocked, accepted = map(_tool_call, change.calls)
    command = Text(f"$ mnemoscope mcp accept {change.server} --server openmemory", style="cyan")
    yield before
    yield Padding("The server renames the parameter, and notifies nobody:", (0, 1))
    yield blocked
    yield Padding("A human looks at the change, and accepts it:", (0, 1))
    yield Padding(Group(command, *map(Text, change.changes)), (0, 1, 1, 1))
    yield accepted
    yield _answer(
        f"The server was asked {change.calls[-1].answered} times in {len(change.calls)} calls: "
        "what does not fit its contract does not reach it."
    )


def _tool_call(call: ToolCall) -> RenderableType:
    end = "blocked, the server was not asked" if call.blocked else "answered"
    asked = Text.assemble(
        (f"search_memory({call.parameter}=…) ", "bold"),
        (f"→ {end}", "bold red" if call.blocked else "green"),
    )
    told = [
        _said("told" if place == 0 else "", each, "dim") for place, each in enumerate(call.told)
    ]
    return Padding(Group(asked, *told), (0, 1, 1, 1))


def _sinks(sinks: SinkCounts) -> RenderableType:
    counts = (sinks.audit, sinks.prometheus, sinks.logs, sinks.otlp, sinks.langsmith)
    table = _table("", "audit rows", "Prometheus", "log lines", "OTLP spans", "LangSmith runs")
    table.add_row("events", *("yours" if each is None else f"{each:,}" for each in counts))
    verdict = "The sinks agree." if sinks.agree else "The sinks do not agree."
    style = "bold green" if sinks.agree else "bold red"
    return Padding(Group(table, Text(f"→ {verdict}", style=style)), (0, 1))


def _next_commands(figures: Figures, folder: Path) -> Text:
    memories, url = figures.memories, f"sqlite:///{(folder / 'audit.db').resolve()}"
    since = f" --since {utc_text(figures.surge.began_us)}" if figures.surge else ""
    return Text.assemble(
        f"\n Kept in {folder}: audit.db log.jsonl metrics.prom spans.jsonl runs.jsonl stores/\n",
        f" mnemoscope audit export --tenant {TENANT} --customer {memories.customer}",
        f" --audit-url {url}\n",
        f" mnemoscope spend{since} --audit-url {url}\n",
        style="dim",
    )

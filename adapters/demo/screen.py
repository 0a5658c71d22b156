"""The demo's last screen: three questions, answered from the audit table. Fits 80 columns."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from rich.box import SIMPLE_HEAD
from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from ...audit.reading import Remembered, Spend, StoreLatency
from ...audit.wording import text_of
from ...telemetry.text import utc_text
from ..command_line.erasure import screen as erasure_screen
from .figures import TENANT, Figures, Memories, SinkCounts, culprit, unanswered
from .parting import Parting
from .surge import FACTOR, Noticed

SHOWN = 3
"""Memories shown from the beginning, and as many from the end."""

_AS_DESIGNED = {
    "mem0": "Recalls came back neutral; writes that it did not take are counted.",
    "qdrant": "Searches came back neutral, so answers did without the house's documents.",
    "store": "Reads came back neutral; writes that it did not take are counted.",
    "checkpointer": (
        "It fails closed, so its runs raised: to go on from an empty state would overwrite the "
        "thread."
    ),
}


def show(figures: Figures, console: Console, kept: Path | None) -> None:
    """Print the last screen; *kept* is the folder that stays, if any."""
    memories = figures.memories
    console.print(
        _head(figures),
        _question("1  When recall is slow, which store is to blame?"),
        _latency(figures.stores),
        _answer(culprit(figures)),
        _question("2  When spend triples, which feature caused it?"),
        _spend(figures.spend),
        _answer(_dearest(figures.spend)),
        *([_answer(figures.surge.said)] if figures.surge else []),
        _question(f"3  What does the agent remember about {memories.name}, and since when?"),
        _memories(memories.written),
        _answer(_remembered(memories)),
        *(_parting(figures.parting) if figures.parting else []),
        _question("Five sinks, one truth"),
        _sinks(figures.sinks),
    )
    if kept:
        # Not wrapped, so that it can be copied.
        console.print(_kept(figures, kept), soft_wrap=True)


def _head(figures: Figures) -> RenderableType:
    title = Text.assemble(
        ("mnemoscope demo", "bold"),
        f"   {figures.answered} of {figures.turns} messages answered in {figures.seconds:.1f} s",
    )
    lines = [title, Text(_model(figures), style="dim")]
    if figures.broken:
        lines.append(Text(_trouble(figures, *figures.broken), style="yellow"))
    elif figures.surge:
        lines.append(Text(_surge(figures.surge), style="yellow"))
    elif figures.failures:
        lines.append(Text(f"Runs raised: {_listed(figures.failures)}", style="bold red"))
    return Padding(Group(*lines), (1, 1, 0, 1))


def _model(figures: Figures) -> str:
    names = ", ".join(each.name or "unnamed" for each in figures.models) or "no model"
    if figures.scripted:
        return f"{names}: a script, not a language model, at prices that are made up"
    return f"{names}, at list prices"


def _trouble(figures: Figures, store: str, how: str) -> str:
    said = f"From half-way on, {store} was {how}. {_AS_DESIGNED[store]}"
    if figures.failures:
        return f"{said} Raised: {_listed(figures.failures)}."
    return f"{said} Every message was answered."


def _surge(surge: Noticed) -> str:
    return f"From half-way on, {surge.feature} used {FACTOR} times its tokens."


def _listed(counts: dict[str, int]) -> str:
    return ", ".join(f"{n} {name}" for name, n in counts.items())


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
        return "Nothing was spent that the price table knows."
    dearest = max(spend, key=lambda each: each.cost_usd)
    return f"{dearest.name} caused {dearest.cost_usd / total:.0%} of ${total:.4f}."


def _memories(written: tuple[Remembered, ...]) -> RenderableType:
    table = Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0), header_style="dim", expand=True)
    for name in ("written", "store", "reads", "last read"):
        table.add_column(name, no_wrap=True, justify="right" if name == "reads" else "left")
    table.add_column("what, as it is stored", no_wrap=True, overflow="ellipsis", ratio=1)
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
        f"Replaced before they were stored: {replaced}."
    )


def _parting(parting: Parting) -> Iterator[RenderableType]:
    yield _question(f"{parting.name} leaves, and asks for everything")
    if parting.bundle is not None:
        bundle = parting.bundle
        yield _answer(
            f"{bundle.path.name}: {bundle.memories:,} things remembered, {bundle.events:,} "
            "operations with proofs, a page to read and a program to check it."
        )
    if parting.erasure is not None:
        yield erasure_screen(parting.erasure)
        yield _answer(f"The trail has {parting.remaining:,} operations left in that name.")


def _sinks(sinks: SinkCounts) -> RenderableType:
    counts = (sinks.audit, sinks.prometheus, sinks.logs, sinks.otlp, sinks.langsmith)
    table = _table("", "audit rows", "Prometheus", "log lines", "OTLP spans", "LangSmith runs")
    table.add_row("events", *("yours" if each is None else f"{each:,}" for each in counts))
    verdict = "They agree." if sinks.agree else "They do not agree."
    style = "bold green" if sinks.agree else "bold red"
    return Padding(Group(table, Text(f"→ {verdict}", style=style)), (0, 1))


def _kept(figures: Figures, folder: Path) -> Text:
    memories, url = figures.memories, f"sqlite:///{(folder / 'audit.db').resolve()}"
    since = f" --since {utc_text(figures.surge.began_us)}" if figures.surge else ""
    return Text.assemble(
        f"\n Kept in {folder}: audit.db log.jsonl metrics.prom spans.jsonl runs.jsonl stores/\n",
        f" mnemoscope audit export --tenant {TENANT} --customer {memories.customer}",
        f" --audit-url {url}\n",
        f" mnemoscope spend{since} --audit-url {url}\n",
        style="dim",
    )

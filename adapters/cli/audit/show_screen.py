"""The tables of ``mnemoscope audit show``, which fit 80 columns."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from datetime import UTC, datetime
from itertools import groupby

from rich.box import SIMPLE_HEAD
from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from ....audit.bundle.sentences import counted
from ....audit.queries.memory_model import MemoriesAt, Memory, UsedMemory
from ....audit.queries.provenance import Recall, RecalledMemory
from ....audit.queries.text_extraction import text_of
from ....audit.record.rows import AuditRow
from ....telemetry.event.event import OperationClass
from ..output import day_time, done_by

_VERBS = {
    OperationClass.RECALL: "read",
    OperationClass.REMEMBER: "wrote",
    OperationClass.FORGET: "deleted",
    OperationClass.RESUME: "resumed",
    OperationClass.CHECKPOINT: "saved",
    OperationClass.MODEL: "ran",
}
_CONVERSATION = frozenset({OperationClass.RESUME, OperationClass.CHECKPOINT})
"""Of these the trail has the machinery's own fields, which say nothing to a person."""

_NO_OPERATION = "No operation is recorded for that."
_NO_RECALL = (
    "No recall is recorded for that run. If its name contains its customer's id, pass --customer "
    "as well: the trail records the name without the id."
)
_MOST_CHANGES = 5


def operations_screen(rows: Collection[AuditRow]) -> RenderableType:
    """Return a table of operations by day, oldest first; saves of one conversation are one line."""
    if not rows:
        return Padding(Text(_NO_OPERATION), (1, 1))
    table = _table("time (UTC)", "action", "store", "hits", "feature", "stored content")
    for day, of_day in groupby(rows, lambda each: _time(each.occurred_us).date()):
        table.add_row(Text(f"{day}", style="bold"))
        for row, times in _folded(of_day):
            table.add_row(
                f"{_time(row.occurred_us):%H:%M:%S}",
                _operation(row, times),
                _short(row.store),
                "" if row.hits is None else f"{row.hits}",
                row.feature or row.agent or "",
                _content(row),
            )
    return Padding(table, (0, 1))


def _folded(rows: Iterable[AuditRow]) -> Iterator[tuple[AuditRow, int]]:
    """Yield the last of each row of saves, and how many they were; all else as it is."""
    for key, found in groupby(rows, _conversation):
        same = [*found]
        yield from [(same[-1], len(same))] if key else [(each, 1) for each in same]


def _conversation(row: AuditRow) -> tuple[str | None, ...] | None:
    """Return what saves have in common that are one line. None: it is told on its own."""
    if row.op_class is not OperationClass.CHECKPOINT or row.detail is None:
        return None
    return row.store, row.run, row.status, row.feature, row.agent


def _operation(row: AuditRow, times: int) -> Text:
    verb = _VERBS[row.op_class] + (f" {times:,} times" if times > 1 else "")
    return Text(verb) if row.status.is_normal else Text(f"{verb}: {row.status}", style="red")


def _content(row: AuditRow) -> str:
    if row.detail is None:
        return "(erased, or no customer)"
    if row.op_class in _CONVERSATION:
        return f"conversation {row.run}" if row.run else ""
    return text_of(row.content) or ", ".join(each.memory_id for each in row.memories)


def memories_screen(found: MemoriesAt, at_us: int) -> RenderableType:
    """Return tables of the memories about a customer at *at_us*, and of what else was used."""
    at = f"{_time(at_us):%Y-%m-%d %H:%M:%S} UTC"
    parts = [*_remembered(found.remembered, at), *_used(found.used)]
    return Padding(Group(*parts), (0, 1))


def _remembered(memories: Collection[Memory], at: str) -> Iterator[RenderableType]:
    if not memories:
        yield Padding(Text(f"No memory is recorded for them at {at}."), (1, 0))
        return
    table = _table("written", "changed", "store", "stored content")
    times = (micros for each in memories for micros in (each.written_us, each.changed_us))
    clock = _time_format(times)
    for each in memories:
        changed = clock(each.changed_us) if each.changed_us != each.written_us else ""
        doubt = "may be deleted: " if each.in_doubt else ""
        text = doubt + (text_of(each.content) or each.memory_id)
        table.add_row(clock(each.written_us), changed, _short(each.store), text)
    yield table
    yield Text(f"→ {counted(len(memories), 'memory', 'memories')} at {at}.", style="bold")


def _used(memories: Collection[UsedMemory]) -> Iterator[RenderableType]:
    if not memories:
        return
    yield Padding(
        Text("Used to answer them until then, and not written for them by the trail:"), (1, 0, 0, 0)
    )
    table = _table("last used", "times", "store", "stored content")
    clock = _time_format(each.last_us for each in memories)
    for each in memories:
        text = text_of(each.content) or each.memory_id
        table.add_row(clock(each.last_us), f"{each.times:,}", _short(each.store), text)
    yield table


def recalls_screen(found: Collection[Recall], run_name: Callable[[str], str]) -> RenderableType:
    """Return the memories that a run recalled and their origins; *run_name* names other runs."""
    if not found:
        return Padding(Text(_NO_RECALL), (1, 1))
    return Padding(Group(*(part for each in found for part in _recall(each, run_name))), (1, 1))


def _recall(recall: Recall, run_name: Callable[[str], str]) -> Iterator[RenderableType]:
    row = recall.row
    query = text_of(row.content)
    title = f"{day_time(row.occurred_us)}  {_short(row.store)}  {row.feature or row.agent or ''}"
    yield Text(title.rstrip(), style="bold cyan")
    if query:
        yield _indented(f"query: {query}", 2, style="dim")
    for each in recall.seen:
        score = "" if each.score is None else f"score {each.score:.3f}  "
        yield _indented(f"{each.rank}. {score}{_last_text(each)}", 2)
        yield from (_indented(line, 5, style="dim") for line in _history(each, run_name))
    if not recall.seen:
        yield _indented(_no_results(row), 2)
    yield Text("")


def _indented(text: str, columns: int, style: str = "") -> RenderableType:
    return Padding(Text(text, style=style), (0, 0, 0, columns))


def _no_results(row: AuditRow) -> str:
    if row.detail is None:
        return "its results were erased"
    if row.status.is_normal:
        return "no results"
    return f"no results: the call to {row.store} ended {row.status}"


def _last_text(seen: RecalledMemory) -> str:
    # As it was when it was recalled: what came since the run did not see.
    written = [each for each in (seen.origin, *seen.before) if each and each.content]
    return text_of(written[-1].content) if written else seen.memory_id


def _history(seen: RecalledMemory, run_name: Callable[[str], str]) -> Iterator[str]:
    if seen.origin is None:
        yield "origin not in the trail: written without mnemoscope, earlier, or erased"
    else:
        yield f"written {done_by(seen.origin, run_name)}"
    if seen.before:
        times = "once" if len(seen.before) == 1 else f"{len(seen.before)} times, last"
        yield f"rewritten {times} {done_by(seen.before[-1], run_name)}"
    for each in seen.since[:_MOST_CHANGES]:
        verb = "deleted" if each.op_class is OperationClass.FORGET else "changed"
        yield f"since then {verb} {done_by(each, run_name)}"
    if len(seen.since) > _MOST_CHANGES:
        yield f"and {len(seen.since) - _MOST_CHANGES} more changes: --json has them"


def _table(*names: str) -> Table:
    table = Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0), header_style="dim", expand=True)
    for name in names[:-1]:
        right = name == "hits"
        table.add_column(name, no_wrap=True, justify="right" if right else "left")
    table.add_column(names[-1], no_wrap=True, overflow="ellipsis", ratio=1)
    return table


def _time_format(times_us: Iterable[int]) -> Callable[[int], str]:
    """Return how to format times: without the date if all are of one day."""
    days = {_time(each).date() for each in times_us}
    return (lambda micros: f"{_time(micros):%H:%M:%S}") if len(days) == 1 else day_time


def _time(micros: int) -> datetime:
    return datetime.fromtimestamp(micros / 1e6, tz=UTC)


def _short(store: str) -> str:
    return store.removeprefix("langgraph.")

"""``mnemoscope audit show``, for a person: tables that fit 80 columns."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from datetime import UTC, datetime

from rich.box import SIMPLE_HEAD
from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from ...audit.memory_model import Memory
from ...audit.provenance import Recall, Seen
from ...audit.rows import AuditRow
from ...audit.wording import text_of
from ...telemetry.event import OperationClass

_VERBS = {
    OperationClass.RECALL: "read",
    OperationClass.REMEMBER: "wrote",
    OperationClass.FORGET: "deleted",
    OperationClass.RESUME: "resumed",
    OperationClass.CHECKPOINT: "saved",
    OperationClass.MODEL: "asked",
}
_NONE = "No operation is recorded for that."
_NO_RECALL = (
    "No recall is recorded for that run. If its name holds its customer's id, pass --customer as "
    "well: it is recorded without."
)
_MOST_CHANGES = 5


def operations(rows: Collection[AuditRow]) -> RenderableType:
    """Return operations, oldest first."""
    if not rows:
        return Padding(Text(_NONE), (1, 1))
    table = _table("when", "did", "where", "hits", "for", "what, as it is stored")
    when = _clock(each.occurred_us for each in rows)
    for row in rows:
        table.add_row(
            when(row.occurred_us),
            _did(row),
            _short(row.store),
            "" if row.hits is None else f"{row.hits}",
            row.feature or row.agent or "",
            _what(row),
        )
    return Padding(table, (0, 1))


def _did(row: AuditRow) -> Text:
    verb = _VERBS[row.op_class]
    return Text(verb) if row.status.is_normal else Text(f"{verb}: {row.status}", style="red")


def _what(row: AuditRow) -> str:
    if row.detail is None:
        return "(erased, or about nobody)"
    return text_of(row.content) or ", ".join(each.memory_id for each in row.memories)


def memories(found: Collection[Memory], moment_us: int) -> RenderableType:
    """Return what was remembered at a moment."""
    moment = f"{_moment(moment_us):%Y-%m-%d %H:%M:%S} UTC"
    if not found:
        return Padding(Text(f"Nothing is known to have been remembered at {moment}."), (1, 1))
    table = _table("written", "changed", "store", "what, as it was stored")
    when = _clock(time for each in found for time in (each.written_us, each.changed_us))
    for each in found:
        changed = when(each.changed_us) if each.changed_us != each.written_us else ""
        doubt = "may be deleted: " if each.in_doubt else ""
        text = doubt + (text_of(each.content) or each.memory_id)
        table.add_row(when(each.written_us), changed, _short(each.store), text)
    counted = f"→ {len(found)} memories at {moment}."
    return Padding(Group(table, Text(counted, style="bold")), (0, 1))


def recalls(seen: Collection[Recall], named: Callable[[str], str]) -> RenderableType:
    """Return what a run saw, and where each of it came from; *named* says what runs are called."""
    if not seen:
        return Padding(Text(_NO_RECALL), (1, 1))
    return Padding(Group(*(part for each in seen for part in _recall(each, named))), (1, 1))


def _recall(recall: Recall, named: Callable[[str], str]) -> Iterator[RenderableType]:
    row = recall.row
    asked = text_of(row.content)
    title = f"{_when(row.occurred_us)}  {_short(row.store)}  {row.feature or row.agent or ''}"
    yield Text(title.rstrip(), style="bold cyan")
    if asked:
        yield _indented(f"asked: {asked}", 2, style="dim")
    for each in recall.seen:
        score = "" if each.score is None else f"score {each.score:.3f}  "
        yield _indented(f"{each.rank}. {score}{_last_text(each)}", 2)
        yield from (_indented(line, 5, style="dim") for line in _story(each, named))
    if not recall.seen:
        yield _indented(_nothing(row), 2)
    yield Text("")


def _indented(text: str, columns: int, style: str = "") -> RenderableType:
    return Padding(Text(text, style=style), (0, 0, 0, columns))


def _nothing(row: AuditRow) -> str:
    if row.detail is None:
        return "what it saw was erased"
    if row.status.is_normal:
        return "saw nothing"
    return f"saw nothing: {row.store} was asked, and it ended {row.status}"


def _last_text(seen: Seen) -> str:
    written = [each for each in (seen.origin, *seen.before) if each and each.content]
    return text_of(written[-1].content) if written else seen.memory_id


def _story(seen: Seen, named: Callable[[str], str]) -> Iterator[str]:
    if seen.origin is None:
        yield "where it came from is not in the trail: written past it, before it, or erased"
    else:
        yield f"written {_by(seen.origin, named)}"
    if seen.before:
        times = "once" if len(seen.before) == 1 else f"{len(seen.before)} times, last"
        yield f"written again {times} {_by(seen.before[-1], named)}"
    for each in seen.since[:_MOST_CHANGES]:
        verb = "deleted" if each.op_class is OperationClass.FORGET else "changed"
        yield f"since then {verb} {_by(each, named)}"
    if len(seen.since) > _MOST_CHANGES:
        yield f"and {len(seen.since) - _MOST_CHANGES} more changes: --json has them"


def _by(row: AuditRow, named: Callable[[str], str]) -> str:
    parts = [
        _when(row.occurred_us),
        f"by {row.agent}" if row.agent else "",
        f"({row.feature})" if row.feature else "",
        f"in {named(row.run)}" if row.run else "",
    ]
    return " ".join(part for part in parts if part)


def _table(*names: str) -> Table:
    table = Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0), header_style="dim", expand=True)
    for name in names[:-1]:
        right = name == "hits"
        table.add_column(name, no_wrap=True, justify="right" if right else "left")
    table.add_column(names[-1], no_wrap=True, overflow="ellipsis", ratio=1)
    return table


def _clock(times_us: Iterable[int]) -> Callable[[int], str]:
    """Return how to write times: without the day, where they are all of one day."""
    days = {_moment(each).date() for each in times_us}
    return (lambda micros: f"{_moment(micros):%H:%M:%S}") if len(days) == 1 else _when


def _when(micros: int) -> str:
    return f"{_moment(micros):%m-%d %H:%M:%S}"


def _moment(micros: int) -> datetime:
    return datetime.fromtimestamp(micros / 1e6, tz=UTC)


def _short(store: str) -> str:
    return store.removeprefix("langgraph.")

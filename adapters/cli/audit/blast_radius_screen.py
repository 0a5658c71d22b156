"""The tree of ``mnemoscope audit blast-radius``, which fits 80 columns."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Sequence

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text
from rich.tree import Tree

from ....audit.bundle.sentences import counted
from ....audit.erasure.withdrawal import Withdrawal
from ....audit.erasure.withdrawal_words import is_checkpoint, radius_lines, withdrawal_line
from ....audit.queries.blast_radius import BlastRadius, ReachedMemory, ReachedRun
from ....audit.queries.memory_model import ended_us
from ....audit.queries.text_extraction import part_of, text_of
from ....audit.record.rows import AuditRow
from ....memory.subject_data.records import RemovalOutcome
from ....telemetry.text import json_text
from ..output import day_time, done_by

_DEEPEST = 8
"""Runs one behind the other that the tree shows: it has to fit the screen."""

_WIDEST = 12
"""Branches of one memory or run that it shows."""

_MOST_ROWS = 50
"""Memories of a withdrawal that are listed."""


def blast_radius_screen(radius: BlastRadius) -> RenderableType:
    """Return the memory as a tree of runs, their later writes and the readers of those; totals."""
    return Padding(Group(_Branches(radius).tree(), Text(""), *_totals(radius)), (1, 1))


_OUTCOMES = {
    RemovalOutcome.DELETED: ("✓ deleted", "green"),
    RemovalOutcome.GONE: ("✓ not there", "green"),
    RemovalOutcome.LEFT: ("! still there", "bold red"),
    RemovalOutcome.FAILED: ("✗ failed", "bold red"),
    RemovalOutcome.UNREACHABLE: ("? not reachable", "yellow"),
}


def withdrawal_screen(done: Withdrawal) -> RenderableType:
    """Return a row for each memory that is or may be there still, how many are not, a verdict."""
    table = Table.grid(padding=(0, 2))
    wanted = [each for each in done.memories if each.outcome is not RemovalOutcome.GONE]
    for each in wanted[:_MOST_ROWS]:
        word, style = _OUTCOMES[each.outcome]
        table.add_row(Text(word, style=style), _name(each.memory), Text(each.why, style="dim"))
    if len(wanted) > _MOST_ROWS:
        table.add_row("", _more(f"and {len(wanted) - _MOST_ROWS:,} more"), "")
    for line in done.unsettled:
        table.add_row(_warning("! under way"), line, "")
    style = "bold green" if done.complete else "bold red"
    return Padding(Group(table, Text(withdrawal_line(done), style=style)), (0, 1))


class _Branches:
    """The memories and runs of a radius, each on the branch on which it was reached first."""

    def __init__(self, radius: BlastRadius) -> None:
        self._root = radius.memories[0]
        self._has_tenants = len({each.address.tenant for each in radius.runs}) > 1
        self._runs: dict[object, list[ReachedRun]] = defaultdict(list)
        self._memories: dict[object, list[ReachedMemory]] = defaultdict(list)
        for run in radius.runs:
            self._runs[run.through].append(run)
        for memory in radius.derived:
            self._memories[memory.through].append(memory)

    def tree(self) -> Tree:
        """Return the whole."""
        tree = Tree(Group(*_root_lines(self._root)), guide_style="dim")
        self._add_runs(tree, self._root)
        return tree

    def _add_runs(self, branch: Tree, memory: ReachedMemory) -> None:
        runs = self._runs[memory.address]
        # Each level is indented, and the text beside it becomes a column of words.
        if runs and memory.hops >= _DEEPEST:
            branch.add(_more(f"seen by {counted(len(runs), 'more run', 'more runs')}"))
            return
        for run in runs[:_WIDEST]:
            self._add_written(branch.add(self._run_line(run)), run)
        if len(runs) > _WIDEST:
            branch.add(_more(f"and by {counted(len(runs) - _WIDEST, 'more run', 'more runs')}"))

    def _run_line(self, run: ReachedRun) -> Text:
        first, times = run.recalls[0], len(run.recalls)
        tenant = f" of {run.address.tenant or 'no tenant'}" if self._has_tenants else ""
        often = "" if times == 1 else f", {times:,} times,"
        line = f"{run.address.run}{tenant} saw it {day_time(first.occurred_us)}{often}{_who(first)}"
        return Text(f"{line} (event {first.seq:,})")

    def _add_written(self, branch: Tree, run: ReachedRun) -> None:
        # A thread saves many checkpoints: those that only it goes on from are one line.
        followed, saved = list[ReachedMemory](), list[ReachedMemory]()
        for memory in self._memories[run.address]:
            is_unseen = is_checkpoint(memory) and not self._runs[memory.address]
            (saved if is_unseen else followed).append(memory)
        for memory in followed[:_WIDEST]:
            self._add_runs(branch.add(_written_line(memory)), memory)
        if len(followed) > _WIDEST:
            more = counted(len(followed) - _WIDEST, "more memory", "more memories")
            branch.add(_more(f"and wrote {more}"))
        if saved:
            branch.add(f"saved {counted(len(saved), 'checkpoint', 'checkpoints')}")


def _root_lines(memory: ReachedMemory) -> Iterator[Text]:
    yield Text(_name(memory), style="bold cyan")
    if text := _text(memory):
        yield _one_line(text)
    if memory.writes:
        first, *later = memory.writes
        yield Text(f"written {done_by(first)} (event {first.seq:,})", style="dim")
        if later:
            times = "once" if len(later) == 1 else f"{len(later):,} times, last"
            yield Text(f"rewritten {times} {done_by(later[-1])}", style="dim")
    else:
        yield Text("written without mnemoscope, earlier than the trail, or erased", style="dim")
    known = {"customer": memory.customer, "origin": memory.origin}
    if totals := ", ".join(f"{name} {of}" for name, of in known.items() if of):
        yield Text(totals, style="dim")
    yield from _deleted(memory)


def _written_line(memory: ReachedMemory) -> RenderableType:
    first = memory.writes[0]
    verb = "saved checkpoint" if is_checkpoint(memory) else "wrote"
    doubt = "" if first.status.is_normal else f", which ended {first.status}"
    line = f"{verb} {_name(memory)} {day_time(first.occurred_us)}{doubt} (event {first.seq:,})"
    text = _text(memory)
    quoted = [_one_line(text)] if text else []
    return Group(Text(line, style="cyan"), *quoted, *_deleted(memory))


def _deleted(memory: ReachedMemory) -> Iterator[Text]:
    last = max((ended_us(each) for each in memory.writes), default=0)
    # A memory may be written again under its id, and is there then.
    since = [each for each in memory.deletions if ended_us(each) > last]
    if since:
        yield Text(f"deleted {done_by(since[-1])} (event {since[-1].seq:,})", style="green")


def _totals(radius: BlastRadius) -> Iterator[Text]:
    first, *more = radius_lines(radius)
    yield Text(f"→ {first}", style="bold")
    yield from map(_warning, more)


def _warning(text: str) -> Text:
    return Text(text, style="yellow")


def _more(text: str) -> Text:
    return Text(f"{text}: --json has them", style="dim")


def _name(memory: ReachedMemory) -> str:
    store, collection, memory_id, _owner = memory.address
    place = f"{store.removeprefix('langgraph.')}" + (f" {collection}" if collection else "")
    return f"{memory_id} in {place}"


def _text(memory: ReachedMemory) -> str:
    """Return the text of a memory's first version: the runs shown first saw that one."""
    if not memory.writes or is_checkpoint(memory):
        return ""
    return _said(memory.writes[0], memory.address.memory_id)


def _said(row: AuditRow, memory_id: str) -> str:
    if row.content is None:
        return ""
    ids: Sequence[str] = [each.memory_id for each in row.memories]
    part = part_of(json.loads(row.content), memory_id, ids.index(memory_id), len(ids))
    return text_of(json_text(part))


def _one_line(text: str) -> Text:
    return Text(f"“{text}”", overflow="ellipsis", no_wrap=True)


def _who(row: AuditRow) -> str:
    feature = f" ({row.feature})" if row.feature else ""
    return f" by {row.agent}{feature}" if row.agent else feature

"""
The routes of recorded runs: the nodes of each graph by superstep, as sealed events have them.

Order is the graph's own number of a superstep. No clock has a part in it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise, zip_longest
from typing import NamedTuple

import orjson

from ...telemetry.event.event import VERDICT, Status
from ..record.rows import AuditRow
from .blast_radius import RunAddress, run_address
from .runs import verdict_of
from .spending import Spent

OK, DIFFERS, UNKNOWN = "ok", "differs", "cannot tell"
NODE, GRAPH = "execute_node", "invoke_agent"
_LOOPS = {"cycle", "similar", "diminishing", "iterations"}


class NodeEnd(NamedTuple):
    """A task that ended. Its edges were followed if it is done; `within` is the task around it."""

    seq: int
    name: str
    graph: str
    step: int
    task: str
    within: str | None
    is_done: bool


@dataclass(slots=True, eq=False)
class Route:
    """
    The way of one graph from input to end, whoever resumed it.

    Attributes:
        graph: Its name. None: its end is not on record, as of a process that was killed.
        is_whole: Whether it is known to begin where the graph does.
        steps: Tasks by superstep and id, each as it ended last.
        resumed: Supersteps that a resumed run began with, or a fork: events do not tell which.
    """

    graph: str | None
    within: str | None
    is_whole: bool
    steps: dict[int, dict[str, NodeEnd]] = field(default_factory=dict[int, dict[str, NodeEnd]])
    resumed: set[int] = field(default_factory=set[int])

    def precedes(self, step: int, tasks: set[str]) -> bool:
        """Return whether a run of the graph that begins at *step* with *tasks* resumes it."""
        last = max(self.steps)
        # Without a checkpointer each turn begins at 1, which resumes nothing by itself. A killed
        # process has left no event of the tasks that it was at.
        is_next = step in {self.done + 1, self.graph or last}
        return is_next and (step > 1 or not tasks.isdisjoint(self.steps[step]))

    @property
    def done(self) -> int:
        """The last superstep of which all tasks are done."""
        last = max(self.steps)
        return last if all(each.is_done for each in self.steps[last].values()) else last - 1


class Superstep(NamedTuple):
    """A superstep of a route, below the tasks *around* it, outermost first."""

    around: tuple[NodeEnd, ...]
    route: Route
    step: int

    @property
    def tasks(self) -> list[NodeEnd]:
        """Its tasks, by name."""
        return sorted(self.route.steps[self.step].values(), key=lambda each: each.name)

    @property
    def is_led(self) -> bool:
        """Whether what led to it is on record: the superstep before, or the entry of the graph."""
        is_first = self.step == min(self.route.steps)
        return self.route.is_whole if is_first else self.step - 1 in self.route.steps

    @property
    def names(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The names of the nodes around it, and of its own: what is compared."""
        return tuple(t.name for t in self.around), tuple(t.name for t in self.tasks)

    def __str__(self) -> str:
        """Return its nodes behind those around it: ``team / draft, search x3``."""
        around, own = self.names
        return " / ".join((*around, counted(Counter(own))))


def counted(names: Counter[str]) -> str:
    """Return *names* as people read them: ``draft, search x3``."""
    return ", ".join(f"{each} x{n}" if n > 1 else each for each, n in sorted(names.items()))


class RouteFinding(NamedTuple):
    """What a check says of a run, and of which superstep."""

    check: str
    answer: str
    said: str
    at: Superstep | None = None


def recorded_runs(rows: Iterable[AuditRow]) -> dict[RunAddress, list[AuditRow]]:
    """Return by run, in order of the first, the operations that routes and audits are made of."""
    found: dict[RunAddress, list[AuditRow]] = {}
    for row in rows:
        is_told = row.operation in {NODE, GRAPH, VERDICT} or row.usage is not None or row.error
        if is_told and (address := run_address(row)) is not None:
            found.setdefault(address, []).append(row)
    return found


def route_of(rows: Sequence[AuditRow]) -> list[Superstep]:
    """Return the supersteps of a run in one order: graphs in nodes stand behind their superstep."""
    graphs = {row.span_id: row.method for row in rows if row.operation == GRAPH}
    runs: dict[str, list[NodeEnd]] = {}
    for node in filter(None, map(_node_end, rows)):
        runs.setdefault(node.graph, []).append(node)
    routes: list[Route] = []
    # In a thread, numbers grow from turn to turn, whichever process is recorded first.
    for graph, nodes in sorted(runs.items(), key=lambda run: min(node.step for node in run[1])):
        first, tasks = min(node.step for node in nodes), {node.task for node in nodes}
        name, within = graphs.get(graph), nodes[0].within
        alike = [r for r in routes if r.within == within and (r.graph or name) == (name or r.graph)]
        route = next((each for each in alike[::-1] if each.precedes(first, tasks)), None)
        if route is None:
            # The input of a thread's next turn, and its entry, are supersteps without nodes.
            route = Route(name, within, first <= 1 or any(each.done + 3 == first for each in alike))
            routes.append(route)
        elif tasks.isdisjoint(route.steps.get(first, ())):
            route.resumed.add(first)
        route.graph = route.graph or name
        for node in nodes:
            route.steps.setdefault(node.step, {})[node.task] = node
    return [*_ordered(routes)]


def _node_end(row: AuditRow) -> NodeEnd | None:
    place = orjson.loads(row.header).get("node_run") if row.operation == NODE else None
    if place is None or row.method == "__start__":
        return None
    is_done = not place.pop("left") and row.status is Status.OK
    return NodeEnd(seq=row.seq, name=row.method, is_done=is_done, **place)


def _ordered(routes: Sequence[Route]) -> Iterator[Superstep]:
    def below(task: str | None, around: tuple[NodeEnd, ...]) -> list[list[Superstep]]:
        return [[*steps_of(each, around)] for each in routes if each.within == task]

    def steps_of(route: Route, around: tuple[NodeEnd, ...]) -> Iterator[Superstep]:
        for step in sorted(route.steps):
            yield (here := Superstep(around, route, step))
            inner = [found for task in here.tasks for found in below(task.task, (*around, task))]
            for found in sorted(inner, key=lambda steps: [each.names for each in steps]):
                yield from found

    known = {task for each in routes for tasks in each.steps.values() for task in tasks}
    outermost = [found for each in {r.within for r in routes} - known for found in below(each, ())]
    for found in sorted(outermost, key=lambda steps: min(task.seq for task in steps[0].tasks)):
        yield from found


def compared(steps: Sequence[Superstep], others: Sequence[Sequence[Superstep]]) -> RouteFinding:
    """Return whether one of *others* has the same route, or where the most alike differs."""
    unlike: list[tuple[int, bool, str]] = []
    for other in others:
        pairs = enumerate(zip_longest(steps, other))
        at = next((n for n, (a, b) in pairs if not (a and b) or a.names != b.names), None)
        if at is None:
            return RouteFinding("route", OK, f"{len(steps)} supersteps, as before")
        is_known = all(each.is_led for each in (*steps[: at + 1], *other[: at + 1]))
        here, there = [f"{of[at]}" if at < len(of) else "the end" for of in (steps, other)]
        unlike.append((at, is_known, f"{here}, where {there} was"))
    if not unlike:
        return RouteFinding("route", UNKNOWN, "there is no other run to compare with")
    at, is_known, said = max(unlike, key=lambda each: each[0])
    answer = DIFFERS if is_known else UNKNOWN
    return RouteFinding("route", answer, said, steps[at] if at < len(steps) else None)


def audited(
    steps: Sequence[Superstep], rows: Sequence[AuditRow], limits: Mapping[str, float], most: int
) -> Iterator[RouteFinding]:
    """
    Yield what is not on record of a run, and where it went on for too long.

    That is: a decision made more than *most* times a turn, more than *limits* of ``usd``,
    ``tokens`` and ``seconds``, what a rule has stopped, and outputs that a schema refused.
    """
    if not steps:
        yield RouteFinding("route", UNKNOWN, "no node of it is on record with its place")
    for here in steps:
        if not here.is_led:
            yield RouteFinding("route", UNKNOWN, f"what led to {here} is not on record", here)
    yield from _loops(steps, most)
    for row in rows:
        said = verdict_of(row) if row.operation == VERDICT else {}
        if "stop" in {said.get("outcome"), said.get("would")}:
            check, why = "loop" if said["reason"] in _LOOPS else "budget", said["reason"]
            yield RouteFinding(check, DIFFERS, f"rule {said['rule']}: {why}, event {row.seq}")
        elif row.error and ("Validation" in row.error or "OutputParser" in row.error):
            yield RouteFinding("schema", DIFFERS, f"{row.method} was refused, event {row.seq}")
    yield from _budgets(steps, rows, limits)


def _loops(steps: Sequence[Superstep], most: int) -> Iterator[RouteFinding]:
    for route in dict.fromkeys(each.route for each in steps):
        own = [each for each in steps if each.route is route]
        turns = Counter((here.names, after.names) for here, after in pairwise(own))
        for here, after in pairwise(own):
            if (count := turns.pop((here.names, after.names), 0)) > most:
                yield RouteFinding("loop", DIFFERS, f"{here} → {after}, {count} times", here)


def _budgets(
    steps: Sequence[Superstep], rows: Sequence[AuditRow], limits: Mapping[str, float]
) -> Iterator[RouteFinding]:
    used = [(row.usage, row.status) for row in rows if row.usage is not None and not row.nested]
    spent = sum((Spent.of_call(*each) for each in used), Spent())
    busy_s = sum(row.duration_us for row in rows if row.operation == GRAPH and not row.nested) / 1e6
    is_whole = {"usd": not spent.unpriced_calls, "tokens": all(use.reported for use, _ in used)}
    is_whole["seconds"] = bool(steps) and all(each.route.graph for each in steps)
    amounts = {"usd": spent.cost_usd, "tokens": spent.tokens, "seconds": busy_s}
    for unit, limit in limits.items():
        answer = DIFFERS if amounts[unit] > limit else OK if is_whole[unit] else UNKNOWN
        yield RouteFinding("budget", answer, f"{amounts[unit]:,.6g} of {limit:,.6g} {unit}")

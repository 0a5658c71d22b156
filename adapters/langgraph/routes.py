"""
Recorded routes held against a compiled graph: its edges, and its routers on recorded states.

Of the graph only routers run, the functions of its conditional edges. LangGraph is given what each
node wrote as an update of a copy of the state before, and says what would run next.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from langchain_core.callbacks import BaseCallbackHandler
from langgraph.checkpoint.base import CheckpointTuple
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.constants import END, START
from langgraph.types import Command, StateUpdate
from langsmith import tracing_context  # pyright: ignore[reportUnknownVariableType]

from ...audit.queries.routes import DIFFERS, UNKNOWN, RouteFinding, Superstep, counted
from ...memory.context import context

_NOBODY: Final = "00000000-0000-0000-0000-000000000000"
"""LangGraph's task of what no task has written, but whoever resumed the graph."""


class _RoutersAlone(BaseCallbackHandler):
    """Refuses models and tools: a router that asks them is no function of the state."""

    raise_error = run_inline = True

    def on_chat_model_start(self, *_args: Any, **_about: Any) -> None:
        """Refuse."""
        raise PermissionError("a router may call no model and no tool")

    on_llm_start = on_tool_start = on_chat_model_start


class _Next(NamedTuple):
    """Tasks that must run next, by node, and nodes that may; whether routers have said so."""

    must: Counter[str]
    may: set[str]
    is_decided: bool


class GraphReplay:
    """
    Checks the routes of a run against *graph*, what ``compile()`` returned.

    Args:
        thread: The thread whose states the graph's checkpointer has.
        skipped: Routers by name that are not called: they read a clock, or ask the world.

    Attributes:
        decided: Supersteps whose successors were found again on a recorded state.
        undecided: Why others were held against edges alone, though they have routers.
    """

    def __init__(self, graph: Any, thread: str, skipped: Collection[str] = ()) -> None:
        self._graphs = {"": graph, **dict(graph.get_subgraphs(recurse=True))}
        self._saver, self._thread, self.skipped = graph.checkpointer, thread, {*skipped}
        self.decided, self.undecided = 0, Counter[str]()
        self._outer: _Copy | None = None  # of a thread, for all its turns

    def check(self, steps: Sequence[Superstep]) -> Iterator[RouteFinding]:
        """Yield the first difference of each route, and what cannot be told of it."""
        for route in dict.fromkeys(each.route for each in steps):
            own = [each for each in steps if each.route is route]
            graph = self._graphs.get("|".join(own[0].names[0]))
            is_other = not route.within and route.graph not in {None, self._graphs[""].get_name()}
            if is_other or not hasattr(graph, "builder") or (route.within and not own[0].around):
                said = f"{own[0]} is of another graph, or of one without edges"
                yield RouteFinding("graph", UNKNOWN, said, own[0])
            else:
                copy = self._outer if own[0].step > 1 and not route.within else None
                copy = copy or _Copy(self, graph, self._saved(own[0]))
                self._outer = self._outer if route.within else copy
                yield from self._check(own, copy)

    def _saved(self, first: Superstep) -> Iterable[CheckpointTuple]:
        namespace = "|".join(f"{each.name}:{each.task}" for each in first.around)
        config: Any = {"configurable": {"thread_id": self._thread, "checkpoint_ns": namespace}}
        try:
            with context(purpose="replay"):
                return [*self._saver.list(config)] if self._saver else ()
        except Exception as exc:  # noqa: BLE001 - the database's own
            self.undecided[f"its states could not be read: {type(exc).__qualname__}"] += 1
            return ()

    def _check(self, steps: list[Superstep], copy: _Copy) -> Iterator[RouteFinding]:
        copy.is_whole = True
        entry, before = {copy.entry(steps[0].tasks[0].task): START}, START
        due = copy.following(entry)
        for here, after in zip(steps, [*steps[1:], None], strict=True):
            copy.is_whole &= here.is_led
            found = _difference(before, due, here, is_last=after is None)
            if found is not None and here.is_led:
                yield found
                return
            done: dict[str | None, str] = {t.task: t.name for t in here.tasks if t.is_done}
            due, before = copy.following(done), f"{here}"
            if len(done) < len(here.tasks):  # the others failed or wait: nothing has to follow
                due = due._replace(must=Counter())
        if due.must:
            # What a killed run was about to do is written; what it had decided against is not.
            is_over = due.is_decided and not copy.has_sent(task.task for task in steps[-1].tasks)
            answer = DIFFERS if is_over else UNKNOWN
            said = f"{before} → the end, where {counted(due.must)} follows"
            yield RouteFinding("router" if is_over else "graph", answer, said, steps[-1])


def _difference(before: str, due: _Next, here: Superstep, *, is_last: bool) -> RouteFinding | None:
    names = Counter(here.names[1])
    extra, missing = (names - due.must).keys() - due.may, due.must - names
    if not extra and not missing:
        return None
    wanted = counted(due.must) or " or ".join(sorted(due.may - {END})) or "the end"
    # A run that is over may have been left before the rest of a superstep, a fork begins somewhere
    # else, and a node that declares no successor may still send the graph anywhere.
    is_known = (extra and (due.may or due.must)) or (missing and not is_last)
    is_known = is_known and here.step not in here.route.resumed
    check, answer = "router" if due.is_decided else "graph", DIFFERS if is_known else UNKNOWN
    return RouteFinding(check, answer, f"{before} → {here}, where {wanted} follows", here)


class _Copy:
    """A copy of a graph with copies of its recorded states, and what tasks have written on each."""

    def __init__(self, replay: GraphReplay, graph: Any, saved: Iterable[CheckpointTuple]) -> None:
        self._replay, self._builder, saver = replay, graph.builder, InMemorySaver()
        self._graph = graph.copy({"checkpointer": saver})
        self._state_of: dict[str | None, str | None] = {}
        self._before: dict[str | None, str | None] = {}
        self._given: dict[str | None, dict[str, Any]] = {}
        self._wrote: dict[str | None, list[tuple[str, Any]]] = {}
        self._late, self._came, self.is_whole = set[str](), dict[Any, set[str]](), True
        for each in saved:
            own, before = _id_of(each.config), _id_of(each.parent_config)
            # LangGraph goes on adding to who has come to a join while the state is written: it may
            # hold those of the next superstep. They are counted here.
            values = each.checkpoint["channel_values"].items()
            clean: Any = {name: value for name, value in values if not name.startswith("join:")}
            state: Any = {**each.checkpoint, "channel_values": clean}
            found = each.pending_writes or []
            at = saver.put(_at(before), state, each.metadata, state["channel_versions"])
            for task in dict.fromkeys(of for of, _channel, _value in found):
                writes = [(channel, value) for of, channel, value in found if of == task]
                saver.put_writes(at, writes, task)
                self._state_of[task] = own
                self._wrote[task] = writes
            if not self._updates(_NOBODY).update:  # else whoever resumed it has changed the state
                self._before[own] = before
            # Savers note there what of its config a run was given, as far as it is text or numbers.
            self._given[own] = dict(each.metadata)
            self._wrote.pop(_NOBODY, None)
        self._state_of.pop(_NOBODY, None)

    def entry(self, task: str) -> str | None:
        """Return the task that took the input of the turn in which *task* ran first."""
        before = self._before.get(self._state_of.get(task))
        return next((each for each, state in self._state_of.items() if state == before), None)

    def has_sent(self, tasks: Iterable[str]) -> bool:
        """Return whether one of *tasks* has written that another node is to run."""
        wrote = [name for task in tasks for name, _value in self._wrote[task]]
        return any(name.startswith(("branch:to:", "__pregel_tasks")) for name in wrote)

    def following(self, done: Mapping[str | None, str]) -> _Next:
        """Return what follows the tasks *done*. Deferred nodes may run at any later superstep."""
        builder, names, routers = self._builder, {*done.values()}, dict[str, Any]()
        fixed = {end for start, end in builder.edges if start in names}
        chosen, late, free = set[str](), set[str](), set[str]()
        for edge in builder.waiting_edges:
            came = self._came.setdefault(edge, set())
            came |= names & {*edge[0]}
            if came == {*edge[0]}:
                fixed.add(edge[1])
                came.clear()
        for name, node in builder.nodes.items():
            chosen |= {*(node.ends or ())} if name in names else set()
            late |= {name} if node.defer else set()
            free |= {name} if node.cache_policy else set()  # an answer of a cache leaves no event
        edges = fixed | chosen
        for name in names:
            routers |= builder.branches.get(name, {})
        for each in routers.values():
            edges |= {END, *builder.nodes} if each.ends is None else {*each.ends.values()}
        self._late |= edges & late
        free |= self._late
        if not self.is_whole:  # what these wait for may have been in supersteps that are missing
            free |= late | {end for _starts, end in builder.waiting_edges}
        found, why = None, "no state is recorded"
        try:
            found = None if routers.keys() & self._replay.skipped else self._would_run(done)
        except Exception as exc:  # noqa: BLE001 - the application's own, or of its database
            why = f"{' or '.join(routers)} raised {type(exc).__qualname__}"
        must, may = Counter(fixed - {END}), edges
        if found is None:
            self._replay.undecided[why] += bool(routers.keys() - self._replay.skipped)
        else:
            self._replay.decided += 1
            must, may = Counter({**must, **found}), chosen | ({END} if edges else set[str]())
        return _Next(
            Counter({each: must[each] for each in must.keys() - free}),
            may | free,
            found is not None,
        )

    def _would_run(self, done: Mapping[str | None, str]) -> Counter[str] | None:
        """Return by node the tasks that LangGraph would run behind those *done*. None: unknown."""
        states = {self._state_of.get(each) for each in done}
        if len(states) != 1 or not states <= self._before.keys():
            return None
        updates = [StateUpdate(self._updates(each), name) for each, name in done.items()]
        (state,) = states
        own = {**self._given[state], **_at(state)["configurable"]}
        config: Any = {"configurable": own, "callbacks": [_RoutersAlone()]}
        with tracing_context(enabled=False):
            after = asyncio.run(self._graph.abulk_update_state(config, [updates]))
        return Counter(self._graph.get_state(after).next)

    def _updates(self, task: str | None) -> Any:
        wrote, channels = self._wrote.get(task, []), self._builder.channels
        return Command(update=[each for each in wrote if each[0] in channels])


def _id_of(config: Any) -> str | None:
    found: str | None = config and config["configurable"]["checkpoint_id"]
    return found


def _at(state: str | None) -> Any:
    return {"configurable": {"thread_id": "", "checkpoint_ns": "", "checkpoint_id": state}}

"""The rules of one scope: asked at each point, and what comes of their verdicts."""

from __future__ import annotations

import hmac
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Protocol, runtime_checkable

import msgspec

from ...telemetry.event.event import OperationClass, Redacted
from ...telemetry.event.usage import Usage
from ...telemetry.event.verdict_event import Outcome, Point, VerdictEvent
from ...telemetry.process.faults import Faults
from ..context import Scope, current, runs_around
from ..errors import ConfigurationError, HeldError, RefusedError, RuleError, StoppedError
from ..run_observers import GraphRun, UndecidedError
from .aborts import AbortedRuns
from .capabilities import Seat
from .earlier_facts import EarlierFacts
from .escalation import NEVER, Escalations
from .held_writes import Decisions, HeldWrites, Judged, KeyedRule, settled
from .memory_labels import LabelsMemories, LabelTrail, MemoryLabels
from .rule import (
    PASSES,
    Action,
    Fact,
    Facts,
    Rule,
    Verdict,
    verdict_event,
    with_known,
)
from .run_facts import SAME_TEXT, KeyedHashes, RunFacts, RunKey, RunsUnderWay
from .slots import RUN, SPARE

if TYPE_CHECKING:
    from ...telemetry.event.subject import Subject
    from ..guard.call import Call
    from ..guard.operation import Method

MOST_RULES: Final = 64
"""Maximum number of rules of a scope: each has metric series of its own."""

MOST_MASKED: Final = 16_384
"""Characters of an answer up to which the times and ids in it are no news."""

_PASSING: Final = re.compile(
    r"\d{4}-\d\d-\d\d(?:[t ]\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?)?(?:z|[+-]\d\d:?\d\d)?"
    r"|\b\d\d:\d\d:\d\d(?:[.,]\d+)?\b"
    r"|\b\d+(?:\.\d+)?\s?(?:ms|s|sec|seconds)\b"
    r"|\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b"
)
"""What differs from one answer to the next though it says the same: when, how long, an id."""

SEAL_DIGITS: Final = 16

_RUN = RUN.name
_READS, _WRITES = OperationClass.RECALL, OperationClass.REMEMBER
_NOTHING: Final[Mapping[str, Mapping[str, Fact] | None]] = MappingProxyType({})

FAILED: Final = "rule_failed"
"""The reason of a verdict whose rule raised, or returned none."""


def _nobody(_person: str) -> None:
    return None


@runtime_checkable
class KeepsBooks(Rule, Protocol):
    """A rule that keeps books among the facts of runs, and is asked at each chunk of a stream."""

    def keep_in(self, book: Rulebook, /) -> None:
        """Keep them among the facts of the runs of *book*, from now on."""
        ...


class FactTrail(LabelTrail, Protocol):
    """An audit trail that has labels, aborts, and what other processes did in runs."""

    def aborted(self, first_seq: int, /) -> tuple[int, frozenset[str]]:
        """Return the hashes of runs aborted from an event on, and the event to go on from."""
        ...

    def run_references(self, key: RunKey, /) -> Collection[str]:
        """Return the hashes by which an abort may name a run."""
        ...

    def headers(self, key: RunKey, most: int, /) -> Iterable[Mapping[str, Any]]:
        """Return headers of a run's events that others recorded, at most so many, latest first."""
        ...


class Rulebook:
    """
    Asks the rules of one scope. Thread-safe.

    Args:
        rules: The rules, in the order in which they are asked.
        hashes: Makes hashes of names, ids and arguments.
        tell: Emits the event of a verdict, for a scope, with the content that it is about.
        faults: Where errors of rules are noted.
        clock: Monotonic seconds.
        trail: Where labels and earlier facts are looked up. None: there is no audit trail.
        decisions: What humans have decided of held writes. None: as above.
        subject: Returns a person as events name them.

    Attributes:
        rules: As given.
        hashes: As given.
        runs: The facts of the runs under way.
        keepers: The rules that keep books of runs.
        confiners: The rules that judge what may be in an answer, each with that capability.
        revealers: The rules that judge whether originals may be in it, likewise.
        held: The writes that rules hold.
        escalations: What is asked before a run ends.
        labels: Labels of memories, where a rule makes some.
        clock: As given.
        earlier: Reads what other processes did in a run. None: there is no audit trail.

    Raises:
        ConfigurationError: Two have the same name, or there are too many, or it is no rule.
    """

    def __init__(
        self,
        rules: Iterable[Rule],
        *,
        hashes: KeyedHashes,
        tell: Callable[[Scope, VerdictEvent, Redacted | None], None],
        faults: Faults,
        clock: Callable[[], float],
        trail: FactTrail | None = None,
        decisions: Decisions | None = None,
        subject: Callable[[str], Subject | None] = _nobody,
    ) -> None:
        self.rules = tuple(rules)
        _check(self.rules)
        self.hashes = hashes
        self.runs = RunsUnderWay(clock)
        self.held = HeldWrites(hashes, faults, decisions)
        self.escalations = Escalations(self._tell_verdict, decisions, subject, faults, clock)
        self._enclosing: Callable[[], GraphRun | None] | None = None
        self.earlier: EarlierFacts | None = None
        self._aborts: AbortedRuns | None = None
        if trail is not None:
            self.earlier = EarlierFacts(trail.headers, self.runs, hashes, faults, clock)
            ways = trail.aborted, trail.run_references
            self._aborts = AbortedRuns(*ways, self.runs, faults, clock)
        self.clock = clock
        self._tell = tell
        self._faults = faults
        seats = [Seat.of(each) for each in self.rules]
        self._at = {
            point: tuple(each for each in seats if point in each.rule.points) for point in Point
        }
        self._embeds = [each.embed for each in seats if each.embed is not None][:1]
        labellers = [each for each in self.rules if isinstance(each, LabelsMemories)]
        if len(labellers) > 1:
            raise ConfigurationError("a scope may have one rule that labels memories, not several")
        self.labels: MemoryLabels | None = None
        if labellers:
            self.labels = MemoryLabels(
                labellers[0], hashes, self.runs, self.enclosing_runs, clock, trail=trail
            )
        self._onlookers = [each.seen for each in seats if each.seen is not None]
        self.keepers = tuple(each for each in self.rules if isinstance(each, KeepsBooks))
        confiners = ((each.rule, each.confines) for each in seats)
        self.confiners = tuple((rule, each) for rule, each in confiners if each is not None)
        revealers = ((each.rule, each.reveals) for each in seats)
        self.revealers = tuple((rule, each) for rule, each in revealers if each is not None)
        self._foresees = any(each.foresee is not None for each in seats)
        self._keepers_seats = tuple(each for each in seats if each.rule in self.keepers)
        for each in self.keepers:
            each.keep_in(self)
        for keyed in (each for each in self.rules if isinstance(each, KeyedRule)):
            keyed.bind(hashes, lambda: decisions)

    def enclose_by(self, enclosing: Callable[[], GraphRun | None]) -> None:
        """Find the graph run that the code running now is part of by *enclosing*, from now on."""
        self._enclosing = enclosing

    def seats_at(self, method: Method) -> tuple[Seat, ...]:
        """Return the seats of the rules that are asked about calls of *method*."""
        return tuple(
            each
            for each in self._at[Point.MEMORY]
            if each.concerns is None or each.concerns(method)
        )

    # -- whose facts -------------------------------------------------------------------------------

    def run_facts(self, scope: Scope, graph: GraphRun | None = None) -> RunFacts:
        """Return the facts of the run that code for *scope*, in *graph*, is part of."""
        if graph is None and self._enclosing is not None:
            graph = self.graph_around()
        if graph is None:
            return self.runs.of(None if scope.run is None else (scope.tenant, scope.run))
        found = self.runs.of((scope.tenant, scope.run or graph.thread or str(graph.run_id)))
        named = scope.run is not None and scope.run != graph.thread
        is_new = found.enter(graph.run_id, self.clock(), resumes=graph.resumes, named=named)
        if is_new and graph.ended is None:
            self.runs.at_work[graph.run_id] = found
        return found

    def graph_ended(self, graph: GraphRun) -> None:
        """Note that a graph run has ended."""
        with self.runs.guard:
            self.runs.at_work.pop(graph.run_id, None)

    def facts(self, run: RunFacts) -> Facts:
        """Return the facts of a run as of now, to be used under the guard of `runs`."""
        return run.at(Point.NODE, "", self.clock())

    def enclosing_runs(self, scope: Scope, graph: GraphRun | None) -> list[RunFacts]:
        """Return the facts of the run that code for *scope* is part of, and of those around it."""
        graph = graph or self.graph_around()
        named = [*runs_around()]
        if scope.run is not None:
            named.append((scope.tenant, scope.run))
        if graph is not None:
            self.run_facts(scope, graph)  # which tells a new input from a run that goes on
            if graph.thread is not None:
                named += [(each.tenant, graph.thread) for each in (scope, graph.scope)]
        found = {each: self.runs.of(each) for each in named}
        for (_tenant, name), run in found.items():
            run.name = name
        if graph is not None and graph.thread is None:
            key = scope.tenant, str(graph.run_id)
            found[key] = self.runs.of(key)
        return list(found.values())

    def graph_around(self) -> GraphRun | None:
        """Return the graph run that the code running now is part of, or None."""
        if self._enclosing is None:
            return None
        try:
            return self._enclosing()
        except Exception as exc:  # noqa: BLE001 - then it is of no run
            self._faults.note("rules.enclosing", exc)
            return None

    def is_unread(self, scope: Scope, graph: GraphRun | None = None) -> bool:
        """
        Return whether what other processes did in the run of *scope* is still to be read.

        It is not of a graph's thread, whose checkpoints carry it.
        """
        earlier, run = self.earlier, scope.run
        if earlier is None or run is None or not earlier.is_unread((scope.tenant, run)):
            return False
        graph = graph or self.graph_around()
        return graph is None or graph.thread != run

    def carried(self, scope: Scope, thread: str, checkpoint: str) -> str | None:
        """Return what is known of a run, for whoever resumes its thread from *checkpoint*."""
        name = scope.run or thread
        with self.runs.guard:
            if self.labels is not None:
                of_thread = self.runs.of((scope.tenant, name))
                self.labels.note_state(of_thread, scope, self.graph_around())
            run = self.runs.known((scope.tenant, name))
            if run is None:
                return None
            text = run.dump(self.clock(), self.hashes.of_text(name))
            return self._seal(thread, checkpoint, text) + text

    def _seal(self, thread: str, checkpoint: str, text: str) -> str:
        return self.hashes.of_json([thread, checkpoint, text])

    def state_read(self, scope: Scope, thread: str | None) -> None:
        """Note that the code that runs reads state of a thread. None: of any."""
        if self.labels is None:
            return
        graph = self.graph_around()
        if graph is not None and thread is not None and graph.thread == thread:
            return  # its own
        with self.runs.guard:
            run = None if thread is None else self.runs.known((scope.tenant, thread))
            is_known = run is not None and run.is_whole and run.has_turns
            self.labels.lower(run.least if run is not None and is_known else 0, scope, graph)

    def restore(self, scope: Scope, thread: str, checkpoint: str, carried: str | None) -> None:
        """
        Take what `carried` returned, perhaps in another process. None: there is nothing.

        Whoever reads the state of a thread has read what it has.

        Raises:
            ValueError: It was changed, or is of another key.
        """
        seal, text = (carried or "")[:SEAL_DIGITS], (carried or "")[SEAL_DIGITS:]
        is_believed = hmac.compare_digest(seal, self._seal(thread, checkpoint, text))
        name = scope.run or thread
        with self.runs.guard:
            run = self.runs.of((scope.tenant, name))
            if is_believed:
                run.load(text, self.clock(), self.hashes.of_text(name))
            else:
                run.least = 0  # the state that it goes on with is of unknown origin
            if self.labels is not None:
                self.labels.lower(run.least, scope)
        if is_believed:
            return
        if carried is not None:
            raise ValueError("these facts are not sealed with the key of this scope")

    # -- decisions ---------------------------------------------------------------------------------

    def decide(
        self, action: Action, graph: GraphRun | None = None
    ) -> RuleError | UndecidedError | None:
        """
        Ask the rules of a point but `Point.MEMORY`, and tell what they decide.

        Returns:
            What it is refused, held or stopped with, by a rule that is not in shadow, or what it
            has to wait for. None: go on.
        """
        with self.runs.guard:
            run = self.run_facts(action.scope, graph)
            asked = run.escalation
            if asked is not None and run.stopped is None and action.point is not Point.NODE:
                found = self.escalations.settled(run, asked, action.scope)
                if found is not None:
                    return found
                # The call that has waited was counted as it asked first.
                action = msgspec.structs.replace(action, again=True)
        error = self._decide(action, graph, self._at[action.point])
        if run.escalation is None or asked is not None or action.point is Point.NODE:
            return error
        with self.runs.guard:  # begun just now
            asked = run.escalation
            return error or (asked and self.escalations.settled(run, asked, action.scope))

    def _decide(
        self, action: Action, graph: GraphRun | None, seats: Sequence[Seat]
    ) -> RuleError | None:
        if self.earlier is not None and self.is_unread(action.scope, graph):
            self.earlier.read((action.scope.tenant, str(action.scope.run)), waits=False)
        if self._aborts is not None:
            self._aborts.look()
        foreseen = self._foreseen(action, seats) if self._foresees else _NOTHING
        with self.runs.guard:
            run = self.run_facts(action.scope, graph)
            if self.labels is not None:
                self.labels.ask(action, graph)
            if run.stopped is not None:
                return run.ended_by()
            judged = self._judged(seats, action, run, foreseen)
            if judged and run.escalation is None:
                named = partial(self._approval, action.scope, graph)
                judged = [each for each in judged if not self.escalations.begun(each, run, named)]
            elif judged:  # it waits for what was asked before
                judged = [
                    each
                    for each in judged
                    if each.verdict.outcome is not Outcome.STOP or each.verdict.reason in NEVER
                ]
        return self._carried_out(judged, action, run) if judged else None

    def _approval(self, scope: Scope, graph: GraphRun | None, count: int) -> str:
        """Return the id by which a human decides on a stop of a run: the same in every process."""
        thread = None if graph is None else graph.thread or str(graph.run_id)
        return self.hashes.of_json(["escalation", scope.tenant, scope.run or thread, count])

    def ask(
        self,
        call: Call,
        operations: tuple[Call, ...],
        store: str,
        seats: Sequence[Seat],
        labels: MemoryLabels | None,
    ) -> RuleError | None:
        """
        Ask the rules in *seats* about a memory operation, and tell what they decide.

        Args:
            call: The call.
            operations: What it asks of the store. Empty: it cannot be told.
            store: The store's name.
            seats: The seats of the rules.
            labels: Say how far the run is to be trusted, where the call may write.

        Returns:
            What it is refused, held or stopped with, by a rule that is not in shadow. None: go on.
        """
        scope = call.scope
        if self.earlier is not None and self.is_unread(scope):
            self.earlier.read((scope.tenant, str(scope.run)), waits=True)
        with self.runs.guard:
            run = self.run_facts(scope)
            setattr(call, _RUN, run)  # as `RUN.put`, without a function more
            least = None
            if labels is not None:
                least = self._least(labels, run, scope)
                call.additions += (partial(labels.label, least),)
            action = Action(  # by position: names cost half as much again
                Point.MEMORY,
                call.method.name,
                scope,
                call,
                None,
                operations,
                store,
                False,
                least,
            )
            judged = [] if self._foresees else self._judged(seats, action, run, _NOTHING)
        if self._foresees:
            foreseen = self._foreseen(action, seats)
            with self.runs.guard:
                judged = self._judged(seats, action, run, foreseen)
        return self._carried_out(judged, action, run) if judged else None

    def _least(self, labels: MemoryLabels, run: RunFacts, scope: Scope) -> int:
        """Return how far what a call for *scope*, of *run*, writes is to be trusted."""
        here = current()
        if (  # as in most calls
            (here is scope or (here.tenant, here.run) == (scope.tenant, scope.run))
            and self._enclosing is None
            and not runs_around()
        ):
            run.name = scope.run
            return labels.least(() if scope.run is None else (run,), None)
        graph = self.graph_around()
        return labels.least(self.enclosing_runs(here, graph), graph)

    def _carried_out(
        self, judged: Sequence[Judged], action: Action, run: RunFacts
    ) -> RuleError | None:
        """Tell what rules have decided, and return the error of the strictest."""
        if action.point is Point.MEMORY:  # not under the guard: it may ask the audit trail
            judged = self.held.settled(action, judged)
        found: RuleError | None = None
        with self.runs.guard:
            for each in judged:
                error = self._carry_out(each, action, run)
                if error is not None and (found is None or error.strictness > found.strictness):
                    found = error
            if isinstance(found, StoppedError) or (found and action.point is Point.NODE):
                run.stopped = type(found), found.rule, found.reason
        return found

    def heard(self, action: Action, graph: GraphRun | None, call: object) -> RuleError | None:
        """Note a chunk of a model's stream, and return the error that ends it, if there is one."""
        with self.runs.guard:
            error = self._decide(action, graph, self._keepers_seats)
            self.run_facts(action.scope, graph).heard(call, self.clock())
            return error

    def stopped(self, scope: Scope, graph: GraphRun | None) -> RuleError | UndecidedError | None:
        """Return the error that ends the run, where a rule has said so: no node of it begins."""
        with self.runs.guard:
            run = self.run_facts(scope, graph)
            if run.stopped is not None or run.escalation is None:
                return run.ended_by()
            found = self.escalations.settled(run, run.escalation, scope)
            # A model or tool of the node can interrupt the graph, which its beginning cannot.
            can_interrupt = run.counts.model_calls or run.counts.tool_calls
            return None if isinstance(found, HeldError) and can_interrupt else found

    def answered(self, rule: Rule, call: Call, known: Mapping[str, Fact]) -> RuleError | None:
        """Ask *rule* about what a memory operation was answered, of which *known* is known."""
        action = Action(Point.MEMORY, call.method.name, call.scope, call)
        with self.runs.guard:
            run = self.run_facts(action.scope)
            facts = run.at(action.point, self._what(action), self.clock())
            verdict, facts = self._verdict(rule, facts, known)
            if verdict.is_plain:
                return None
            return self._carry_out(Judged(rule, verdict, facts), action, run)

    def _foreseen(
        self, action: Action, seats: Sequence[Seat]
    ) -> Mapping[str, Mapping[str, Fact] | None]:
        """Return what rules have found that may take long. None: they failed."""
        found: dict[str, Mapping[str, Fact] | None] = {}
        for each in seats:
            if each.foresee is not None:
                try:
                    found[each.rule.name] = each.foresee(action)
                except Exception as exc:  # noqa: BLE001 - a rule that fails does what its class says
                    self._faults.note("rules.decide", exc)
                    found[each.rule.name] = None
        return found

    def _judged(
        self,
        seats: Sequence[Seat],
        action: Action,
        run: RunFacts,
        foreseen: Mapping[str, Mapping[str, Fact] | None],
    ) -> list[Judged]:
        """Return what rules say, of which there is something to tell."""
        judged: list[Judged] = []
        now: Facts | None = None
        for seat in seats:
            try:
                seen = seat.witness(action)
            except Exception as exc:  # noqa: BLE001 - a rule that fails does what its class says
                self._faults.note("rules.decide", exc)
                seen = None
            if seen is PASSES:
                continue
            rule = seat.rule
            now = now or run.at(action.point, self._what(action), self.clock())
            verdict, facts = self._verdict(rule, now, foreseen.get(rule.name, {}), seen)
            if verdict.spare is not None and action.call is not None and not rule.shadow:
                SPARE.put(action.call, verdict.spare)
            if not verdict.is_plain:
                judged.append(Judged(rule, verdict, facts))
        return judged

    def _verdict(
        self, rule: Rule, facts: Facts, *seen: Mapping[str, Fact] | None
    ) -> tuple[Verdict, Facts]:
        """Return the verdict of *rule*, and on what: the facts, and what it has *seen* itself."""
        for each in seen:
            if each is None:  # it failed
                return failed(rule, "witness"), facts
            facts = with_known(facts, each)
        try:
            return decided(rule, facts), facts
        except Exception as exc:  # noqa: BLE001 - a rule that fails does what its class says
            self._faults.note("rules.decide", exc)
            return failed(rule, "decide"), facts

    def _carry_out(self, judged: Judged, action: Action, run: RunFacts) -> RuleError | None:
        rule, verdict, facts = judged
        outcome = verdict.outcome
        shadows = rule.shadow and outcome is not Outcome.ALLOW
        if shadows and outcome is Outcome.STOP:
            if (rule.name, verdict.reason) in run.reported:
                return None  # it would have ended before
            run.reported.add((rule.name, verdict.reason))
        held = verdict.evidence.get("approval") if outcome is Outcome.HOLD else None
        approval = None if held is None else str(held)
        content = None if held is None else self.held.content(action)
        self._tell_verdict(action.scope, rule, verdict, facts, content)
        if shadows or outcome is Outcome.ALLOW:
            return None
        if outcome is Outcome.HOLD:
            return HeldError(rule.name, verdict.reason, approval)
        return _ERRORS[outcome](rule.name, verdict.reason)

    def _tell_verdict(
        self,
        scope: Scope,
        rule: Rule,
        verdict: Verdict,
        facts: Facts,
        content: Redacted | None = None,
    ) -> None:
        try:
            self._tell(scope, verdict_event(rule, verdict, facts), content)
        except Exception as exc:  # noqa: BLE001 - observing fails open
            self._faults.note("rules.tell", exc)

    def _what(self, action: Action) -> str:
        if action.call is not None:
            return action.call.method.op_class
        return self.hashes.of_name(action.name) if action.name else ""

    # -- what was done -----------------------------------------------------------------------------

    def saw_memory(self, store: str, call: Call) -> None:
        """Note a memory operation that a store answered."""
        op_class = call.method.op_class
        with self.runs.guard:
            run = RUN.of(call) or self.run_facts(call.scope)
            if op_class is _READS:
                run.recalled(call.summary.memory_ids, self.clock())
            elif op_class is _WRITES:
                run.wrote(self._written(call) if run.has_turns else "", self.clock())
            if self._onlookers:
                action = Action(Point.MEMORY, call.method.name, call.scope, call, None, (), store)
                for seen in self._onlookers:
                    if known := seen(action):
                        run.note(known)

    def _written(self, call: Call) -> str:
        return self.hashes.of_json(call.method.content(call.arguments))

    def saw_model(
        self,
        scope: Scope,
        graph: GraphRun | None,
        usage: Usage | None,
        *,
        failed: bool,
        call: object = None,
    ) -> None:
        """Note a model call that ended."""
        with self.runs.guard:
            run = self.run_facts(scope, graph)
            run.model_ended(usage, self.clock(), failed=failed, call=call)

    def saw_text(
        self, node: str, scope: Scope, graph: GraphRun | None, text: str, calls: str = ""
    ) -> None:
        """
        Note what a model said in a node: the tool calls that it asks for, or else the text.

        Where tools are seen, their answers say more than that they were asked for.
        """
        plain = " ".join(text.lower().split())
        done = self.hashes.of_json([node, calls or plain])
        vectors = [each(text) for each in self._embeds] if text else []
        with self.runs.guard:
            run, name = self.run_facts(scope, graph), self.hashes.of_name(node)
            likeness = [run.said(name, each) for each in vectors]
            is_alike = any(each is not None and each >= SAME_TEXT for each in likeness)
            if not (calls and run.counts.tool_calls):
                run.did(done, is_alike=is_alike and not calls)

    def saw_tool(
        self,
        scope: Scope,
        graph: GraphRun | None,
        answer: str | None,
        *,
        failed: bool,
        call: object = None,
    ) -> None:
        """Note a tool call that ended, by its answer."""
        said = "" if answer is None else answer
        if len(said) <= MOST_MASKED:
            said = _PASSING.sub("", said.lower())
        answer_hash = self.hashes.of_json([said, failed])
        with self.runs.guard:
            run = self.run_facts(scope, graph)
            run.tool_ended(call, answer_hash, self.clock(), failed=failed)

    def begin_tool(self, action: Action, graph: GraphRun | None, call: object = None) -> None:
        """Note a tool call that begins, by its arguments."""
        with self.runs.guard:
            called = self.hashes.of_json([action.name, action.about])
            self.run_facts(action.scope, graph).tool_begun(call, called)

    def reads(
        self, sources: Iterable[str | None], scope: Scope, graph: GraphRun | None = None
    ) -> None:
        """Note that a run reads answers of tools, by name; None: of another agent."""
        if self.labels is not None:
            for each in sources:
                self.labels.read_from(each, scope, graph)

    def saw_node(self, name: str, scope: Scope, graph: GraphRun | None, *, failed: bool) -> None:
        """Note the end of a node, and ask the rules that stand there."""
        with self.runs.guard:
            run, node = self.run_facts(scope, graph), self.hashes.of_name(name)
            run.node_ended(node, self.hashes, self.clock(), failed=failed)
            self.decide(Action(Point.NODE, name, scope), graph)

    def note_answer(self, scope: Scope, answer: Any, quality: float) -> None:
        """
        Keep an answer of the run that runs now, if it is the best so far.

        Raises:
            ValueError: See `RunFacts.note`.
        """
        with self.runs.guard:
            self.run_facts(scope).note_answer(answer, quality)

    def note(self, scope: Scope, known: Mapping[str, Fact]) -> None:
        """
        Keep facts of the caller's, of the run that runs now.

        Raises:
            ValueError: See `RunFacts.note`.
        """
        with self.runs.guard:
            self.run_facts(scope).note(known)


def decided(rule: Rule, facts: Facts) -> Verdict:
    """
    Return the verdict of *rule* on *facts*, as a human has settled it where the facts say so.

    Raises:
        Exception: Whatever the rule raised, or it returned none that a rule may return.
    """
    verdict = rule.decide(facts)
    if verdict.outcome is Outcome.SHADOW:
        raise ValueError("a rule is put into shadow by its attribute")
    return settled(verdict, facts)


def failed(rule: Rule, where: str) -> Verdict:
    """Return the verdict of a rule that raised in its method *where*."""
    return Verdict(rule.fails.outcome, FAILED, {"where": where})


_ERRORS: Final[Mapping[Outcome, Callable[[str, str], RuleError]]] = {
    Outcome.STOP: StoppedError,
    Outcome.REFUSE: RefusedError,
}


def _check(rules: tuple[Any, ...]) -> None:
    if len(rules) > MOST_RULES:
        raise ConfigurationError(f"a scope may have {MOST_RULES} rules, not {len(rules)}")
    for place, rule in enumerate(rules, 1):
        wanted = ("name", "points", "fails", "shadow", "settings", "decide")
        if missing := [each for each in wanted if not hasattr(rule, each)]:
            raise ConfigurationError(f"rule {place} has no {missing[0]}: see Rule")
    names = [rule.name for rule in rules]
    for place, name in enumerate(names, 1):
        if name in names[: place - 1]:
            raise ConfigurationError(
                f"rules {names.index(name) + 1} and {place} have the same name: give one a name=…"
            )

"""The rules of one scope: asked at each point, and what comes of their verdicts."""

from __future__ import annotations

import hmac
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final, Protocol, runtime_checkable

from ...telemetry.event.event import Redacted
from ...telemetry.event.usage import Usage
from ...telemetry.event.verdict_event import Outcome, Point, VerdictEvent
from ...telemetry.process.faults import Faults
from ..context import Scope, runs_around
from ..errors import ConfigurationError, HeldError, RefusedError, RuleError, StoppedError
from .held_writes import HeldWrites, Judged, settled
from .memory_labels import Labeller, MemoryLabels
from .rule import (
    Asked,
    Fact,
    Facts,
    Foresight,
    Onlooker,
    Reader,
    Rule,
    Verdict,
    Witness,
    verdict_event,
    with_known,
)
from .run_facts import GraphRun, Hashes, RunFacts, RunKey, RunsUnderWay

MOST_RULES: Final = 64
"""Maximum number of rules of a scope: each has metric series of its own."""

LEAST_ANSWER: Final = 40
"""Characters of a tool's answer that tells whether something new was found: not so of "done"."""

SEAL_DIGITS: Final = 16

_NOTHING: Final[Mapping[str, Mapping[str, Fact] | None]] = MappingProxyType({})

FAILED: Final = "rule_failed"
"""The reason of a verdict whose rule raised, or returned none."""


@runtime_checkable
class Keeper(Rule, Protocol):
    """A rule that keeps books among the facts of runs, and is asked at each chunk of a stream."""

    def keep_in(self, book: Rulebook, /) -> None:
        """Keep them among the facts of the runs of *book*, from now on."""
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

    Attributes:
        rules: As given.
        hashes: As given.
        runs: The facts of the runs under way.
        keepers: The rules that keep books of runs.
        held: The writes that rules hold.
        enclosing: Returns the graph run that the code running now is part of, or None.
        labels: Labels of memories, where a rule makes some.

    Raises:
        ConfigurationError: Two have the same name, or there are too many, or it is no rule.
    """

    def __init__(
        self,
        rules: Iterable[Rule],
        *,
        hashes: Hashes,
        tell: Callable[[Scope, VerdictEvent, Redacted | None], None],
        faults: Faults,
        clock: Callable[[], float],
    ) -> None:
        self.rules = tuple(rules)
        _check(self.rules)
        self.hashes = hashes
        self.runs = RunsUnderWay(clock)
        self.held = HeldWrites(hashes, faults)
        self.enclosing: Callable[[], GraphRun | None] | None = None
        self._tell = tell
        self._faults = faults
        self._clock = clock
        self._at = {
            point: tuple(each for each in self.rules if point in each.points) for point in Point
        }
        # Whether a class has a method is found out once: it takes longer than most decisions.
        self._witnesses = {each.name: each for each in self.rules if isinstance(each, Witness)}
        self._foresights = {each.name: each for each in self.rules if isinstance(each, Foresight)}
        embeds = [each.embed for each in self.rules if isinstance(each, Reader)]
        self._embeds = [each for each in embeds if each is not None][:1]
        labellers = [each for each in self.rules if isinstance(each, Labeller)]
        if len(labellers) > 1:
            raise ConfigurationError("a scope may have one rule that labels memories, not several")
        self.labels: MemoryLabels | None = None
        if labellers:
            self.labels = MemoryLabels(labellers[0], hashes, self.runs.guard, self.enclosing_runs)
        self._onlookers = tuple(each for each in self.rules if isinstance(each, Onlooker))
        self.keepers = tuple(each for each in self.rules if isinstance(each, Keeper))
        for each in self.keepers:
            each.keep_in(self)

    @property
    def reads_texts(self) -> bool:
        """Whether a rule compares what models say."""
        return bool(self._embeds)

    def takes_long_at(self, point: Point) -> bool:
        """Return whether a rule at *point* may take as long as a model."""
        return any(each.name in self._foresights for each in self._at[point])

    def is_asked_at(self, point: Point) -> bool:
        """Return whether a rule stands at *point*."""
        return bool(self._at[point])

    # -- whose facts -------------------------------------------------------------------------------

    def run_facts(self, scope: Scope, graph: GraphRun | None = None) -> RunFacts:
        """Return the facts of the run that code for *scope*, in *graph*, is part of."""
        graph = graph or self.graph_around()
        found = self.runs.of(_key(scope, graph))
        if graph is not None:
            named = scope.run is not None and scope.run != graph.thread
            found.enter(graph.run_id, self._clock(), resumes=graph.resumes, named=named)
        return found

    def facts(self, run: RunFacts) -> Facts:
        """Return the facts of a run as of now, to be used under the guard of `runs`."""
        return run.at(Point.NODE, "", self._clock())

    def enclosing_runs(self, scope: Scope, graph: GraphRun | None) -> list[RunFacts]:
        """Return the facts of the run that code for *scope* is part of, and of those around it."""
        graph, named = graph or self.graph_around(), [*runs_around()]
        if graph is None and not named:  # as in most calls
            run = self.runs.of((scope.tenant, scope.run)) if scope.run is not None else None
            if run is None:
                return []
            run.name = scope.run
            return [run]
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
        if self.enclosing is None:
            return None
        try:
            return self.enclosing()
        except Exception as exc:  # noqa: BLE001 - then it is of no run
            self._faults.note("rules.enclosing", exc)
            return None

    def carried(self, scope: Scope, thread: str) -> str | None:
        """Return what is known of a run, for whoever resumes its thread. None: nothing is."""
        with self.runs.guard:
            run = self.runs.known((scope.tenant, scope.run or thread))
            if run is None:
                return None
            text = run.dump(self._clock())
            return self.hashes.of_text(text) + text

    def restore(self, scope: Scope, thread: str, carried: str | None) -> None:
        """
        Take what `carried` returned, perhaps in another process. None: there is nothing.

        Raises:
            ValueError: It was changed, or is of another key.
        """
        seal, text = (carried or "")[:SEAL_DIGITS], (carried or "")[SEAL_DIGITS:]
        is_believed = hmac.compare_digest(seal, self.hashes.of_text(text))
        with self.runs.guard:
            run = self.runs.of((scope.tenant, scope.run or thread))
            if is_believed:
                run.load(text, self._clock())
                return
            run.least = 0  # the state that it goes on with is of unknown origin
        if carried is not None:
            raise ValueError("these facts are not sealed with the key of this scope")

    # -- decisions ---------------------------------------------------------------------------------

    def ask(self, asked: Asked, graph: GraphRun | None = None) -> None:
        """
        Ask the rules of a point, and tell and carry out what they decide.

        Raises:
            StoppedError, RefusedError, HeldError: A rule that is not in shadow says so.
        """
        error = self.decide(asked, graph)
        if error is not None:
            raise error

    def decide(
        self, asked: Asked, graph: GraphRun | None = None, rules: Iterable[Rule] | None = None
    ) -> RuleError | None:
        """Return the error that `ask` raises, or would of these *rules* alone. None: go on."""
        foreseen = self._foreseen(asked) if self._foresights else {}
        with self.runs.guard:
            run = self.run_facts(asked.scope, graph)
            if self.labels is not None:
                self.labels.ask(asked, graph)
            if run.stopped is not None and asked.point is not Point.MEMORY:
                return run.ended_by()
            facts = run.at(asked.point, self._what(asked), self._clock())
            judged: Sequence[Judged] = [
                self._judged(rule, asked, facts, foreseen)
                for rule in (self._at[asked.point] if rules is None else rules)
            ]
        judged = [each for each in judged if not each.verdict.is_plain]
        if not judged:
            return None
        if asked.point is Point.MEMORY:  # not under the guard: it may ask the audit trail
            judged = self.held.settled(asked, judged)
        found: RuleError | None = None
        with self.runs.guard:
            for each in judged:
                error = self._carry_out(each, asked, run)
                if error is not None and (found is None or error.strictness > found.strictness):
                    found = error
            if isinstance(found, StoppedError) or (found and asked.point is Point.NODE):
                run.stopped = type(found), found.rule, found.reason
        return found

    def heard(self, asked: Asked, graph: GraphRun | None, call: object) -> RuleError | None:
        """Note a chunk of a model's stream, and return the error that ends it, if there is one."""
        with self.runs.guard:
            error = self.decide(asked, graph, self.keepers)
            self.run_facts(asked.scope, graph).heard(call, self._clock())
            return error

    def stopped(self, scope: Scope, graph: GraphRun | None) -> RuleError | None:
        """Return the error that ends the run, where a rule has said so: no node of it begins."""
        with self.runs.guard:
            return self.run_facts(scope, graph).ended_by()

    def answered(self, rule: Rule, asked: Asked, known: Mapping[str, Fact]) -> RuleError | None:
        """Ask *rule* about what a memory operation was answered, of which *known* is known."""
        with self.runs.guard:
            run = self.run_facts(asked.scope)
            facts = run.at(asked.point, self._what(asked), self._clock())
            judged = self._judged(rule, asked, with_known(facts, known), is_answered=True)
            return None if judged.verdict.is_plain else self._carry_out(judged, asked, run)

    def _foreseen(self, asked: Asked) -> dict[str, Mapping[str, Fact] | None]:
        """Return what rules have found that may take long. None: they failed."""
        found: dict[str, Mapping[str, Fact] | None] = {}
        for rule in self._at[asked.point]:
            if rule.name in self._foresights:
                try:
                    found[rule.name] = self._foresights[rule.name].foresee(asked)
                except Exception as exc:  # noqa: BLE001 - a rule that fails does what its class says
                    self._faults.note("rules.decide", exc)
                    found[rule.name] = None
        return found

    def _judged(
        self,
        rule: Rule,
        asked: Asked,
        facts: Facts,
        foreseen: Mapping[str, Mapping[str, Fact] | None] = _NOTHING,
        *,
        is_answered: bool = False,
    ) -> Judged:
        where = "witness"
        try:
            if rule.name in foreseen:
                if (known := foreseen[rule.name]) is None:
                    return Judged(rule, failed(rule, where), facts)
                facts = with_known(facts, known)
            if not is_answered and rule.name in self._witnesses:
                facts = with_known(facts, self._witnesses[rule.name].witness(asked))
            where = "decide"
            verdict = decided(rule, facts)
            if verdict.spare is not None and asked.call is not None and not rule.shadow:
                asked.call.spare = verdict.spare
            return Judged(rule, verdict, facts)
        except Exception as exc:  # noqa: BLE001 - a rule that fails does what its class says
            self._faults.note("rules.decide", exc)
            return Judged(rule, failed(rule, where), facts)

    def _carry_out(self, judged: Judged, asked: Asked, run: RunFacts) -> RuleError | None:
        rule, verdict, facts = judged
        outcome = verdict.outcome
        shadows = rule.shadow and outcome is not Outcome.ALLOW
        if shadows and outcome is Outcome.STOP:
            if (rule.name, verdict.reason) in run.told:
                return None  # it would have ended before
            run.told.add((rule.name, verdict.reason))
        held = verdict.evidence.get("approval") if outcome is Outcome.HOLD else None
        approval = None if held is None else str(held)
        content = None if held is None else self.held.content(asked)
        try:
            self._tell(asked.scope, verdict_event(rule, verdict, facts), content)
        except Exception as exc:  # noqa: BLE001 - observing fails open
            self._faults.note("rules.tell", exc)
        if shadows or outcome is Outcome.ALLOW:
            return None
        if outcome is Outcome.HOLD:
            return HeldError(rule.name, verdict.reason, approval)
        return _ERRORS[outcome](rule.name, verdict.reason)

    def _what(self, asked: Asked) -> str:
        if asked.call is not None:
            return asked.call.method.op_class.value
        return self.hashes.of_name(asked.name) if asked.name else ""

    # -- what was done -----------------------------------------------------------------------------

    def saw_memory(self, asked: Asked, ids: tuple[str, ...], *, wrote: bool) -> None:
        """Note a memory operation that the store answered."""
        with self.runs.guard:
            run, now = self.run_facts(asked.scope), self._clock()
            if wrote:
                run.wrote(self._content(asked), now)
            elif ids:
                run.recalled(ids, now)
            for each in self._onlookers:
                if known := each.seen(asked):
                    run.note(known)

    def _content(self, asked: Asked) -> str:
        call = asked.call
        return "" if call is None else self.hashes.of_json(call.method.content(call.arguments))

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
            run.model_ended(usage, self._clock(), failed=failed, call=call)

    def saw_text(self, node: str, scope: Scope, graph: GraphRun | None, text: str) -> None:
        """Compare what a model said in a node with what it said there before."""
        vectors = [each(text) for each in self._embeds]
        with self.runs.guard:
            for vector in vectors:
                self.run_facts(scope, graph).said(self.hashes.of_name(node), vector)

    def saw_tool(
        self, scope: Scope, graph: GraphRun | None, answer: str | None, *, failed: bool
    ) -> None:
        """Note a tool call that ended, by its answer."""
        said = answer is not None and len(answer) >= LEAST_ANSWER
        answer_hash = self.hashes.of_text(answer) if said and answer else ""
        with self.runs.guard:
            self.run_facts(scope, graph).tool_ended(answer_hash, self._clock(), failed=failed)

    def begin_tool(self, asked: Asked, graph: GraphRun | None) -> None:
        """Note a tool call that begins, by its arguments."""
        with self.runs.guard:
            called = self.hashes.of_json([asked.name, asked.about])
            self.run_facts(asked.scope, graph).tool_begun(called)

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
            run.node_ended(node, self.hashes, self._clock(), failed=failed)
            self.decide(Asked(Point.NODE, name, scope), graph)

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


def _key(scope: Scope, graph: GraphRun | None) -> RunKey | None:
    if scope.run is not None:
        return scope.tenant, scope.run
    if graph is None:
        return None
    return scope.tenant, graph.thread or str(graph.run_id)


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

"""
Escalation: a function of the user's is asked before a rule ends a run, and may have it go on.

It is asked on a thread of its own, and what has to wait for it waits. Where it raises, takes too
long, or says nothing that makes sense, the run ends as it would have. What it grants are facts of
the run, so that the rule's verdicts follow from facts as ever, and travel with the run.
"""

from __future__ import annotations

import inspect
import math
import threading
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, fields
from enum import Enum
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeAlias, runtime_checkable

from ...telemetry.event.subject import Subject
from ...telemetry.event.verdict_event import Choice, Outcome, Point
from ...telemetry.process.faults import Faults
from ...telemetry.text import is_a
from ..context import Scope
from ..errors import ConfigurationError, HeldError, RuleError, StoppedError
from ..run_observers import UndecidedError
from .decisions import CODE, decision_event
from .held_writes import Decisions, Judged
from .rule import Fact, Facts, Fails, Rule, StandaloneRule, Verdict, with_known
from .run_facts import RunFacts

if TYPE_CHECKING:
    from concurrent.futures import Future

COUNT: Final = "escalation.count"
"""Name of the fact that counts the escalations of a run."""

LOOK_S: Final = 5.0
"""Seconds that the audit trail has, to say what a human has decided."""

NEVER: Final = frozenset({"aborted", "rule_failed"})
"""Reasons that nobody is asked about: who has aborted a run has decided."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GoOn:
    """
    More for a run that a rule would end.

    Attributes:
        usd: Dollars above the limit. Of a budget, for as long as its period.
        seconds: Seconds at work above it.
        tokens: Output tokens above it; all tokens of a budget.
        steps: Ends of models, tools and nodes for which errors, circles, progress and iterations
            end nothing.

    Raises:
        ConfigurationError: One is no number from 0 on.
    """

    usd: float = 0.0
    seconds: float = 0.0
    tokens: int = 0
    steps: int = 0

    def __post_init__(self) -> None:
        for each in fields(self):
            value = getattr(self, each.name)
            # Not a number is below no limit, so that it would grant all there is.
            if (
                isinstance(value, bool)
                or not isinstance(value, (int, float))
                or not (0 <= value < math.inf)
            ):
                raise ConfigurationError(f"{each.name} of GoOn must be a number from 0 on")


@dataclass(frozen=True, slots=True)
class AskHuman:
    """
    Leaves a stop to a human, as an approval.

    Attributes:
        then: What the run has more once they approve.
    """

    then: GoOn


class ReturnBest(Enum):
    """The end of a run, with the best answer that was noted: `StoppedError.best`."""

    RETURN_BEST = "return_best"


RETURN_BEST: Final = ReturnBest.RETURN_BEST
"""Ends the run with the best answer so far."""

Answer: TypeAlias = GoOn | AskHuman | ReturnBest | None
"""What a function answers. None: the stop stands."""


@dataclass(frozen=True, slots=True)
class Stop:
    """
    A stop that is about to be.

    Attributes:
        rule: The rule's name.
        reason: The rule's code.
        facts: The figures of the run.
    """

    rule: str
    reason: str
    facts: Facts


Escalate: TypeAlias = Callable[[Stop], Answer | Awaitable[Answer]]
"""Is asked before a rule ends a run. Plain, or a coroutine function."""


@runtime_checkable
class EscalatesStops(Protocol):
    """
    A rule that has a function asked before it ends a run, so many times a run.

    Attributes:
        escalate: The function. None: the rule's stops stand.
        escalations: How many times a run.
        escalate_within_s: Seconds that the function has.
    """

    escalate: Escalate | None
    escalations: int
    escalate_within_s: float


@dataclass(frozen=True, kw_only=True)
class Escalation(StandaloneRule):
    """The rule that stands in events of escalations: a run goes on, waits or ends by the answer."""

    name: str
    fails = Fails.OPEN

    def settings(self) -> Mapping[str, Any]:
        """Return the name."""
        return {"name": self.name}

    def decide(self, facts: Facts, /) -> Verdict:
        """Return what the answer among *facts* leads to."""
        known = facts.known
        answer, reason = str(known["escalation.answer"]), str(known["escalation.of"])
        evidence: dict[str, Fact] = {"answer": answer, "cost_usd": facts.cost_usd}
        evidence |= {"elapsed_s": facts.elapsed_s, "output_tokens": facts.output_tokens}
        granted = {name: of for name, of in known.items() if name.startswith("escalation.more.")}
        evidence |= {name.removeprefix("escalation."): of for name, of in granted.items()}
        if answer == "ask_human":
            evidence |= {"approval": known["escalation.approval"], "passed": 0}
            return Verdict(Outcome.HOLD, reason, evidence)
        goes_on = answer in {"go_on", "human_approve"}
        return Verdict(Outcome.ALLOW if goes_on else Outcome.STOP, reason, evidence)


@dataclass(eq=False)
class OpenEscalation:
    """
    A stop that waits for what is answered.

    Attributes:
        stop: The verdict that would end the run.
        approval: The id that a human decides by, if it is left to one.
        until: When the time of the job is up, monotonic seconds.
        answer: Of the function.
        said: The code of what it leads to.
        choice: Of the human. Empty: none yet.
        used: How many times the approval was used before.
        job: Done when there is something to say. None: it is time to look again.
    """

    stop: Judged
    approval: str
    until: float
    answer: Answer = None
    said: str = "stop"
    choice: str = ""
    used: int = 0
    job: Future[None] | None = None


@dataclass(frozen=True, slots=True)
class Escalations:
    """
    The escalations of one scope. Used under the guard of its runs.

    Attributes:
        tell: Emits a verdict of a rule on facts, for a scope.
        decisions: What humans have decided. None: there is no audit trail.
        subject: Returns a person as events name them.
        faults: Where errors of functions are noted.
        clock: Monotonic seconds.
    """

    tell: Callable[[Scope, Rule, Verdict, Facts], None]
    decisions: Decisions | None
    subject: Callable[[str], Subject | None]
    faults: Faults
    clock: Callable[[], float]

    def begun(self, judged: Judged, run: RunFacts, approval: Callable[[int], str]) -> bool:
        """Have the function of a rule that ends *run* asked, if it may be once more."""
        rule, verdict, facts = judged
        count = _count(run)
        if (
            not isinstance(rule, EscalatesStops)
            or rule.escalate is None
            or rule.shadow
            or verdict.outcome is not Outcome.STOP
            or verdict.reason in NEVER
            or count >= rule.escalations
        ):
            return False
        asked = run.escalation = OpenEscalation(judged, approval(count), 0.0)
        stop = Stop(rule.name, verdict.reason, facts)
        self._begin(asked, rule.escalate_within_s, partial(self._ask, asked, rule.escalate, stop))
        return True

    def settled(
        self, run: RunFacts, asked: OpenEscalation, scope: Scope
    ) -> RuleError | UndecidedError | None:
        """Return what ends the run, or what it waits for. None: it goes on."""
        if asked.job is None:  # since it was held: a human may have decided
            self._begin(asked, LOOK_S, partial(self._look, asked))
        job = asked.job
        if job is not None and not job.done():
            left_s = asked.until - self.clock()
            if left_s > 0:
                return UndecidedError(job, left_s)
        said, more = asked.said, asked.answer
        if isinstance(more, AskHuman):
            said = f"human_{asked.choice}" if asked.choice else "ask_human"
            more = more.then if asked.choice == Choice.APPROVE else None
        elif job is None or not job.done():
            said, more = "late", None  # whatever it says by now
        rule, stop, facts = asked.stop.rule, asked.stop.verdict, asked.stop.facts
        granted = _granted(more, run, facts) if isinstance(more, GoOn) else {}
        try:
            if said != "ask_human":
                run.note({COUNT: _count(run) + 1, **granted})
        except ValueError:  # the run has as many facts as it may: nothing can be granted
            said, granted = "failed", {}
        known: dict[str, Fact] = {"escalation.answer": said, "escalation.of": stop.reason}
        if said == "ask_human":
            asked.job = None
            known["escalation.approval"] = asked.approval
            held = HeldError(rule.name, stop.reason, asked.approval)
            # Told as it is raised: a graph that is resumed with the decision is held no more.
            held.tell = partial(self._told, rule, with_known(facts, known), scope)
            held.resume = partial(self._resume, asked)
            return held
        run.escalation = None
        known |= {f"escalation.{name}": of for name, of in granted.items()}
        if self._told(rule, with_known(facts, known), scope).outcome is Outcome.ALLOW:
            return None
        run.stopped = StoppedError, rule.name, stop.reason
        run.returns_best = said == RETURN_BEST.value
        return run.ended_by()

    def _told(self, rule: Rule, facts: Facts, scope: Scope) -> Verdict:
        escalation = Escalation(name=rule.name)
        verdict = escalation.decide(facts)
        self.tell(scope, escalation, verdict, facts)
        return verdict

    # -- on a thread of its own --------------------------------------------------------------------

    def _begin(self, asked: OpenEscalation, within_s: float, work: Callable[[], None]) -> None:
        from concurrent.futures import Future  # noqa: PLC0415 - few runs escalate

        job = asked.job = Future[None]()
        job.set_running_or_notify_cancel()  # a task that waits for it and is cancelled leaves it
        asked.until = self.clock() + within_s

        def run() -> None:
            try:
                work()
            except BaseException as exc:  # noqa: BLE001 - of the user's function: the stop stands
                self.faults.note("rules.escalate", exc)
                asked.said = "failed"
            job.set_result(None)

        try:
            threading.Thread(target=run, name="mnemoscope-escalation", daemon=True).start()
        except RuntimeError as exc:  # there is no thread to be had
            self.faults.note("rules.escalate", exc)
            job.set_result(None)

    def _ask(self, asked: OpenEscalation, escalate: Escalate, stop: Stop) -> None:
        answer = escalate(stop)
        if inspect.isawaitable(answer):
            import asyncio  # noqa: PLC0415 - a tenth of the time to configure a scope

            answer = asyncio.run(_awaited(answer))
        if isinstance(answer, AskHuman):
            asked.said = "ask_human"
        elif isinstance(answer, GoOn):
            asked.said = "go_on"
        elif isinstance(answer, ReturnBest):
            asked.said = answer.value
        elif answer is not None:
            raise TypeError("expected GoOn, AskHuman, RETURN_BEST or None")
        asked.answer = answer
        self._look(asked)

    def _look(self, asked: OpenEscalation) -> None:
        """Find out what a human has decided. An approval is used up by that."""
        if self.decisions is None or not isinstance(asked.answer, AskHuman) or asked.choice:
            return  # what was found too late for one call holds for the next
        try:
            choice, asked.used = self.decisions.standing(asked.approval, 0.0)
            used = decision_event(asked.approval, Choice.USED, used=asked.used, point=Point.NODE)
            if choice != Choice.APPROVE or self.decisions.record(used):
                asked.choice = choice
        except Exception as exc:  # noqa: BLE001 - then it stays held
            self.faults.note("rules.decisions", exc)

    def _resume(self, asked: OpenEscalation, answer: Any) -> None:
        """Take what a run was resumed with for the decision, unless one is sealed."""
        said: dict[str, Any] = answer if is_a(answer, dict) else {"choice": answer}
        if said.get("choice") in {Choice.APPROVE, Choice.EDIT, Choice.REJECT}:
            self._begin(asked, LOOK_S, partial(self._decide, asked, said))

    def _decide(self, asked: OpenEscalation, said: Mapping[str, Any]) -> None:
        choice, who, why = Choice(said["choice"]), said.get("by"), str(said.get("why") or "")
        if self.decisions is None:
            asked.choice = choice
            return
        event = decision_event(
            asked.approval,
            choice,
            gate=asked.stop.rule.name,
            why=why if CODE.fullmatch(why) else "",
            used=asked.used,
            by=None if who is None else self.subject(str(who)),
            point=Point.NODE,
        )
        self.decisions.record(event)
        self._look(asked)


async def _awaited(answer: Awaitable[Answer]) -> Answer:
    return await answer


def _count(run: RunFacts) -> int:
    found = run.known.get(COUNT)
    return found if isinstance(found, int) else 0


def _granted(more: GoOn, run: RunFacts, facts: Facts) -> dict[str, Fact]:
    """Return the facts that stand for *more*, what was granted before included."""
    known = run.known
    found: dict[str, Fact] = {}
    for name in ("usd", "seconds", "tokens"):
        if amount := getattr(more, name):
            found[f"more.{name}"] = granted(known, name) + amount
    if more.steps:
        found["more.until_step"] = steps_of(facts) + more.steps
    return found


def granted(known: Mapping[str, Fact], name: str) -> float:
    """Return how much more of something a run was granted, by its facts."""
    found = known.get(f"more.{name}")
    return found if isinstance(found, int | float) else 0.0


def steps_of(facts: Facts) -> int:
    """Return how many models, tools and nodes have ended in a run."""
    return facts.model_calls + facts.tool_calls + facts.node_ends

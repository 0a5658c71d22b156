"""
The rule that keeps each phase of a run within its envelope of time and money.

What a phase does not use goes to a pool, from which later phases draw by weight. A protected phase
keeps what it has, and what it will need is kept from the others, as is a tail for what comes after
all phases.
"""

from __future__ import annotations

import math
import re
import weakref
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from itertools import product
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from ...telemetry.event.verdict_event import Outcome, Point
from ...telemetry.prometheus.live import LiveMetric, Sample
from ..context import current
from ..errors import ConfigurationError
from ..layers import Entering, Layers
from .capabilities import WitnessesActions
from .envelopes import CEILING, FINE, Books, LimitState, Mode, Phase, tighter
from .rule import ALLOW, PASSES, Action, Fact, Facts, Fails, Verdict, with_known
from .run_facts import Calm, RunFacts
from .slots import RUN

if TYPE_CHECKING:
    from .rulebook import Rulebook

MOST_PHASES: Final = 12
"""Phases of a run, whose books are among its facts."""

OVERRIDE_S: Final = 12.0
"""Seconds that have to be left for calls beyond the soft limit."""

MORE_CALLS: Final = 3
"""Calls beyond the soft limit that there may be at most."""

_ALWAYS = frozenset({"resume", "checkpoint"})
_NAME = re.compile(r"[a-z0-9][\w./-]{0,39}", re.IGNORECASE)
_RUNS = LiveMetric("mnemoscope_phase_runs", "Runs that are in the phase now, by mode")


_AT: Final = "phases.at"
_VISITS: Final = "phases.visits"
_CAP_MS, _SINCE_MS = "phases.agent.cap_ms", "phases.agent.since_ms"
_CALLS, _SOFT_CALLS = "phases.agent.calls", "phases.agent.soft_calls"


class _Agent(NamedTuple):
    """The work of one agent in a phase; *calls* grows by one with each model call."""

    of: Phases
    phase: str
    run: RunFacts
    limits: Mapping[str, Fact]
    calls: list[None]


_agents: Layers[_Agent | None] = Layers("phase", None)


class Phases(WitnessesActions):
    """
    Keeps a run within the envelopes of its phases. It is a rule: ``configure(rules=[phases])``.

    Args:
        phases: The phases, in their order.
        ceiling_s: Seconds that the whole run may be at work. None: as long as it likes.
        ceiling_usd: What the whole run may cost. None: as much as it likes.
        tail_s: Seconds of these that no phase may use: they are for what comes after.
        hung_s: Seconds without a chunk of a model's stream after which it counts as hung.
        conserve_at: Share of what a phase has from which it conserves.
        recall_share: Share of their results that searches are asked for then.
        shadow: Tell, and end, refuse and cut nothing.

    Raises:
        ConfigurationError: The phases make no sense.

    Examples:
        >>> phases = Phases([Phase("research", 520), Phase("write", 230, protected=True)])
        >>> with phases.phase("research", cap_s=60):
        ...     look_around(timeout_s=phases.remaining_s())
    """

    name = "phases"
    points = frozenset(Point)
    fails = Fails.OPEN

    def __init__(
        self,
        phases: Sequence[Phase | Mapping[str, Any]],
        *,
        ceiling_s: float | None = None,
        ceiling_usd: float | None = None,
        tail_s: float = 0.0,
        hung_s: float = 90.0,
        conserve_at: float = 0.8,
        recall_share: float = 0.5,
        shadow: bool = False,
    ) -> None:
        given = [each if isinstance(each, Phase) else Phase(**each) for each in phases]
        figures = {
            "ceiling_s": ceiling_s,
            "ceiling_usd": ceiling_usd,
            "tail_s": tail_s,
            "hung_s": hung_s,
            "conserve_at": conserve_at,
            "recall_share": recall_share,
        }
        _check(given, figures)
        self.shadow = shadow
        self._settings = {"phases": [asdict(each) for each in given], **figures}
        self._hung_s = hung_s
        self._sparing = Verdict(spare=(Mode.CONSERVE.value, recall_share))
        self._phases = {each.name: each for each in given}
        self._time = Books("s", given, ceiling=ceiling_s, tail=tail_s, conserve_at=conserve_at)
        self._money = Books("usd", given, ceiling=ceiling_usd, conserve_at=conserve_at)
        self._book: Callable[[], Rulebook | None] = _none

    def settings(self) -> Mapping[str, Any]:
        """Return the settings of this rule, as the trail records them."""
        return self._settings

    def keep_in(self, book: Rulebook) -> None:
        """Keep the books among the facts of the runs of *book*, from now on."""
        self._book = weakref.ref(book)

    # -- for the code of a phase -------------------------------------------------------------------

    def phase(
        self, name: str, *, cap_s: float | None = None, soft_calls: int | None = None
    ) -> Entering[None]:
        """
        Be in a phase in the body, which is the work of one agent or of one part of it.

        A run is in one phase at a time: what runs side by side is in the same. Another phase within
        the body interrupts it. `StoppedError` ends a phase at its limit, until the body is left:
        the next phase begins anew.

        Args:
            name: Its name.
            cap_s: Seconds that the body may take, if the phase has as many.
            soft_calls: Model calls in the body. 3 more are made while more than 12 s are left.

        Raises:
            ConfigurationError: There is no such phase, or the code is not part of a run.
        """
        return Entering(partial(self._begin, name, cap_s, soft_calls))

    def _begin(
        self, name: str, cap_s: float | None, soft_calls: int | None
    ) -> tuple[None, Callable[[], None]]:
        if name not in self._phases:
            raise ConfigurationError("there is no phase of that name: name one that Phases has")
        book, outer = self._book(), _agents.outer()
        if book is None:  # no scope has it, or one that is disabled
            return None, lambda: None
        agent = self._enter(book, name, cap_s, soft_calls)
        is_within = outer is not None and outer.run is agent.run
        to = outer.phase if outer is not None and is_within else None
        leave = _agents.enter(agent)

        def end() -> None:
            leave()
            self._leave(book, agent, to)

        return None, end

    def mode(self) -> Mode:
        """Return how much the code that runs now may still do."""
        facts = self._now()
        at = self._at(facts)
        return self._agent(self._phase(at, facts), at, facts).mode

    def remaining_s(self) -> float:
        """Return the seconds that the code that runs now has left: infinite without a limit."""
        facts = self._now()
        at = self._at(facts)
        return max(0.0, min(self._time.stands(at, facts).left, self._cap(at, facts).left))

    def remaining_usd(self) -> float:
        """Return what the phase that runs now may still cost: infinite without a limit."""
        facts = self._now()
        return max(0.0, self._money.stands(self._at(facts), facts).left)

    def _now(self) -> Facts:
        book = self._book()
        if book is None:
            return Facts(Point.NODE)
        with book.runs.guard:
            facts = book.facts(book.run_facts(current()))
        return with_known(facts, self.witness(Action(Point.NODE)))

    # -- as a rule ---------------------------------------------------------------------------------

    def witness(self, action: Action, /) -> Mapping[str, Fact]:
        """Return the limits of the agent that asks, and count its model calls."""
        agent = _agents.get()
        if agent is None or agent.of is not self or not agent.limits:
            run = None if action.call is None else RUN.of(action.call)
            return PASSES if run is not None and self._is_calm(run) else {}
        known = {**agent.limits, _CALLS: len(agent.calls)}
        if action.point is Point.MODEL and not action.again:
            agent.calls.append(None)
        return known

    def decide(self, facts: Facts, /) -> Verdict:
        """End what is over its limit; refuse memory where there is only time to finish."""
        is_memory = facts.point is Point.MEMORY
        if is_memory and facts.what in _ALWAYS:
            return ALLOW
        at = self._at(facts)
        found = self._phase(at, facts)
        if found.mode is Mode.TERMINATE:
            return Verdict(Outcome.STOP, found.reason, found.evidence)
        is_calm = found.mode is Mode.NORMAL and _SINCE_MS not in facts.known  # as in most calls
        if is_calm or facts.point is Point.NODE:
            return ALLOW  # the limits of one agent are not those of others
        found = self._agent(found, at, facts)
        if found.mode is Mode.TERMINATE:
            return Verdict(Outcome.REFUSE, found.reason, found.evidence)
        if is_memory and found.mode is Mode.SYNTHESIS_ONLY:
            return Verdict(Outcome.REFUSE, found.mode.value, found.evidence)
        return self._sparing if is_memory and found.mode is Mode.CONSERVE else ALLOW

    def samples(self) -> Iterator[Sample]:
        """Yield how many runs are in which phase and mode."""
        book, found = self._book(), Counter[tuple[str | None, Mode]]()
        if book is not None:
            with book.runs.guard:
                for facts in map(book.facts, book.runs.all()):
                    at = self._at(facts)
                    found[at, self._phase(at, facts).mode] += 1
        for phase, mode in product(self._phases, Mode):
            count = found[phase, mode]
            yield _RUNS.sample(count, rule=self.name, phase=phase, mode=mode.value)

    # -- how limits stand --------------------------------------------------------------------------

    def _is_calm(self, run: RunFacts) -> bool:
        """Return whether *run* is far from all limits, as found when a fact by name changed."""
        calm, book = run.calm, self._book()
        if book is None or run.streams:
            return False
        now = book.clock()
        if calm is None or calm.known is not run.known:
            known, at = run.known, self._at(run.facts)
            left_s = self._time.calm_until(at, known) - run.elapsed_s(now)
            calm = run.calm = Calm(known, now + left_s, self._money.calm_until(at, known))
        return run.counts.cost_usd < calm.cost_usd and now < calm.until_s

    def _at(self, facts: Facts) -> str | None:
        at = facts.known.get(_AT)
        return at if isinstance(at, str) and at in self._phases else None

    def _phase(self, at: str | None, facts: Facts) -> LimitState:
        if facts.silent_s >= self._hung_s:
            return LimitState(Mode.TERMINATE, 0.0, "hung", {"silent_s": facts.silent_s})
        found = self._time.stands(at, facts)
        return tighter(found, self._money.stands(at, facts)) if self._money.limits else found

    def _agent(self, found: LimitState, at: str | None, facts: Facts) -> LimitState:
        """Return how the agent that asks stands, in a phase that is *found* to stand as it does."""
        known = facts.known
        if at is None or _SINCE_MS not in known:
            return found
        cap, calls, soft_calls = self._cap(at, facts), known.get(_CALLS), known.get(_SOFT_CALLS)
        found = tighter(found, cap)
        if not isinstance(calls, int) or not isinstance(soft_calls, int) or calls < soft_calls:
            return found
        mode = Mode.NORMAL if self._phases[at].protected else Mode.CONSERVE
        is_over = calls >= soft_calls + MORE_CALLS or min(found.left, cap.left) <= OVERRIDE_S
        if is_over and facts.point is Point.MODEL:
            mode = Mode.TERMINATE  # until then a soft limit is advice
        evidence: Mapping[str, Fact] = {"phase": at, "calls": calls, "soft_calls": soft_calls}
        return tighter(found, LimitState(mode, found.left, "calls", evidence))

    def _cap(self, at: str | None, facts: Facts) -> LimitState:
        cap_ms, since_ms = facts.known.get(_CAP_MS), facts.known.get(_SINCE_MS)
        if at is None or not isinstance(cap_ms, int) or not isinstance(since_ms, int):
            return FINE
        return self._time.compared(at, self._time.now(facts) - since_ms, cap_ms, "cap")

    # -- the books ---------------------------------------------------------------------------------

    def _enter(
        self, book: Rulebook, name: str, cap_s: float | None, soft_calls: int | None
    ) -> _Agent:
        with book.runs.guard:
            run = book.run_facts(current())
            if run is not book.run_facts(current()):  # made anew each time
                raise ConfigurationError(
                    "a phase is one of a run, and this code is part of none: watch its graph with "
                    "scope.runnable(graph), or name the run with context(run=…)"
                )
            facts = book.facts(run)
            if self._at(facts) == name:
                self._count_visits(run, facts, 1)
            else:
                self._move(book, run, name)
        limits: dict[str, Fact] = {_SINCE_MS: self._time.now(facts)}
        if cap_s is not None:
            limits[_CAP_MS] = round(cap_s * 1_000)
        if soft_calls is not None:
            limits[_SOFT_CALLS] = soft_calls
        return _Agent(self, name, run, limits if len(limits) > 1 else {}, [])

    def _leave(self, book: Rulebook, agent: _Agent, to: str | None) -> None:
        with book.runs.guard:
            facts = book.facts(agent.run)
            if self._at(facts) != agent.phase:
                return  # another phase has begun meanwhile
            if facts.known.get(_VISITS) == 1:
                self._move(book, agent.run, to)
            else:
                self._count_visits(agent.run, facts, -1)

    def _count_visits(self, run: RunFacts, facts: Facts, more: int) -> None:
        visits = facts.known.get(_VISITS)
        run.note({_VISITS: (visits if isinstance(visits, int) else 0) + more})

    def _move(self, book: Rulebook, run: RunFacts, to: str | None) -> None:
        facts = book.facts(run)
        books = [each for each in (self._time, self._money) if each.limits]
        moved = [fact for each in books for fact in each.moved(self._at(facts), to, facts)]
        run.note({**dict(moved), _AT: to, _VISITS: 1})
        run.forget_streams()  # what hangs was left behind
        if run.stopped is not None and run.stopped[1] == self.name and run.stopped[2] != CEILING:
            run.stopped = None  # the phase was ended, and not the run


def _none() -> None:
    """Return no rulebook: no scope has the rule."""


def _check(phases: Sequence[Phase], figures: Mapping[str, float | None]) -> None:
    names = {each.name for each in phases}
    if not 0 < len(phases) <= MOST_PHASES or len(names) < len(phases):
        raise ConfigurationError(f"Phases needs 1 to {MOST_PHASES} phases of different names")
    for place, each in enumerate(phases, 1):
        given = [of for of in (each.seconds, each.usd) if of is not None]
        if not _NAME.fullmatch(each.name):
            raise ConfigurationError(
                f"the name of phase {place} must be 1 to 40 letters, digits and _ . / -"
            )
        if not given or min(given) <= 0 or each.weight < 0:
            raise ConfigurationError(
                f"phase {place} needs seconds or usd of more than 0, and a weight of at least 0"
            )
    for name, value in figures.items():
        if value is not None and not (0 <= value < math.inf and (value or name == "tail_s")):
            raise ConfigurationError(f"{name} must be more than 0")
    for name in ("conserve_at", "recall_share"):
        if (figures[name] or 0) > 1:
            raise ConfigurationError(f"{name} must be a share, in (0, 1]")
    if (figures["ceiling_s"] or math.inf) <= (figures["tail_s"] or 0):
        raise ConfigurationError("tail_s must be less than ceiling_s, of which it is a part")

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
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from ...telemetry.event.verdict_event import Outcome, Point
from ...telemetry.prometheus.live import LiveMetric, Sample
from ..context import current
from ..errors import ConfigurationError
from .envelopes import CEILING, Books, Mode, Phase, Standing, tightest, whole
from .rule import ALLOW, Asked, Fact, Facts, Fails, Verdict, with_known

if TYPE_CHECKING:
    from .rulebook import Rulebook
    from .run_facts import RunFacts

MOST_PHASES: Final = 12
"""Phases of a run, whose books are among its facts."""

OVERRIDE_S: Final = 12.0
"""Seconds that have to be left for calls beyond the soft limit."""

MORE_CALLS: Final = 3
"""Calls beyond the soft limit that there may be at most."""

_ALWAYS = frozenset({"resume", "checkpoint"})
_NAME = re.compile(r"[a-z0-9][\w./-]{0,39}", re.IGNORECASE)
_RUNS = LiveMetric("mnemoscope_phase_runs", "Runs that are in the phase now, by mode")


class _Visit(NamedTuple):
    """The work of one agent in a phase; *calls* grows by one for each model call."""

    of: Phases
    phase: str
    run: RunFacts
    limits: Mapping[str, Fact]
    calls: list[None]


_visit: ContextVar[_Visit | None] = ContextVar("mnemoscope.phase", default=None)


class Phases:
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
        name: Its name in events, metrics and facts.

    Raises:
        ConfigurationError: The phases make no sense.

    Example:
        >>> phases = Phases([Phase("research", 520), Phase("write", 230, protected=True)])
        >>> with phases.phase("research", cap_s=60):
        ...     look_around(timeout_s=phases.remaining_s())
    """

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
        name: str = "phases",
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
        self.name, self.shadow = name, shadow
        self._settings = {"phases": [asdict(each) for each in given], "name": name, **figures}
        self._hung_s, self._share = hung_s, recall_share
        self._time = Books(
            name, "s", given, ceiling=ceiling_s, tail=tail_s, conserve_at=conserve_at
        )
        self._money = Books(name, "usd", given, ceiling=ceiling_usd, conserve_at=conserve_at)
        self._phases = {each.name: each for each in given}
        self._book: Callable[[], Rulebook | None] = _none

    def settings(self) -> Mapping[str, Any]:
        """Return what it was made with."""
        return self._settings

    def bind(self, book: Rulebook) -> None:
        """Keep the books among the facts of the runs of *book*, from now on."""
        self._book = weakref.ref(book)

    # -- for the code of a phase -------------------------------------------------------------------

    @contextmanager
    def phase(
        self, name: str, *, cap_s: float | None = None, soft_calls: int | None = None
    ) -> Generator[None]:
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
        if name not in self._phases:
            raise ConfigurationError("there is no phase of that name: name one that Phases has")
        book, outer = self._book(), _visit.get()
        if book is None:  # no scope has it, or one that is disabled
            yield
            return
        visit = self._enter(book, name, cap_s, soft_calls)
        token = _visit.set(visit)
        try:
            yield
        finally:
            with suppress(ValueError):  # a generator may be closed in another context
                _visit.reset(token)
            is_within = outer is not None and outer.run is visit.run and outer.of is self
            self._leave(book, visit, outer.phase if outer is not None and is_within else None)

    def mode(self) -> Mode:
        """Return how much the run that runs now may still do."""
        return self._mode(self._now())

    def remaining_s(self) -> float:
        """Return the seconds that the code that runs now has left: infinite without a limit."""
        return self._remaining_s(self._now())

    def remaining_usd(self) -> float:
        """Return what the phase that runs now may still cost."""
        facts = self._now()
        return self._money.left(self._money.stands(self._at(facts.known), facts))

    def _now(self) -> Facts:
        book = self._book()
        if book is None:
            return Facts(Point.NODE)
        with book.runs.guard:
            facts = book.facts(book.run_facts(current()))
        return with_known(facts, self.witness(Asked(Point.NODE)))

    # -- as a rule ---------------------------------------------------------------------------------

    def witness(self, asked: Asked, /) -> Mapping[str, Fact]:
        """Return what is known of the agent that asks, and count its model calls."""
        visit = _visit.get()
        if visit is None or visit.of is not self:
            return {}
        known = {**visit.limits, f"{self.name}.visit.calls": len(visit.calls)}
        if asked.point is Point.MODEL and not asked.again:
            visit.calls.append(None)
        return known

    def decide(self, facts: Facts, /) -> Verdict:
        """End what is over its limit; refuse memory where there is only time to finish."""
        if facts.point is Point.MEMORY and facts.what in _ALWAYS:
            return ALLOW
        phase = self._phase(facts)
        if phase.mode is Mode.TERMINATE:
            return Verdict(Outcome.STOP, phase.reason, phase.evidence)
        if facts.point is Point.NODE:
            return ALLOW  # one agent's limits are not those of others
        agent = self._cap(facts)
        if facts.point is Point.MODEL:
            agent = tightest(agent, self._calls(facts))
        if agent.mode is Mode.TERMINATE:
            return Verdict(Outcome.REFUSE, agent.reason, agent.evidence)
        found = tightest(phase, agent)
        if facts.point is Point.MEMORY and found.mode is Mode.SYNTHESIS_ONLY:
            return Verdict(Outcome.REFUSE, found.mode.value, found.evidence)
        return ALLOW

    def spares(self, facts: Facts, /) -> tuple[str, float] | None:
        """Return the mode, and the share of their results that searches are asked for in it."""
        mode = self._mode(facts)
        return (mode.value, self._share) if mode is Mode.CONSERVE else None

    def samples(self) -> Iterator[Sample]:
        """Yield how many runs are in which phase and mode."""
        book, found = self._book(), Counter[tuple[str | None, Mode]]()
        if book is not None:
            with book.runs.guard:
                for facts in map(book.facts, book.runs.all()):
                    found[self._at(facts.known), self._phase(facts).mode] += 1
        for phase in self._phases:
            for mode in Mode:
                count = found[phase, mode]
                yield _RUNS.sample(count, rule=self.name, phase=phase, mode=mode.value)

    # -- how limits stand --------------------------------------------------------------------------

    def _mode(self, facts: Facts) -> Mode:
        return tightest(self._phase(facts), self._cap(facts), self._calls(facts)).mode

    def _phase(self, facts: Facts) -> Standing:
        if facts.silent_s >= self._hung_s:
            return Standing(Mode.TERMINATE, "hung", {"silent_s": facts.silent_s})
        at = self._at(facts.known)
        return tightest(self._time.stands(at, facts), self._money.stands(at, facts))

    def _cap(self, facts: Facts) -> Standing:
        """Return how the cap of the agent that asks stands."""
        known, at = facts.known, self._at(facts.known)
        cap_ms = known.get(f"{self.name}.visit.cap_ms")
        if at is None or not isinstance(cap_ms, int):
            return Standing()
        spent_ms = self._time.now(facts) - whole(known, f"{self.name}.visit.since_ms")
        return self._time.compared(at, spent_ms, cap_ms, "cap")

    def _calls(self, facts: Facts) -> Standing:
        """Return how its model calls stand, of which a soft limit is advice while there is time."""
        known, at = facts.known, self._at(facts.known)
        soft = known.get(f"{self.name}.visit.soft_calls")
        calls = whole(known, f"{self.name}.visit.calls")
        if at is None or not isinstance(soft, int) or calls < soft:
            return Standing()
        mode = Mode.NORMAL if self._phases[at].protected else Mode.CONSERVE
        if calls >= soft + MORE_CALLS or self._remaining_s(facts) <= OVERRIDE_S:
            mode = Mode.TERMINATE
        return Standing(mode, "calls", {"phase": at, "calls": calls, "soft_calls": soft})

    def _remaining_s(self, facts: Facts) -> float:
        phase = self._time.stands(self._at(facts.known), facts)
        return min(self._time.left(phase), self._time.left(self._cap(facts)))

    # -- the books ---------------------------------------------------------------------------------

    def _at(self, known: Mapping[str, Fact]) -> str | None:
        at = known.get(f"{self.name}.at")
        return at if isinstance(at, str) and at in self._phases else None

    def _enter(
        self, book: Rulebook, name: str, cap_s: float | None, soft_calls: int | None
    ) -> _Visit:
        with book.runs.guard:
            run = book.run_facts(current())
            if run is not book.run_facts(current()):
                raise ConfigurationError(
                    "a phase is one of a run, and this code is part of none: watch its graph with "
                    "scope.runnable(graph), or name the run with context(run=…)"
                )
            facts = book.facts(run)
            if self._at(facts.known) == name:
                self._note_visits(run, facts, 1)
            else:
                self._move(book, run, name)
        limits: dict[str, Fact] = {
            f"{self.name}.visit.since_ms": self._time.now(facts),
            f"{self.name}.visit.cap_ms": None if cap_s is None else round(cap_s * 1_000),
            f"{self.name}.visit.soft_calls": soft_calls,
        }
        return _Visit(self, name, run, limits, [])

    def _leave(self, book: Rulebook, visit: _Visit, to: str | None) -> None:
        with book.runs.guard:
            facts = book.facts(visit.run)
            if self._at(facts.known) != visit.phase:
                return  # another phase has begun meanwhile
            if whole(facts.known, f"{self.name}.visits") > 1:
                self._note_visits(visit.run, facts, -1)
            else:
                self._move(book, visit.run, to)

    def _note_visits(self, run: RunFacts, facts: Facts, more: int) -> None:
        visits = f"{self.name}.visits"
        run.note({visits: whole(facts.known, visits) + more})

    def _move(self, book: Rulebook, run: RunFacts, to: str | None) -> None:
        facts = book.facts(run)
        moved = (self._at(facts.known), to, facts)
        known = dict([*self._time.moved(*moved), *self._money.moved(*moved)])
        run.note({**known, f"{self.name}.at": to, f"{self.name}.visits": 1})
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

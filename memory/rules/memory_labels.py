"""
The labels of memories: the least trust of all that the run which wrote one had read until then.

A label is bound to a memory by a keyed hash of its place, its id and its content, and is kept in
the audit trail, not in the record: whoever changes the record loses it. Of a memory that was
written more than once, the same each time, the latest write counts: a run that may not be trusted
could have put back what was true once, and whoever may be trusted can say it anew. A run that has
recalled it gains nothing by that, since it has read what it writes.
"""

from __future__ import annotations

import logging
import weakref
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextvars import ContextVar
from enum import IntEnum
from typing import Final, Protocol, runtime_checkable

import msgspec

from ...telemetry.event.kinds import Status
from ...telemetry.event.memory_label import MemoryLabel
from ...telemetry.event.verdict_event import Point
from ..context import Scope, current
from ..guard.call import Call
from ..guard.operation import Record
from ..layers import Layers
from ..run_observers import GraphRun
from .rule import Action, Fact, Rule
from .run_facts import MOST_TRUST, KeyedHashes, RunFacts, RunsUnderWay

_NO_TRAIL: Final = (
    "there is no audit trail to keep the origin of memories in: what was written before this "
    "process began, or by another, is of unknown origin; add audit to MNEMOSCOPE_SINKS"
)

MOST_LABELS: Final = 65_536
"""MemoryLabels that a process keeps: those of other memories are looked up in the audit trail."""


logger = logging.getLogger("mnemoscope")


class Trust(IntEnum):
    """
    How far what was read is to be trusted, in ascending order.

    Attributes:
        EXTERNAL_TOOL: A tool that is not known, the web, a foreign server; and all that is unknown.
        OTHER_AGENT: Another agent's message.
        OWN_REFLECTION: A model's answer.
        INTERNAL_TOOL: A tool of your own.
        PERSON: The person whom the agent works for.
    """

    EXTERNAL_TOOL = 0
    OTHER_AGENT = 1
    OWN_REFLECTION = 2
    INTERNAL_TOOL = 3
    PERSON = 4

    @property
    def code(self) -> str:
        """Its name in events and settings."""
        return _CODES[self]


_CODES: Final = tuple(each.name.lower() for each in Trust)
_TRUSTS: Final = tuple(Trust)

LOOK_AGAIN_S: Final = 10.0
"""Seconds after which a label is looked up again, where trust is demanded: others may write too."""

_NOT_DONE: Final = frozenset({Status.DENIED, Status.REFUSED, Status.REJECTED})
"""How writes end that the store was not asked for. Of others it may have them."""

UNKNOWN: Final = Trust.EXTERNAL_TOOL
"""The trust of what is not known: the lowest."""

reads_here: Final[Layers[Trust | None]] = Layers("trust", None)
"""The least trust of what the code that runs now has said that it reads. None: it said nothing."""

_read_around: ContextVar[tuple[tuple[weakref.ref[MemoryLabels], int], ...]] = ContextVar(
    "mnemoscope_read_around", default=()
)
"""The least trust of what this task or thread has read outside of all runs, by scope."""


class LabelTrail(Protocol):
    """An audit trail that labels are kept in."""

    def labels(self, tags: Sequence[str]) -> Mapping[str, tuple[int, int]]:
        """Return when each of *tags* was written last, in µs since 1970, and its trust then."""
        ...

    def is_elsewhere(self, run: str) -> bool:
        """Return whether another process than this one has done something in *run*."""
        ...


class _Known(msgspec.Struct, frozen=True, gc=False):
    """A label: when it was written, in µs since 1970, its trust, and when it was looked up."""

    written_us: int
    trust: int
    looked_up: float

    def counts_before(self, other: _Known) -> bool:
        """Return whether this one counts: the latest does, and of two at once the lower."""
        if self.written_us == other.written_us:
            return self.trust < other.trust
        return self.written_us > other.written_us


_NO_LABEL: Final = _Known(0, UNKNOWN, 0.0)
"""What is kept of a memory without a label, such as one from before there was a rule."""


@runtime_checkable
class LabelsMemories(Rule, Protocol):
    """A rule that says how far tools are trusted, and what may be recalled. One in a scope."""

    @property
    def leaves_out(self) -> bool:
        """Whether what is trusted less than is demanded is left out."""
        ...

    def labels_in(self, labels: MemoryLabels, /) -> None:
        """Take the labels of a scope that it is a rule of."""
        ...

    def trust_of(self, name: str, /) -> Trust:
        """Return how far the answer of a tool, or of a store without memories, is trusted."""
        ...

    def demand(self, purpose: str | None, /) -> Trust | None:
        """Return the least trust of what may be recalled for *purpose*. None: any."""
        ...

    def answer_facts(self, trusts: Sequence[Trust], /) -> Mapping[str, Fact]:
        """Return the facts of an answer whose memories have these labels."""
        ...

    def note_found(self, records: Sequence[Record], trusts: Sequence[Trust], /) -> None:
        """Keep how far the memories are trusted that a recall found."""
        ...


class MemoryLabels:
    """
    The labels of one scope's memories, and what its runs have read. Thread-safe.

    Args:
        rule: Says how far tools are trusted, and what may be recalled.
        hashes: Makes tags.
        runs: The runs under way.
        runs_of: Returns the facts of the run that code for a scope is part of, in a graph, and of
            the runs around it. None: of no run.
        clock: Monotonic seconds.
        trail: Where labels are looked up that this process does not know. None: nowhere.

    Attributes:
        rule: As given.
        trail: As given.
    """

    def __init__(
        self,
        rule: LabelsMemories,
        hashes: KeyedHashes,
        runs: RunsUnderWay,
        runs_of: Callable[[Scope, GraphRun | None], list[RunFacts]],
        clock: Callable[[], float],
        *,
        trail: LabelTrail | None = None,
    ) -> None:
        self.rule = rule
        self.trail = trail
        self._hashes = hashes
        self._runs = runs
        self._runs_of = runs_of
        self._clock = clock
        self._known: OrderedDict[str, _Known] = OrderedDict()
        rule.labels_in(self)
        if trail is None:
            logger.warning(_NO_TRAIL)

    # -- what runs have read -----------------------------------------------------------------------

    def ask(self, action: Action, graph: GraphRun | None) -> None:
        """Note that the run reads what a tool or model answers, as soon as it is asked."""
        if action.point is Point.TOOL:
            self.read(self.rule.trust_of(action.name), action.scope, graph)
        elif action.point is Point.MODEL:
            self.read(Trust.OWN_REFLECTION, action.scope, graph)

    def read(self, trust: int, scope: Scope, graph: GraphRun | None = None) -> None:
        """
        Lower the trust of the run of *scope*, and of the runs around it, to *trust*.

        Of no run, as in a thread that has lost its context: the graphs that are at work may learn
        of it, and so may those that this task or thread begins.
        """
        if trust >= MOST_TRUST:
            return  # nothing is trusted more
        if self.lower(trust, scope, graph):
            return
        with self._runs.guard:
            for run in self._runs.at_work.values():
                run.least = min(run.least, trust)
        before = [each for each in _read_around.get() if each[0]() not in {self, None}]
        _read_around.set((*before, (weakref.ref(self), min(trust, self._around()))))

    def lower(self, trust: int, scope: Scope, graph: GraphRun | None = None) -> bool:
        """Note the same, and return whether there is such a run."""
        with self._runs.guard:
            runs = self._runs_of(scope, graph)
            for run in runs:
                run.least = min(run.least, trust)
        return bool(runs)

    def note_state(self, run: RunFacts, scope: Scope, graph: GraphRun | None) -> None:
        """Note that the code that runs writes state of *run*, which whoever resumes it reads."""
        here = reads_here.get() if graph is None else MOST_TRUST
        least = UNKNOWN if here is None else here
        run.least = min([run.least, least, *[each.least for each in self._runs_of(scope, graph)]])

    def _around(self) -> int:
        return next((trust for of, trust in _read_around.get() if of() is self), MOST_TRUST)

    def read_from(self, source: str | None, scope: Scope, graph: GraphRun | None) -> None:
        """Note that the run reads an answer of the tool *source*, or another agent's (None)."""
        trust = Trust.OTHER_AGENT if source is None else self.rule.trust_of(source)
        self.read(trust, scope, graph)

    def runs(self) -> list[RunFacts]:
        """Return the current run, and the runs around it."""
        with self._runs.guard:
            return self._runs_of(current(), None)

    def unopened(self, runs: Iterable[RunFacts]) -> list[RunFacts]:
        """Return those of *runs* of which is not known whether they began here."""
        if self.trail is None:
            return []
        return [each for each in runs if each.name is not None and not each.is_opened]

    def open(self, runs: Iterable[RunFacts]) -> None:
        """Ask the trail whether other processes have done something in *runs*: who knows what."""
        for run in runs:
            is_elsewhere = self.trail is None or self.trail.is_elsewhere(run.name or "")
            with self._runs.guard:
                run.is_opened = True
                if is_elsewhere:
                    run.least = UNKNOWN

    def least(self, runs: Sequence[RunFacts], graph: GraphRun | None) -> int:
        """
        Return the least trust of what *runs*, which run now, have read. Under the guard.

        It is unknown what code has read that is in no watched graph, unless the code says so.
        """
        said = reads_here.get()
        if graph is None:
            if said is None:
                return UNKNOWN
            here: int = said
        elif graph.reads_unseen:
            here = UNKNOWN
        else:
            here = min(MOST_TRUST if said is None else said, self._around())
        least: int = here if runs else UNKNOWN
        has_trail = self.trail is not None
        for run in runs:
            if here < run.least:  # noqa: PLR1730 - `min` is a call more, and this is on every write
                run.least = here
            if not run.is_whole or (has_trail and not run.is_opened and run.name is not None):
                least = UNKNOWN
            elif run.least < least:
                least = run.least
        return least

    # -- labels ------------------------------------------------------------------------------------

    def label(self, least: int, store: str, call: Call) -> MemoryLabel | None:
        """
        Return the label of what the call wrote: without one it is not trusted.

        Args:
            least: How far the least trusted of what its run has read is to be trusted.
            store: The store's name.
            call: The call.
        """
        written = call.method.written
        if written is None or call.status in _NOT_DONE:
            return None
        tags: list[str] = []
        for each in written(call.result, call.arguments):
            tags += self.tags(store, call, each)
            if each.is_derived:
                least = min(least, Trust.OWN_REFLECTION)
        if not tags:
            return None
        self._keep(tags, _Known(call.started_ns // 1_000, least, self._clock()))
        return MemoryLabel(_CODES[least], least, tuple(tags))

    def tags(self, store: str, call: Call, record: Record) -> list[str]:
        """Return the tags of what a call found or wrote: one for each part."""
        memory_id, parts, place, _ = record
        if place is None:
            place = call.method.collection(call.arguments) or ""
        tag = self._hashes.of_json
        return [tag([store, place, memory_id, name, part]) for name, part in parts]

    def missing(self, tags: Iterable[Iterable[str]], *, again: bool = False) -> list[str]:
        """
        Return those of *tags* that are to be looked up; *again*: also what may be outdated.

        That a memory has no label is outdated like a label, and always looked up again then: it may
        be on its way into the trail.
        """
        if self.trail is None:
            return []
        known, before = self._known, self._clock() - LOOK_AGAIN_S
        return [
            tag
            for each in tags
            for tag in each
            if (of := known.get(tag)) is None
            or ((again or not of.written_us) and of.looked_up <= before)
        ]

    def look_up(self, tags: Sequence[str]) -> None:
        """Ask the trail for the labels of *tags*. What it does not say stays as it was, or none."""
        if self.trail is not None:
            found = self.trail.labels(tags)
            now = self._clock()
            for tag in tags:
                if (of := found.get(tag)) is not None:
                    self._keep([tag], _Known(*of, now))
                else:
                    known = self._known.get(tag, _NO_LABEL)
                    self._keep([tag], _Known(known.written_us, known.trust, now))

    def trusts(self, tags: Iterable[Iterable[str]]) -> list[Trust]:
        """Return the label of each memory by its tags, as far as this process knows them."""
        # A memory without content, or with a part that nobody labelled, is unknown.
        known = self._known.get
        return [
            _TRUSTS[min([0 if (of := known(tag)) is None else of.trust for tag in each], default=0)]
            for each in tags
        ]

    def _keep(self, tags: Iterable[str], label: _Known) -> None:
        known = self._known
        with self._runs.guard:
            for tag in tags:
                before, known[tag] = known.get(tag), label
                if before is None:
                    if len(known) > MOST_LABELS:
                        known.popitem(last=False)
                    continue
                known.move_to_end(tag)
                if before.written_us >= label.written_us and before.counts_before(label):
                    known[tag] = _Known(before.written_us, before.trust, label.looked_up)

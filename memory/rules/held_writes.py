"""
Writes that a rule holds: what a human has decided of each, and its passing, once.

Every rule whose outcome at a memory write is ``hold`` is part of this, and needs nothing for it. A
held write is known by a keyed hash of what it writes and where, its approval's id: the same in all
processes that have the key. Decisions are sealed in the audit trail, which is read only while
writes are held. Where there is no trail, what is held stays held.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple, Protocol, runtime_checkable

import orjson

from ...telemetry.event.event import Event, OperationClass, Redacted
from ...telemetry.event.verdict_event import Choice, Outcome
from ...telemetry.process.faults import Faults
from ...telemetry.text import is_a
from ..guard.call import Call
from ..guard.operation import Arguments
from ..privacy.engine.content import to_content
from .decisions import OUTCOMES, decided_by, decision_event
from .rule import Action, Fact, Facts, Rule, Verdict, with_known
from .run_facts import KeyedHashes

LOOK_AGAIN_S: Final = 1.0
"""Seconds for which the decisions that were read last are good enough."""

APPROVAL: Final = "held.approval"
DECISION: Final = "held.decision"
EDITED: Final = "held.edited"
"""Names of facts: the id of a held write; what was decided of it, empty where nothing was; and
whether it is written with the text that a human has made of it."""

_READS = frozenset({OperationClass.RECALL, OperationClass.RESUME})
_SPARED = _READS | {OperationClass.FORGET}
_AS_IT_IS = orjson.OPT_SORT_KEYS | orjson.OPT_SERIALIZE_NUMPY | orjson.OPT_NON_STR_KEYS


class Judged(NamedTuple):
    """A rule's verdict, with the facts under the verdict."""

    rule: Rule
    verdict: Verdict
    facts: Facts


class Decisions(Protocol):
    """What humans have decided, as the audit trail has it. Raises what reading it raises."""

    def standing(self, approval: str, most_age_s: float, /) -> tuple[str, int]:
        """
        Return what was decided of *approval*, and how many times it was used before.

        Args:
            approval: Its id.
            most_age_s: Seconds for which what was read last is good enough.
        """
        ...

    def edited(self, writer_id: str, /) -> tuple[str, str] | None:
        """
        Return the text that was held and the one that a human has made of it, both redacted.

        Args:
            writer_id: Of the decision's event: see `decided_by`.

        Returns:
            None: it was decided without one.

        Raises:
            Exception: It was erased since.
        """
        ...

    def stage(self, gate: str, version: str, most_age_s: float, /) -> int:
        """Return the percent of its passes that a version of a gate goes on with. 0: shadow."""
        ...

    def figures(
        self, window: int, most_age_s: float, /
    ) -> tuple[tuple[str, float | None, bool, int], ...]:
        """Return name, share that agrees, whether it is in auto, and what waits, for each gate."""
        ...

    def agreement(self, gate: str, version: str, window: int, /) -> Mapping[str, Fact]:
        """
        Return what humans have decided on the verdicts of *version* of *gate*.

        ``mode`` and ``stage`` are its latest, after so many ``changes``. ``decided`` are those of
        the latest *window* decisions since it was last put in shadow, ``agreed`` those of them that
        agree; ``stage_…`` are those since the latest change, ``blind_…`` the blind ones.
        ``rejected_passes`` are those that passed, since the last reset.
        """
        ...

    def record(self, event: Event, /) -> bool:
        """Record *event*, and return whether it was the first of its id."""
        ...


@runtime_checkable
class KeyedRule(Protocol):
    """A rule that makes use of its scope's key and audit trail."""

    def bind(self, hashes: KeyedHashes, decisions: Callable[[], Decisions | None], /) -> None:
        """Take the hashes, and a function that returns the decisions. None: there is no trail."""
        ...


class HeldWrites:
    """
    The held writes of one scope. Thread-safe.

    Args:
        hashes: Makes hashes of writes.
        faults: Where errors of our own are noted.
        decisions: What humans have decided. None: there is no audit trail.
    """

    def __init__(
        self, hashes: KeyedHashes, faults: Faults, decisions: Decisions | None = None
    ) -> None:
        self._hashes, self._faults = hashes, faults
        self.decisions = decisions

    def settled(self, action: Action, judged: Sequence[Judged]) -> Sequence[Judged]:
        """
        Return what rules say of a memory operation, by what humans have decided of it.

        That a write passes by an approval is recorded before it does, whatever the store says then.
        """
        acting = {each.verdict.outcome for each in judged if not each.rule.shadow}
        if Outcome.HOLD not in acting or (approval := self._id(action)) is None:
            return judged
        may_pass = acting <= {Outcome.HOLD, Outcome.ALLOW}
        decision, is_edited = self._decision(approval, action.call, may_pass=may_pass)
        known: dict[str, Fact] = {APPROVAL: approval, DECISION: decision}
        known |= {EDITED: 1} if is_edited else {}
        return [_settled(each, known) for each in judged]

    def _id(self, action: Action) -> str | None:
        """Return the id of a held write. None: it is none, or it could not be told from others."""
        call = action.call
        if call is None or call.method.op_class in _READS:
            return None
        scope = call.scope
        write = [action.store, call.method.name, scope.tenant, scope.customer, call.arguments]
        try:
            return self._hashes.of_bytes(orjson.dumps(write, default=_plain, option=_AS_IT_IS))
        except TypeError:
            return None

    def _decision(self, approval: str, call: Call | None, *, may_pass: bool) -> tuple[str, bool]:
        """Return what was decided, and whether *call* has a human's text in its arguments now."""
        if self.decisions is None or call is None:
            return "", False
        try:
            decision, used = self.decisions.standing(approval, LOOK_AGAIN_S)
            edited = None
            if decision == Choice.EDIT:
                texts = self.decisions.edited(decided_by(approval, used))
                edited = texts and _with_text(call, *texts)
            if decision != Choice.APPROVE and edited is None:
                return decision, False
            if may_pass and self.decisions.record(decision_event(approval, Choice.USED, used=used)):
                call.arguments = call.arguments if edited is None else edited
                return decision, edited is not None
        except Exception as exc:  # noqa: BLE001 - then it stays held
            self._faults.note("rules.decisions", exc)
        return "", False

    def content(self, action: Action) -> Redacted | None:
        """Return what a held write would write. None: it cannot be told, or was not redacted."""
        call = action.call
        if call is None or not call.redacted:
            return None
        try:
            written = [each for each in action.operations if each.method.op_class not in _SPARED]
            parts = [each.method.content(each.arguments) for each in written or (call,)]
        except Exception as exc:  # noqa: BLE001 - costs the event one field
            self._faults.note("rules.content", exc)
            return None
        return to_content(parts[0] if len(parts) == 1 else parts)


def _settled(judged: Judged, known: dict[str, Fact]) -> Judged:
    rule, verdict, facts = judged
    if rule.shadow or verdict.outcome is not Outcome.HOLD:
        return judged
    facts = with_known(facts, known)
    return Judged(rule, settled(verdict, facts), facts)


def settled(verdict: Verdict, facts: Facts) -> Verdict:
    """Return *verdict* as it is by what the facts say a human has decided. Pure, as rules are."""
    approval, decision = facts.known.get(APPROVAL), facts.known.get(DECISION)
    if verdict.outcome is not Outcome.HOLD or approval is None:
        return verdict
    evidence = {**verdict.evidence, "approval": approval}
    if not decision:
        return Verdict(Outcome.HOLD, verdict.reason, evidence)
    choice = Choice(str(decision))
    outcome = Outcome.ALLOW if facts.known.get(EDITED) else OUTCOMES[choice]
    return Verdict(outcome, f"human_{choice}", {**evidence, "held_for": verdict.reason})


def _with_text(call: Call, was: str, text: str) -> Arguments | None:
    """
    Return the arguments of *call* with *text* in place of *was*.

    None: it is not in them once, or they hold what was made of it, such as a vector.
    """
    if call.redaction is None:
        return None
    text = call.redaction.text(text)  # whose customer may be named in it
    places: list[str] = []

    def edited(value: Any) -> Any:
        if isinstance(value, str):
            if value == was:
                places.append(value)
            return text if value == was else value
        if is_a(value, dict):
            return {name: edited(each) for name, each in value.items()}
        if type(value) in {list, tuple}:
            if value and all(isinstance(each, float) for each in value):
                raise TypeError
            return type(value)(map(edited, value))
        orjson.dumps(value, option=orjson.OPT_PASSTHROUGH_DATACLASS)  # may hold text inside
        return value

    try:
        found = edited(call.arguments)
    except TypeError:
        return None
    return found if len(places) == 1 else None


def _plain(value: Any) -> Any:
    """Return what *value* holds, as orjson takes it. What does not show it has no id."""
    if is_a(value, tuple):  # a named one
        return [type(value).__name__, *value]
    if hasattr(value, "tolist"):  # an array in an order of its own
        return value.tolist()
    if hasattr(value, "model_dump"):
        return [type(value).__name__, value.model_dump()]
    raise TypeError

"""
The node of a graph that has a gate judge a draft, and interrupts where a human is to decide.

What the gate has found is saved with the run as soon as it is found, so that a run which is resumed
is not judged again. A human decides by resuming the run, or where the audit trail is; the decision
that is sealed first holds, whatever the run is resumed with.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Protocol

from langgraph.errors import GraphInterrupt
from langgraph.func import task  # pyright: ignore[reportMissingTypeStubs] - typed
from langgraph.types import interrupt
from loguru import logger

from ...memory.rules.agreement import change_mode
from ...memory.rules.approval import Approval, Draft
from ...memory.rules.decisions import CODE, decided_by, decision_event
from ...memory.rules.rule import Facts, Verdict
from ...telemetry.event.verdict_event import Choice, Outcome, Point
from ..toolkit.type_guards import is_dict

if TYPE_CHECKING:
    from ...memory.rules.held_writes import Decisions, KeyedRule
    from ...telemetry.event.subject import Subject

_NOT_OF_VERDICT = frozenset({"held", "approval", "gate"})


class ApprovalScope(Protocol):
    """The part of a scope that the node uses."""

    def tell_verdict(
        self,
        rule: Approval,
        facts: Facts,
        content: Callable[[Callable[[Any], Any]], Any] | None = None,
    ) -> Verdict:
        """Have *rule* decide, and tell what it says, with its *content*, as a sealed event."""
        ...

    def note_fault(self, site: str, exc: BaseException) -> None:
        """Count an error of ours."""
        ...

    def bind_rule(self, rule: KeyedRule) -> Decisions | None:
        """Let *rule* use the key and the trail, and return the trail."""
        ...

    def subject(self, person: str, tenant: str | None = None) -> Subject | None:
        """Return a person as events name them."""
        ...


def approval_node(
    gate: Approval,
    scope: ApprovalScope,
    *,
    draft: str = "draft",
    result: str = "approval",
    read: Callable[[Any], Draft | str] | None = None,
    is_async: bool = False,
) -> Callable[..., Any]:
    """
    Return a node that judges a draft, and asks a human where the gate does not let it pass.

    A run is resumed with a choice, ``approve``, ``edit``, ``reject`` or ``skip``; or with a dict of
    ``choice``, ``by`` (who), ``why`` (a code), and after an edit ``draft``. To skip, or to say
    anything else, asks again; but a decision that is in the audit trail already is taken, however
    the run is resumed.

    Args:
        gate: The gate.
        scope: Tells the verdict, and records what the human decides.
        draft: The key of the state with the draft, which takes what a human makes of it.
        result: The key that takes what came of it: ``choice``, ``reason``, ``approval`` and the
            ``verdict``; and as ``overruled`` a choice that came too late.
        read: Returns the draft from the state, where it is more than a text.
        is_async: Return a coroutine function, whose judges run on a thread.
    """
    node = _Node(gate, scope, draft=draft, result=result, read=read)
    judged = task(node.judge)

    def called(state: Any) -> dict[str, Any]:
        return node.settle(judged(state).result(), state)

    async def awaited(state: Any) -> dict[str, Any]:
        return await asyncio.to_thread(node.settle, await judged(state), state)

    return awaited if is_async else called


class _Node:
    """What the node does in its two parts: judge, once for a run; and settle, each time again."""

    def __init__(
        self,
        gate: Approval,
        scope: ApprovalScope,
        *,
        draft: str,
        result: str,
        read: Callable[[Any], Draft | str] | None,
    ) -> None:
        self._gate, self._scope, self._trail = gate, scope, scope.bind_rule(gate)
        self._draft, self._result, self._read = draft, result, read

    def judge(self, state: Any) -> dict[str, Any]:
        """Return the verdict on the draft in *state*: scores and codes."""
        gate, approval = self._gate, secrets.token_hex(8)
        try:
            draft = self._draft_in(state)
            facts = Facts(Point.NODE, known=gate.facts(draft, approval))
            verdict = self._scope.tell_verdict(
                gate, facts, lambda redact: gate.detail(draft, redact)
            )
        except Exception as exc:  # noqa: BLE001 - a gate that fails asks a human
            self._scope.note_fault("rules.gate", exc)
            verdict = Verdict(Outcome.HOLD, "gate_failed", {"approval": approval, "passed": 0})
        held = verdict.outcome is not Outcome.ALLOW and not gate.shadow
        return {"held": held, "reason": verdict.reason, **verdict.evidence}

    def _draft_in(self, state: Any) -> Draft:
        given = state[self._draft] if self._read is None else self._read(state)
        return given if isinstance(given, Draft) else Draft(str(given))

    def settle(self, found: Mapping[str, Any], state: Any) -> dict[str, Any]:
        """Return the update of the state, once a human has decided where one is to."""
        verdict = {name: of for name, of in found.items() if name not in _NOT_OF_VERDICT}
        known = {"approval": found["approval"], "reason": found["reason"], "verdict": verdict}
        if not found["held"]:
            known["choice"] = "shadow" if self._gate.shadow else "auto"
            return {self._result: known}
        choice, answer = self._decision(found, self._shown(found, verdict, state))
        said = _answer(answer)[0]
        known["choice"] = choice.value
        if said not in {None, Choice.SKIP, choice}:
            known["overruled"] = str(said)
            logger.warning(
                "approval {}: the run was resumed with {}, the sealed decision {} holds",
                *(found["approval"], said, choice),
            )
        update: dict[str, Any] = {self._result: known}
        if choice is Choice.EDIT and "draft" in answer:
            update[self._draft] = answer["draft"]
        elif choice is Choice.EDIT and (text := self._edited(found["approval"])) is not None:
            update[self._draft] = text
        return update

    def _edited(self, approval: str) -> str | None:
        """
        Return the text that a human has made of the draft where the trail is, if they did.

        Raises:
            AuditError: It cannot be read: what they have changed is not to go on as it was.
        """
        found = None if self._trail is None else self._trail.edited(decided_by(approval, 0))
        return found[1] if found else None

    def _shown(
        self, found: Mapping[str, Any], verdict: Mapping[str, Any], state: Any
    ) -> dict[str, Any]:
        """Return what the human is shown: of a blind decision neither verdict nor findings."""
        is_blind = bool(found.get("is_blind"))
        shown = {"approval": found["approval"], "gate": self._gate.name, "is_blind": is_blind}
        try:
            shown |= self._gate.detail(self._draft_in(state))
        except Exception as exc:  # noqa: BLE001 - the human decides without
            self._scope.note_fault("rules.gate", exc)
        if is_blind:
            shown.pop("findings", None)
            return shown
        return {**shown, "verdict": verdict}

    def _decision(
        self, found: Mapping[str, Any], shown: dict[str, Any]
    ) -> tuple[Choice, dict[str, Any]]:
        """Return the decision that holds, and what the run was resumed with."""
        skips = 0
        while True:  # each answer is met again whenever the run is resumed
            try:
                said = interrupt(shown)
            except GraphInterrupt:
                sealed = self._sealed(found)
                if sealed is None:
                    raise
                return sealed, {}
            choice, answer = _answer(said)
            if choice is not None and choice is not Choice.SKIP:
                return self._record(found, choice, answer), answer
            sealed = self._sealed(found)
            if sealed is not None:
                return sealed, answer
            if choice is Choice.SKIP:
                self._record(found, choice, answer, skips)
                skips += 1

    def _sealed(self, found: Mapping[str, Any]) -> Choice | None:
        """Return what was decided in the trail, from which the mode may still be to follow."""
        if self._trail is None:
            return None
        try:
            decision = self._trail.standing(found["approval"], 0.0)[0]
            if decision:
                change_mode(self._trail, self._gate.name, str(found.get("version") or ""))
        except Exception as exc:  # noqa: BLE001 - then the human who is here decides
            self._scope.note_fault("rules.decisions", exc)
            return None
        return Choice(decision) if decision else None

    def _record(
        self, found: Mapping[str, Any], choice: Choice, answer: Mapping[str, Any], skips: int = 0
    ) -> Choice:
        """Seal *choice*, and return what holds: that, or what another has sealed meanwhile."""
        if self._trail is None:
            return choice
        who, why = answer.get("by"), str(answer.get("why") or "")
        try:
            event = decision_event(
                found["approval"],
                choice,
                gate=self._gate.name,
                version=str(found.get("version") or ""),
                passed=bool(found["passed"]),
                is_blind=bool(found.get("is_blind")),
                why=why if CODE.fullmatch(why) else "",
                used=skips,
                by=None if who is None else self._scope.subject(str(who)),
                point=Point.NODE,
            )
            self._trail.record(event)
        except Exception as exc:  # noqa: BLE001 - the human has decided: the run goes on
            self._scope.note_fault("rules.decisions", exc)
        return self._sealed(found) or choice


def _answer(said: Any) -> tuple[Choice | None, dict[str, Any]]:
    """Return the choice in what a run was resumed with: what makes no sense skips; None: none."""
    answer: dict[str, Any] = said if is_dict(said) else {"choice": said}
    if "choice" not in answer:
        return None, answer  # it names the approval, whose decision is in the trail
    try:
        choice = Choice(str(answer["choice"]))
    except ValueError:
        choice = Choice.SKIP
    return Choice.SKIP if choice is Choice.USED else choice, answer

"""
The node of a graph that has a gate judge a draft, and interrupts where a human is to decide.

What the gate has found is saved with the run as soon as it is found, so that a run which is resumed
is not judged again. The interrupt holds scores and codes, never the draft: that is in the state.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Protocol

from langgraph.func import task  # pyright: ignore[reportMissingTypeStubs] - typed
from langgraph.types import interrupt

from ...memory.rules.agreement import change_mode
from ...memory.rules.approval import Approval, Draft
from ...memory.rules.decisions import CODE, decision_event
from ...memory.rules.rule import Facts, Verdict
from ...telemetry.event.verdict_event import Choice, Outcome, Point
from ..toolkit.type_guards import is_dict

if TYPE_CHECKING:
    from ...memory.rules.held_writes import Decisions, KeyedRule
    from ...telemetry.event.subject import Subject


class ApprovalScope(Protocol):
    """The part of a scope that the node uses."""

    def tell_verdict(self, rule: Approval, facts: Facts) -> Verdict:
        """Have *rule* decide, and tell what it says as a sealed event."""
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
    anything else, asks again.

    Args:
        gate: The gate.
        scope: Tells the verdict, and records what the human decides.
        draft: The key of the state with the draft, which takes what a human makes of it.
        result: The key that takes what came of it: ``choice``, ``reason``, ``approval``.
        read: Returns the draft from the state, where it is more than a text.
        is_async: Return a coroutine function, whose judges run on a thread.
    """
    node = _Node(gate, scope, draft=draft, result=result, read=read)
    judged = task(node.judge)

    def called(state: Any) -> dict[str, Any]:
        return node.settle(judged(state).result())

    async def awaited(state: Any) -> dict[str, Any]:
        return await asyncio.to_thread(node.settle, await judged(state))

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
            given = state[self._draft] if self._read is None else self._read(state)
            draft = given if isinstance(given, Draft) else Draft(str(given))
            facts = Facts(Point.NODE, known=gate.facts(draft, approval))
            verdict = self._scope.tell_verdict(gate, facts)
        except Exception as exc:  # noqa: BLE001 - a gate that fails asks a human
            self._scope.note_fault("rules.gate", exc)
            verdict = Verdict(Outcome.HOLD, "gate_failed", {"approval": approval, "passed": 0})
        held = verdict.outcome is not Outcome.ALLOW and not gate.shadow
        return {"held": held, "reason": verdict.reason, **verdict.evidence}

    def settle(self, found: Mapping[str, Any]) -> dict[str, Any]:
        """Return the update of the state, once a human has decided where one is to."""
        common = {"approval": found["approval"], "reason": found["reason"]}
        if not found["held"]:
            return {self._result: {**common, "choice": "shadow" if self._gate.shadow else "auto"}}
        choice, answer = _answer(interrupt(dict(found)))
        skips = 0
        while choice is Choice.SKIP:  # each is met again whenever the run is resumed
            self._record(found, choice, answer, skips)
            choice, answer = _answer(interrupt(dict(found)))
            skips += 1
        self._record(found, choice, answer)
        update: dict[str, Any] = {self._result: {**common, "choice": choice.value}}
        if choice is Choice.EDIT and "draft" in answer:
            update[self._draft] = answer["draft"]
        return update

    def _record(
        self, found: Mapping[str, Any], choice: Choice, answer: Mapping[str, Any], skips: int = 0
    ) -> None:
        if self._trail is None:
            return
        who, why = answer.get("by"), str(answer.get("why") or "")
        try:
            event = decision_event(
                found["approval"],
                choice,
                gate=self._gate.name,
                passed=bool(found["passed"]),
                why=why if CODE.fullmatch(why) else "",
                used=skips,
                by=None if who is None else self._scope.subject(str(who)),
                point=Point.NODE,
            )
            self._trail.record(event)
            change_mode(self._trail, self._gate.name)
        except Exception as exc:  # noqa: BLE001 - the human has decided: the run goes on
            self._scope.note_fault("rules.decisions", exc)


def _answer(said: Any) -> tuple[Choice, dict[str, Any]]:
    """Return the choice in what a run was resumed with. What makes no sense skips."""
    answer: dict[str, Any] = said if is_dict(said) else {"choice": said}
    try:
        choice = Choice(str(answer.get("choice")))
    except ValueError:
        choice = Choice.SKIP
    return Choice.SKIP if choice is Choice.USED else choice, answer

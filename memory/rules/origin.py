"""
The rule that keeps what came from elsewhere out of places where it must not count.

What is written is labelled with the least trust of all that its run has read until then: see
`memory_labels`. A recall for a purpose that demands trust leaves out memories with less. What a run
of low trust writes is held for a human where it shows signs of being meant for the agent.
"""

from __future__ import annotations

import re
import weakref
from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from fnmatch import fnmatchcase
from functools import partial
from types import MappingProxyType
from typing import Any, Final, Literal

from ...telemetry.event.event import OperationClass
from ...telemetry.event.verdict_event import Outcome, Point
from ..context import current
from ..errors import ConfigurationError
from ..guard.operation import Method, Record
from ..layers import Entering
from .approval_evidence import texts
from .capabilities import SelectsMethods, WitnessesActions
from .memory_labels import UNKNOWN, MemoryLabels, Trust, reads_here
from .rule import ALLOW, PASSES, Action, Fact, Facts, Fails, Verdict

_NONE: Final[Mapping[str, Trust]] = MappingProxyType({})
_found: ContextVar[Mapping[str, Trust]] = ContextVar("mnemoscope_origin_found", default=_NONE)


class Origin(WitnessesActions, SelectsMethods):
    """
    Labels memories by where they come from. It is a rule: ``configure(rules=[origin])``.

    Args:
        tools: Trust by pattern of tool names, such as ``"crm_*"``: the first that fits counts. A
            tool that none fits is external. Stores whose answers hold no memories go by the name
            of the store.
        demands: Trust that memories must have which are recalled for a purpose, by the ``purpose``
            of the context.
        answer: ``leave_out`` what has less; or ``mark`` it: all is found, and `found` tells how far
            each is to be trusted.
        hold: A write of a run that has read something of this trust or less is held for a human,
            where it shows signs of an attack. None: nothing is held.
        shadow: Tell what would be left out or held, and let it pass.
        name: Its name in events and metrics.

    Raises:
        ConfigurationError: A trust or *answer* is none.

    Examples:
        >>> ours = Trust.INTERNAL_TOOL
        >>> origin = Origin(tools={"crm_*": ours}, demands={"payments": ours})
        >>> scope = configure(rules=[origin])
        >>> with context(run="r-17", purpose="payments"):
        ...     store.search(("facts",))
    """

    points = frozenset({Point.MEMORY})
    fails = Fails.CLOSED

    def __init__(
        self,
        tools: Mapping[str, Trust | str] | None = None,
        demands: Mapping[str, Trust | str] | None = None,
        *,
        answer: Literal["leave_out", "mark"] = "leave_out",
        hold: Trust | str | None = Trust.OTHER_AGENT,
        shadow: bool = False,
        name: str = "origin",
    ) -> None:
        if answer not in {"leave_out", "mark"}:
            raise ConfigurationError("the answer of Origin must be leave_out or mark")
        self.shadow = shadow
        self.name = name
        self._tools = {pattern: _trust(each) for pattern, each in (tools or {}).items()}
        self._demands = {purpose: _trust(each) for purpose, each in (demands or {}).items()}
        self._marks = answer == "mark"
        self._hold = None if hold is None else _trust(hold)
        self._labels: weakref.WeakSet[MemoryLabels] = weakref.WeakSet()

    def settings(self) -> Mapping[str, Any]:
        """Return the settings of this rule, as the trail records them."""
        return {
            "tools": {pattern: each.code for pattern, each in self._tools.items()},
            "demands": {purpose: each.code for purpose, each in self._demands.items()},
            "answer": "mark" if self._marks else "leave_out",
            "hold": None if self._hold is None else self._hold.code,
            "name": self.name,
        }

    # -- what is read ------------------------------------------------------------------------------

    def reading(self, trust: Trust) -> Entering[None]:
        """
        Say what is read here that is not watched: a page, a file, a message of another agent.

        What lowers the trust of the run lowers it for good. In a run that no watched graph works
        on, what the body writes has this *trust*, unless something else that was read has less.
        """
        return Entering(partial(self._read, trust))

    def _read(self, trust: Trust) -> tuple[None, Callable[[], None]]:
        before = reads_here.outer()
        for each in list(self._labels):
            each.lower(trust, current())
        return None, reads_here.enter(trust if before is None else min(trust, before))

    def trust_of(self, name: str) -> Trust:
        """Return how far the answer of a tool, or of a store without memories, is trusted."""
        found = (trust for pattern, trust in self._tools.items() if fnmatchcase(name, pattern))
        return next(found, UNKNOWN)

    def demand(self, purpose: str | None) -> Trust | None:
        """Return the least trust of what may be recalled for *purpose*. None: any."""
        return None if purpose is None else self._demands.get(purpose)

    def labels_in(self, labels: MemoryLabels) -> None:
        """Take the labels of a scope that it is a rule of."""
        self._labels.add(labels)

    @property
    def leaves_out(self) -> bool:
        """Whether what is trusted less than is demanded is left out."""
        return not (self._marks or self.shadow)

    def note_found(self, records: Sequence[Record], trusts: Sequence[Trust]) -> None:
        """Keep how far the memories are trusted that a recall found, for `found`."""
        _found.set({each.memory_id: trust for each, trust in zip(records, trusts, strict=True)})

    @staticmethod
    def found() -> Mapping[str, Trust]:
        """Return how far each memory is trusted that the latest recall here found, by its id."""
        return _found.get()

    # -- decisions ---------------------------------------------------------------------------------

    def concerns(self, method: Method) -> bool:
        """Return False for recalls with sifted answers: each memory in them is judged instead."""
        return method.op_class is not OperationClass.RECALL or method.sift is None

    def witness(self, action: Action) -> Mapping[str, Fact]:
        """Return the purpose of a recall, or the suspicious parts of a write."""
        least = action.least
        if least is None:  # nothing is written
            if action.call is None or action.call.method.op_class is not OperationClass.RECALL:
                return PASSES
            if self.demand(current().purpose) is None:
                return PASSES
            return {**self.answer_facts([self.trust_of(action.store)]), "origin.sifted": False}
        if self._hold is None or least > self._hold:
            return PASSES
        written = [
            text
            for each in action.operations
            if each.method.op_class is OperationClass.REMEMBER
            for text in texts(each.arguments)
        ]
        signs = _signs("\n".join(written))
        if not signs:
            return PASSES
        return {"origin.least": Trust(least).code, "origin.signs": "+".join(signs)}

    def answer_facts(self, trusts: Sequence[Trust]) -> dict[str, Fact]:
        """Return the facts of an answer whose memories have these labels."""
        purpose = current().purpose
        known: dict[str, Fact] = {"origin.purpose": purpose if self.demand(purpose) else ""}
        for each in trusts:
            name = f"origin.{each.code}"
            known[name] = int(known.get(name) or 0) + 1
        return known

    def decide(self, facts: Facts) -> Verdict:
        """Hold what is suspicious; leave out, or mark, what is trusted less than is demanded."""
        known = facts.known
        if (signs := known.get("origin.signs")) is not None:
            least = known.get("origin.least")
            return Verdict(Outcome.HOLD, "suspicious", {"least": least, "signs": signs})
        demanded = self._demands.get(str(known.get("origin.purpose")))
        if demanded is None:
            return ALLOW
        found = {each: int(known.get(f"origin.{each.code}") or 0) for each in Trust}
        lacking = sum(count for each, count in found.items() if each < demanded)
        if not lacking:
            return ALLOW
        evidence: dict[str, Fact] = {
            "demanded": demanded.code,
            "lacking": lacking,
            "found": sum(found.values()),
        }
        if self._marks:
            return Verdict(Outcome.ALLOW, "marked", evidence)
        cannot = known.get("origin.sifted") is False
        return Verdict(Outcome.REFUSE, "cannot_sift" if cannot else "left_out", evidence)


# -- signs of an attack ----------------------------------------------------------------------------

_SIGNS: Final[Mapping[str, re.Pattern[str]]] = {
    name: re.compile(pattern)
    for name, pattern in {
        # Said to the agent, of what it is to do or forget.
        "instruction": (
            r"\b(?:ignore|disregard|forget|override) (?:\w+ ){0,3}"
            r"(?:previous|prior|above|earlier|your|system|safety)? ?(?:\w+ )?"
            r"(?:instructions?|prompts?|rules?|polic(?:y|ies)|guidelines?|guardrails?)\b"
            r"|\bfrom now on\b.{0,40}\b(?:you|always|never)\b"
            r"|\b(?:system|developer|admin(?:istrator)?) ?(?:prompt|message|note|override)\b"
            r"|\byou (?:must|are required to|are now)\b"
            r"|\b(?:the )?(?:agent|assistant|model)s? (?:must|should|shall|has to|is to)\b"
            r"|\b(?:do not|don't|never) (?:tell|inform|ask|notify|alert|mention)\b.{0,40}"
            r"\b(?:user|customer|human|operator|anyone|them)\b"
            r"|\b(?:always|automatically|silently) (?:\w+ ){0,2}"
            r"(?:approve|transfer|send|forward|execute|run|call|grant|allow|reply|recommend|use)\b"
        ),
        # A right that nobody gave by writing it down.
        "authority": (
            r"\b(?:is|are|has been|have been|was|were|am) (?:\w+ ){0,2}"
            r"(?:authori[sz]ed|pre-?approved|whitelisted|allow-?listed|exempt(?:ed)?)\b"
            r"|\b(?:admin(?:istrator)?|root|superuser|elevated|full) "
            r"(?:access|rights?|privileges?|permissions?)\b"
            r"|\b(?:bypass|skip|disable|without) (?:\w+ ){0,3}"
            r"(?:approval|verification|authentication|confirmation|checks?|limits?|review)\b"
            r"|\b(?:permission|role|privilege|clearance|trust)(?:s| level)? ?"
            r"(?:is|are|:|=|set to|changed to|upgraded to)"
        ),
    }.items()
}


def _signs(text: str) -> list[str]:
    text = " ".join(text.lower().split())  # long gaps would take the patterns forever
    return [name for name, pattern in _SIGNS.items() if pattern.search(text)]


def _trust(given: Any) -> Trust:
    names = {each.code: each for each in Trust}
    found = names.get(given) if isinstance(given, str) else given
    if not isinstance(found, Trust):
        raise ConfigurationError(f"a trust must be one of Trust: {', '.join(names)}")
    return found

"""What becomes of the results of runs, and whether labels stay what they were."""

from __future__ import annotations

import math
import re
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from hashlib import blake2b
from typing import Final, Literal, TypeAlias

from ...telemetry.event.outcome_event import OUTCOME, RUN_OUTCOMES, OutcomeEvent
from ...telemetry.event.trace_ref import TraceRef
from ..accounting import VerdictEvents
from ..context import Scope, current
from ..errors import ConfigurationError

RunOutcome: TypeAlias = Literal["used", "corrected", "discarded"]
Latest: TypeAlias = Callable[[Sequence[str]], Mapping[str, Sequence[tuple[int, int, float]]]]
"""Returns the events that an audit trail has of names: see `AuditLog.references`."""

_RUNS, _FALLS = 10_000, 3
_MOST_SPENT, _LEAST_DONE = 0.8, 0.5
_TRACEPARENT: Final = re.compile(r"[0-9a-f]{2}-([0-9a-f]{32})-([0-9a-f]{16})-[0-9a-f]{2}")


class Outcomes:
    """
    The outcomes of one scope's runs. Thread-safe.

    Args:
        notices: Makes the events.
    """

    def __init__(self, notices: VerdictEvents) -> None:
        self._notices = notices
        self._scores: OrderedDict[tuple[str | None, str], tuple[float, ...]] = OrderedDict()

    def post(
        self,
        outcome: RunOutcome,
        *,
        run: str | None = None,
        accepted: bool | None = None,
        score: float | None = None,
        failed_in: str | None = None,
        after_s: float | None = None,
        traceparent: str | None = None,
    ) -> None:
        """Emit an outcome; see `Mnemoscope.outcome`."""
        if outcome not in RUN_OUTCOMES:
            raise ConfigurationError(
                f"an outcome is one of {', '.join(RUN_OUTCOMES)}, and this is none of them"
            )
        if score is not None and not 0 <= score <= 1:
            raise ConfigurationError("the score of an outcome must be between 0 and 1")
        if after_s is not None and not (math.isfinite(after_s) and after_s >= 0):
            raise ConfigurationError("after_s of an outcome must be seconds, 0 or more")
        # Mostly posted later, when somebody has read the answer, and from another process.
        scope = current() if run is None else replace(current(), run=run)
        event = OutcomeEvent(
            outcome=outcome,
            accepted=accepted,
            score=score,
            is_falling=score is not None and self._is_falling(scope, score),
            is_cascade=None if failed_in is None else failed_in != scope.agent,
            detected_after_s=after_s,
        )
        self._emit(scope, event, _span_at(traceparent))

    def progress(self, done: int, of: int, spent: Iterable[float]) -> None:
        """Emit that a graph with less than half its nodes *done* has a budget over 80 % *spent*."""
        if not 0 <= done <= of or not of:
            raise ConfigurationError("progress takes the nodes that are done, and of how many")
        if done / of < _LEAST_DONE and max(spent, default=0.0) > _MOST_SPENT:
            self._emit(current(), OutcomeEvent(outcome="progress"))

    def compare_labels(self, labels: Mapping[str, str], key: bytes, latest: Latest) -> None:
        """Emit how many of *labels*, by input, are what they were at their latest comparison."""
        marks = {_hash(key, name): _number(key, label) for name, label in labels.items()}
        before = {name: max(found)[2] for name, found in latest([*marks]).items() if found}
        same = sum(before.get(name) == number for name, number in marks.items())
        changed = len(before) - same
        self._emit(
            current(),
            OutcomeEvent(outcome="labels", same=same, changed=changed, marks=(*marks.items(),)),
        )

    def _emit(self, scope: Scope, event: OutcomeEvent, below: TraceRef | None = None) -> None:
        self._notices.tell(scope, event, (OUTCOME, OUTCOME, event.outcome), below=below)

    def _is_falling(self, scope: Scope, score: float) -> bool:
        """Note the score of a run, and return whether it is lower than the last, and that too."""
        if scope.run is None:
            return False
        key = (scope.tenant, scope.run)
        # One operation each, so that threads need no lock: of two at once one counts.
        last = (*self._scores.pop(key, ()), score)[-_FALLS:]
        self._scores[key] = last
        while len(self._scores) > _RUNS:
            self._scores.popitem(last=False)
        return len(last) == _FALLS and last[0] > last[1] > last[2]


def _hash(key: bytes, text: str) -> str:
    # Keyed, since canonical inputs and labels are few: whoever has the words could try them all.
    given = text.encode("utf-8", "surrogatepass")
    return blake2b(given, key=key, digest_size=16, person=b"labels").hexdigest()


def _number(key: bytes, label: str) -> float:
    # 52 bits are what a double, and the trail's column, hold exactly.
    return float(int(_hash(key, f"label {label}")[:13], 16))


def _span_at(traceparent: str | None) -> TraceRef | None:
    if traceparent is None:
        return None
    found = _TRACEPARENT.fullmatch(traceparent)
    if found is None:
        raise ConfigurationError(
            "traceparent must be that of W3C Trace Context: version, trace, span and flags"
        )
    return TraceRef(int(found[1], 16), int(found[2], 16))

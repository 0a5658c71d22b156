"""What a store answered, redacted, for sinks that are opted in to content."""

from __future__ import annotations

from typing import Any, Final, cast

from ....telemetry.event.event import OperationClass, Redacted
from ...privacy.engine.content import to_content
from ..call import Call

MOST_CHARS: Final = 4_096
"""Of an answer: it is redacted on the thread of its caller, who has waited long enough."""


def redacted_answer(call: Call) -> Redacted | None:
    """
    Return what a recall found, as JSON types. None: nothing, or nothing that can be redacted.

    Raises:
        RedactionError: It could not be redacted.
    """
    found, redaction = call.result, call.redaction
    if call.method.op_class is not OperationClass.RECALL or call.neutral or not found:
        return None
    if redaction is None or call.error is not None:
        return None
    raw = to_content(_as_dict(found), most_chars=MOST_CHARS).value
    return redaction.content(redaction.value(raw))


def _as_dict(found: Any) -> Any:
    """Return *found* with items that are no container as what they tell of themselves."""
    kind = cast("Any", type(found))
    if kind is list:
        return [_as_dict(each) for each in found]
    if kind is dict or hasattr(kind, "model_fields") or not hasattr(kind, "dict"):
        return found
    return found.dict()

"""
Redaction of Agent Framework's messages: what was said, tool calls, and what tools answered.

Their shape stays, so that a session goes on with what is stored. What a service answered in its own
form stays out: it is raw.
"""

from __future__ import annotations

import json
import re
from typing import Any, cast

from ...memory.api import Redaction
from ..toolkit.type_guards import is_dict, is_list

_ROLES = frozenset({"user", "assistant", "system", "developer", "tool"})
_KIND = re.compile(
    r"message|text|text_reasoning|data|uri|error|usage"
    r"|hosted_(?:file|vector_store)|oauth_consent_request"
    r"|[a-z]+(?:_[a-z]+)*_(?:call|result|request|response|output|action)"
)
_IDS = frozenset(
    {"id", "call_id", "message_id", "file_id", "vector_store_id", "image_id"}
    | {"name", "author_name", "tool_name", "server_name"}
)
_NESTED = frozenset({"contents", "items", "inputs", "outputs", "function_call", "screenshot"})
_TEXTS = frozenset({"text", "message", "error_details", "result", "output", "stdout", "stderr"})


def redact_messages(messages: Any, redaction: Redaction) -> Any:
    """Return *messages* redacted, as new objects of their classes."""
    return [_message(each, redaction) for each in messages]


def _message(message: Any, redaction: Redaction) -> Any:
    shape = getattr(message, "to_dict", None)
    if shape is None:
        return redaction.value(message)
    return cast("Any", type(message)).from_dict(_shape(shape(), redaction))


def _shape(given: Any, redaction: Redaction) -> Any:
    if is_list(given):
        return [_shape(each, redaction) for each in given]
    if not is_dict(given):
        return redaction.text(given) if isinstance(given, str) else redaction.value(given)
    if str(given.get("uri"))[:5].lower() == "data:":
        redaction.counts["ATTACHMENT"] = redaction.counts.get("ATTACHMENT", 0) + 1
        return {"type": "text", "text": "[attachment withheld]"}
    redacted: dict[Any, Any] = {}
    for key, value in given.items():
        redacted |= _field(key, value, redaction)
    return redacted


def _field(key: Any, value: Any, redaction: Redaction) -> dict[Any, Any]:
    if key in _NESTED:
        return {key: _shape(value, redaction)}
    if not isinstance(value, str):
        return dict(redaction.value({key: value}))
    if (key == "role" and value in _ROLES) or (key == "type" and _KIND.fullmatch(value)):
        return {key: value}
    if key in _IDS:
        return {key: redaction.identifier(value)}
    if key == "arguments":
        return {key: _arguments(value, redaction)}
    return {key: redaction.text(value)} if key in _TEXTS else dict(redaction.value({key: value}))


def _arguments(text: str, redaction: Redaction) -> str:
    try:
        # Unchanged or not, it is written anew: of two values with one name the text has both.
        return json.dumps(redaction.value(json.loads(text)))
    except (ValueError, RecursionError):
        return redaction.text(text)

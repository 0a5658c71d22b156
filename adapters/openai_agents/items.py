"""
Redaction of a conversation's items: messages, tool calls, and what tools answered.

Their shape stays, so that a run goes on with what is stored. ``logprobs`` go: they spell texts.
"""

from __future__ import annotations

import json
import re
from typing import Any

from ...memory.api import Redaction
from ...memory.errors import RedactionError
from ..toolkit.type_guards import is_dict, is_list

_WORDS = {
    "role": {"user", "assistant", "system", "developer", "tool"},
    "status": {"in_progress", "completed", "incomplete", "calling", "failed"},
    "phase": {"commentary", "final_answer"},
}
_KIND = re.compile(
    r"message|reasoning|refusal|compaction|item_reference|computer_screenshot"
    r"|(?:input|output|summary|reasoning)_(?:text|image|file|audio)"
    r"|[a-z]+(?:_[a-z]+)*_(?:call|output|request|response|tools)"
)
_IDS = frozenset({"id", "call_id", "approval_request_id", "file_id", "name", "server_label"})
_NESTED = frozenset({"content", "output", "summary"})
_TEXTS = frozenset({"text", "refusal", "code", "query", "error", "encrypted_content"})


def redact_items(items: Any, redaction: Redaction) -> Any:
    """Return *items* redacted, as new objects: a list of items or parts, one of them, or text."""
    if is_list(items):
        return [redact_items(each, redaction) for each in items]
    if not is_dict(items):
        return redaction.text(items) if isinstance(items, str) else redaction.value(items)
    if "__enc__" in items:
        raise RedactionError("an item is encrypted: guard the EncryptedSession around this session")
    if _holds_bytes(items):
        redaction.counts["ATTACHMENT"] = redaction.counts.get("ATTACHMENT", 0) + 1
        return {"type": "input_text", "text": "[attachment withheld]"}
    redacted: dict[Any, Any] = {}
    for key, value in items.items():
        redacted |= {key: []} if key == "logprobs" else _field(key, value, redaction)
    return redacted


def _holds_bytes(part: dict[Any, Any]) -> bool:
    url = part.get("image_url") or ""
    held = "result" if part.get("type") == "image_generation_call" else "file_data"
    return bool(part.get(held)) or "input_audio" in part or "data:" in str(url)[:32].lower()


def _field(key: Any, value: Any, redaction: Redaction) -> dict[Any, Any]:
    if key in _NESTED:
        return {key: redact_items(value, redaction)}
    if not isinstance(value, str):
        return dict(redaction.value({key: value}))
    if value in _WORDS.get(key, ()) or (key == "type" and _KIND.fullmatch(value)):
        return {key: value}
    if key in _IDS:
        return {key: redaction.identifier(value)}
    if key == "arguments":
        return {key: _redact_json(value, redaction)}
    return {key: redaction.text(value)} if key in _TEXTS else dict(redaction.value({key: value}))


def _redact_json(text: str, redaction: Redaction) -> str:
    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        # Of two with one name the first would be lost here, and stay in the text.
        return dict(pairs) if len(dict(pairs)) == len(pairs) else json.loads("a name twice")

    try:
        given = json.loads(text, object_pairs_hook=unique)
    except (ValueError, RecursionError):
        return redaction.text(text)
    return text if (redacted := redaction.value(given)) == given else json.dumps(redacted)

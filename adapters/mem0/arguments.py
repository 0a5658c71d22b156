"""
Redaction of the arguments of mem0 calls, open source and hosted, sync and async.

Everything is redacted that is not named here as harmless, so an argument that a later version adds
is redacted from the first day. Ids that are the store's own keys stay as they are: a
tag in their place would merge two people. Pictures and documents cannot be redacted and are
withheld: the words beside them are kept.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import date, datetime
from typing import Any

from pydantic import BaseModel

from ...memory.guard.operation import Arguments, PastRecall
from ...memory.guard.rows import part_of
from ...memory.privacy.engine.redaction import Redaction
from ..toolkit.type_guards import is_dict, is_list
from .scoping import ENTITIES, LOGICAL, as_stored, trimmed, with_options, without_entities

WITHHELD = "ATTACHMENT"
"""Entity that a picture or document is counted as."""

_IDS = frozenset({*ENTITIES, "entity_id", "memory_id"})
_VERBATIM = frozenset({*_IDS, "llm"})
_TEXTS = frozenset(
    {
        "query",
        "text",
        "data",
        "prompt",
        "custom_instructions",
        "agent_custom_instructions",
        "feedback_reason",
        "schema",
    }
)
_TOP_K = 20
"""What a search finds at most that says nothing of it."""

_WORDS = frozenset(
    {"user", "assistant", "system", "tool", "function", "developer"}
    | {"procedural_memory", "POSITIVE", "NEGATIVE", "VERY_NEGATIVE"}
)
_ATTACHMENTS = frozenset(
    {"image", "image_url", "input_image", "audio", "input_audio", "video", "video_url"}
    | {"file", "input_file", "document", "pdf_url", "mdx_url"}
)
_PLAIN = (str, bytes, dict, list, tuple, set, frozenset, BaseModel)
"""What no model is: text, or what may hold some."""
_RECORD = frozenset({"memory_id", "text", "metadata", "timestamp", "expiration_date"})
_UUID = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")


def redact(arguments: Arguments, redaction: Redaction) -> Arguments:
    """Return *arguments* with every text redacted, as new objects."""
    return {name: _argument(name, value, redaction) for name, value in arguments.items()}


def _argument(name: str, value: Any, redaction: Redaction) -> Any:
    if name in _IDS and isinstance(value, str):
        return value if name == "memory_id" else as_stored(value)
    if name == "llm" and not isinstance(value, _PLAIN):
        return value
    if name in _WALKS:
        return _WALKS[name](value, redaction)
    if isinstance(value, str):
        if value in _WORDS:
            return value
        if name in _TEXTS:
            return redaction.text(value)
    return redaction.value(value)


def _messages(messages: Any, redaction: Redaction) -> Any:
    if isinstance(messages, str):
        return redaction.text(messages)
    if is_list(messages):
        return [_message(each, redaction) for each in messages]
    return _message(messages, redaction)


def _message(message: Any, redaction: Redaction) -> Any:
    if not is_dict(message):
        return redaction.value(message)
    redacted: dict[Any, Any] = {}
    for key, value in message.items():
        if key == "content":
            redacted[key] = _content(value, redaction)
        elif key == "role" and isinstance(value, str) and value in _WORDS:
            redacted[key] = value
        else:
            redacted.update(redaction.value({key: value}))
    return redacted


def _content(content: Any, redaction: Redaction) -> Any:
    if isinstance(content, str):
        return redaction.text(content)
    if is_list(content):
        parts = content
        kept = [each for each in parts if not _is_attachment(each)]
        _count_withheld(len(parts) - len(kept), redaction)
        return [_part(each, redaction) for each in kept]
    # Redaction reads text alone: what a picture shows cannot be told.
    if _is_attachment(content):
        _count_withheld(1, redaction)
        return []
    return redaction.value(content)


def _part(part: Any, redaction: Redaction) -> Any:
    if isinstance(part, str):
        return redaction.text(part)
    if not (is_dict(part) and isinstance(part.get("type"), str)):
        return redaction.value(part)
    rest = {key: value for key, value in part.items() if key not in {"type", "text"}}
    redacted: dict[Any, Any] = {"type": part["type"], **redaction.value(rest)}
    if "text" in part:
        redacted["text"] = _argument("text", part["text"], redaction)
    return redacted


def _is_attachment(part: Any) -> bool:
    kind = part.get("type") if is_dict(part) else None
    return isinstance(kind, str) and kind in _ATTACHMENTS


def _count_withheld(parts: int, redaction: Redaction) -> None:
    if parts:
        redaction.counts[WITHHELD] = redaction.counts.get(WITHHELD, 0) + parts


def _filters(filters: Any, redaction: Redaction) -> Any:
    if not is_dict(filters):
        return redaction.value(filters)
    redacted: dict[Any, Any] = {}
    for key, value in filters.items():
        if key in ENTITIES:
            redacted[key] = trimmed(value)
        elif key in LOGICAL and is_list(value):
            redacted[key] = [_filters(each, redaction) for each in value]
        else:
            redacted.update(redaction.value({key: value}))
    return redacted


def _options(options: Any, redaction: Redaction) -> Any:
    if isinstance(options, BaseModel):
        # Only what was given: mem0 tells an argument that is None from one that was left out.
        passed = {name: getattr(options, name) for name in options.model_fields_set}
        return options.model_copy(update=redact(passed, redaction))
    return redact(options, redaction) if is_dict(options) else redaction.value(options)


def _records(records: Any, redaction: Redaction) -> Any:
    if not is_list(records):
        return redaction.value(records)
    return [_record(each, redaction) for each in records]


def _record(record: Any, redaction: Redaction) -> Any:
    if not is_dict(record):
        return redaction.value(record)
    fields = {key: value for key, value in record.items() if key in _RECORD}
    others = {key: value for key, value in record.items() if key not in _RECORD}
    return {**redact(fields, redaction), **redaction.value(others)}


def _date(value: Any, redaction: Redaction) -> Any:
    return value if _is_date(value) else redaction.value(value)


def _is_date(value: Any) -> bool:
    if not isinstance(value, str):
        return isinstance(value, date)
    try:
        datetime.fromisoformat(value)
    except ValueError:
        return False
    return True


_WALKS: dict[str, Callable[[Any, Redaction], Any]] = {
    "messages": _messages,
    "filters": _filters,
    "options": _options,
    "memories": _records,
    "timestamp": _date,
    "expiration_date": _date,
    "reference_date": _date,
    "start_date": _date,
    "end_date": _date,
}


def fewer(arguments: Arguments, share: float) -> Arguments:
    """Return *arguments* of a search that finds a *share* of its results, and ranks them once."""
    # The hosted client spreads its options out, so that a limit may stand in either place.
    given = with_options(arguments) if "options" in arguments else arguments
    less = {**arguments, "top_k": part_of(given.get("top_k") or _TOP_K, share)}
    # mem0 asks a model to rerank, which is spend that a spare search is to save.
    return {**less, "rerank": False} if given.get("rerank") else less


def search_again(past: PastRecall) -> Arguments | None:
    """Return the arguments of a search on record, for its user: other ids are not on record."""
    if past.customer is None:
        return None
    given = {**past.content, **past.content.get("options", {})}
    given.pop("options", None)
    filters: dict[str, Any] = {**(given.get("filters") or {}), "user_id": past.customer}
    most = max(given.get("top_k") or _TOP_K, past.most)
    return {**given, "filters": filters, "top_k": most}


def content(arguments: Arguments) -> Any:
    """Return the content of the redacted arguments for the audit trail, without ids of people."""
    given = with_options(arguments) if "options" in arguments else arguments
    return {
        name: _shown(name, value) if name in _WITH_IDS else value
        for name, value in given.items()
        if name not in _VERBATIM or (name == "memory_id" and _is_machine_made(value))
    }


_WITH_IDS = frozenset({"filters", "options", "memories"})
"""Arguments that may hold ids of people at some depth."""


def _is_machine_made(memory_id: Any) -> bool:
    # mem0 makes UUIDs. An id of another form is the caller's own, and may name somebody.
    return isinstance(memory_id, str) and _UUID.fullmatch(memory_id) is not None


def _shown(name: str, value: Any) -> Any:
    if name == "filters":
        return without_entities(value)
    if name == "options" and is_dict(value):
        return content(value)
    if name == "memories" and is_list(value):
        return [content(each) if is_dict(each) else each for each in value]
    return value


_NEEDED = frozenset({"email", "url", "project_id", "webhook_id", "job_id_or_status_url"})


def redact_settings(arguments: Arguments, redaction: Redaction) -> Arguments:
    """
    Return the arguments of an administrative call with every text redacted that may be.

    Whom to make a member, where to send a webhook and the service's own ids would mean nothing
    redacted: they are sent as they were given, and `settings` keeps them from every sink.
    """
    needed = {k: v for k, v in arguments.items() if k in _NEEDED and isinstance(v, (str, int))}
    others = {k: v for k, v in arguments.items() if k not in needed}
    return {**needed, **redact(others, redaction)}


def settings(arguments: Arguments) -> Any:
    """Return the content of a redacted administrative call for the audit trail."""
    return content({name: value for name, value in arguments.items() if name not in _NEEDED})


KEYWORDS = frozenset({*_VERBATIM, *_TEXTS, *_WALKS, *_RECORD})
"""Names that some method takes as ``**kwargs`` and that mean here what they mean as parameters."""

"""
The content of runs: what went into a graph, node, tool or model, and what came out of it.

It is taken where a sink is opted in to content, as a bounded copy: a state may change after its
node began. It is raw until it is redacted, at the end of its run, by the formats that stored state
is redacted by. Of a long conversation the end is kept.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from langchain_core.messages import BaseMessage
from langgraph.types import Command, Send

from ....memory.privacy.engine.content import DEPTH_LIMIT, FAILED, TRUNCATED
from ....memory.privacy.engine.operators import cut_text
from ....memory.privacy.engine.redaction import Redaction
from ....telemetry.event.event import Redacted
from ....telemetry.text import code_class, is_a
from ...toolkit.type_guards import is_sequence
from ..shared.state import SHOWN, StateWalker

MOST_CHARS: Final = 4_096
"""Of what went in, and of what came out: both are redacted on the thread of the graph."""

_VALUE_CHARS: Final = 8
"""Characters that each value counts for besides its own."""

_ROLES: Final[Mapping[str, str]] = {"human": "user", "ai": "assistant", "function": "tool"}
_PARTS: Final[Mapping[type, tuple[str, ...]]] = {
    Command: ("goto", "update", "resume"),
    Send: ("node", "arg"),
}


def copied(value: Any) -> Any:
    """Return *value* as JSON types, raw and bounded; messages as dicts with a role."""
    try:
        return _BoundedCopy().of(value, 0)
    except Exception:  # noqa: BLE001 - of a class of the application's
        return FAILED


def redacted(copy: Any, redaction: Redaction) -> Redacted:
    """
    Return what `copied` returned, redacted.

    Raises:
        RedactionError: It could not be redacted.
    """
    return redaction.content(StateWalker(redaction, SHOWN).walk(copy))


def answers_in(response: Any) -> list[Any]:
    """Return the messages of an ``LLMResult``; texts of a model that completes text as such."""
    return [
        getattr(each, "message", None)
        or {"role": "assistant", "content": getattr(each, "text", None)}
        for row in getattr(response, "generations", None) or ()
        for each in row
    ]


class _BoundedCopy:
    def __init__(self) -> None:
        self._left = MOST_CHARS

    def of(self, value: Any, depth: int) -> Any:
        if self._left <= 0 or depth > DEPTH_LIMIT:
            return TRUNCATED
        self._left -= _VALUE_CHARS
        if value is None or isinstance(value, bool | int | float):
            return value
        if isinstance(value, str):
            return self._text(str.__str__(value))
        if isinstance(value, set | frozenset) or (
            is_sequence(value) and not isinstance(value, bytes | bytearray)
        ):
            return self._items([*value], depth)
        held = _held(value)
        return f"[{_kind(value)}]" if held is None else self._pairs(held, depth)

    def _text(self, text: str) -> str:
        head = cut_text(text, self._left)
        self._left -= len(head)
        return text if len(head) == len(text) else head + self._spent()

    def _spent(self) -> str:
        self._left = 0
        return TRUNCATED

    def _pairs(self, pairs: Iterable[tuple[Any, Any]], depth: int) -> dict[str, Any]:
        copy: dict[str, Any] = {}
        for key, each in pairs:
            if self._left <= 0:
                copy[TRUNCATED] = None
                break
            name = self._text(key) if isinstance(key, str) else f"{_kind(key)}"
            copy[name] = self.of(each, depth + 1)
        return copy

    def _items(self, items: Sequence[Any], depth: int) -> list[Any]:
        ends_with_message = bool(items) and isinstance(items[-1], BaseMessage)
        copy: list[Any] = []
        for each in reversed(items) if ends_with_message else items:
            if self._left <= 0:
                copy.append(TRUNCATED)
                break
            copy.append(self.of(each, depth + 1))
        return copy[::-1] if ends_with_message else copy


def _message(message: BaseMessage) -> Iterable[tuple[str, Any]]:
    role = getattr(message, "role", None) or _ROLES.get(message.type, message.type)
    about = message.response_metadata
    known = {
        "role": role,
        "content": message.content,
        "name": message.name,
        "tool_calls": getattr(message, "tool_calls", None),
        "tool_call_id": getattr(message, "tool_call_id", None),
        "finish_reason": about.get("finish_reason") or about.get("stop_reason"),
    }
    return [(name, each) for name, each in known.items() if each or name == "content"]


def _held(value: Any) -> Iterable[tuple[Any, Any]] | None:
    """Return the parts of a dict, a message, a state's class or a command of LangGraph's."""
    held: Iterable[tuple[Any, Any]] | None = None
    if is_a(value, dict):
        held = value.items()
    elif is_a(value, BaseMessage):
        held = _message(value)
    elif (names := _PARTS.get(value.__class__)) is not None:
        parts = [(name, getattr(value, name)) for name in names]
        held = [(name, each) for name, each in parts if each is not None and each != ()]
    elif dataclasses.is_dataclass(value.__class__):
        fields = dataclasses.fields(value.__class__)
        held = [(each.name, getattr(value, each.name)) for each in fields]
    elif hasattr(value.__class__, "model_fields"):
        held = [*value.__dict__.items()]
    return held


def _kind(value: Any) -> str:
    return code_class(value.__class__).__qualname__

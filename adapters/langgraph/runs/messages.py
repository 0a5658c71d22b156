"""The sources of the messages in a graph's input: a person, a tool or a model."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

from langchain_core.messages import BaseMessage

from ....telemetry.text import is_a

_AGENTS = frozenset({"ai", "assistant", "AIMessageChunk"})
_TOOLS = frozenset({"tool", "function", "ToolMessageChunk", "FunctionMessageChunk"})


def sources_of(inputs: Any) -> Iterator[str | None]:
    """
    Yield the sources of the messages in a graph's input: a tool's name; None for a model.

    What a graph is given is a person's, but for these: one agent's answer is another's input.
    """
    values: Any = inputs.values() if is_a(inputs, dict) else (inputs,)
    for value in values:
        for each in value if is_a(value, list, tuple) else (value,):
            role, name = _role_of(each)
            if role in _AGENTS:
                yield None
            elif role in _TOOLS:
                yield name or ""


def _role_of(message: Any) -> tuple[str | None, str | None]:
    if isinstance(message, BaseMessage):
        return message.type, message.name
    if is_a(message, dict):
        known = cast("dict[str, Any]", message)
        role = known.get("role", known.get("type"))
        return (role if isinstance(role, str) else None), known.get("name")
    match message:
        case (str() as role, _):
            return role, None
        case _:
            return None, None

"""
Messages of a model call, as attributes of its span by two conventions.

By the GenAI conventions they are one JSON text; by OpenInference each part of each is an attribute,
which viewers that know it draw a conversation from. They come as an event has them, redacted and
cut: a part of one may be missing, or be a text that says so.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Any, Final

from ...text import is_a, json_text

MOST_ATTRIBUTES: Final = 20
"""Of the messages that go in, and of those that come out."""


def messages_in(value: Any) -> list[Mapping[str, Any]]:
    """Return the messages in *value*, which may be something else."""
    return [each for each in value if is_a(each, Mapping)] if is_a(value, list) else []


def as_genai(messages: Iterable[Mapping[str, Any]]) -> str:
    """Return *messages* by the conventions' schema."""
    return json_text([_genai(each) for each in messages])


def _genai(message: Mapping[str, Any]) -> dict[str, Any]:
    role = message.get("role")
    found = {"role": role, "parts": [*_parts(message)], "name": message.get("name")}
    found["finish_reason"] = message.get("finish_reason")
    return {name: each for name, each in found.items() if each is not None}


def _parts(message: Mapping[str, Any]) -> Iterator[Any]:
    content: Any = message.get("content")
    # By the conventions the answer of a tool is a part of its own, whatever its content is.
    if message.get("role") == "tool":
        called = message.get("tool_call_id")
        yield {"type": "tool_call_response", "id": called, "response": content}
        return
    pieces: list[Any] = [content] if content else []
    if is_a(content, list):
        pieces = content
    for each in pieces:
        if is_a(each, Mapping) and each.get("type", "text") != "text":
            yield each
        else:
            yield {"type": "text", "content": _text(each)}
    for each in _calls(message):
        about = {"id": each.get("id"), "name": each.get("name"), "arguments": each.get("args")}
        yield {"type": "tool_call", **about}


def as_openinference(prefix: str, messages: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """Return an attribute for each part of *messages*, as far as a span has room for them."""
    # The SDK drops attributes beyond 128, those of ours among them.
    return dict(islice(_attributes(prefix, messages), MOST_ATTRIBUTES))


def _attributes(prefix: str, messages: Iterable[Mapping[str, Any]]) -> Iterator[tuple[str, str]]:
    for place, message in enumerate(messages):
        here = f"{prefix}.{place}.message"
        yield f"{here}.role", _text(message.get("role"))
        if content := message.get("content"):
            yield f"{here}.content", _joined(content)
        for name in ("name", "tool_call_id"):
            if message.get(name):
                yield f"{here}.{name}", _text(message[name])
        for number, call in enumerate(_calls(message)):
            called = f"{here}.tool_calls.{number}.tool_call"
            yield f"{called}.id", _text(call.get("id"))
            yield f"{called}.function.name", _text(call.get("name"))
            yield f"{called}.function.arguments", json_text(call.get("args"))


def _calls(message: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return messages_in(message.get("tool_calls"))


def _joined(content: Any) -> str:
    """Return the text of a message, whose other parts are told as JSON."""
    return "\n".join(map(_text, content)) if is_a(content, list) else _text(content)


def _text(value: Any) -> str:
    if is_a(value, Mapping) and is_a(value.get("text"), str):
        value = value["text"]
    return value if isinstance(value, str) else json_text(value)

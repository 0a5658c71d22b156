"""Stored content as text for people: without the field names and numbers around it."""

from __future__ import annotations

import json
import re
from html import escape
from typing import Any

_LONGEST = 4_000
_TELLING = ("query", "messages", "text", "data", "memory", "content", "value")
"""Fields in which stores keep text, the most telling first."""

_MACHINERY = frozenset(
    {
        *("id", "hash", "score", "type", "role", "infer", "top_k", "limit", "filters", "step"),
        *("user_id", "agent_id", "run_id", "actor_id", "tenant", "source", "channels"),
    }
)
_MASK = re.compile(r"&lt;([A-Z][A-Z_]*?)(?:_([0-9a-f]{4,}))?&gt;")


def readable(content: Any) -> str:
    """Return what *content* says, in lines."""
    text = "\n".join(_texts(content))
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


_SPEAKERS = {
    "human": "You",
    "user": "You",
    "ai": "The agent",
    "assistant": "The agent",
    "tool": "Another system",
    "function": "Another system",
    "system": "Instructions",
}
"""By the type of a message, or the role of who said it."""


def dialogue(content: Any) -> str:
    """Return what a conversation says, in lines, each with who said it, where that is known."""
    messages: Any = content.get("messages") if content.__class__ is dict else None
    if messages.__class__ is not list:
        return readable(content)
    return "\n".join(filter(None, map(_said, messages)))


def _said(message: Any) -> str:
    if message.__class__ is not dict:
        return readable(message)
    text = readable({name: each for name, each in message.items() if each})
    known = (_SPEAKERS.get(str(message.get(name))) for name in ("type", "role"))
    speaker = next((f"{each}: " for each in known if each), "")
    return f"{speaker}{text}" if text else ""


def _texts(content: Any) -> list[str]:
    # Classes are compared by identity: JSON makes no subclasses, and a history has millions of
    # values.
    kind = content.__class__  # of what was read as JSON
    if kind is list:
        return [text for each in content for text in _texts(each)]
    if kind is dict:
        return _of_pairs(content)
    return [] if content is None else [content if kind is str else json.dumps(content)]


def _of_pairs(pairs: dict[str, Any]) -> list[str]:
    said = next((pairs[key] for key in _TELLING if pairs.get(key)), None)
    if said is not None:
        return _texts(said)
    known = {key: value for key, value in pairs.items() if key not in _MACHINERY}
    return [line for key, value in known.items() for line in _pair(key, value)]


def _pair(key: str, value: Any) -> list[str]:
    texts = _texts(value)
    return [f"{key}: {texts[0]}"] if len(texts) == 1 else texts


def marked(text: str) -> str:
    """Return *text* as HTML, with what stands for personal data set apart."""
    return _MASK.sub(_mask, escape(text))


def _mask(found: re.Match[str]) -> str:
    kind = found[1].replace("_", " ").lower()
    number = f" {found[2][:4]}" if found[2] else ""
    return f"<span class=mask>{kind}{number}</span>"

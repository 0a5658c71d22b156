"""
The pseudonyms inside events, another one for each sink.

What stands for an identifier in a store (``<EMAIL_ADDRESS_3f9a…>``) is keyed for the store. It gets
into the names and content of events, and would join all sinks with one another and with the store.
So it is hashed once more, under a key of the sink's own, before a sink is given the event.
"""

from __future__ import annotations

import hmac
import re
from functools import lru_cache
from operator import attrgetter
from typing import Any, cast

import msgspec

from .event import Event
from .subject import SubjectKeys

DIGEST = r"(?:[0-9a-f]{16}|[2-9][a-z2-7]{9})"
"""The keyed part of a pseudonym: 64 bits in hexadecimal digits, or a person's 48 in base32."""

PSEUDONYM = re.compile(rf"<\w{{1,64}}_{DIGEST}>")
"""What stands for an identifier, of any entity."""

_HASH_BYTES = 8
_HELD = 4_096
_NAMES = ("tenant", "agent", "feature", "run", "purpose", "collection")
_names_of = attrgetter(*_NAMES)


class SinkPseudonyms:
    """
    Replaces the stores' pseudonyms in events by those of one sink.

    Args:
        keys: The key of the sink is derived from them.
    """

    def __init__(self, keys: SubjectKeys, sink: str) -> None:
        self._keys = keys
        self._purpose = f"sink-pseudonym/{sink}"
        self.text = lru_cache(maxsize=_HELD)(self._text)

    def event(self, event: Event) -> Event:
        """Return *event* as the sink may have it."""
        names = _names_of(event)
        # All at once: this is done for each event and sink, and there is hardly ever one.
        changed = self._names(names) if "<" in "".join(filter(None, names)) else {}
        if "<" in "".join(event.memory_ids):
            changed["memory_ids"] = tuple(map(self.text, event.memory_ids))
        if event.parts:
            parts = tuple([each.renamed(self.value) for each in event.parts])
            if parts != event.parts:
                changed["parts"] = parts
        if event.content is not None:
            # Read by the few sinks that are opted in to it, and walked for no other.
            changed["content"] = event.content.read_by(self.value)
        if event.answer is not None:
            changed["answer"] = event.answer.read_by(self.value)
        if event.given is not None:
            changed["given"] = event.given.read_by(self.value)
        return msgspec.structs.replace(event, **changed) if changed else event

    def value(self, value: Any) -> Any:
        """Return JSON types with the pseudonyms in all texts replaced."""
        kind = value.__class__
        if kind is str:
            return self._text(value)
        if kind is dict:
            pairs = cast("dict[str, Any]", value).items()
            return {self._text(name): self.value(each) for name, each in pairs}
        if kind is list:
            return [self.value(each) for each in value]
        return tuple([self.value(each) for each in value]) if kind is tuple else value

    def _names(self, names: tuple[str | None, ...]) -> dict[str, Any]:
        return {
            name: self.text(text)
            for name, text in zip(_NAMES, names, strict=True)
            if text and "<" in text
        }

    def _text(self, text: str) -> str:
        return PSEUDONYM.sub(self._own, text) if "<" in text else text

    def _own(self, found: re.Match[str]) -> str:
        key = self._keys.key(self._purpose)
        digest = hmac.digest(key, found[0].encode("utf-8", "surrogatepass"), "sha256")
        entity = found[0].rpartition("_")[0]
        return f"{entity}_{digest[:_HASH_BYTES].hex()}>"

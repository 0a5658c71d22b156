"""
Redaction of graph state, on copies: the running graph keeps its own objects.

Messages and LangGraph's own types are redacted by their formats, everything else as content.
"""

from __future__ import annotations

from typing import Any, Final

from ....memory.privacy.engine.redaction import Redaction
from ..formats import ID, NODE, LangGraphFormats, Shape, redact_shaped

STORED: Final = LangGraphFormats(NODE, state=True), LangGraphFormats(NODE, state=False)
"""Formats where a graph finds its nodes again: in state, and in content."""

SHOWN: Final = LangGraphFormats(ID, state=True), LangGraphFormats(ID, state=False)
"""Formats of what leaves the graph for a reader."""


class StateWalker:
    """
    Redacts the values of channels, writes and events.

    Beyond what the redactor walks by itself, an object of an unknown type is copied and its
    attributes are walked. What holds anything beside its attributes is refused.
    """

    def __init__(
        self, redaction: Redaction, formats: tuple[LangGraphFormats, LangGraphFormats] = STORED
    ) -> None:
        in_state, in_content = formats
        self._state = redaction.walker(in_state, redaction.walker(in_content))

    def walk(self, value: Any) -> Any:
        """
        Return a redacted copy of *value*, which is state of any kind.

        Raises:
            RedactionError: Of a type that cannot be looked into, or too deep. Names the type.
        """
        return self._state.redact(value)

    def walk_under(self, name: Any, value: Any) -> Any:
        """Return a redacted copy of state under a name, which may say what it is."""
        return self._state.redact_under(name, value)

    def shaped(self, value: Any, shape: Shape) -> Any:
        """Return a redacted copy of *value*, whose format is known from where it stands."""
        return redact_shaped(value, shape, self._state)

    def key(self, key: Any) -> Any:
        """Return a key of a mapping redacted."""
        return self._state.redact_key(key)

    def identifier(self, text: str) -> str:
        """Return an id, or a label of it."""
        return self._state.identifier(text)

"""A text that reprs and errors do not show."""

from __future__ import annotations


class Secret:
    """A text that is never shown."""

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        self._text = text

    def __repr__(self) -> str:
        return "Secret('**********')"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and self._text == other._text

    def __hash__(self) -> int:
        return hash(self._text)

    def get_secret_value(self) -> str:
        """Return the text."""
        return self._text

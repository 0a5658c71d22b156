"""
Attributes of anybody's telemetry without personal data, each by the meaning of its key.

Redaction is handed in: this package knows none of its own.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, TypeVar, cast

from .span_positions import IDS, NAME, NAMES, PEOPLE, SECRETS

FAILED = "[REDACTED:error]"
"""Stands for what could not be redacted."""

_SECRET = "<SECRET>"  # noqa: S105 - stands for one

_LABELLED_CHARS = 1_024
"""Length of values that are read a second time, behind the last word of their key."""

_DIGIT = re.compile(r"\d")

_PASSING = frozenset({bool, int, float, type(None)})

T = TypeVar("T")


class SpanRedaction(Protocol):
    """The redaction of one span."""

    @property
    def counts(self) -> Mapping[str, int]:
        """Number of replacements so far, by entity."""
        ...

    def text(self, text: str, /) -> str:
        """Return *text* redacted."""
        ...

    def value(self, value: Any, /) -> Any:
        """Return a value of any type redacted."""
        ...

    def label(self, text: str, /) -> str:
        """Return a name redacted: different ones stay different."""
        ...

    def identifier(self, text: str, /) -> str:
        """Return an id redacted, unless a machine made it."""
        ...


BeginSpan = Callable[[Sequence[str]], SpanRedaction]
"""Begins the redaction of a span about the people with the given identifiers."""

NoteFailure = Callable[[Exception], None]


class AttributeRedactor:
    """
    Redacts what stands at the keys of one span or record.

    Args:
        redaction: The redaction of that span.
        note_failure: Is given what a redaction raised.
        ours: Keys whose values were redacted when they were made.

    Attributes:
        has_failed: Something was replaced since it could not be redacted.
    """

    def __init__(
        self, redaction: SpanRedaction, note_failure: NoteFailure, ours: frozenset[str]
    ) -> None:
        self.has_failed = False
        self._redaction = redaction
        self._note_failure = note_failure
        self._ours = ours
        self._has_secrets = False

    @property
    def is_masked(self) -> bool:
        """Whether anything was replaced."""
        return self._has_secrets or bool(self._redaction.counts)

    def mapping(self, held: Mapping[str, Any]) -> dict[str, Any]:
        """Return *held* with its keys and values redacted."""
        keys = {key: self.key(key) for key in held}
        # By the key as it was: what a value means is not to depend on what redaction made of its
        # name.
        return {keys[key]: self.closed(self.at, key, item) for key, item in held.items()}

    def key(self, key: str) -> str:
        """Return a key redacted, unless it is one of the conventions."""
        if key in NAMES or key in IDS or key in PEOPLE or key in self._ours:
            return key
        return self.closed(self._redaction.label, key)

    def at(self, key: str, value: Any) -> Any:
        """Return *value* redacted as what stands at *key*."""
        if type(value) in _PASSING or key in self._ours:
            return value
        if isinstance(value, str):
            return self._string(key, value)
        if isinstance(value, Mapping):
            return self.mapping(cast("Mapping[str, Any]", value))
        if isinstance(value, (list, tuple)):
            items = cast("Sequence[Any]", value)
            return tuple(self.closed(self.at, key, each) for each in items)
        return self._redaction.value(value)

    def _string(self, key: str, value: str) -> str:
        # Any library may put a prompt where the conventions want a name.
        if key in NAMES and NAME.fullmatch(value):
            return value
        if key in IDS:
            return self._redaction.identifier(value)
        if key in PEOPLE:
            return self._redaction.label(value)
        word = key.rpartition(".")[2].lower()
        if word in SECRETS:
            self._has_secrets = True
            return _SECRET
        redacted = cast("str", self._redaction.value(value))
        if redacted == value and len(value) <= _LABELLED_CHARS and _DIGIT.search(value):
            return self._labelled(f"{word}: ", value)
        return redacted

    def _labelled(self, label: str, value: str) -> str:
        """Redact *value* as it reads behind its label: ``phone: …``."""
        redacted = self._redaction.text(label + value)
        return redacted.removeprefix(label)

    def text(self, text: str) -> str:
        """Return *text* redacted."""
        return self.closed(self._redaction.text, text)

    def closed(self, redact: Callable[..., T], *given: Any) -> T | str:
        """Return the result of *redact*, or a placeholder if *redact* raises."""
        try:
            return redact(*given)
        except Exception as exc:  # noqa: BLE001 - closed on confidentiality
            self.has_failed = True
            self._note_failure(exc)
            return FAILED

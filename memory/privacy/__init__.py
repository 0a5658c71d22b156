"""
Redaction: replaces personal data before it leaves the process or enters a store.

* ``engine``: `Redactor` (one a process), `Redaction` (one a call), the detection engine, operators.
* ``detectors``: our own patterns, one file a family of entities, and their word lists.
* ``models``: the language models for names, the user's recognizers.
* ``vault``: what pseudonyms stand for, encrypted.

It fails closed: what cannot be redacted raises `RedactionError`.
"""

from __future__ import annotations

from typing import Any

__all__ = ["recognizers"]


def recognizers(language: str = "en") -> list[Any]:
    """
    Return our detectors as Presidio's `EntityRecognizer` objects, for a registry of yours.

    Each is of a class of its own, such as ``MnemoscopeEmailRecognizer``, which a YAML registry can
    name once this was called. Presidio is imported by the call.

    Args:
        language: Language that the registry asks for them: they find the same in any.
    """
    from .engine.recognizers import recognizers as ours  # noqa: PLC0415 - two seconds

    return list(ours(language))

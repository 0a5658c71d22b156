"""A find of personal data as the user's callback sees it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, TypeAlias

Treatment: TypeAlias = Literal["keep", "tag", "pseudonym", "mask", "drop"]
"""What becomes of a find: an operator of ``MNEMOSCOPE_PII_OPERATORS``."""


@dataclass(frozen=True, slots=True)
class RedactionMatch:
    """
    A find of personal data in what a call hands to its store.

    It holds no content, so that it may be logged as it is.

    Attributes:
        path: Place in the call's arguments: ``messages[3].content``, ``metadata.customer.email``. A
            key that could be somebody's data is ``*``.
        entity: ``EMAIL_ADDRESS``, ``PERSON``…
        score: Confidence, in (0, 1].
        rule: The recognizer's reason, such as ``secret.stripe: a shape of its keys``.
        treatment: What becomes of it if the callback returns None.
    """

    path: str
    entity: str
    score: float
    rule: str
    treatment: Treatment


RedactionCallback: TypeAlias = Callable[[RedactionMatch], Treatment | None]
"""Function of a match that returns what becomes of it. None: what the settings say."""

"""The part of an event that says where in a call personal data was found."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...telemetry.event.part import EventPart


class RedactionPlaces(EventPart, tag="mnemoscope.redaction_places", frozen=True, kw_only=True):
    """
    The finds of one call by place.

    Attributes:
        replaced: Number of replacements by path, and in that by entity. Indices are ``[]``.
        kept: Finds that the callback kept.
    """

    replaced: dict[str, dict[str, int]]
    kept: int = 0

    def fields(self) -> Mapping[str, Any]:
        """Return the replacements by path, and what was kept."""
        return {"redaction_paths": self.replaced or None, "redactions_kept": self.kept or None}

    def attributes(self) -> Mapping[str, Any]:
        """Return the replacements as texts, ``metadata.email EMAIL_ADDRESS 1``."""
        paths = [
            f"{path} {entity} {count}"
            for path, counts in self.replaced.items()
            for entity, count in counts.items()
        ]
        return {
            "mnemoscope.redactions.paths": paths or None,
            "mnemoscope.redactions.kept": self.kept or None,
        }

    def detail(self) -> Any:
        """Return the replacements by path, and what was kept."""
        return {"replaced": self.replaced, "kept": self.kept}

"""How a store of a test tells whether an addition has arrived: by a mark that goes along."""

from __future__ import annotations

from typing import Any

from mnemoscope.memory.api import Lookup


class Deduplication:
    """Finds an addition by its mark."""

    def marked(self, method: str, arguments: dict[str, Any], write_id: str) -> dict[str, Any]:
        """Return *arguments* with the mark."""
        return {**arguments, "mark": write_id} if method == "add" else arguments

    def question(self, method: str, _arguments: dict[str, Any], write_id: str) -> Lookup | None:
        """Return what asks for it."""
        return Lookup("find", {"mark": write_id}) if method == "add" else None

    def left(self, _method: str, arguments: dict[str, Any], answer: object) -> Any:
        """Return what is still to be written."""
        return None if answer else arguments

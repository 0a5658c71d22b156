"""The parts of events that seal what was written, and that say what was found changed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from ...telemetry.event.part import EventPart


class Seal(EventPart, tag="mnemoscope.seal", frozen=True):
    """
    Keyed hashes of what an operation wrote. Kept by the audit trail alone, until it is erased.

    Attributes:
        names: Makes them, if nobody has: keyed hashes of places, each with the number of what was
            written there.
    """

    names: Callable[[], Sequence[tuple[str, float]]]

    def references(self) -> Sequence[tuple[str, float]]:
        """Return the names, by which a read looks the event up."""
        return self.names()


class IntegrityFindings(EventPart, tag="mnemoscope.integrity", frozen=True):
    """
    What of an answer is not as it was written, or could not be compared. Counts, by code.

    Attributes:
        found: Compares, if nobody has, and returns the number of values by code: see
            `mnemoscope.memory.integrity.judging.Found`.
    """

    found: Callable[[], Mapping[str, int]]

    def fields(self) -> Mapping[str, str]:
        """Return the codes."""
        found = self.measurements()
        return {"integrity_violation": ",".join(found)} if found else {}

    def measurements(self) -> Mapping[str, int]:
        """Return the numbers."""
        return {str(code): number for code, number in sorted(self.found().items())}

    def sealed(self) -> Mapping[str, int] | None:
        """Return the numbers."""
        return self.measurements() or None

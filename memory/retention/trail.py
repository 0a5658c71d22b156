"""The audit trail as retention reads it: sealed writes, surely lived time, notes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from ..subject_data.records import SealedWrite


class RetentionTrail(Protocol):
    """What retention decides by. Raises what the trail raises: then nothing goes."""

    def writes(self, store: str, ids: Sequence[str]) -> Mapping[str, Sequence[SealedWrite]]:
        """Return the writes of records by their ids, oldest first."""
        ...

    def touched(self, store: str, ids: Sequence[str]) -> Mapping[str, Mapping[str, int]]:
        """Return the number of the newest write or read of each record, by log."""
        ...

    def stop(self, age_us: int) -> Mapping[str, int]:
        """Return the number of each log's first event that is not surely so old; 0: none is."""
        ...

    def is_sound(self) -> bool:
        """Return whether the clock agrees with the trail, and has done so for long enough."""
        ...

    def now_us(self) -> int:
        """Return the time, microseconds since 1970 UTC."""
        ...

    def newest_us(self) -> int:
        """Return when the newest event was recorded."""
        ...

    def note(self, name: str, data: Mapping[str, Any]) -> int:
        """Seal an event about the log itself, and return its number."""
        ...

    def notes(self, name: str) -> Sequence[Mapping[str, Any]]:
        """Return the data of the events of that name, oldest first."""
        ...

    def references(self, kind: str, text: str) -> Mapping[str, str]:
        """
        Return the keyed hash that each log has of *text*, the first log's first.

        A run's is as `SealedWrite.run` has it, a place's too.
        """
        ...

    def subjects(self, customer: str) -> Sequence[str]:
        """Return the pseudonyms of a customer."""
        ...

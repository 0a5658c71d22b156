"""Samples of a store's size that outlive processes, and what a line through them says."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

SAMPLES = 400
"""Samples that are kept of a store; of older ones every second one goes."""

LEAST_SAMPLES = 8
LEAST_S = 86_400.0
"""Below these nothing is foretold."""

_DAY_S = 86_400.0


class SizeSample(NamedTuple):
    """
    The size of a store at a moment.

    Attributes:
        at_s: Seconds since 1970 UTC.
        bytes: Of all that was measured.
    """

    at_s: float
    bytes: float


class SizeHistory:
    """
    The sizes of stores over time, in a file of JSON that processes of a machine share.

    Args:
        path: The file. What cannot be read of it is begun anew: it is no record, but a help.
    """

    def __init__(self, path: Path) -> None:
        self._path = path

    def read(self) -> dict[str, list[SizeSample]]:
        """Return the samples of each store, oldest first."""
        try:
            known: Mapping[str, list[list[float]]] = json.loads(self._path.read_text("utf-8"))
            return {store: [SizeSample(*each) for each in kept] for store, kept in known.items()}
        except (OSError, ValueError, TypeError, AttributeError):
            return {}

    def add(self, sizes: Mapping[str, SizeSample]) -> dict[str, list[SizeSample]]:
        """
        Add a sample of each store, and return all.

        Raises:
            OSError: The file cannot be written.
        """
        known = self.read()
        for store, sample in sizes.items():
            # A clock that went back: what is later than now was not.
            kept = [each for each in known.get(store, ()) if each.at_s < sample.at_s]
            known[store] = _thinned([*kept, sample])
        draft = self._path.with_name(f"{self._path.name}.draft")
        self._path.parent.mkdir(parents=True, exist_ok=True)
        try:
            draft.write_text(json.dumps(known), "utf-8")
            draft.replace(self._path)
        finally:
            with suppress(OSError):
                draft.unlink()
        return known


def _thinned(samples: list[SizeSample]) -> list[SizeSample]:
    if len(samples) <= SAMPLES:
        return samples
    half = SAMPLES // 2
    return [*samples[:-half:2], *samples[-half:]]


def bytes_a_day(samples: Sequence[SizeSample]) -> float | None:
    """Return the slope of the line that is nearest to *samples*. None: they are too few."""
    if len(samples) < LEAST_SAMPLES or samples[-1].at_s - samples[0].at_s < LEAST_S:
        return None
    mean_s = sum(each.at_s for each in samples) / len(samples)
    mean = sum(each.bytes for each in samples) / len(samples)
    spread = sum((each.at_s - mean_s) ** 2 for each in samples)
    slope = sum((each.at_s - mean_s) * (each.bytes - mean) for each in samples) / spread
    return slope * _DAY_S


def days_to_full(samples: Sequence[SizeSample], room_bytes: float | None) -> float | None:
    """
    Return the days until *room_bytes* more are used, if it goes on as it did. None: unknown.

    Args:
        samples: Of one store, oldest first.
        room_bytes: What is free. None: that is not known.
    """
    slope = bytes_a_day(samples)
    # What does not grow is never full: that is no number of days.
    return None if slope is None or slope <= 0 or room_bytes is None else room_bytes / slope

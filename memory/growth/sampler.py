"""The thread that measures the stores of a scope at intervals, off every call's path."""

from __future__ import annotations

import threading
import time
import weakref
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ...telemetry.files.file_lock import try_lock
from .forecast import SizeHistory, SizeSample, days_to_full
from .measuring import Purposes, StoreGrowth, measure

if TYPE_CHECKING:
    from ...telemetry.process.faults import Faults
    from ..subject_data.records import SubjectDataProvider


class GrowthSampler:
    """
    Measures the stores every so often, in one process of those that share *path*.

    Args:
        providers: Return the stores of the scope by name.
        purposes: Looks purposes up in the audit trail. None: there is none.
        limits: See `measure`.
        path: The file of earlier sizes.
        every_s: Seconds between two samples.
        faults: Where errors of our own are noted.
        wall_s: Seconds since 1970 UTC.

    Attributes:
        latest: What was measured last; empty before, and in a process that another one spares it.
        days: Days to full by store; None: unknown.
    """

    def __init__(
        self,
        providers: Callable[[], Mapping[str, SubjectDataProvider]],
        purposes: Purposes | None,
        *,
        limits: Mapping[str, int],
        path: Path,
        every_s: float,
        faults: Faults,
        wall_s: Callable[[], float] = time.time,
    ) -> None:
        self.latest: Sequence[StoreGrowth] = ()
        self.days: Mapping[str, float | None] = {}
        self._providers, self._purposes, self._limits = providers, purposes, limits
        self._path, self._history = path, SizeHistory(path)
        self._faults, self._wall_s = faults, wall_s
        self._ended = threading.Event()
        self._thread = threading.Thread(
            target=_run,
            args=(weakref.ref(self), self._ended, every_s),
            name="mnemoscope-growth",
            daemon=True,
        )

    def start(self) -> None:
        """Begin to measure."""
        self._thread.start()

    def close(self) -> None:
        """End the thread. A store that is being measured is not waited for."""
        self._ended.set()

    def sample(self) -> None:
        """Measure now, unless another process does."""
        self._path.parent.mkdir(parents=True, exist_ok=True)
        lock = try_lock(self._path)
        if lock is None:
            self.latest, self.days = (), {}
            return
        try:
            found = measure(self._providers(), self._purposes, self._limits, is_beside=True)
            known = note(self._history, found, self._wall_s())
            self.latest, self.days = found, known
        finally:
            lock.release()

    def sample_or_note(self) -> None:
        """Measure now; whatever is raised is a fault of ours, and noted."""
        try:
            self.sample()
        except Exception as exc:  # noqa: BLE001 - what only observes ends nobody's thread
            self._faults.note("growth.sample", exc)


def note(
    history: SizeHistory, found: Sequence[StoreGrowth], at_s: float
) -> dict[str, float | None]:
    """
    Add what was *found* to the history, and return the days to full by store.

    Raises:
        OSError: The file cannot be written.
    """
    measured = {each.store: each for each in found if each.problem is None}
    known = history.add({name: SizeSample(at_s, each.bytes) for name, each in measured.items()})
    return {name: days_to_full(known[name], each.room_bytes) for name, each in measured.items()}


def _run(sampler: weakref.ref[GrowthSampler], ended: threading.Event, every_s: float) -> None:
    # Weak: a scope that nobody holds any more is not kept alive to be measured.
    while not ended.wait(every_s):
        living = sampler()
        if living is None:
            return
        living.sample_or_note()
        del living

"""The sink of a process whose events a relay delivers: it appends them to a file."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from ..delivery.sink import DeliveryError, SinkOutput
from ..event.event import Event
from ..event.subject import SubjectKeys
from ..prometheus.live import LiveCollector, Read, Sample, latest
from ..queue import MAX_BYTES
from ..queue.writer import QueueWriter
from .figures import FiguresTeller
from .folder import silent_s, standing
from .starter import RelayStarter

NEVER_S = 1e9
"""Age that is told where no relay ever gave a sign of life."""

_SILENT = latest(
    "mnemoscope_relay_silent_seconds",
    "Seconds since the relay that this process's events wait for gave a sign of life",
)


class RelaySink:
    """
    Appends each event to a file of this process, where it is made.

    Args:
        max_bytes: How large the files of this process may become.
        mode: The durability that was asked for, as the setting has it: said in the files.
        shows: Whether the relay shows the process's own figures. Those of this sink are in
            prometheus_client's default registry: they tell of a relay that may be gone.
        starter: Starts the relay where it has died, if this process does that. Closed with this.
        clock: Seconds since 1970.
    """

    name = "relay"
    idempotent = True
    keeps_pseudonyms = True
    takes_inline = True

    def __init__(
        self,
        folder: Path,
        keys: SubjectKeys,
        *,
        max_bytes: int = MAX_BYTES,
        mode: str = "",
        shows: bool = False,
        starter: RelayStarter | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._folder = folder
        self._writer = QueueWriter(folder, keys, max_bytes, mode=mode)
        self._clock = clock
        self._starter = starter
        self._live = LiveCollector()
        # It must not hold this sink: its thread would keep a scope that nobody has any more.
        self._teller = FiguresTeller(folder, partial(_told, self._live), clock) if shows else None
        self._voice: Any = self._teller or SimpleNamespace(has_begun=True)  # for each event

    def take(self, event: Event, /) -> str | None:
        """Append *event*; return why it is lost, if it is."""
        if not self._voice.has_begun:
            self._voice.begin(event.writer_id)
        if self._starter is not None:
            self._starter.look(event.started_ns)
        return self._writer.append(event)

    def rest(self) -> None:
        """Note that the process has ended in order, unless another event comes."""
        self._writer.rest()

    leave = rest

    def sync(self) -> None:
        """Have what was appended on the disk."""
        self._writer.sync()

    def accepts(self) -> bool:
        """Return whether the next event would be kept. Does not wait."""
        return self._writer.has_room()

    def probe(self) -> None:
        """Find out whether events would be kept, before the first one."""
        self._writer.has_room()

    def write(self, batch: Sequence[Event], /) -> None:
        """
        Append *batch*.

        Raises:
            DeliveryError: Some of it is lost.
        """
        lost = sum(self.take(each) is not None for each in batch)
        if lost:
            raise DeliveryError(f"{lost} events found no room in {self._folder}")

    def flush(self, _timeout_s: float, /) -> bool:
        """Return True: what was appended is the relay's."""
        return True

    def check(self, timeout_s: float, /) -> str:
        """Find out whether a relay reads the folder, and is not behind. Awaits one just started."""
        until = time.monotonic() + (timeout_s if self._starter is not None else 0.0)
        while not standing(self._folder, self._clock).is_alive and time.monotonic() < until:
            time.sleep(0.02)
        # That this process can write is not enough: without a relay nothing is delivered.
        found = standing(self._folder, self._clock)
        if waiting := self._writer.unwritten:
            raise DeliveryError(
                f"{waiting:,} events wait in memory: {self._folder} takes none; {found.detail}"
            )
        if found.problem is not None:
            raise DeliveryError(found.detail)
        return found.detail

    def output(self) -> SinkOutput:
        """Return what leaves through this sink: nothing leaves the machine."""
        return SinkOutput("file of this machine", content=True, subject="encrypted")

    def samples(self) -> Iterator[Sample]:
        """Yield the age of the relay's latest sign of life."""
        age_s = silent_s(self._folder, self._clock)
        yield _SILENT.sample(NEVER_S if age_s is None else age_s)

    def show(self, read: Read, /) -> None:
        """Have the relay show figures that are no event's, where the settings want Prometheus."""
        if self._teller is None:
            return
        from prometheus_client import REGISTRY  # noqa: PLC0415 - only where it is wanted

        self._live.add(read)
        LiveCollector.for_registry(REGISTRY).add(self._shown_here)

    def close(self, timeout_s: float, /) -> None:
        """End in order. What was appended stays for the relay."""
        if self._teller is not None:
            self._teller.close(timeout_s)
        self._writer.close()
        if self._starter is not None:
            self._starter.close()

    def _shown_here(self) -> Iterator[Sample]:
        return (each for each in self._live.samples() if _is_of_relay(each))


def _told(live: LiveCollector) -> Iterator[Sample]:
    return (each for each in live.samples() if not _is_of_relay(each))


def _is_of_relay(sample: Sample) -> bool:
    """Return whether *sample* tells how the way to the relay is: the relay knows its own end."""
    return sample.name == _SILENT.name or sample.labels.get("sink") == RelaySink.name

"""The sink of a process whose events a relay delivers: it appends them to a file."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from ..delivery.sink import DeliveryError, SinkOutput
from ..event.event import Event
from ..event.subject import SubjectKeys
from ..prometheus.live import LiveCollector, Read, Sample, latest
from . import MAX_BYTES
from .folder import silent_s, standing
from .writer import RelayWriter

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
        folder: Of the relay.
        keys: What the files are encrypted with.
        max_bytes: How large the files of this process may become.
        shows: Whether the process's own figures are shown in prometheus_client's default registry.
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
        shows: bool = False,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._folder = folder
        self._writer = RelayWriter(folder, keys, max_bytes)
        self._shows = shows
        self._clock = clock

    def take(self, event: Event, /) -> str | None:
        """Append *event*; return why it is lost, if it is."""
        return self._writer.append(event)

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

    def check(self, _timeout_s: float, /) -> str:
        """Find out whether a relay reads the folder, and is not behind."""
        found = standing(self._folder, self._clock)
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
        """Show figures that are no event's, where the settings want Prometheus."""
        if not self._shows:
            return
        from prometheus_client import REGISTRY  # noqa: PLC0415 - only where it is wanted

        LiveCollector.for_registry(REGISTRY).add(read)

    def close(self, _timeout_s: float, /) -> None:
        """End in order. What was appended stays for the relay."""
        self._writer.close()

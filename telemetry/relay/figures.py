"""
The live figures of processes, as the relay shows them: breakers, calls in flight, budgets.

Each process that has events says them in a file of its own, over and over, and holds a lock on it:
the kernel lets go of that when the process dies, however it dies. What holds at the moment is shown
while the process lives and speaks; what only goes up is added to what those before it have counted.
"""

from __future__ import annotations

import fcntl
import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import msgspec

from ..files.file_lock import is_free
from ..files.framing import HEADER_BYTES, first_record, header, new_marker, record, scan
from ..process.fork import reset_after_fork
from ..prometheus.live import Sample, merged
from ..queue.folder import open_folder

EVERY_S = 1.0
"""Seconds between two times that a process says its figures."""

SILENT_AFTER_S = 10.0
"""Seconds without a word after which a process's figures are no longer those of now."""

_KIND = b"mnfigure"
_SUFFIX = ".figures"
_END_S = 0.25


class _Told(msgspec.Struct, frozen=True):
    """
    The samples of a process.

    Attributes:
        at: When they held, seconds since 1970, as earlier releases ask.
        turn: How often the process had said them before: a sign of life while its clock stands.
    """

    at: float
    samples: tuple[Sample, ...]
    turn: int = 0


_NOTHING_TOLD = _Told(0.0, ())
_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(_Told).decode


class FiguresTeller:
    """
    Says the figures of this process, on a thread that its first event starts.

    Args:
        clock: Seconds since 1970.
    """

    def __init__(
        self,
        folder: Path,
        read: Callable[[], Iterable[Sample]],
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._folder = folder
        self._read = read
        self._clock = clock
        self._fd, self._turn = -1, 0
        self.forked()
        reset_after_fork(self)

    def forked(self) -> None:
        """Leave file and thread to the parent; a child begins its own with its first event."""
        self._leave()
        self._marker = new_marker()
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None
        self._beginning = threading.Lock()
        self.has_begun = False

    def begin(self, writer_id: str) -> None:
        """Begin to speak, as that writer. Does not wait, also in a signal handler."""
        if self.has_begun or not self._beginning.acquire(blocking=False):
            return
        with suppress(RuntimeError):  # no thread to be had just now: with the next event, perhaps
            thread = threading.Thread(
                target=self._run, args=(writer_id,), name="mnemoscope-figures", daemon=True
            )
            thread.start()
            self._thread, self.has_begun = thread, True
        self._beginning.release()

    def tell(self, writer_id: str) -> None:
        """
        Say the figures, once.

        Raises:
            OSError: There is no room for them.
        """
        said = _Told(self._clock(), tuple(self._read()), self._turn)
        self._turn += 1
        told = record(self._marker, _encode(said))
        if self._fd == -1:
            self._fd = self._begun(writer_id, told)
        else:
            os.pwrite(self._fd, told, HEADER_BYTES)

    def close(self, timeout_s: float) -> None:
        """Say them a last time, and let go."""
        self._stopping.set()
        if self._thread is not None:
            self._thread.join(min(timeout_s, _END_S))

    def _run(self, writer_id: str) -> None:
        stopping = self._stopping
        while True:
            with suppress(Exception):  # a full disk, say: it is tried again
                self.tell(writer_id)
            if stopping.is_set():
                break
            stopping.wait(EVERY_S)
        self._leave()

    def _begun(self, writer_id: str, told: bytes) -> int:
        open_folder(self._folder)
        # Under a name that no relay looks at, until it is locked and has figures.
        draft = self._folder / f".{writer_id}{_SUFFIX}.new"
        fd = os.open(draft, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.pwrite(fd, header(_KIND, self._marker) + told, 0)
            draft.rename(self._folder / f"{writer_id}{_SUFFIX}")
        except BaseException:
            os.close(fd)
            raise
        return fd

    def _leave(self) -> None:
        fd, self._fd = self._fd, -1
        if fd != -1:
            os.close(fd)


@dataclass(slots=True)
class _Teller:
    """The file of one process, and what was read in it last."""

    fd: int
    data: bytes = b""
    told: _Told = _NOTHING_TOLD
    told_at: float = 0.0

    def read(self, now: float) -> None:
        data = os.pread(self.fd, os.fstat(self.fd).st_size, 0)
        if data == self.data:
            return
        marker = scan(data[:HEADER_BYTES], _KIND).marker
        found = first_record(data, marker, HEADER_BYTES) if marker else None
        if found is None:
            return  # it is being written: what was read last holds until the next look
        with suppress(msgspec.MsgspecError):  # of another release
            self.data, self.told, self.told_at = data, _decode(found.payload), now


class WritersFigures:
    """
    The figures of all processes of a folder.

    Args:
        clock: Monotonic seconds: how long a process is silent is not told by what it says itself.
    """

    def __init__(self, folder: Path, clock: Callable[[], float] = time.monotonic) -> None:
        self._folder = folder
        self._clock = clock
        self._tellers: dict[Path, _Teller] = {}
        self._counted: Sequence[Sample] = ()

    def look(self) -> None:
        """Read the counts of all processes, and keep those of processes that have ended."""
        for path in self._folder.glob(f"*{_SUFFIX}"):
            if path not in self._tellers:
                with suppress(FileNotFoundError):
                    self._tellers[path] = _Teller(os.open(path, os.O_RDWR | os.O_CLOEXEC))
        for path, teller in [*self._tellers.items()]:
            is_gone = is_free(teller.fd)  # before its last words are read
            teller.read(self._clock())
            if is_gone:
                self._keep(teller.told.samples)
                path.unlink(missing_ok=True)
                os.close(self._tellers.pop(path).fd)

    def samples(self) -> Iterator[Sample]:
        """Yield the figures as of the last look."""
        yield from self._counted
        now = self._clock()
        for teller in [*self._tellers.values()]:
            is_silent = now - teller.told_at > SILENT_AFTER_S
            for sample in teller.told.samples:
                # A counter that goes away and comes back looks like a restart to Prometheus.
                if sample.kind == "counter" or not is_silent:
                    yield sample

    def close(self) -> None:
        """Let go."""
        for teller in self._tellers.values():
            os.close(teller.fd)
        self._tellers = {}

    def _keep(self, samples: Iterable[Sample]) -> None:
        ended = [each for each in samples if each.kind == "counter"]
        self._counted = merged((*self._counted, *ended))

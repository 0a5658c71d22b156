"""
The ledger of a spool: how many records the processes of this machine have put into it.

The log is told now and then how far the numbers are, and which of them were taken out of the spool.
So a record that is neither in the spool nor in the log is known to be missing, whoever removed it,
and whatever became of the process that had written it.
"""

from __future__ import annotations

import fcntl
import hmac
import os
import secrets
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

import orjson

from ...telemetry.event.subject import SubjectKeys
from ..record.keys import Keyring

_SIZE_BYTES = 256
_PATIENCE_S = 1.0
_LOOK_S = 0.01


class SpoolEnd(NamedTuple):
    """
    How far the numbers of a spool are.

    Attributes:
        spool: Its name, random.
        end: The highest number that was given out.
    """

    spool: str
    end: int


class SpoolLedger:
    """
    The ledger of one spool. Each use opens the file anew.

    Args:
        spool: The spool's path: the ledger is beside it.
        ring: It is authenticated with a key of the current secret.
    """

    def __init__(self, spool: Path, ring: Keyring) -> None:
        self.path = spool.with_name(f"ledger-{spool.name}")
        self._ring = ring

    def end(self) -> SpoolEnd | None:
        """Return how far the numbers are; None: there is no ledger that can be read."""
        with suppress(OSError):
            return self._read(self.path.read_bytes())
        return None

    @contextmanager
    def taking(self, count: int, *, waits: bool = True) -> Generator[SpoolEnd | None]:
        """
        Return the end that *count* records come after, which the body puts on the disk.

        It is noted when they are there: a process that is killed in between has lost nothing that
        it had promised. None: there is no ledger to be had, and no number. Unless this *waits*,
        neither for another process nor for the disk, that is also while somebody else has it.
        """
        with self._locked(fcntl.LOCK_EX, patience_s=_PATIENCE_S if waits else 0.0) as fd:
            before = None
            if fd is not None:
                before = self._read_at(fd) or SpoolEnd(secrets.token_hex(8), 0)
            yield before
            if fd is not None and before is not None:
                with suppress(OSError):
                    self._write(fd, before._replace(end=before.end + count))
                    if waits:
                        os.fsync(fd)

    def sync(self) -> None:
        """Have on the disk what was noted without a wait for it."""
        with suppress(OSError):
            fd = os.open(self.path, os.O_RDONLY)
            try:
                os.fsync(fd)
            finally:
                os.close(fd)

    @contextmanager
    def standing_still(self) -> Generator[SpoolEnd | None]:
        """Return how far the numbers are; all of them are on the disk. None: it cannot be told."""
        with self._locked(fcntl.LOCK_SH) as fd:
            yield None if fd is None else self._read_at(fd)

    @contextmanager
    def _locked(self, kind: int, patience_s: float = _PATIENCE_S) -> Generator[int | None]:
        fd = None
        with suppress(OSError):
            fd = self._open(kind)
        try:
            yield fd if fd is not None and _is_locked(fd, kind, patience_s) else None
        finally:
            if fd is not None:
                os.close(fd)

    def _open(self, kind: int) -> int:
        if kind == fcntl.LOCK_SH:
            return os.open(self.path, os.O_RDONLY)
        self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        return os.open(self.path, os.O_RDWR | os.O_CREAT, 0o600)

    def _read_at(self, fd: int) -> SpoolEnd | None:
        with suppress(OSError):
            return self._read(os.pread(fd, _SIZE_BYTES, 0))
        return None

    def _write(self, fd: int, end: SpoolEnd) -> None:
        body = orjson.dumps([*end])
        text = b" ".join((self._ring.current_id.encode(), _mac(self._ring.current, body), body))
        os.pwrite(fd, text.ljust(_SIZE_BYTES), 0)

    def _read(self, text: bytes) -> SpoolEnd | None:
        with suppress(ValueError, TypeError):
            key_id, mac, body = text.rstrip().split(b" ", 2)
            keys = self._ring.get(key_id.decode())
            if keys is not None and hmac.compare_digest(mac, _mac(keys, body)):
                return SpoolEnd(*orjson.loads(body))
        return None


def _mac(keys: SubjectKeys, body: bytes) -> bytes:
    return hmac.digest(keys.key("audit/ledger"), body, "sha256").hex().encode()


def _is_locked(fd: int, kind: int, patience_s: float) -> bool:
    """Lock a file, unless somebody else does so for long."""
    until = time.monotonic() + patience_s
    while True:
        with suppress(OSError):
            fcntl.flock(fd, kind | fcntl.LOCK_NB)
            return True
        if time.monotonic() >= until:
            return False
        time.sleep(_LOOK_S)

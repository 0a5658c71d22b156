"""A zip file that is written as streams, and is there whole or not at all."""

from __future__ import annotations

import os
import secrets
from collections.abc import Generator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, NamedTuple, Protocol
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

_OWNER_ONLY = 0o600
_OPEN_FILES = Path("/proc/self/fd")
_BLOCK = 1 << 20
_GATHERED = 1 << 16
_LEVEL = 1
"""Proofs are hashes: thinking longer about them takes twice the time and saves a tenth."""


class ArchiveMember(NamedTuple):
    """
    A member of the archive, as the manifest lists it.

    Attributes:
        n: Its lines, where each of them is a record; else 1.
    """

    path: str
    sha256: str
    bytes: int
    n: int


class Writable(Protocol):
    """A stream that takes bytes."""

    def write(self, data: bytes, /) -> object:
        """Write all of *data*."""
        ...


class Archive:
    """
    A writer of members, one after the other.

    Attributes:
        written: The members in it so far.
    """

    def __init__(self, file: ZipFile, generated_us: int) -> None:
        self.written: list[ArchiveMember] = []
        self._file = file
        # Of the request, not of now: what is written again from the same data is the same to the
        # byte.
        self._time = datetime.fromtimestamp(generated_us / 1e6, UTC).timetuple()[:6]

    @contextmanager
    def member(self, path: str) -> Generator[Writable]:
        """Write one member as a stream."""
        info = ZipInfo(path, self._time)
        info.compress_type = ZIP_DEFLATED
        info._compresslevel = _LEVEL  # type: ignore[attr-defined]  # noqa: SLF001 - public from 3.13
        info.external_attr = _OWNER_ONLY << 16
        # Its size is not known before it ends, and without ZIP64 a member beyond 2 GiB fails then.
        with self._file.open(info, "w", force_zip64=True) as stream:
            counted = _Counted(stream)
            yield counted
            counted.flush()
        n_records = counted.lines if path.endswith(".jsonl") else 1
        self.written.append(
            ArchiveMember(path, counted.digest.hexdigest(), counted.bytes, n_records)
        )

    def add(self, path: str, data: bytes) -> None:
        """Write one member at once."""
        with self.member(path) as out:
            out.write(data)

    def add_file(self, path: str, source: IO[bytes]) -> None:
        """Write one member from the beginning of *source*."""
        source.seek(0)
        with self.member(path) as out:
            while block := source.read(_BLOCK):
                out.write(block)


class _Counted:
    def __init__(self, stream: IO[bytes]) -> None:
        self.digest = sha256()
        self.bytes = self.lines = 0
        self._stream = stream
        self._held: list[bytes] = []
        self._held_bytes = 0

    def write(self, data: bytes, /) -> None:
        self._held.append(data)
        self._held_bytes += len(data)
        if self._held_bytes >= _GATHERED:
            self.flush()

    def flush(self) -> None:
        """Compress what was written line by line."""
        data = b"".join(self._held)
        self._held.clear()
        self._held_bytes = 0
        self.digest.update(data)
        self.bytes += len(data)
        self.lines += data.count(b"\n")
        self._stream.write(data)


@contextmanager
def archive_at(path: Path, generated_us: int) -> Generator[Archive]:
    """
    Write an archive at *path*, readable for its owner only.

    It gets its name when it is whole: a failure leaves no half of it, and leaves what was there
    before. So does a kill, on Linux, where a file needs no name while it is written.
    """
    # Beside it, since a file is replaced atomically on one file system only.
    draft = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    try:
        with open(_opened(draft), "w+b") as file:
            with ZipFile(file, "w") as zipped:
                yield Archive(zipped, generated_us)
            file.flush()
            # Before the name: a rename may be on the disk sooner than what it names.
            os.fsync(file.fileno())
            if not draft.exists():
                # Without a folder's descriptor Python links the link that /proc has.
                os.link(_OPEN_FILES / f"{file.fileno()}", draft, src_dir_fd=file.fileno())
        draft.replace(path)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise


def _opened(draft: Path) -> int:
    # Made with its mode: a file that is narrowed afterwards could be opened in between.
    if _OPEN_FILES.exists():
        with suppress(OSError):  # not every file system has files without a name
            return os.open(draft.parent, os.O_RDWR | os.O_TMPFILE, _OWNER_ONLY)
    return os.open(draft, os.O_RDWR | os.O_CREAT | os.O_EXCL, _OWNER_ONLY)


def unnamed_file(beside: Path) -> IO[bytes]:
    """Return a file that has no name, beside *beside*: gone with the process, whatever happens."""
    return TemporaryFile(dir=beside.parent)

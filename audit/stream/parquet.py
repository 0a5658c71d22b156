"""A copy in a folder: a Parquet file for each batch, and the last signed checkpoint beside them."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib import import_module
from itertools import groupby
from pathlib import Path
from typing import Any, BinaryIO
from urllib.parse import unquote, urlsplit

from .record import CHECKPOINT, EVENT, CopyRecord, SealedDetail
from .target import CopyError

# Without types of its own.
_ARROW: Any = import_module("pyarrow")
_PARQUET: Any = import_module("pyarrow.parquet")
_TEXT, _BYTES, _NUMBER = _ARROW.string(), _ARROW.binary(), _ARROW.int64()
_COLUMNS = {
    **dict.fromkeys(("origin", "kind"), _TEXT),
    "seq": _NUMBER,
    "key": _TEXT,
    "header": _BYTES,
    "leaf": _BYTES,
    "subject_uid": _TEXT,
    "dek_id": _TEXT,
    "sealed": _BYTES,
    "expires_us": _NUMBER,
}
_SCHEMA = _ARROW.schema(list(_COLUMNS.items()))
_NO_DETAIL = (None,) * len(SealedDetail._fields)
_FILES = frozenset({".csv", ".db", ".json", ".jsonl", ".ndjson", ".parquet"})
"""How names of files end that are not taken for a folder's."""


class ParquetFolder:
    """A folder, written and read. Files are named by their log, first event and end."""

    expired, compacted, wrong = 0, False, ()

    def __init__(self, url: str) -> None:
        self.unread: dict[str, tuple[int, int]] = {}
        parts = urlsplit(url)
        self._folder = Path(unquote(parts.netloc + parts.path))
        if parts.query or not parts.netloc + parts.path:
            raise ValueError("a folder is at file:///PATH")
        if self._folder.is_file() or self._folder.suffix in _FILES:
            raise ValueError("file:// names a folder, in which there are Parquet files; not a file")
        self._at = 0
        self._later: deque[tuple[int, int]] = deque()

    def resume_at(self, origin: str, /) -> int:
        """
        Return the first number that no file has, behind those that were moved away.

        Those are the first ones. One that is missing between two others is sent again.
        """
        at = 0
        names = sorted(map(_range_of, self._folder.glob(f"{_slug(origin)}-*-*.parquet")))
        self._later = deque(names)
        while self._later and (self._later[0][0] <= at or not at):
            at = max(at, self._later.popleft()[1])
        self._at = at
        return at

    def send(self, records: Sequence[CopyRecord], /) -> int:
        """Write a file of those *records* that no other has: whole, or not at all."""
        if 0 < self._at < records[0].seq:
            # Retention has removed them, and a file without events stands for them: else they
            # would be looked for by each stream from now on.
            self._write((), _name(records[0].origin, self._at, records[0].seq))
        for is_there, each in groupby(records, lambda record: self._has(record.seq)):
            if not is_there:
                self._write_run([*each])
        self._at = records[-1].seq + (records[-1].kind == EVENT)
        return 0

    def _has(self, seq: int) -> bool:
        while self._later and self._later[0][1] <= seq:
            self._later.popleft()
        return bool(self._later) and self._later[0][0] <= seq

    def _write_run(self, records: Sequence[CopyRecord]) -> None:
        first, last = records[0], records[-1]
        self._write(records, _name(first.origin, first.seq, last.seq + (last.kind == EVENT)))
        if first.kind == CHECKPOINT and not self._later:
            note = first.header.partition(b"\n\n")[2]
            with self._writing(f"{_slug(first.origin)}.checkpoint") as file:
                file.write(note)

    def _write(self, records: Sequence[CopyRecord], name: str) -> None:
        rows = [(*each[:6], *(each.detail or _NO_DETAIL)) for each in records]
        columns = [list(column) for column in zip(*rows, strict=True)] or [[]] * len(_COLUMNS)
        buffer = _ARROW.BufferOutputStream()
        table = _ARROW.table(columns, schema=_SCHEMA)
        _PARQUET.write_table(table, buffer, compression="zstd")
        with self._writing(name) as file:
            file.write(buffer.getvalue())

    @contextmanager
    def _writing(self, name: str) -> Generator[BinaryIO]:
        """Open a file that has its name once it is whole, and on the disk."""
        part = self._folder / f"{name}.part"
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            try:
                with part.open("wb") as file:
                    yield file
                    file.flush()
                    os.fsync(file.fileno())
                part.replace(self._folder / name)
            except OSError:
                with suppress(OSError):
                    part.unlink()  # a full disk has room for it again
                raise
        except OSError as exc:
            raise CopyError(f"the folder cannot be written: {exc.strerror}") from None

    def records(self) -> Iterator[CopyRecord]:
        """Yield the rows of all files that can be read; one that is not ours is of no log."""
        if not self._folder.is_dir():
            raise CopyError("the folder is not there")
        for path in sorted(self._folder.glob("*.parquet")):
            try:
                for batch in _PARQUET.ParquetFile(path).iter_batches(columns=list(_COLUMNS)):
                    rows: Any = zip(*(each.to_pylist() for each in batch.columns), strict=True)
                    for *row, uid, dek_id, sealed, expires_us in rows:
                        detail = uid and SealedDetail(uid, dek_id, sealed, expires_us)
                        yield CopyRecord._make([*row, detail])
            except (OSError, _ARROW.ArrowException):
                # The disk's fault or somebody's: rows that are not there prove neither.
                self.unread[path.name] = _range_of(path)
            except (ValueError, TypeError, KeyError):
                yield CopyRecord("", EVENT, 0, "", path.name.encode(), b"")

    def close(self) -> None:
        """Keep what is written."""


target = copy = ParquetFolder


def _range_of(path: Path) -> tuple[int, int]:
    """Return the events that a file is named after; none, where it has another name."""
    first, _, end = path.stem.rpartition("-")
    numbers = first.rpartition("-")[2], end
    return (int(numbers[0]), int(numbers[1])) if all(map(str.isdecimal, numbers)) else (0, 0)


def _name(origin: str, first: int, end: int) -> str:
    return f"{_slug(origin)}-{first:012}-{end:012}.parquet"


def _slug(origin: str) -> str:
    return "".join(each if each.isalnum() else "-" for each in origin)

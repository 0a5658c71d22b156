"""A copy in a folder: a Parquet file for each batch, and the last signed checkpoint beside them."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any
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


class ParquetFolder:
    """A folder, written and read. Files are named by their log, first event and end."""

    expired, compacted, wrong = 0, False, ()

    def __init__(self, url: str) -> None:
        self.unread: dict[str, tuple[int, int]] = {}
        parts = urlsplit(url)
        self._folder = Path(unquote(parts.netloc + parts.path))
        if parts.query or not parts.netloc + parts.path:
            raise ValueError("a folder is at file:///PATH")

    def resume_at(self, origin: str, /) -> int:
        """Return the end of the last file."""
        found = self._folder.glob(f"{_slug(origin)}-*-*.parquet")
        return max((int(each.stem.rpartition("-")[2]) for each in found), default=0)

    def send(self, records: Sequence[CopyRecord], /) -> int:
        """Write a file of *records*: whole, or not at all."""
        first, last = records[0], records[-1]
        slug, end = _slug(first.origin), last.seq + (last.kind == EVENT)
        rows = [(*each[:6], *(each.detail or _NO_DETAIL)) for each in records]
        columns = [list(column) for column in zip(*rows, strict=True)]
        path = self._folder / f"{slug}-{first.seq:012}-{end:012}.parquet"
        part = path.with_suffix(".part")
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            with part.open("wb") as file:
                table = _ARROW.table(columns, schema=_SCHEMA)
                _PARQUET.write_table(table, file, compression="zstd")
                file.flush()
                os.fsync(file.fileno())
            part.replace(path)
            if first.kind == CHECKPOINT:
                note = first.header.partition(b"\n\n")[2]
                (self._folder / f"{slug}.checkpoint").write_bytes(note)
        except OSError as exc:
            raise CopyError(f"the folder cannot be written: {exc.strerror}") from None
        return 0

    def records(self) -> Iterator[CopyRecord]:
        """Yield the rows of all files that can be read; one that is not ours is of no log."""
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


def _slug(origin: str) -> str:
    return "".join(each if each.isalnum() else "-" for each in origin)

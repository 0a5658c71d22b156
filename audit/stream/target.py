"""
The protocols of a copy: a target that is written, and a copy that is read; chosen by a URL.

A scheme's module has the functions ``target(url)`` and ``copy(url)``. It is imported where a URL
names it, since it needs a client that is an extra.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from typing import Any, Protocol
from urllib.parse import urlsplit

from ..database.errors import AuditError
from .record import CopyRecord

_MODULES = {
    "kafka": (".kafka", "kafka"),
    "clickhouse": (".clickhouse", "clickhouse"),
    "chdb": (".clickhouse", "clickhouse"),
    "file": (".parquet", "parquet"),
}
"""The module of each scheme, and the extra that it needs."""


class CopyError(AuditError):
    """A copy cannot be written or read. One line, without a password."""


class Target(Protocol):
    """A copy that is written. Not thread-safe."""

    def resume_at(self, origin: str, /) -> int:
        """
        Return the number of a log's event before which the copy has, or had, all of them; 0: none.

        Raises:
            CopyError: The target cannot be asked.
        """
        ...

    def send(self, records: Sequence[CopyRecord], /) -> int:
        """
        Store *records*, which follow those sent before, and return once all are acknowledged.

        A checkpoint comes first among them, so that the events that it covers are stored already.
        What is stored already is sent again after a crash.

        Returns:
            How many were set aside, since their header does not fit the schema.

        Raises:
            CopyError: Not all of them were acknowledged: go on from `resume_at`.
        """
        ...

    def close(self) -> None:
        """Close the connection."""
        ...


class Copy(Protocol):
    """
    A copy that is read, once.

    Attributes:
        expired: Events before this number may be gone by the age or size that the copy is kept
            within; 0: none are. Known when all records were read.
        compacted: Whether the copy may keep no more than the last record of each key. Likewise.
        wrong: What else is not as it was sent, in a line each. Likewise.
        unread: The parts that cannot be read, by name, each with the numbers of the first event
            that may be in it and of the one after the last. Likewise.
    """

    expired: int
    compacted: bool
    wrong: Sequence[str]
    unread: Mapping[str, tuple[int, int]]

    def records(self) -> Iterator[CopyRecord]:
        """
        Yield what is there, in any order; a record may come twice.

        Of a checkpoint that is yielded all events are there, or are gone: while the copy is still
        written, checkpoints are looked for first, and events then.

        Raises:
            CopyError: It cannot be read to its end.
        """
        ...


def open_target(url: str) -> Target:
    """
    Return the copy at *url*, to be written.

    Raises:
        ValueError: The URL is not one.
        CopyError: Its extra is not installed, or it cannot be reached.
    """
    found: Target = _module(url).target(url)
    return found


def open_copy(url: str) -> Copy:
    """Return the copy at *url*, to be read; raises as `open_target` does."""
    found: Copy = _module(url).copy(url)
    return found


def _module(url: str) -> Any:
    scheme = urlsplit(url).scheme
    if scheme not in _MODULES:
        raise ValueError(f"a copy is at {', '.join(f'{each}://…' for each in _MODULES)}")
    module, extra = _MODULES[scheme]
    try:
        return import_module(module, __package__)
    except ModuleNotFoundError as exc:
        install = f"pip install 'mnemoscope[{extra}]'"
        raise CopyError(f"{scheme}:// needs {exc.name}: {install}") from None

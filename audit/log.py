"""
The audit trail: what was done to a customer's memory, and when. The fifth sink writes it.

This is the whole of what other packages see of it. Today an SQLite table is behind it.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from ..telemetry.event import Event, OperationClass
from ..telemetry.fork import reset_after_fork
from ..telemetry.fork_guard import ForkGuard
from ..telemetry.subject import Subject, SubjectKeys
from . import reading
from .errors import AuditError
from .keys import key_id_of
from .reading import By, Remembered, Spend, StoreLatency
from .rows import AuditRow, encode
from .sqlite import SqliteWriter, writable
from .sqlite import reading as opened

_SQLITE = "sqlite:///"

logger = logging.getLogger("mnemoscope.audit")


def path_of(url: str | Path) -> Path:
    """
    Return the file that an audit URL names: ``sqlite:///relative`` or ``sqlite:////absolute``.

    Raises:
        ValueError: It names none. Does not quote the URL, which may hold a password.
    """
    if isinstance(url, Path):
        return url
    scheme, separator, _rest = url.partition("://")
    if not separator:
        raise ValueError("the audit URL must begin with sqlite:///")
    if scheme.startswith("postgres"):
        raise ValueError(
            "the audit trail cannot be kept in PostgreSQL in this version: use sqlite:///path"
        )
    path = url.removeprefix(_SQLITE)
    if scheme != "sqlite" or path == url or not path or path == ":memory:":
        raise ValueError("the audit URL must be sqlite:///path, with the path of a file")
    return Path(path).expanduser()


class AuditLog:
    """
    The audit trail in one database. Opens nothing until it is first written or read.

    Args:
        url: ``sqlite:///path``, or the path.
        keys: What turns customers into the aliases that are stored.
        clock_ns: Wall clock.

    Raises:
        ValueError: The URL is not one.
    """

    def __init__(
        self,
        url: str | Path,
        keys: SubjectKeys,
        *,
        clock_ns: Callable[[], int] = time.time_ns,
    ) -> None:
        self.path = path_of(url)
        self._keys = keys
        self._clock_ns = clock_ns
        self._writer: SqliteWriter | None = None
        self._guard = ForkGuard()
        reset_after_fork(self)

    def append(self, events: Sequence[Event]) -> int:
        """
        Record *events* durably, all of them or none. Those already recorded are left as they are.

        Returns:
            How many were new.

        Raises:
            AuditError: None of them was recorded.
        """
        recorded_us = self._clock_ns() // 1_000
        rows = [encode(event, recorded_us) for event in events]
        with self._guard:
            try:
                return self._current_writer().append(rows)
            except BaseException:
                # Whatever it was, the next attempt begins with a fresh connection.
                self._close_writer()
                raise

    def close(self) -> None:
        """Close the database. A later `append` opens it again."""
        with self._guard:
            self._close_writer()

    def history(self, customer: str, tenant: str | None = None) -> Iterator[AuditRow]:
        """
        Yield all that was done to the memory of one customer of one tenant, oldest first.

        Streams, and sees the log as it was when the iteration began. A *tenant* of None means
        operations that named none, not all tenants.

        Raises:
            AuditError: There is no such database, or other keys were used to write it: then
                nobody can be found in it, which is not the same as nobody being in it.
        """
        with opened(self.path) as connection:
            self._check_keys(reading.key_ids(connection))
            yield from reading.history(connection, self._alias(customer, tenant))

    def memories(self, customer: str, tenant: str | None = None) -> list[Remembered]:
        """Return the memories in a customer's `history`: when written, read and forgotten."""
        with opened(self.path) as connection:
            self._check_keys(reading.key_ids(connection))
            return reading.memories(connection, self._alias(customer, tenant))

    def latency(self, op_class: OperationClass | None = None) -> list[StoreLatency]:
        """Return how long each store took, for one class of operations or all; no model calls."""
        with opened(self.path) as connection:
            return reading.latency(connection, op_class)

    def spend(self, by: By = "feature") -> list[Spend]:
        """Return tokens and cost by feature, node or model, dearest first."""
        with opened(self.path) as connection:
            return reading.spend(connection, by)

    def count(self) -> int:
        """Return how many events are recorded."""
        with opened(self.path) as connection:
            return reading.count(connection)

    def check(self) -> str:
        """
        Say what the trail holds, having tried whether it could be added to. Changes nothing.

        Raises:
            AuditError: It cannot be read or written, or was written with other keys.
        """
        writable(self.path)
        if not self.path.exists():
            return f"{self.path} is made with the first event"
        with opened(self.path) as connection:
            self._check_keys(reading.key_ids(connection))
            return f"{reading.newest(connection):,} events in {self.path}"

    def _alias(self, customer: str, tenant: str | None) -> str:
        return Subject(customer, tenant=tenant, keys=self._keys).hashed("audit")

    def _check_keys(self, used: frozenset[str]) -> None:
        if used and key_id_of(self._keys) not in used:
            raise AuditError(
                f"the audit database {self.path} was written with another pseudonym key: no "
                "customer can be looked up without it. Restore the key file, or set "
                "MNEMOSCOPE_AUDIT_PSEUDONYM_KEY"
            )

    def _current_writer(self) -> SqliteWriter:
        writer = self._writer
        if writer is not None and not writer.is_current():
            logger.error(
                "the audit database %s was deleted or replaced while in use: what it held is no "
                "longer there, and recording goes on with what is there now",
                self.path,
            )
            self._close_writer()
            writer = None
        if writer is None:
            writer = SqliteWriter(self.path, key_id_of(self._keys), self._clock_ns)
            self._writer = writer
        return writer

    def _close_writer(self) -> None:
        writer, self._writer = self._writer, None
        if writer is not None:
            writer.close()

    def forked(self) -> None:
        """Let go of the parent's connection in a child; see `SqliteWriter.abandon`."""
        writer, self._writer = self._writer, None
        if writer is not None:
            writer.abandon()


class AuditSink:
    """Writes every batch to an audit log, in one durable transaction; raises if it cannot."""

    name = "audit"
    idempotent = True

    def __init__(self, log: AuditLog) -> None:
        self._log = log

    def write(self, batch: Sequence[Event], /) -> None:
        """Record *batch*."""
        self._log.append(batch)

    def flush(self, _timeout_s: float, /) -> bool:
        """Return True: what is written is committed."""
        return True

    def check(self, _timeout_s: float, /) -> str:
        """Open the database and see."""
        return self._log.check()

    def close(self, _timeout_s: float, /) -> None:
        """Close the database."""
        self._log.close()

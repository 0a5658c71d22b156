"""
The vault: what pseudonyms stand for, so that a customer can be shown their own name again.

Opt-in. What a call replaces by a pseudonym is handed to a thread of the vault's own, which encrypts
and writes it (`file`): the caller never waits for a disk, and what could not be kept is
counted and stays a pseudonym. Between the two it is held in memory, and nowhere else.
"""

from __future__ import annotations

import atexit
import threading
import time
import weakref
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from queue import Empty, SimpleQueue

from ...telemetry.faults import Faults
from ...telemetry.fork import reset_after_fork
from ...telemetry.leaving import left_s
from ...telemetry.subject import Subject, SubjectKeys
from .file import Entry, VaultFile

MOST_WAITING = 10_000
"""Pseudonyms that wait to be written at most; beyond them they are counted as lost."""

LONGEST = 4_096
"""Characters of the longest original that is kept."""

NEVER_KEPT = frozenset({"SECRET"})
"""Nobody needs to be shown a password again, and a file of them is worth stealing."""

_BATCH = 256
_IDLE_S = 5.0
"""Seconds without work after which the thread ends. The next pseudonym starts another."""

_KNOWN_S = 60.0
"""Seconds for which a pseudonym is not kept again: another process may forget it meanwhile."""

_MOST_KNOWN = 65_536
_CANNOT_KEEP = "vault.keep"

_EXIT_S = 0.5
"""Seconds that all vaults together may hold the exit of the process."""


class Pocket:
    """
    One customer's part of the vault, while one call is redacted.

    Args:
        vault: Where it is.
        subject: Returns the keyed hash of the customer: asked once there is something to keep.
    """

    __slots__ = ("_hashed", "_subject", "_vault")

    def __init__(self, vault: Vault, subject: Callable[[], str]) -> None:
        self._vault = vault
        self._hashed = subject
        self._subject: str | None = None

    def keep(self, pseudonym: str, original: str, entity: str) -> None:
        """Have it kept that *pseudonym* stands for *original*. Never waits and never fails."""
        try:
            entry = Entry(subject=self._owner(), pseudonym=pseudonym, original=original)
            if entity in NEVER_KEPT:
                self._vault.pass_over(entry)
            else:
                self._vault.keep(entry)
        except Exception as exc:  # noqa: BLE001 - fails open: it stays a pseudonym
            self._vault.lose(exc)

    def holds(self, pseudonyms: Iterable[str]) -> bool:
        """Tell whether all of *pseudonyms* were kept a moment ago, or never are."""
        return all(self._vault.is_known(self._owner(), each) for each in pseudonyms)

    def _owner(self) -> str:
        if self._subject is None:
            self._subject = self._hashed()
        return self._subject


class _Mark:
    """
    Stands in the queue: all before it is written once it is met.

    Args:
        last: The thread ends here.
    """

    __slots__ = ("last", "met")

    def __init__(self, *, last: bool) -> None:
        self.last = last
        self.met = threading.Event()


class Vault:
    """
    The vault of one scope in one process. Thread-safe; processes may share the file.

    Args:
        path: The file.
        keys: Where its key, and the customers' hashes, are derived.
        faults: Where what could not be kept is counted.
        clock: Monotonic seconds.
    """

    def __init__(
        self,
        path: Path,
        *,
        keys: SubjectKeys,
        faults: Faults,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.file = VaultFile(path, keys.key("vault"))
        self._keys = keys
        self._faults = faults
        self._clock = clock
        self.forked()
        reset_after_fork(self)
        _living.add(self)

    def forked(self) -> None:
        """Begin empty in a child: what waits is the parent's, and written by it."""
        # Unlike a lock's, its `put` may be re-entered, by a finaliser or a signal handler.
        self._queue: SimpleQueue[Entry | _Mark] = SimpleQueue()
        self._thread: threading.Thread | None = None
        self._starting = threading.Lock()
        self._known: dict[tuple[str, str], float] = {}

    def pocket(self, customer: str, tenant: str | None) -> Pocket:
        """Return the part of the vault that is *customer*'s."""
        return Pocket(self, lambda: self.subject_of(customer, tenant))

    def subject_of(self, customer: str, tenant: str | None) -> str:
        """Return the hash that *customer* has here: another one than in any sink."""
        return Subject(customer, tenant=tenant, keys=self._keys).hashed("vault/subject")

    def is_known(self, subject: str, pseudonym: str) -> bool:
        """True where it was kept a moment ago."""
        until = self._known.get((subject, pseudonym))
        return until is not None and self._clock() < until

    def keep(self, entry: Entry) -> None:
        """Have *entry* written soon. Never waits, never fails: what is lost is counted."""
        if self.is_known(entry.subject, entry.pseudonym):
            return
        if self._queue.qsize() >= MOST_WAITING or len(entry.original) > LONGEST:
            self._faults.count(_CANNOT_KEEP)
            return
        self.pass_over(entry)
        self._queue.put(entry)
        self._see_to_thread()

    def pass_over(self, entry: Entry) -> None:
        """Do not ask for *entry* again in the next minute."""
        if len(self._known) >= _MOST_KNOWN:
            self._known.clear()
        self._known[entry.subject, entry.pseudonym] = self._clock() + _KNOWN_S

    def lose(self, exc: Exception) -> None:
        """Count a pseudonym that could not be kept because of *exc*."""
        self._faults.note(_CANNOT_KEEP, exc)

    def originals(self, subject: str, pseudonyms: Iterable[str]) -> Mapping[str, str | None]:
        """Return what *pseudonyms* stand for, where they are *subject*'s; see `VaultFile`."""
        return self.file.originals(subject, pseudonyms)

    def forget(self, subject: str) -> int:
        """
        Erase all of *subject*'s, what waits to be written included, and return how many it was.

        Raises:
            TimeoutError: What waits could not be written first.
            OSError, sqlite3.Error: It is still there.
        """
        if not self.flush(10.0):
            raise TimeoutError("the vault is still writing")
        erased = self.file.forget(subject)
        for key in [each for each in list(self._known) if each[0] == subject]:
            self._known.pop(key, None)
        return erased

    def flush(self, timeout_s: float) -> bool:
        """Wait until all that was kept so far is written or lost. False: *timeout_s* is over."""
        return self._reached(_Mark(last=False), timeout_s)

    def close(self, timeout_s: float) -> bool:
        """As `flush`, and end the thread. What is kept later starts another."""
        return self._reached(_Mark(last=True), timeout_s)

    def _reached(self, mark: _Mark, timeout_s: float) -> bool:
        thread = self._thread
        if thread is None and self._queue.empty():
            return True
        deadline = time.monotonic() + timeout_s
        self._queue.put(mark)
        self._see_to_thread()
        met = mark.met.wait(timeout_s)
        if mark.last and thread is not None:
            thread.join(max(0.0, deadline - time.monotonic()))
        return met

    @property
    def waiting(self) -> int:
        """How many pseudonyms wait to be written."""
        return self._queue.qsize()

    def _see_to_thread(self) -> None:
        if self._thread is not None or not self._starting.acquire(blocking=False):
            return
        try:
            if self._thread is None:
                thread = threading.Thread(target=self._write, name="mnemoscope-vault", daemon=True)
                self._thread = thread
                thread.start()
        except RuntimeError as exc:
            self._thread = None  # no thread is left: it waits, and the next one tries again
            self._faults.note(_CANNOT_KEEP, exc)
        finally:
            self._starting.release()

    def _write(self) -> None:
        queue = self._queue
        batch = _next_batch(queue)
        while batch:
            self._write_out(batch)
            ends = any(isinstance(each, _Mark) and each.last for each in batch)
            batch = [] if ends else _next_batch(queue)
        self._thread = None
        # Whoever put something in between has seen a thread, and started none.
        if not queue.empty():
            self._see_to_thread()

    def _write_out(self, batch: list[Entry | _Mark]) -> None:
        entries = [each for each in batch if isinstance(each, Entry)]
        marks = [each for each in batch if isinstance(each, _Mark)]
        try:
            if entries:
                self.file.keep(entries)
        except BaseException as exc:  # noqa: BLE001 - this thread has nobody else to tell
            for lost in entries:
                self._known.pop((lost.subject, lost.pseudonym), None)  # kept when it is met again
                self._faults.count(_CANNOT_KEEP)
            self._faults.note("vault.write", exc)
        finally:
            for mark in marks:
                mark.met.set()


def _next_batch(queue: SimpleQueue[Entry | _Mark]) -> list[Entry | _Mark]:
    """Return what is at hand, having waited for it. Empty: nothing has come for a while."""
    batch: list[Entry | _Mark] = []
    with suppress(Empty):
        batch.append(queue.get(timeout=_IDLE_S))
        while len(batch) < _BATCH:
            batch.append(queue.get_nowait())
    return batch


_living: weakref.WeakSet[Vault] = weakref.WeakSet()


@atexit.register
def _write_at_exit() -> None:
    until = time.monotonic() + min(_EXIT_S, left_s())
    for vault in list(_living):
        vault.close(max(0.0, until - time.monotonic()))

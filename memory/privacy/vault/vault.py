"""
The vault: stores what pseudonyms stand for, so that a customer can be shown their own data again.

Opt-in. A call queues the originals of its pseudonyms; the vault's thread encrypts and writes them
(`vault_file`), so that no caller waits for a disk. An original that cannot be stored is counted as
lost, and its pseudonym stays. Until it is written, an original is in memory only.
"""

from __future__ import annotations

import atexit
import threading
import time
import weakref
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from queue import Empty, SimpleQueue

from ....telemetry.event.subject import SubjectKeys
from ....telemetry.process.exit_deadline import exiting, remaining_s
from ....telemetry.process.faults import Faults
from ....telemetry.process.fork import reset_after_fork
from ...errors import UncertainErasureError
from .vault_file import Forgotten, Rotation, VaultFile, told_as_ours
from .vault_keys import VaultCustomer, VaultSecrets
from .vault_tables import FoundOriginals, VaultEntry

MAX_QUEUED = 10_000
"""Maximum number of queued entries; more are counted as lost."""

MAX_ORIGINAL_CHARS = 4_096
"""Characters of the longest original that is stored."""

NEVER_STORED = frozenset({"SECRET"})
"""Entities whose originals are never stored: nobody needs a password back from here."""

_BATCH = 256
_IDLE_S = 5.0
"""Seconds without work after which the thread ends. The next entry starts another."""

_SKIP_S = 60.0
"""Seconds for which an entry is not stored again; another process may have erased it since."""

_MAX_RECENT = 65_536
_FAULT = "vault.keep"

_EXIT_S = 0.5
"""Seconds that all vaults together may hold the exit of the process."""


class CustomerVault:
    """
    One customer's part of the vault, for the redaction of one call.

    Args:
        vault: The vault.
        customer: Whose part. Hashed on first use.
    """

    __slots__ = ("_customer", "_owner", "_vault")

    def __init__(self, vault: Vault, customer: VaultCustomer) -> None:
        self._vault = vault
        self._customer = customer
        self._owner: tuple[str, str] | None = None

    def store(
        self,
        pseudonym: str,
        original: str,
        entity: str,
        text: str = "",
        spellings: tuple[str, ...] = (),
    ) -> None:
        """
        Store that *pseudonym* stands for *original*. Never waits and never fails.

        Args:
            pseudonym: The pseudonym.
            original: What it stands for.
            entity: What that is.
            text: The redacted text that it stands in. Empty: that is not kept.
            spellings: What was replaced at each of its places there, in order.
        """
        try:
            subject, person = self._hashes()
            entry = VaultEntry(
                subject=subject,
                person=person,
                pseudonym=pseudonym,
                original=original,
                text=text,
                spellings=spellings,
            )
            if entity in NEVER_STORED:
                self._vault.skip(entry)
            else:
                self._vault.store(entry)
        except Exception as exc:  # noqa: BLE001 - fails open: the pseudonym stays
            self._vault.count_lost(exc)

    def holds(self, pseudonyms: Iterable[str]) -> bool:
        """Return whether all of *pseudonyms* were stored recently, or never are."""
        subject, _person = self._hashes()
        return all(self._vault.was_stored(subject, each) for each in pseudonyms)

    def note(self, text: str) -> None:
        """Note that all of a *text* as it was given is stored."""
        self._vault.note_recent(self._hashes()[0], _text_key(text))

    def holds_text(self, text: str) -> bool:
        """Return whether all of a *text* as it was given was stored recently."""
        return self._vault.was_stored(self._hashes()[0], _text_key(text))

    def _hashes(self) -> tuple[str, str]:
        if self._owner is None:
            self._owner = self._vault.hashes_of(self._customer)
        return self._owner


class _FlushMarker:
    """
    A marker in the queue: it is reached when everything before it is written.

    Args:
        last: The thread ends here.

    Attributes:
        reached: Set by the thread.
    """

    __slots__ = ("last", "reached")

    def __init__(self, *, last: bool) -> None:
        self.last = last
        self.reached = threading.Event()


class Vault:
    """
    The vault of one scope in one process. Thread-safe; processes may share the file.

    Args:
        path: The file.
        keys: Derives its key and the hashes of the customers.
        previous: Earlier ones, or the next, which it is read with besides.
        faults: Counts what could not be stored, and what is damaged.
        clock: Monotonic seconds.
    """

    def __init__(
        self,
        path: Path,
        *,
        keys: SubjectKeys,
        previous: Sequence[SubjectKeys] = (),
        faults: Faults,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        configured = VaultSecrets(keys, previous)
        self.file = VaultFile(path, configured)
        self._lookup = configured.current.lookup
        self._faults = faults
        self._clock = clock
        self._on_erasure: list[Callable[[frozenset[str]], None]] = []
        self.forked()
        reset_after_fork(self)
        _living.add(self)

    def forked(self) -> None:
        """Start empty in a forked child: the parent writes its own queue."""
        # `SimpleQueue.put` is re-entrant, for finalizers and signal handlers.
        self._queue: SimpleQueue[VaultEntry | _FlushMarker] = SimpleQueue()
        self._thread: threading.Thread | None = None
        self._starting = threading.Lock()
        self._recent: dict[tuple[str, str], float] = {}
        self._held: dict[tuple[str, str], int] = {}

    def for_customer(self, customer: str, tenant: str | None) -> CustomerVault:
        """Return the part of the vault of *customer*."""
        return CustomerVault(self, VaultCustomer(customer, tenant))

    def hashes_of(self, customer: VaultCustomer) -> tuple[str, str]:
        """Return the hashes of *customer* in the vault, which differ from those in every sink."""
        return customer.subject(self._lookup), customer.person(self._lookup)

    def was_stored(self, subject: str, pseudonym: str) -> bool:
        """Return whether it was stored or skipped recently."""
        until = self._recent.get((subject, pseudonym))
        return until is not None and self._clock() < until

    def store(self, entry: VaultEntry) -> None:
        """Queue *entry*. Never waits and never fails: a lost one is counted."""
        if self.was_stored(entry.subject, entry.pseudonym) and self._is_as_held(entry):
            return
        if self._queue.qsize() >= MAX_QUEUED or len(entry.original) > MAX_ORIGINAL_CHARS:
            self._faults.count(_FAULT)
            return
        self.skip(entry)
        self._queue.put(entry)
        self._ensure_thread()

    def skip(self, entry: VaultEntry) -> None:
        """Do not store *entry* in the next minute."""
        self.note_recent(entry.subject, entry.pseudonym)

    def note_recent(self, subject: str, name: str) -> None:
        """Have `was_stored` say of a pseudonym, or of a text, in the next minute that it was."""
        if len(self._recent) >= _MAX_RECENT:
            self._recent.clear()
            self._held.clear()
        self._recent[subject, name] = self._clock() + _SKIP_S

    def on_erasure(self, forget: Callable[[frozenset[str]], None]) -> None:
        """Have *forget* called with the customers' hashes whenever some of them were erased."""
        self._on_erasure.append(forget)

    def _is_as_held(self, entry: VaultEntry) -> bool:
        """Return whether the vault is known to have all that *entry* says."""
        held = self._held.get((entry.subject, entry.pseudonym))
        is_alone = entry.text == entry.pseudonym
        return not is_alone and all(hash(each) == held for each in entry.spellings)

    def _note_held(self, entry: VaultEntry, held: str | None) -> None:
        # A hash of this process alone, so that no original stays in memory for it.
        self._held[entry.subject, entry.pseudonym] = hash(held)

    def count_lost(self, exc: Exception) -> None:
        """Count an original that could not be stored because of *exc*."""
        self._faults.note(_FAULT, exc)

    def originals(self, customer: VaultCustomer, pseudonyms: Sequence[str]) -> Mapping[str, str]:
        """
        Return the originals of *customer*'s *pseudonyms*. Those that do not open are counted.

        Raises:
            OSError, sqlite3.Error: The file cannot be read.
        """
        return self.find(customer, pseudonyms).originals

    def find(
        self, customer: VaultCustomer, pseudonyms: Sequence[str], texts: Sequence[str] = ()
    ) -> FoundOriginals:
        """
        Return the originals of *customer*'s *pseudonyms*, and how redacted *texts* spelled them.

        Raises:
            OSError, sqlite3.Error: The file cannot be read.
        """
        found = self.file.originals(customer, pseudonyms, texts)
        for site, number in (("vault.damaged", found.damaged), ("vault.locked", found.locked)):
            for _each in range(number):
                self._faults.count(site)
        return found

    def forget(self, customer: VaultCustomer, *, all_tenants: bool = False) -> int:
        """
        Erase all entries of *customer*, queued ones included, and return their number.

        Raises:
            TimeoutError: The queue could not be written first.
            ScopeError: The tenant was not said, and there are several. Nothing was erased.
            UncertainErasureError: What could be found is erased, and there may be more.
            OSError, sqlite3.Error: The entries are still there.
        """
        if not self.flush(10.0):
            raise TimeoutError("the vault has not written its queue within 10 s; try again later")
        forgotten = self.file.forget(customer, all_tenants=all_tenants)
        self._drop_recent(forgotten.subjects)
        for each in self._on_erasure:
            each(forgotten.subjects)
        _check_certainty(forgotten)
        return forgotten.erased

    def rotate(self, *, drop_unreadable: bool = False) -> Rotation:
        """
        Wrap every key with the current secret; see `VaultFile.rotate`.

        Raises:
            VaultError: The file cannot be read or written. What was done stays done.
        """
        with told_as_ours(self.file.path):
            rotation = self.file.rotate(drop_unreadable=drop_unreadable)
        if rotation.dropped:
            self._recent.clear()  # what was dropped is stored when it is met again
        return rotation

    def flush(self, timeout_s: float) -> bool:
        """Wait until everything queued so far is written or lost. False: *timeout_s* is over."""
        return self._flush_to(_FlushMarker(last=False), timeout_s)

    def close(self, timeout_s: float) -> bool:
        """Flush, and end the thread. A later entry starts another."""
        return self._flush_to(_FlushMarker(last=True), timeout_s)

    def _flush_to(self, mark: _FlushMarker, timeout_s: float) -> bool:
        thread = self._thread
        if thread is None and self._queue.empty():
            return True
        deadline = time.monotonic() + timeout_s
        self._queue.put(mark)
        self._ensure_thread()
        met = mark.reached.wait(timeout_s)
        if mark.last and thread is not None:
            thread.join(max(0.0, deadline - time.monotonic()))
        return met

    @property
    def waiting(self) -> int:
        """Number of queued entries."""
        return self._queue.qsize()

    def _ensure_thread(self) -> None:
        if self._thread is not None or not self._starting.acquire(blocking=False):
            return
        try:
            if self._thread is None:
                thread = threading.Thread(target=self._write, name="mnemoscope-vault", daemon=True)
                self._thread = thread
                thread.start()
        except RuntimeError as exc:
            self._thread = None  # no thread can be started: the next entry tries again
            self._faults.note(_FAULT, exc)
        finally:
            self._starting.release()

    def _write(self) -> None:
        queue = self._queue
        batch = _next_batch(queue)
        while batch:
            self._write_out(batch)
            ends = any(isinstance(each, _FlushMarker) and each.last for each in batch)
            batch = [] if ends else _next_batch(queue)
        self._thread = None
        # An entry queued in between has seen a thread, and started none.
        if not queue.empty():
            self._ensure_thread()

    def _write_out(self, batch: list[VaultEntry | _FlushMarker]) -> None:
        entries = [each for each in batch if isinstance(each, VaultEntry)]
        marks = [each for each in batch if isinstance(each, _FlushMarker)]
        try:
            if entries:
                if not self.file.path.exists():  # another is made, and this one is told of
                    self._faults.count("vault.missing")
                self._note_lost(self.file.store(entries, self._note_held))
        except BaseException as exc:  # noqa: BLE001 - the thread must go on
            self._note_lost(entries)
            self._faults.note("vault.write", exc)
        finally:
            for mark in marks:
                mark.reached.set()

    def _note_lost(self, entries: Iterable[VaultEntry]) -> None:
        lost = list(entries)
        self._drop_recent({each.subject for each in lost})  # the next one is stored
        for _each in lost:
            self._faults.count(_FAULT)

    def _drop_recent(self, subjects: Collection[str]) -> None:
        """Forget what was stored lately of customers, given as hashes."""
        for known in (self._recent, self._held):
            for key in [each for each in list(known) if each[0] in subjects]:
                known.pop(key, None)


def _text_key(text: str) -> str:
    return str(hash(text))


def _check_certainty(forgotten: Forgotten) -> None:
    """Raise where somebody who was not erased may be the customer."""
    unseen, untold = forgotten.unseen, forgotten.tenants_untold
    if unseen:
        ids = ", ".join(each or "not noted by an earlier version" for each in sorted(unseen))
        advice = (
            f"{sum(unseen.values()):,} customers in the vault are under a key that is not "
            f"configured (key id {ids}), and may be this one: name that key in "
            "MNEMOSCOPE_AUDIT_PREVIOUS_KEYS and forget again"
        )
    elif untold:
        advice = (
            f"{untold:,} customers in the vault were stored by an earlier version, which did not "
            "note what a search in all tenants takes: forget again for each tenant by name, and "
            'with an empty one ("") for those without'
        )
    else:
        return
    raise UncertainErasureError(
        f"cannot tell whether all is forgotten; {forgotten.erased:,} pseudonyms are. {advice}",
        erased=forgotten.erased,
        unseen=unseen,
    )


def _next_batch(queue: SimpleQueue[VaultEntry | _FlushMarker]) -> list[VaultEntry | _FlushMarker]:
    """Return the next entries, after waiting for the first. Empty: none has come for a while."""
    batch: list[VaultEntry | _FlushMarker] = []
    with suppress(Empty):
        batch.append(queue.get(timeout=_IDLE_S))
        while len(batch) < _BATCH:
            batch.append(queue.get_nowait())
    return batch


_living: weakref.WeakSet[Vault] = weakref.WeakSet()


@atexit.register
def _write_at_exit() -> None:
    with exiting():
        until = time.monotonic() + min(_EXIT_S, remaining_s())
        for vault in list(_living):
            vault.close(max(0.0, until - time.monotonic()))

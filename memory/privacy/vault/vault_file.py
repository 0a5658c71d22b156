"""
The vault's file: originals of pseudonyms in SQLite, encrypted with a key of each customer's own.

Every customer has a random data key, itself encrypted ("wrapped") with a key that is derived from
the scope's secret. Without the secret nothing can be read; once a customer's data key is deleted,
no copy of their rows can be read either. AES-256-GCM binds each row to its customer and pseudonym,
so that rows cannot be exchanged. Customers are stored as keyed hashes.

The secret can be changed: each row names the one it is under, those that are configured all open,
and `VaultFile.rotate` wraps every key anew. A customer under a secret that is not configured cannot
be found, so an erasure says where there are such.

The file is opened for each batch and closed again, so no connection outlives a fork. It is in
rollback mode with ``secure_delete``: erased data stays in no page, write-ahead log or journal.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from errno import EDEADLK
from itertools import groupby
from operator import attrgetter
from pathlib import Path

from ....telemetry.files.permissions import create_private, permission_problem
from ....telemetry.process.fork_lock import SqliteLock
from ...errors import ConfigurationError, MnemoscopeError, UncertainErasureError, VaultError
from .vault_keys import VaultCustomer, VaultSecrets
from .vault_schema import is_current, prepare
from .vault_tables import FoundOriginals, VaultEntry, VaultTables

BUSY_S = 5.0
"""Seconds to wait for another process's write."""

_PRAGMAS = (
    "PRAGMA secure_delete = ON",
    # Otherwise a journal could come back after a power cut and undo an erasure.
    "PRAGMA synchronous = EXTRA",
    "PRAGMA trusted_schema = OFF",
)
_REWRAPPED_AT_ONCE = 500
"""Keys of one transaction of a rotation, so that other processes write in between."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Forgotten:
    """
    The erasure of a customer, as far as they could be found.

    Attributes:
        erased: Number of pseudonyms.
        subjects: What they were known as.
        unseen: Customers who cannot be looked up, by the secret that it takes.
        tenants_untold: Customers of whom an earlier version did not note what a search in all
            tenants takes, if it was one.
    """

    erased: int
    subjects: frozenset[str]
    unseen: dict[str, int]
    tenants_untold: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Rotation:
    """
    The result of wrapping all keys anew.

    Attributes:
        rewrapped: Customers whose key is now under the current secret, and was not before.
        unreadable: Customers whose key no configured secret opens. It stays as it is.
        dropped: Those of them that were erased, as was asked for.
    """

    rewrapped: int = 0
    unreadable: int = 0
    dropped: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class VaultState:
    """
    What a vault holds, in numbers.

    Attributes:
        customers: Customers' keys.
        locked: Those of them that are under a secret that is not configured, by its id.
    """

    customers: int
    locked: dict[str, int]


class VaultFile:
    """
    The file of one vault. Thread-safe; processes may share it.

    Args:
        path: The file. Created, readable by its owner only, if it is missing.
        configured: The secrets that wrap the customers' keys.
    """

    def __init__(self, path: Path, configured: VaultSecrets) -> None:
        self.path = path
        self._secrets = configured
        self._guard = SqliteLock()

    def __repr__(self) -> str:
        """Hide the secrets."""
        return "VaultFile(...)"

    def open(self) -> None:
        """
        Create the file if it is missing, and check that it is a vault.

        Raises:
            ConfigurationError: Other users can read it.
            OSError: It cannot be created.
            sqlite3.Error: It is not a vault, or cannot be opened or written.
        """
        create_private(self.path)
        objection = permission_problem(self.path)
        if objection:
            raise ConfigurationError(f"the vault {self.path} {objection}")
        with self._writing():
            return

    def store(
        self,
        entries: Iterable[VaultEntry],
        note: Callable[[VaultEntry, str | None], None] | None = None,
    ) -> list[VaultEntry]:
        """
        Add *entries*, durably. Existing ones stay unchanged.

        Args:
            entries: The entries.
            note: Called with each that is added, and the original that its pseudonym has. None: its
                row does not open.

        Returns:
            Those whose customer's key does not open. The others are added.

        Raises:
            OSError, sqlite3.Error: The file cannot be written. None is added.
        """
        if not self.path.exists():
            self.open()
        lost: list[VaultEntry] = []
        by_subject = attrgetter("subject")
        with self._writing() as tables:
            for subject, group in groupby(sorted(entries, key=by_subject), by_subject):
                of_one = list(group)
                key = tables.data_key(subject, of_one[0].person)
                if key is None:
                    lost += of_one
                    continue
                for each in of_one:
                    held = tables.add(key, each)
                    if note is not None:
                        note(each, held)
        return lost

    def originals(
        self, customer: VaultCustomer, pseudonyms: Sequence[str], texts: Sequence[str] = ()
    ) -> FoundOriginals:
        """
        Return the originals of those *pseudonyms* that belong to *customer*, as far as they open.

        Where they stand in redacted *texts* that were spelled otherwise, their spellings as well.

        Raises:
            OSError, sqlite3.Error: The file cannot be read.
        """
        if not self.path.exists():
            return FoundOriginals()
        with self._reading() as tables:
            return tables.find(customer, pseudonyms, texts)

    def forget(self, customer: VaultCustomer, *, all_tenants: bool = False) -> Forgotten:
        """
        Erase the keys and rows of *customer* that can be found, durably.

        Raises:
            ScopeError: The tenant was not said, and there are several. Nothing was erased.
            UncertainErasureError: The file is missing, or nothing was ever stored in it.
            OSError, sqlite3.Error: They are still there.
        """
        if not self.path.exists():
            raise UncertainErasureError(
                f"the vault {self.path} is not there, so it cannot be told what was in it: "
                "restore it and forget again, or see that MNEMOSCOPE_VAULT names the right file"
            )
        with self._writing(erases=True) as tables:
            if not tables.was_used():
                raise UncertainErasureError(
                    f"nothing was ever stored in the vault {self.path}, so it cannot be told "
                    "whether it is the right one: see that MNEMOSCOPE_VAULT names the file that "
                    "the application writes"
                )
            tables.note_secrets()
            subjects = tables.subjects_of(customer, all_tenants=all_tenants)
            erased = sum(map(tables.erase, subjects))
            return Forgotten(
                erased=erased,
                subjects=frozenset(subjects),
                unseen=tables.out_of_sight(),
                tenants_untold=tables.without_person() if customer.tenant is None else 0,
            )

    def rotate(self, *, drop_unreadable: bool = False) -> Rotation:
        """
        Wrap every key with the current secret. What was done stays done if it is interrupted.

        Args:
            drop_unreadable: Erase customers whose key no configured secret opens: nothing of them
                can be revealed, and while they are there no erasure can be sure.

        Raises:
            OSError, sqlite3.Error: The file cannot be written. Those that are left are as before.
        """
        with self._writing(erases=True) as tables:
            tables.note_secrets()
            tables.rewrap_lookups()
            subjects = tables.subjects()
        done: list[bool | None] = []
        for first in range(0, len(subjects), _REWRAPPED_AT_ONCE):
            with self._writing(erases=True) as tables:
                for each in subjects[first : first + _REWRAPPED_AT_ONCE]:
                    done.append(tables.rewrap(each))
                    if done[-1] is None and drop_unreadable:
                        tables.erase(each)
        unreadable = done.count(None)
        return Rotation(
            rewrapped=done.count(True),
            unreadable=0 if drop_unreadable else unreadable,
            dropped=unreadable if drop_unreadable else 0,
        )

    def state(self) -> VaultState:
        """
        Return what the file holds, in numbers.

        Raises:
            OSError, sqlite3.Error: It is missing, or cannot be read.
        """
        with self._reading() as tables:
            return VaultState(customers=tables.customers(), locked=tables.locked())

    @contextmanager
    def _reading(self) -> Generator[VaultTables]:
        with self._connected() as connection:
            if not is_current(connection):  # it could not be written when it was opened
                with self._transaction(connection):
                    pass
            connection.execute("BEGIN")
            yield VaultTables(connection, self._secrets)

    @contextmanager
    def _writing(self, *, erases: bool = False) -> Generator[VaultTables]:
        with self._connected() as connection:
            if erases:  # somebody may have changed it: a write-ahead log keeps what was erased
                connection.execute("PRAGMA journal_mode = DELETE")
            with self._transaction(connection):
                yield VaultTables(connection, self._secrets)

    @contextmanager
    def _transaction(self, connection: sqlite3.Connection) -> Generator[None]:
        connection.execute("BEGIN IMMEDIATE")
        try:
            if not is_current(connection):
                prepare(connection)
            yield
            connection.execute("COMMIT")
        except BaseException:
            with suppress(sqlite3.Error):
                connection.execute("ROLLBACK")
            raise

    @contextmanager
    def _connected(self) -> Generator[sqlite3.Connection]:
        address = f"{self.path.absolute().as_uri()}?mode=rw"  # never made here: who may read it?
        with self._guard:
            if self._guard.is_torn:
                raise OSError(EDEADLK, "it was being written when this process was forked")
            connection = sqlite3.connect(address, uri=True, timeout=BUSY_S, isolation_level=None)
            with closing(connection):
                connection.text_factory = _text  # damaged text is still text
                try:
                    for pragma in _PRAGMAS:
                        connection.execute(pragma)
                    yield connection
                except UnicodeDecodeError:  # of a message that quotes the damage
                    raise sqlite3.DatabaseError("database disk image is malformed") from None


@contextmanager
def told_as_ours(path: Path) -> Generator[None]:
    """Raise what the file at *path* raises as an error of ours, in one line."""
    try:
        yield
    except MnemoscopeError:
        raise
    except (OSError, sqlite3.Error) as exc:
        reason = exc.strerror if isinstance(exc, OSError) and exc.strerror else str(exc)
        raise VaultError(
            f"the vault {path} could not be read or written ({type(exc).__name__}: "
            f"{' '.join(reason.split())}): what was to be erased or changed may still be there. "
            "See that the file is whole and nobody holds it, and try again"
        ) from exc


def _text(stored: bytes) -> str:
    return stored.decode("utf-8", "replace")

"""
The vault's file: originals of pseudonyms in SQLite, encrypted with a key of each customer's own.

Every customer has a random data key, itself encrypted ("wrapped") with a key that is derived from
the scope's secret. Without the secret nothing can be read; once a customer's data key is deleted,
no copy of their rows can be read either. AES-256-GCM binds each row to its customer and pseudonym,
so that rows cannot be exchanged. Customers are stored as keyed hashes.

The file is opened for each batch and closed again, so no connection outlives a fork. It is in
rollback mode with ``secure_delete``: erased data stays in no page, write-ahead log or journal.
"""

from __future__ import annotations

import os
import secrets
import sqlite3
from collections.abc import Generator, Iterable, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from ....telemetry.files.permissions import permission_problem
from ....telemetry.process.fork_lock import ForkLock
from ...errors import ConfigurationError

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

BUSY_S = 5.0
"""Seconds to wait for another process's write."""

_VERSION = 1
_APPLICATION_ID = 0x6D6E7631  # "mnv1"
_NONCE_BYTES = 12
_KEY_BITS = 256
_PRAGMAS = (
    "PRAGMA secure_delete = ON",
    # Otherwise a journal could come back after a power cut and undo an erasure.
    "PRAGMA synchronous = EXTRA",
    "PRAGMA trusted_schema = OFF",
)
_SCHEMA = (
    "CREATE TABLE vault_key (subject TEXT PRIMARY KEY, wrapped BLOB NOT NULL) WITHOUT ROWID",
    """CREATE TABLE vault_entry (
        subject TEXT NOT NULL, pseudonym TEXT NOT NULL, sealed BLOB NOT NULL,
        PRIMARY KEY (subject, pseudonym)
    ) WITHOUT ROWID""",
    f"PRAGMA application_id = {_APPLICATION_ID}",
    f"PRAGMA user_version = {_VERSION}",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class VaultEntry:
    """
    A pseudonym and its original. The `repr` shows neither customer nor original.

    Attributes:
        subject: Keyed hash of the customer.
        pseudonym: As in redacted texts, ``<PERSON_3f9a…>``.
        original: The replaced text.
    """

    subject: str = field(repr=False)
    pseudonym: str
    original: str = field(repr=False)


class VaultFile:
    """
    The file of one vault. Thread-safe; processes may share it.

    Args:
        path: The file. Created, readable by its owner only, if it is missing.
        key: 32 bytes that wrap the customers' keys.
    """

    def __init__(self, path: Path, key: bytes) -> None:
        self.path = path
        self._key = key
        self._guard = ForkLock()

    def __repr__(self) -> str:
        """Hide the key."""
        return "VaultFile(...)"

    def open(self) -> None:
        """
        Create the file if it is missing, and check that it is a vault.

        Raises:
            ConfigurationError: Other users can read it, or it is not a vault.
            OSError: It cannot be created.
            sqlite3.Error: It cannot be opened or written.
        """
        self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with suppress(FileExistsError):
            os.close(os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
        objection = permission_problem(self.path)
        if objection:
            raise ConfigurationError(f"the vault {self.path} {objection}")
        with self._writing():
            return

    def store(self, entries: Iterable[VaultEntry]) -> None:
        """
        Add *entries*, durably, all or none. Existing ones stay unchanged.

        Raises:
            OSError, sqlite3.Error: The file cannot be written.
        """
        if not self.path.exists():
            self.open()
        with self._writing() as connection:
            ciphers: dict[str, AESGCM] = {}
            for each in entries:
                cipher = ciphers.get(each.subject)
                if cipher is None:
                    cipher = ciphers[each.subject] = self._cipher(connection, each.subject)
                sealed = _sealed(cipher, each.original, each.subject, each.pseudonym)
                connection.execute(
                    "INSERT OR IGNORE INTO vault_entry VALUES (?, ?, ?)",
                    (each.subject, each.pseudonym, sealed),
                )

    def originals(self, subject: str, pseudonyms: Iterable[str]) -> Mapping[str, str | None]:
        """
        Return the originals of those *pseudonyms* that belong to *subject*.

        None for a row that is not as written: moved from another customer, or damaged.

        Raises:
            OSError, sqlite3.Error: The file cannot be read.
            InvalidTag: The customer's key is not as written.
        """
        if not self.path.exists():
            return {}
        with self._connected() as connection:
            connection.execute("BEGIN")
            wrapped = _wrapped_key(connection, subject)
            found = [
                (each, row[0])
                for each in pseudonyms
                if (row := _entry(connection, subject, each)) is not None
            ]
        if wrapped is None:
            return {}
        cipher = self._unwrapped(wrapped, subject)
        return {each: _opened(cipher, sealed, subject, each) for each, sealed in found}

    def forget(self, subject: str) -> int:
        """
        Erase the key and rows of *subject*, durably, and return the number of pseudonyms.

        Raises:
            OSError, sqlite3.Error: They are still there.
        """
        if not self.path.exists():
            return 0
        with self._writing() as connection:
            connection.execute("DELETE FROM vault_key WHERE subject = ?", (subject,))
            rows = connection.execute("DELETE FROM vault_entry WHERE subject = ?", (subject,))
            return rows.rowcount

    def _cipher(self, connection: sqlite3.Connection, subject: str) -> AESGCM:
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM  # noqa: PLC0415

        wrapped = _wrapped_key(connection, subject)
        if wrapped is not None:
            return self._unwrapped(wrapped, subject)
        key = AESGCM.generate_key(_KEY_BITS)
        nonce = secrets.token_bytes(_NONCE_BYTES)
        wrapped = nonce + AESGCM(self._key).encrypt(nonce, key, _associated_data("key", subject))
        connection.execute("INSERT INTO vault_key VALUES (?, ?)", (subject, wrapped))
        return AESGCM(key)

    def _unwrapped(self, wrapped: bytes, subject: str) -> AESGCM:
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM  # noqa: PLC0415

        nonce, body = wrapped[:_NONCE_BYTES], wrapped[_NONCE_BYTES:]
        return AESGCM(AESGCM(self._key).decrypt(nonce, body, _associated_data("key", subject)))

    @contextmanager
    def _writing(self) -> Generator[sqlite3.Connection]:
        with self._connected() as connection:
            connection.execute("BEGIN IMMEDIATE")
            try:
                self._check_schema(connection)
                yield connection
                connection.execute("COMMIT")
            except BaseException:
                with suppress(sqlite3.Error):
                    connection.execute("ROLLBACK")
                raise

    @contextmanager
    def _connected(self) -> Generator[sqlite3.Connection]:
        with self._guard:
            connection = sqlite3.connect(self.path, timeout=BUSY_S, isolation_level=None)
            with closing(connection):
                for pragma in _PRAGMAS:
                    connection.execute(pragma)
                yield connection

    def _check_schema(self, connection: sqlite3.Connection) -> None:
        version = tuple(_number(connection, each) for each in ("application_id", "user_version"))
        if version == (_APPLICATION_ID, _VERSION):
            return
        if version != (0, 0) or _number(connection, "schema_version") != 0:
            raise ConfigurationError(
                f"{self.path} is not a vault of this version: choose another file"
            )
        for statement in _SCHEMA:
            connection.execute(statement)


def _number(connection: sqlite3.Connection, pragma: str) -> int:
    row = connection.execute(f"PRAGMA {pragma}").fetchone()
    return int(row[0])


def _wrapped_key(connection: sqlite3.Connection, subject: str) -> bytes | None:
    query = "SELECT wrapped FROM vault_key WHERE subject = ?"
    row = connection.execute(query, (subject,)).fetchone()
    return None if row is None else row[0]


def _entry(connection: sqlite3.Connection, subject: str, pseudonym: str) -> tuple[bytes] | None:
    query = "SELECT sealed FROM vault_entry WHERE subject = ? AND pseudonym = ?"
    row: tuple[bytes] | None = connection.execute(query, (subject, pseudonym)).fetchone()
    return row


def _sealed(cipher: AESGCM, original: str, subject: str, pseudonym: str) -> bytes:
    nonce = secrets.token_bytes(_NONCE_BYTES)
    text = original.encode("utf-8", "surrogatepass")
    return nonce + cipher.encrypt(nonce, text, _associated_data("entry", subject, pseudonym))


def _opened(cipher: AESGCM, sealed: bytes, subject: str, pseudonym: str) -> str | None:
    from cryptography.exceptions import InvalidTag  # noqa: PLC0415

    nonce, body = sealed[:_NONCE_BYTES], sealed[_NONCE_BYTES:]
    try:
        text = cipher.decrypt(nonce, body, _associated_data("entry", subject, pseudonym))
    except InvalidTag:
        return None
    return text.decode("utf-8", "surrogatepass")


def _associated_data(*parts: str) -> bytes:
    """Return the associated data of a ciphertext: *parts*, each with its length."""
    encoded = (each.encode() for each in ("mnemoscope/vault", *parts))
    return b"".join(len(each).to_bytes(4, "big") + each for each in encoded)

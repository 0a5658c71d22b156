"""The rows of a vault, as they are read and changed inside one transaction."""

from __future__ import annotations

import hmac
import json
import secrets
import sqlite3
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ....telemetry.event.sink_pseudonyms import PSEUDONYM
from ...errors import ScopeError
from .sealing import KEY_BYTES, opened, seal
from .vault_keys import VaultCustomer, VaultSecrets

_AT = "@"
_PLACE_BYTES = 16

UNKNOWN = ""
"""The id of a secret that version 1 wrote with, and did not note."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VaultEntry:
    """
    A pseudonym and its original. The `repr` shows neither customer nor original.

    Attributes:
        subject: Hash of customer and tenant, under the current secret.
        person: Hash of the customer alone.
        pseudonym: As in redacted texts, ``<PERSON_3f9a…>``.
        original: The replaced text.
        text: The redacted text that it was replaced in. Empty: that is not kept.
        spellings: What was replaced at each place of the pseudonym in that text, in order.
    """

    subject: str = field(repr=False)
    person: str = field(repr=False)
    pseudonym: str
    original: str = field(repr=False)
    text: str = field(default="", repr=False)
    spellings: tuple[str, ...] = field(default=(), repr=False)


@dataclass(frozen=True, slots=True)
class FoundOriginals:
    """
    What a customer's pseudonyms stand for.

    Attributes:
        originals: By pseudonym.
        damaged: How many have a row, or their customer a key, that is not as it was written.
        locked: How many are under a secret that is not configured.
        spellings: By pseudonym and redacted text, where that was not spelled as the original.
    """

    originals: dict[str, str] = field(default_factory=dict[str, str], repr=False)
    damaged: int = 0
    locked: int = 0
    spellings: dict[tuple[str, str], list[str]] = field(
        default_factory=dict[tuple[str, str], list[str]], repr=False
    )


class _Key(NamedTuple):
    subject: str
    wrapped: Any
    key_id: str


class VaultTables:
    """
    The tables of a vault.

    Args:
        connection: A connection, inside a transaction.
        configured: The secrets.
    """

    def __init__(self, connection: sqlite3.Connection, configured: VaultSecrets) -> None:
        self._execute: Callable[..., sqlite3.Cursor] = connection.execute
        self._secrets = configured

    # -- entries -----------------------------------------------------------------------------------

    def data_key(self, subject: str, person: str) -> bytes | None:
        """Return a customer's key, which is made if there is none. None: it does not open."""
        row = self._key_of(subject)
        if row is None:
            return self._new_key(subject, person)
        found = self._unwrapped(row)
        if found is None:
            return None
        if row.key_id == UNKNOWN:
            self._note_secret_of(subject, found[0])
        self._execute(
            "UPDATE vault_key SET person = ? WHERE subject = ? AND person IS NULL",
            (person, subject),
        )
        return found[1]

    def add(self, key: bytes, entry: VaultEntry) -> str | None:
        """
        Add *entry*, unless the pseudonym has a row already, and a text's own spellings.

        Returns:
            The original that the pseudonym has. None: its row does not open.
        """
        subject, pseudonym = entry.subject, entry.pseudonym
        held: str | None = entry.original
        if not self._insert(key, subject, pseudonym, entry.original):
            ((_, sealed),) = self._entries(subject, [pseudonym])
            plain = opened(key, sealed, "entry", subject, pseudonym)
            held = plain.decode("utf-8", "surrogatepass") if plain is not None else None
        is_alone = (
            entry.text == pseudonym
        )  # it may be spelled otherwise elsewhere: the first counts
        if entry.spellings and (is_alone or any(each != held for each in entry.spellings)):
            place = _place(key, pseudonym, entry.text)
            self._insert(key, subject, place, json.dumps(entry.spellings))
        return held

    def _insert(self, key: bytes, subject: str, name: str, original: str) -> bool:
        """Add a row, and return whether there was none of that name."""
        sealed = seal(key, original.encode("utf-8", "surrogatepass"), "entry", subject, name)
        values = (subject, name, sealed)
        added = self._execute("INSERT OR IGNORE INTO vault_entry VALUES (?, ?, ?)", values)
        return added.rowcount > 0

    def find(
        self, customer: VaultCustomer, pseudonyms: Sequence[str], texts: Sequence[str] = ()
    ) -> FoundOriginals:
        """Return what *pseudonyms* of *customer* stand for, and how *texts* spelled that."""
        originals: dict[str, str] = {}
        spellings: dict[tuple[str, str], list[str]] = {}
        damaged: set[str] = set()
        locked: set[str] = set()
        subjects = map(customer.subject, self._lookups().values())
        for row in filter(None, map(self._key_of, subjects)):
            found = self._unwrapped(row)
            closed = locked if found is None and row.key_id not in self._secrets else damaged
            for pseudonym, sealed in self._entries(row.subject, pseudonyms):
                text = found and opened(found[1], sealed, "entry", row.subject, pseudonym)
                if isinstance(text, bytes):
                    originals[pseudonym] = text.decode("utf-8", "surrogatepass")
                else:
                    closed.add(pseudonym)
            if found is not None and texts:
                spellings |= self._spellings(row.subject, found[1], texts)
        return FoundOriginals(
            originals, len(damaged - originals.keys()), len(locked - originals.keys()), spellings
        )

    def _spellings(
        self, subject: str, key: bytes, texts: Sequence[str]
    ) -> dict[tuple[str, str], list[str]]:
        """Return how *texts* spelled what their pseudonyms stand for, where a row says so."""
        places = {
            _place(key, pseudonym, text): (pseudonym, text)
            for text in texts
            for pseudonym in dict.fromkeys(PSEUDONYM.findall(text))
        }
        rows = self._entries(subject, [*places])
        plain = ((name, opened(key, sealed, "entry", subject, name)) for name, sealed in rows)
        return {places[name]: json.loads(text) for name, text in plain if text is not None}

    def _entries(self, subject: str, pseudonyms: Sequence[str]) -> Iterable[tuple[str, Any]]:
        query = "SELECT pseudonym, sealed FROM vault_entry WHERE subject = ? AND pseudonym = ?"
        for each in pseudonyms:
            yield from self._execute(query, (subject, each)).fetchall()

    # -- customers ---------------------------------------------------------------------------------

    def was_used(self) -> bool:
        """Return whether anything was ever stored here."""
        return self._execute("SELECT 1 FROM vault_secret LIMIT 1").fetchone() is not None

    def subjects_of(self, customer: VaultCustomer, *, all_tenants: bool) -> set[str]:
        """
        Return what *customer* is known as: in their tenant, or in all.

        Raises:
            ScopeError: The tenant was not said, and there may be several.
        """
        lookups = self._lookups().values()
        exactly = set(map(customer.subject, lookups))
        if customer.tenant is not None:
            return exactly
        persons = list(map(customer.person, lookups))
        query = (
            f"SELECT subject FROM vault_key WHERE person IN ({_marks(persons)}) "  # noqa: S608 - marks
            f"OR subject IN ({_marks(exactly)})"
        )
        known = {row[0] for row in self._execute(query, (*persons, *exactly)).fetchall()}
        if not (all_tenants or known <= exactly or len(known) == 1):
            raise ScopeError(
                f"the vault has this customer {len(known)} times, under tenants or keys of their "
                "own: name the tenant, or ask for all tenants. Nothing was erased"
            )
        return known | exactly

    def erase(self, subject: str | bytes) -> int:
        """Erase a customer, and return the number of their pseudonyms."""
        whose = "subject = CAST(? AS TEXT)"
        self._execute(f"DELETE FROM vault_key WHERE {whose}", (subject,))  # noqa: S608 - a literal
        spelled = f"{whose} AND instr(pseudonym, '{_AT}')"
        self._execute(f"DELETE FROM vault_entry WHERE {spelled}", (subject,))  # noqa: S608
        return self._execute(f"DELETE FROM vault_entry WHERE {whose}", (subject,)).rowcount  # noqa: S608

    def out_of_sight(self) -> dict[str, int]:
        """Return how many customers cannot be looked up, by the secret that it would take."""
        known = list(self._lookups())
        return self._counted(f"coalesce(looked_up_by, '') NOT IN ({_marks(known)})", known)

    def without_person(self) -> int:
        """Return the number of customers who are known by a tenant that cannot be told."""
        return sum(self._counted("person IS NULL").values())

    def customers(self) -> int:
        """Return the number of customers' keys."""
        return sum(self._counted("TRUE").values())

    def locked(self) -> dict[str, int]:
        """Return how many customers' keys are under a secret that is not configured, by its id."""
        ids = [each.id for each in self._secrets]
        found = self._counted(f"key_id NOT IN ({_marks(ids)})", ids)
        unnamed = self._keys(f"key_id = '{UNKNOWN}'")
        found[UNKNOWN] = sum(self._unwrapped(each) is None for each in unnamed)
        return {key_id: number for key_id, number in found.items() if number}

    def _counted(self, condition: str, values: Sequence[str] = ()) -> dict[str, int]:
        query = f"SELECT key_id, count(*) FROM vault_key WHERE {condition} GROUP BY key_id"  # noqa: S608
        return {str(key_id): n for key_id, n in self._execute(query, values).fetchall()}

    # -- secrets -----------------------------------------------------------------------------------

    def note_secrets(self) -> None:
        """Find the configured secret of each row without a key id."""
        for row in self._keys(f"key_id = '{UNKNOWN}'"):
            found = self._unwrapped(row)
            if found is not None:
                self._note_secret_of(row.subject, found[0])

    def rewrap_lookups(self) -> None:
        """Wrap every lookup key that is to be had with the current secret."""
        lookups = self._lookups()
        for (key_id,) in self._execute("SELECT key_id FROM vault_secret").fetchall():
            if key_id in lookups:
                self._execute("DELETE FROM vault_secret WHERE key_id = ?", (key_id,))
                self._note_lookup(key_id, lookups[key_id])

    def subjects(self) -> list[bytes]:
        """Return all customers, damaged ones included."""
        found = self._execute("SELECT CAST(subject AS BLOB) FROM vault_key").fetchall()
        return [row[0] for row in found]

    def rewrap(self, subject: bytes) -> bool | None:
        """Wrap a key with the current secret. False: it is already. None: it does not open."""
        row = self._key_of(subject)
        if row is None:
            return False  # erased meanwhile
        found = self._unwrapped(row)
        if found is None:
            return None
        current = self._secrets.current
        key_id, key = found
        if key_id == row.key_id == current.id:
            return False
        wrapped = seal(current.wrapping, key, "key", row.subject)
        self._execute(
            "UPDATE vault_key SET wrapped = ?, key_id = ? WHERE subject = ?",
            (wrapped, current.id, row.subject),
        )
        return True

    def _new_key(self, subject: str, person: str) -> bytes:
        current = self._secrets.current
        key = secrets.token_bytes(KEY_BYTES)
        wrapped = seal(current.wrapping, key, "key", subject)
        self._execute(
            "INSERT INTO vault_key(subject, wrapped, key_id, looked_up_by, person) "
            "VALUES (?, ?, ?, ?, ?)",
            (subject, wrapped, current.id, current.id, person),
        )
        self._note_lookup(current.id, current.lookup)
        return key

    def _key_of(self, subject: str | bytes) -> _Key | None:
        return next(iter(self._keys("subject = CAST(? AS TEXT)", (subject,))), None)

    def _keys(self, condition: str, values: Sequence[Any] = ()) -> list[_Key]:
        query = f"SELECT subject, wrapped, key_id FROM vault_key WHERE {condition}"  # noqa: S608
        return [_Key(*row) for row in self._execute(query, values).fetchall()]

    def _unwrapped(self, row: _Key) -> tuple[str, bytes] | None:
        return self._opened(row.wrapped, "key", str(row.subject))

    def _opened(self, sealed: object, *bound_to: str) -> tuple[str, bytes] | None:
        """Return what was sealed, and the id of the secret that opens it, whatever the row says."""
        for each in self._secrets:
            plain = opened(each.wrapping, sealed, *bound_to)
            if plain is not None:
                return each.id, plain
        return None

    def _lookups(self) -> dict[str, bytes]:
        """Return the lookup keys that are to be had, by the secret that they are of."""
        found = {each.id: each.lookup for each in self._secrets}
        for key_id, sealed in self._execute("SELECT key_id, lookup FROM vault_secret").fetchall():
            wrapped = self._opened(sealed, "lookup", str(key_id))
            if wrapped is not None:
                found.setdefault(key_id, wrapped[1])
        return found

    def _note_secret_of(self, subject: str, key_id: str) -> None:
        """Note that *subject* was stored by version 1 with the secret *key_id*."""
        self._execute(
            "UPDATE vault_key SET key_id = ?, looked_up_by = ? WHERE subject = ?",
            (key_id, key_id, subject),
        )
        self._note_lookup(key_id, self._lookups()[key_id])

    def _note_lookup(self, key_id: str, lookup: bytes) -> None:
        sealed = seal(self._secrets.current.wrapping, lookup, "lookup", key_id)
        self._execute("INSERT OR IGNORE INTO vault_secret VALUES (?, ?)", (key_id, sealed))


def _place(key: bytes, pseudonym: str, text: str) -> str:
    """Return the name of the row with a text's own spellings of what *pseudonym* stands for."""
    digest = hmac.digest(key, text.encode("utf-8", "surrogatepass"), "sha256")
    return f"{pseudonym}{_AT}{digest[:_PLACE_BYTES].hex()}"


def _marks(values: Iterable[object]) -> str:
    return ", ".join("?" for _each in values)

"""
The customers in the tables: from a keyed alias to the key that encrypts their details.

An alias names a random uid, and details name the uid, so that a rotation of secrets touches the
aliases alone. Each subject has a data key of its own, wrapped with the current secret: with that
key gone, their details cannot be read, wherever copies of them are. What was done in nobody's name
belongs to the tenant's nobody, so that no detail is ever in clear.
"""

from __future__ import annotations

import secrets
from collections import OrderedDict
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from ...telemetry.event.spelling import Spelling
from ...telemetry.event.subject import Subject
from ..database.database import Rows, Value, WriteConnection, among, insert_statement, marks
from ..database.errors import AuditError, SubjectConflictError
from .keys import Keyring, Unwrapping

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

KEY_BYTES = 32
_HELD = 10_000
NOBODY = "nobody"
CUSTOMER = "customer"
_MADE = ("subject_uid", "kind", "dek_id", "dek_wrapped", "kek_id", "state", "created_us")
_ALIAS = ("alias", "key_id", "id_type", "subject_uid", "folded", "sealed")
"""Aliases that one query looks for."""
_FIND = """
    SELECT a.alias, a.folded IS NULL, s.subject_uid, s.dek_id, s.dek_wrapped, s.kek_id
    FROM audit_subject_alias a
    JOIN audit_subject first ON first.subject_uid = a.subject_uid
    JOIN audit_subject s ON s.subject_uid = coalesce(first.merged_into, first.subject_uid)
    WHERE a.alias IN """
_PURPOSES = {CUSTOMER: "audit", NOBODY: "audit/nobody"}


class AnyConnection(Protocol):
    """A connection of either kind."""

    def execute(self, statement: str, values: Sequence[Value] = (), /) -> Rows:
        """Run *statement*."""
        ...


class Cipher(NamedTuple):
    """
    The data key of one subject.

    Attributes:
        dek_id: Name of the data key.
    """

    uid: str
    dek_id: str
    aead: AESGCM


class Named(NamedTuple):
    """The *subject* that an event names, and as what: `CUSTOMER` or `NOBODY`."""

    subject: Subject | KnownAliases
    id_type: str


class KnownAliases(NamedTuple):
    """
    A subject that was read from a file: its aliases alone, under the keys of that time.

    Attributes:
        aliases: By the name of the key.
        spellings: Likewise; empty in a file of an earlier release.
    """

    aliases: dict[str, str]
    spellings: dict[str, Spelling]


class Subjects:
    """The subjects of one log, for its writer. Caches the latest ones; not thread-safe."""

    def __init__(self, ring: Keyring) -> None:
        self._ring = ring
        self._known: OrderedDict[str, Cipher] = OrderedDict()
        self._epoch = -1

    def at(self, epoch: int) -> None:
        """Forget what is remembered if keys of customers have changed since."""
        if epoch != self._epoch:
            self._known.clear()
            self._epoch = epoch

    def ciphers(
        self, connection: WriteConnection, named: Mapping[str, Named], now_us: int
    ) -> dict[str, Cipher]:
        """
        Return what to encrypt with for each of *named*, who are made known to the log if need be.

        However many are new, one query looks for them, and one statement for a table adds them.
        """
        strangers = {name: each for name, each in named.items() if name not in self._known}
        if strangers:
            self._known.update(self._looked_up(connection, strangers, now_us))
        found = {name: self._known[name] for name in named}
        while len(self._known) > _HELD:
            self._known.popitem(last=False)
        return found

    def _looked_up(
        self, connection: WriteConnection, named: Mapping[str, Named], now_us: int
    ) -> dict[str, Cipher]:
        aliases = {
            name: aliases_of(each.subject, self._ring, each.id_type) for name, each in named.items()
        }
        wanted = {alias for each in aliases.values() for alias in each.values()}
        entries = _Entries(connection, sorted(wanted))
        found = {
            name: self._entered(entries, each, aliases[name], now_us)
            for name, each in named.items()
        }
        entries.insert()
        return found

    def _entered(
        self, entries: _Entries, named: Named, aliases: dict[str, str], now_us: int
    ) -> Cipher:
        there = {key_id: alias for key_id, alias in aliases.items() if alias in entries.uids}
        # Two processes that knew one of two keys each may have made two of one customer. Sorted, so
        # that all processes merge into the same one.
        uids = sorted({entries.uids[alias] for alias in there.values()})
        uid, *others = uids or [self._made(entries, named.id_type, now_us)]
        for each in others:
            self._opened(entries, each)  # with the current secret from now on
            entries.merge(each, uid)
        current_id = self._ring.current_id
        wanted = {current_id} if current_id in aliases else aliases.keys()
        for key_id, alias in aliases.items():
            lacks_spelling = alias in entries.unspelled
            if not lacks_spelling and (key_id in there or key_id not in wanted):
                continue
            spelling = (
                None
                if named.id_type == NOBODY
                else spelling_of(named.subject, self._ring, key_id, alias)
            )
            if key_id not in there:
                entries.add_alias(alias, key_id, named.id_type, uid, spelling)
            elif spelling is not None:
                add_spelling(entries.connection, alias, spelling)
        return self._opened(entries, uid)

    def _made(self, entries: _Entries, kind: str, now_us: int) -> str:
        uid, key, dek_id = (
            secrets.token_hex(16),
            secrets.token_bytes(KEY_BYTES),
            secrets.token_hex(8),
        )
        wrapped, kek_id = self._ring.wrap(key, uid), self._ring.current_id
        entries.add(
            (uid, kind, dek_id, wrapped, kek_id, "active", now_us), Cipher(uid, dek_id, _aead(key))
        )
        return uid

    def forget(self) -> None:
        """Forget all: what was made known in a transaction that failed is not."""
        self._known.clear()

    def _opened(self, entries: _Entries, uid: str) -> Cipher:
        known = entries.ciphers.get(uid)
        if known is not None:
            return known
        dek_id, wrapped, kek_id = entries.keys[uid]
        if wrapped is None:
            raise AuditError("a customer who was erased is still known by an alias")
        key = self._ring.unwrapping().unwrap(wrapped, kek_id, uid)
        if kek_id != self._ring.current_id:
            entries.connection.execute(
                "UPDATE audit_subject SET dek_wrapped = ?, kek_id = ? WHERE subject_uid = ?",
                (self._ring.wrap(key, uid), self._ring.current_id, uid),
            )
        entries.ciphers[uid] = Cipher(uid, dek_id, _aead(key))
        return entries.ciphers[uid]


class _Entries:
    """
    What a log has of the customers of one batch, and what is added to it.

    Args:
        aliases: Theirs, under all keys.

    Attributes:
        uids: The subjects that aliases name, merged ones as the one they were merged into.
        unspelled: Aliases that lack what finds them in any tenant and spelling.
        keys: Name, wrapped data key and wrapping secret, by subject.
        ciphers: Data keys that were unwrapped, or are new, by subject.
    """

    def __init__(self, connection: WriteConnection, aliases: Sequence[str]) -> None:
        self.connection = connection
        self.uids: dict[str, str] = {}
        self.unspelled: set[str] = set()
        self.keys: dict[str, tuple[str, bytes | None, str]] = {}
        self.ciphers: dict[str, Cipher] = {}
        self._subjects: list[tuple[Value, ...]] = []
        self._aliases: list[tuple[Value, ...]] = []
        for alias, is_unspelled, uid, *key in among(connection, f"{_FIND}({{}})", aliases):
            self.uids[alias], self.keys[uid] = uid, (key[0], key[1], key[2])
            if is_unspelled:
                self.unspelled.add(alias)

    def add(self, subject: tuple[Value, ...], cipher: Cipher) -> None:
        """Add a subject."""
        self._subjects.append(subject)
        self.ciphers[cipher.uid] = cipher

    def add_alias(
        self, alias: str, key_id: str, id_type: str, uid: str, spelling: Spelling | None
    ) -> None:
        """Add an alias of one."""
        self._aliases.append((alias, key_id, id_type, uid, *(spelling or (None, None))))
        self.uids[alias] = uid

    def merge(self, uid: str, into: str) -> None:
        """Make two one."""
        self.insert()
        merge(self.connection, uid, into)
        self.uids = {alias: into if uid == each else each for alias, each in self.uids.items()}

    def insert(self) -> None:
        """Insert the new subjects and aliases."""
        self.connection.insert("audit_subject", _MADE, self._subjects)
        self.connection.insert("audit_subject_alias", _ALIAS, self._aliases)
        self._subjects, self._aliases = [], []


class Ciphers:
    """The data keys of subjects, for readers. None for those that were shredded."""

    def __init__(self, connection: AnyConnection, secrets: Unwrapping) -> None:
        self._connection = connection
        self._secrets = secrets
        self._known: OrderedDict[str, AESGCM | None] = OrderedDict()

    def of(self, uid: str) -> AESGCM | None:
        """
        Return the data key of a subject.

        Raises:
            KeyMissingError: The secret that it is wrapped with is not here.
        """
        if uid not in self._known:
            found = data_key(self._connection, uid, self._secrets)
            self._known[uid] = None if found is None else _aead(found[1])
            if len(self._known) > _HELD:
                self._known.popitem(last=False)
        return self._known[uid]


def _aead(key: bytes) -> AESGCM:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM  # noqa: PLC0415 - 20 ms

    return AESGCM(key)


def no_subject(tenant: str | None, ring: Keyring) -> Subject:
    """Return the subject of the operations of *tenant* that name no customer."""
    return Subject("", tenant=tenant, keys=ring.current)


def aliases_of(
    subject: Subject | KnownAliases, ring: Keyring, id_type: str = CUSTOMER
) -> dict[str, str]:
    """Return what each key knows *subject* by."""
    if isinstance(subject, KnownAliases):
        return dict(subject.aliases)
    purpose = _PURPOSES[id_type]
    return {key_id: subject.hashed(purpose, keys) for key_id, keys in ring}


def spelling_of(
    subject: Subject | KnownAliases, ring: Keyring, key_id: str, alias: str
) -> Spelling | None:
    """Return what *subject* is found by in any tenant and spelling; None: it is not known."""
    if isinstance(subject, KnownAliases):
        return subject.spellings.get(key_id)
    return subject.spelling(alias, ring.get(key_id))


def uids_by_alias(connection: AnyConnection, aliases: dict[str, str]) -> dict[str, str]:
    """Return the subjects that *aliases* name, merged ones as the one they were merged into."""
    values = tuple(aliases.values())
    statement = (
        "SELECT a.alias, coalesce(s.merged_into, s.subject_uid) FROM audit_subject_alias a "
        "JOIN audit_subject s ON s.subject_uid = a.subject_uid WHERE a.alias IN "
    )
    found = connection.execute(f"{statement}({marks(len(values))})", values)
    return dict(found.fetchall())


def family(connection: AnyConnection, uids: Sequence[str]) -> list[str]:
    """Return *uids* and the subjects merged into them."""
    if not uids:
        return []
    found = connection.execute(
        f"SELECT subject_uid FROM audit_subject WHERE merged_into IN ({marks(len(uids))})",  # noqa: S608 - marks
        tuple(uids),
    )
    return [*uids, *(uid for (uid,) in found.fetchall())]


def data_key(
    connection: AnyConnection, uid: str, secrets: Unwrapping
) -> tuple[str, bytes, str] | None:
    """
    Return name, data key and wrapping secret of a subject, or None where it was shredded.

    Raises:
        KeyMissingError: The secret that it is wrapped with is not here.
    """
    found: Any = connection.execute(
        "SELECT dek_id, dek_wrapped, kek_id FROM audit_subject WHERE subject_uid = ?", (uid,)
    ).fetchone()
    if found is None or found[1] is None:
        return None
    dek_id, wrapped, kek_id = found
    return dek_id, secrets.unwrap(wrapped, kek_id, uid), kek_id


def add_alias(
    connection: WriteConnection,
    alias: str,
    key_id: str,
    *,
    id_type: str,
    uid: str,
    spelling: Spelling | None,
) -> None:
    """Add *alias* to a subject, with what finds it in any tenant and spelling."""
    values = (alias, key_id, id_type, uid, *(spelling or ()))
    columns = _ALIAS[: len(values)]
    connection.execute(insert_statement("audit_subject_alias", columns), values)


def add_spelling(connection: WriteConnection, alias: str, spelling: Spelling) -> None:
    """Add to an alias what finds it in any tenant and spelling, where it lacks that."""
    connection.execute(
        "UPDATE audit_subject_alias SET folded = ?, sealed = ? WHERE alias = ? AND folded IS NULL",
        (*spelling, alias),
    )


def merge(connection: WriteConnection, uid: str, into: str) -> None:
    """Make two subjects one: their aliases name *into*, which keeps both data keys."""
    connection.execute(
        "UPDATE audit_subject SET state = 'merged', merged_into = ? "
        "WHERE subject_uid = ? OR merged_into = ?",
        (into, uid, uid),
    )


def conflict() -> SubjectConflictError:
    """Return the error for an identifier that belongs to two customers."""
    return SubjectConflictError(
        "that identifier belongs to another customer already: look at both, and merge them if "
        "they are one person"
    )

"""
Whose data: the customer that an id names, wherever in a log, or the reason why that cannot be told.

It is looked for in every tenant, and in every spelling: case, form of Unicode, space around it. One
answer is never taken for another: a customer under several tenants, or beside one whose id differs
in spelling alone, is an error that lists them, and so is one whom nobody knows. What pasting adds
to an id is left out only where nobody is known with it.

A log of an earlier version does not say in what tenant or spelling its customers are known. There
the tenants are those of the details, and the usual spellings are tried in each: another spelling
cannot be ruled out, which is a doubt that the answer has.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import product
from typing import TYPE_CHECKING, Any, NamedTuple

from ...telemetry.event.spelling import (
    Identity,
    folded_hash,
    open_sealed,
    readings,
    untagged,
    usual_spellings,
)
from ...telemetry.event.subject import Subject
from ..database.database import among, blob, marks
from ..database.errors import (
    AmbiguousSubjectError,
    KeyMissingError,
    TamperedError,
    UnknownSubjectError,
)
from ..record.rows import detail_from

if TYPE_CHECKING:
    from .snapshot import Snapshot

"""Aliases that one query looks for."""

_WITHHELD = re.compile(r"[<\[*]")
"""What redaction leaves in the name of a tenant that it found personal data in."""

_ALIASES = "audit_subject_alias a JOIN audit_subject s ON s.subject_uid = a.subject_uid"
_UID = "coalesce(s.merged_into, s.subject_uid)"
_NAMED = "a.id_type <> 'nobody'"


_REFERENCED = f"""
    SELECT DISTINCT {_UID} FROM {_ALIASES}
    WHERE {_NAMED} AND (a.alias = ? OR a.subject_uid = ?)
"""  # noqa: S608 - parts of ours
_FIRST_DETAIL = "SELECT seq, sealed FROM audit_detail WHERE subject_uid = ? ORDER BY seq LIMIT 1"


class OtherSpellings(StrEnum):
    """
    What is done with people whose id is another spelling of the one that is asked for.

    Attributes:
        ASK: They are an error: somebody has to say whether they are the same person.
        INCLUDE: They are the same person.
        LEAVE_OUT: They are not, and the ids that are given are all that the person has.
    """

    ASK = "ask"
    INCLUDE = "include"
    LEAVE_OUT = "leave_out"


@dataclass(frozen=True, slots=True, kw_only=True)
class CustomerQuery:
    """
    A question for a customer.

    Attributes:
        tenant: Their tenant; empty: none. None: wherever they are known.
        also: Further ids of the same person.
        all_tenants: People of that id in several tenants are one.
        own_stores: The live stores have customers of that tenant alone. Else what they hold of an
            id that another tenant has too is nobody's in particular.
        reference: In place of an id, what the log knows them by: a subject's uid, or an alias.
    """

    customer: str = field(repr=False)
    tenant: str | None = field(default=None, repr=False)
    also: tuple[str, ...] = field(default=(), repr=False)
    all_tenants: bool = False
    spellings: OtherSpellings = OtherSpellings.ASK
    own_stores: bool = False
    reference: str = ""

    @property
    def names(self) -> tuple[str, ...]:
        """All ids that are given."""
        return tuple(dict.fromkeys((self.customer, *self.also)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Person:
    """
    A customer who is known.

    Attributes:
        identities: The ids by which stores know them, each with its tenant; never empty. Of whoever
            was looked up by a reference, the tenant alone.
        uids: The subjects of the log that they are; empty where a store alone knows them.
        doubts: What of theirs there may be besides: a line each, about nobody.
        is_logged: The log knows them. Else live stores alone do, or nobody.
        shared_with: Tenants that have another customer of one of these ids. Live stores, which know
            no tenants, hold something of it, or were not asked: whose it is cannot be told.
    """

    identities: tuple[Identity, ...]
    uids: tuple[str, ...] = ()
    doubts: tuple[str, ...] = ()
    is_logged: bool = True
    shared_with: tuple[str, ...] = ()

    @property
    def tenants(self) -> tuple[str, ...]:
        """The tenants, each once."""
        return tuple(dict.fromkeys(each.tenant for each in self.identities))


@dataclass(frozen=True, slots=True)
class InStores:
    """
    What live stores hold of an id. They know no tenants.

    Attributes:
        spellings: Those of the ids that were asked for, and other spellings, that a store holds.
        silent: The stores that could not be asked, a line each.
    """

    spellings: frozenset[str] = field(default=frozenset(), repr=False)
    silent: tuple[str, ...] = ()


class _Match(NamedTuple):
    """An identity that is known: its subject, or None where a store or a request alone knows it."""

    identity: Identity
    uid: str | None
    in_log: bool = True

    @property
    def person(self) -> str | Identity:
        """Whoever has the same is the same person."""
        return self.uid or self.identity


def find_person(
    snapshot: Snapshot,
    query: CustomerQuery,
    stores: InStores | None = None,
    *,
    beside: Sequence[Snapshot] = (),
) -> Person:
    """
    Return the person behind a query.

    Args:
        snapshot: The log.
        query: Whom to look for.
        stores: What live stores hold of these ids, where they were asked.
        beside: Further logs, as shards are.

    Raises:
        UnknownSubjectError: Nobody is known by one of the ids.
        AmbiguousSubjectError: Several people are.
        TamperedError: Who is who is not as it was written.
        AuditError: The log cannot be read, or was written with other keys.
    """
    # Before anything is asked: rows that were swapped would give one customer another's data.
    for each in (snapshot, *beside):
        each.check_bindings()
        each.check_keys()
    if query.reference:
        return _referenced((snapshot, *beside), query)
    lookup = _Lookups([_Lookup(each, query) for each in (snapshot, *beside)])
    chosen = [each for name in query.names for each in _chosen(lookup, name, query, stores)]
    chosen = _in_their_tenants(chosen, query)
    identities = tuple(dict.fromkeys(each.identity for each in chosen))
    uids = tuple(dict.fromkeys(each.uid for each in chosen if each.uid is not None))
    doubts = () if query.spellings is OtherSpellings.LEAVE_OUT else lookup.doubts(identities, uids)
    return Person(
        identities=identities,
        uids=uids,
        doubts=tuple(doubts),
        is_logged=any(each.in_log for each in chosen),
        shared_with=tuple(_shared_with(lookup, query, stores, identities, uids)),
    )


def _referenced(logs: Sequence[Snapshot], query: CustomerQuery) -> Person:
    """Return the customer whom a log knows by a reference, in the tenant of a detail of theirs."""
    for log in logs:
        uids: list[Any] = log.execute(_REFERENCED, (query.reference, query.reference)).fetchall()
        for (uid,) in uids:
            details = log.execute(_FIRST_DETAIL, (uid,))
            for seq, sealed in details.fetchall():
                plaintext = log.plaintext(seq, uid, blob(sealed))
                tenant = "" if plaintext is None else detail_from(plaintext).tenant or ""
                if query.tenant in {None, tenant}:
                    return Person(identities=(Identity("", tenant),), uids=(uid,))
    raise UnknownSubjectError


def person_of(
    snapshot: Snapshot,
    customer: str | Person,
    tenant: str | None,
    beside: Sequence[Snapshot] = (),
) -> Person:
    """
    Return *customer*, or the one whom an id names; see `find_person`.

    Raises:
        UnknownSubjectError: Nobody is known by the id.
        AmbiguousSubjectError: Several people are.
        AuditError: The log cannot be read, or was written with other keys.
    """
    if isinstance(customer, Person):
        return customer
    return find_person(snapshot, CustomerQuery(customer=customer, tenant=tenant), beside=beside)


def _shared_with(
    lookup: _Lookups,
    query: CustomerQuery,
    stores: InStores | None,
    identities: tuple[Identity, ...],
    uids: tuple[str, ...],
) -> list[str]:
    if query.own_stores:
        return []
    names = {each.customer for each in identities if _may_be_held(each.customer, query, stores)}
    same = {each for name in names for each in lookup.matches(name)}
    # In another tenant the same id is another person; a store that knows no tenants has both under
    # it.
    strangers = (each for each in same if each.identity.customer in names and each.uid not in uids)
    return sorted({each.identity.tenant for each in strangers if each.identity not in identities})


def _may_be_held(name: str, query: CustomerQuery, stores: InStores | None) -> bool:
    """Tell whether a live store holds something of *name*, or was not asked for it."""
    if stores is None or stores.silent or name in stores.spellings:
        return True
    asked = (reading for each in query.names for reading in readings(each))
    return not any(name in usual_spellings(each) for each in asked)


def _chosen(
    lookup: _Lookups, name: str, query: CustomerQuery, stores: InStores | None
) -> list[_Match]:
    """Return the matches of one id, if they are one person."""
    everywhere, here = list[_Match](), list[_Match]()
    for reading in readings(name):
        logged = lookup.matches(reading)
        its = [*logged, *_in_stores_alone(reading, query, stores, logged)]
        everywhere += its
        if here := [each for each in its if query.tenant in {None, each.identity.tenant}]:
            break
    exact = [each for each in here if each.identity.customer == name]
    others = [each for each in here if each.identity.customer != name]
    known = exact
    if query.spellings is OtherSpellings.INCLUDE:
        known, others = exact + others, []
    if not known:
        # Without its tag an address may be another person's: said, and never taken for theirs.
        everywhere += [] if (bare := untagged(name)) in readings(name) else lookup.matches(bare)
        elsewhere = dict.fromkeys(each.identity for each in everywhere)
        raise UnknownSubjectError(
            others=tuple(elsewhere),
            is_further=name != query.customer,
            doubts=(*lookup.doubts((), ()), *(stores.silent if stores else ())),
        )
    if query.spellings is OtherSpellings.LEAVE_OUT:
        others = []
    if _are_several(known, others, query):
        found = dict.fromkeys(each.identity for each in (*known, *others))
        raise AmbiguousSubjectError(found=tuple(found), asked=name)
    return known


def _in_their_tenants(chosen: list[_Match], query: CustomerQuery) -> list[_Match]:
    """Return *chosen*, where what stores alone know is in the tenant of what the log knows."""
    logged = [each for each in chosen if each.in_log]
    tenants = {each.identity.tenant for each in logged}
    if len(tenants) > 1 and not query.all_tenants and len({each.person for each in logged}) > 1:
        found = dict.fromkeys(each.identity for each in logged)
        raise AmbiguousSubjectError(found=tuple(found), asked=query.customer)
    if len(tenants) != 1:
        return chosen
    (tenant,) = tenants
    return [
        each if each.in_log else each._replace(identity=Identity(each.identity.customer, tenant))
        for each in chosen
    ]


def _are_several(known: list[_Match], others: list[_Match], query: CustomerQuery) -> bool:
    """Tell whether there are more people than one, as far as the log knows them to be."""
    people = {each.person for each in known}
    tenants = {each.identity.tenant for each in known if each.in_log}
    if len(people) > 1 and len(tenants) > 1 and not query.all_tenants:
        return True
    return not {each.person for each in others} <= people


def _in_stores_alone(
    name: str, query: CustomerQuery, stores: InStores | None, logged: list[_Match]
) -> Iterator[_Match]:
    """
    Yield what only stores know of *name*.

    Stores tell no tenants. What the log knows in one is that tenant's, and nobody else's.
    """
    if stores is None:
        return
    mine = set(usual_spellings(name)) & stores.spellings
    for spelling in sorted(mine - {each.identity.customer for each in logged}):
        yield _Match(Identity(spelling, query.tenant or ""), None, in_log=False)


class _Lookups:
    """The identities in several logs: of one customer each may have a subject of its own."""

    def __init__(self, lookups: Sequence[_Lookup]) -> None:
        self._lookups = lookups

    def matches(self, name: str) -> list[_Match]:
        return sorted((each for its in self._lookups for each in its.matches(name)), key=_place)

    def doubts(self, identities: Iterable[Identity], uids: tuple[str, ...]) -> Iterator[str]:
        known = tuple(identities)
        return (line for its in self._lookups for line in its.doubts(known, uids))


def _place(match: _Match) -> tuple[str, str, str]:
    return match.identity.tenant, match.identity.customer, match.uid or ""


class _Lookup:
    """The identities in a log, by any spelling."""

    def __init__(self, snapshot: Snapshot, query: CustomerQuery) -> None:
        self._snapshot = snapshot
        self._query = query
        self._noted = snapshot.notes_spellings
        self._older = self._count_of_older()
        self._unreadable = 0
        self._matches: dict[str, list[_Match]] = {}
        self._tenants = self._tenants_of_older()

    def matches(self, name: str) -> list[_Match]:
        """Return every identity that is *name*, or another spelling of it."""
        if name not in self._matches:
            self._matches[name] = self._found(name)
        return self._matches[name]

    def _found(self, name: str) -> list[_Match]:
        found = {*self._of_noted(name), *self._of_older(name), *self._under_way(name)}
        # An erasure that is under way has lost its subject. The same id may be known anew
        # meanwhile.
        there = {each.identity for each in found if each.uid is not None}
        known = (each for each in found if each.uid is not None or each.identity not in there)
        return sorted(known, key=_place)

    def _of_noted(self, name: str) -> Iterator[_Match]:
        if not self._noted:
            return
        hashes = {folded_hash(keys.key, name): keys.key for _key_id, keys in self._snapshot.ring}
        rows = self._snapshot.execute(
            f"SELECT a.folded, a.alias, a.sealed, {_UID} FROM audit_subject_alias a "  # noqa: S608
            "LEFT JOIN audit_subject s ON s.subject_uid = a.subject_uid "
            f"WHERE a.folded IN ({marks(len(hashes))})",
            tuple(hashes),
        )
        for folded, alias, sealed, uid in rows.fetchall():
            identity = open_sealed(hashes[folded], name, blob(sealed), alias)
            # The alias was found by its keyed hash, so whoever has the key wrote it: it has to
            # open.
            if identity is None:
                raise TamperedError("what the log knows of that id does not open")
            yield _Match(identity, uid)

    def _of_older(self, name: str) -> Iterator[_Match]:
        """Yield those that were last seen by an earlier version: usual spellings in each tenant."""
        if not self._older:
            return
        spellings = usual_spellings(name)
        wanted = (Identity(each, tenant) for tenant, each in product(self._tenants, spellings))
        yield from self._by_alias(wanted, "audit", "a.id_type <> 'erasing'")

    def _under_way(self, name: str) -> Iterator[_Match]:
        """Yield the erasures of that id that an earlier release began, and that are under way."""
        tenants = dict.fromkeys((*self._tenants, self._query.tenant or "", ""))
        wanted = (Identity(name, tenant) for tenant in tenants)
        yield from self._by_alias(wanted, "audit/erasing", "a.id_type = 'erasing'")

    def _by_alias(self, wanted: Iterable[Identity], purpose: str, kind: str) -> Iterator[_Match]:
        aliases = dict(self._aliases(wanted, purpose))
        statement = (
            f"SELECT a.alias, {_UID} FROM audit_subject_alias a "  # noqa: S608 - marks
            "LEFT JOIN audit_subject s ON s.subject_uid = a.subject_uid "
            f"WHERE {kind} AND a.alias IN ({{}})"
        )
        for alias, uid in among(self._snapshot, statement, [*aliases]):
            yield _Match(aliases[alias], uid)

    def _aliases(self, wanted: Iterable[Identity], purpose: str) -> Iterator[tuple[str, Identity]]:
        ring = self._snapshot.ring
        for each in wanted:
            subject = Subject(each.customer, tenant=each.tenant, keys=ring.current)
            for _key_id, keys in ring:
                yield subject.hashed(purpose, keys), each

    # -- customers of earlier versions -------------------------------------------------------------

    @property
    def _missing(self) -> str:
        """The condition for aliases that say no spelling."""
        return f"{_NAMED} AND a.folded IS NULL" if self._noted else _NAMED

    def _count_of_older(self) -> int:
        found: Any = self._snapshot.execute(
            f"SELECT count(DISTINCT a.subject_uid) FROM {_ALIASES} WHERE {self._missing}"  # noqa: S608
        ).fetchone()
        return int(found[0])

    def _tenants_of_older(self) -> tuple[str, ...]:
        """Return the possible tenants of older subjects: the queried one, and their details'."""
        if not self._older:
            return ()
        return tuple(dict.fromkeys((self._query.tenant or "", "", *self._tenants_of_details())))

    def _tenants_of_details(self) -> Iterator[str]:
        """Yield the tenant of one detail of each: a subject is a customer of one tenant."""
        firsts = self._snapshot.stream(
            "SELECT d.seq, d.subject_uid, d.sealed FROM audit_detail d JOIN "  # noqa: S608
            "(SELECT subject_uid, min(seq) AS seq FROM audit_detail WHERE subject_uid IN "
            f"(SELECT a.subject_uid FROM {_ALIASES} WHERE {self._missing}) "
            "GROUP BY subject_uid) f ON f.seq = d.seq"
        )
        for seq, uid, sealed in firsts:
            plaintext = None
            with suppress(KeyMissingError):
                plaintext = self._snapshot.plaintext(seq, uid, blob(sealed))
            tenant = None if plaintext is None else detail_from(plaintext).tenant or ""
            if tenant is None or _WITHHELD.search(tenant):
                self._unreadable += 1
            else:
                yield tenant

    # -- doubts ------------------------------------------------------------------------------------

    def doubts(self, identities: Iterable[Identity], uids: tuple[str, ...]) -> Iterator[str]:
        """Yield what there may be of somebody besides *identities*, a line each."""
        if self._unreadable and (self._query.tenant is None or not uids):
            yield (
                f"{self._unreadable:,} customers were last seen before this log noted tenants, and "
                "theirs cannot be read: they were not looked up. Pass --tenant NAME"
            )
        older = self._older - self._older_among(uids)
        if older > 0:
            yield (
                f"{older:,} customers were last seen before this log noted how ids are spelled: "
                "they were looked up in the usual spellings alone"
            )
        unnamed = self._unnamed(identities, uids)
        if unnamed:
            yield (
                f"they are known by {unnamed:,} more {'id' if unnamed == 1 else 'ids'}, which the "
                "log can only confirm: pass --also ID so that stores are asked for it"
            )

    def _older_among(self, uids: tuple[str, ...]) -> int:
        """Return how many of them are these subjects, or were made one with them."""
        family = self._snapshot.family(uids)
        if not family:
            return 0
        found: Any = self._snapshot.execute(
            f"SELECT count(DISTINCT a.subject_uid) FROM {_ALIASES} "  # noqa: S608 - marks
            f"WHERE {self._missing} AND a.subject_uid IN ({marks(len(family))})",
            family,
        ).fetchone()
        return int(found[0])

    def _unnamed(self, identities: Iterable[Identity], uids: tuple[str, ...]) -> int:
        """Return how many ids of these subjects are none of *identities*."""
        family = self._snapshot.family(uids)
        if not family:
            return 0
        named = dict(self._aliases(identities, "audit"))
        rows = self._snapshot.execute(
            "SELECT alias, key_id FROM audit_subject_alias "  # noqa: S608 - marks
            f"WHERE subject_uid IN ({marks(len(family))})",
            family,
        )
        by_key: dict[str, int] = {}
        for alias, key_id in rows.fetchall():
            by_key[key_id] = by_key.get(key_id, 0) + (alias not in named)
        # An id has an alias for each key that was in use: the fullest key counts each once.
        return max(by_key.values(), default=0)

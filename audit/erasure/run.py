"""
The erasure of one customer, with its proof: ``mnemoscope audit erase``.

The order makes it safe to interrupt and resume. The stores come first, while the trail still knows
which threads and deleted memories are theirs; a store that fails keeps the trail from being
shredded. Every step can be made twice. A request that is under way is in the database until it is
done: as an event, which names nobody, and as a keyed alias of each id, beside the customers' own.
The last step removes it, when whoever asked has the receipt: so a run that ends just before is
found again by any of those ids, though nobody is known by them any more.

Residue is looked for: every store is read again, and all files are searched for texts that were
there. The texts are kept, encrypted, before a store is told to erase them, until the request is
done: a later run, which meets none of them any more, looks for the same.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ...memory.subject_data.records import (
    CustomerData,
    DataSubject,
    NotErasedError,
    SealedFiles,
    StoreData,
)
from ...telemetry.event.spelling import Identity
from ...telemetry.event.subject import Subject
from ..database.database import ReadConnection, log_events, marks
from ..database.errors import AuditError
from ..record.subjects import AnyConnection, add_alias
from .customer_ids import data_subject
from .kept_words import KeptWords, drop_words, keep_words, kept_words
from .report import (
    COMPLETE,
    FAILED,
    PARTIAL,
    UNKNOWN,
    VOUCHED,
    Erasure,
    PlaceSearch,
    StoreErasure,
    erased_from,
    failed,
    offer_records,
    searched_place,
)
from .residue_scan import Needle, ResidueTexts, Search, search

if TYPE_CHECKING:
    from pathlib import Path

    from ..log import AuditLog
    from ..record.keys import Keyring
    from ..store.snapshot import Snapshot

REQUESTED, RESUMED = "privacy.erase.requested", "privacy.erase.resumed"
COMPLETED, INCOMPLETE = "privacy.erase.completed", "privacy.erase.incomplete"
CLOSED = "privacy.erase.closed"
"""Its receipt is out, and nothing of the request is kept any more."""

TRAIL = "audit"
"""The name of the trail's own files in a proof."""

_PURPOSE = "audit/erasing"
UNDER_WAY = "erasing"
"""The type of an alias that names a request by its number, and no customer."""
_FIND = (
    f"SELECT alias, subject_uid FROM audit_subject_alias WHERE id_type = '{UNDER_WAY}' "  # noqa: S608 - literals
    "AND alias IN ({})"
)
_SAMPLES = 8
_SAMPLE_BYTES = 32
_FILES, _VAULT = "files", "vault"
"""What an operator may vouch for besides stores: lost words, and a vault that cannot tell."""

_ELSEWHERE = "What another store keeps"
_MISSING = (
    "the audit trail has writes of theirs there, and this scope cannot ask it: pass a scope that "
    "can, or look there yourself, and vouch for it with --vouch"
)
_LOST = (
    "what the run before looked for is not known: look through logs and files yourself, then "
    f"run this again with --vouch {_FILES}"
)


class ErasedMeanwhileError(AuditError):
    """Another run has erased the customer since they were looked up, and sealed its proof."""

    def __init__(self) -> None:
        super().__init__(
            "another run has erased this customer since they were looked up, and its proof is in "
            "the audit trail: this run did nothing more"
        )


def _nothing(_step: str) -> None:
    return


def _no_receipt(_erasure: Erasure) -> bool:
    return True


class ErasureRun:
    """
    The erasure of one customer.

    Args:
        data: Their data everywhere else.
        customer: Their id, as the stores know it.
        tenant: The tenant they are a customer of.
        vouched: Names of stores that cannot be asked, of which the operator says that they hold
            nothing of theirs; ``vault`` and ``files`` likewise.
        others: Further ids of theirs, which `data` knows as well.
        uids: Subjects of the log that they were found as. With all of them erased, and no request
            under way, another run has come first.
        including_shared: Erase what is another customer's, too, for both.
        tell: Called with the name of each step as it begins.
        leave: Called when nothing is left, to leave the receipt. Returns whether it is out: else
            the request stays under way, and the next run calls it again.
    """

    def __init__(
        self,
        log: AuditLog,
        data: CustomerData,
        *,
        customer: str,
        tenant: str | None = None,
        vouched: Collection[str] = (),
        others: Sequence[Identity] = (),
        uids: Sequence[str] = (),
        including_shared: bool = False,
        tell: Callable[[str], None] = _nothing,
        leave: Callable[[Erasure], bool] = _no_receipt,
    ) -> None:
        self._log = log
        self._data = data
        self._customer = customer
        self._tenant = tenant
        self._vouched = frozenset(vouched)
        self._others = tuple(others)
        self._uids = tuple(uids)
        self._including_shared = including_shared
        self._tell = tell
        self._leave = leave
        self._request = ""
        self._kept = KeptWords()
        self._residue = ResidueTexts()
        self._lost = False
        self._began = 0

    def run(self) -> Erasure:
        """
        Erase them, or resume an erasure that was interrupted.

        Raises:
            ErasedMeanwhileError: Another run has erased them since they were looked up.
            AuditError: The trail cannot be read or written. What was erased so far stays
                erased, and the next run resumes.
        """
        self._tell("opening the request")
        resumed = self._requested()
        self._tell("settling what is under way")
        # A write that waits in a journal would bring back what was erased.
        unsettled = [*self._settled(), *([_LOST] if self._lost else [])]
        subject = data_subject(
            self._log.trail,
            self._customer,
            self._tenant,
            self._residue,
            others=self._others,
            including_shared=self._including_shared,
        )
        # One that fails keeps no other from erasing.
        erased = [(each, self._erased(each)) for each in self._data.stores(subject)]
        missing = tuple(self._missing(subject, {each.store for each, _result in erased}))
        pseudonyms = self._pseudonyms(unsettled)
        unsettled += self._settled()  # the vault's own event is about them, too
        # After everything was settled: what is still in them now stays there.
        sealed = tuple(self._sealed())
        results = [*(result for _store, result in erased), *missing]
        details = self._shredded(results, sealed, unsettled)
        if resumed and details is not None:
            self._scrub_after_another()
        self._tell("searching files")
        self._take_kept()
        erasure = self._proven(
            Erasure(
                request=self._request,
                resumed=resumed,
                stores=(*(self._searched(*each) for each in erased), *missing),
                places=(*self._searched_places(), *sealed),
                pseudonyms=pseudonyms,
                details=details,
                searched_texts=len(self._residue),
                vouched=self._used(result.name for result in results),
                unsettled=tuple(dict.fromkeys(unsettled)),
            )
        )
        if erasure.complete and self._leave(erasure):
            self._close()
        return erasure

    def _used(self, stores: Iterable[str]) -> tuple[str, ...]:
        # Names that are known alone: what else was typed may be anything, and the log is for ever.
        return tuple(sorted(self._vouched.intersection([*stores, _FILES, _VAULT])))

    def _settled(self) -> list[str]:
        try:
            return list(self._data.settle())
        except Exception as exc:  # noqa: BLE001 - likewise
            return [f"pending writes could not be settled: {type(exc).__name__}"]

    def _erased(self, store: StoreData) -> StoreErasure:
        self._tell(f"forgetting in {store.name}")
        if store.unavailable is not None:
            status = VOUCHED if store.name in self._vouched else UNKNOWN
            return StoreErasure(
                name=store.name, title=store.title, status=status, messages=(store.unavailable,)
            )
        try:
            offer_records(store, self._residue)
        except Exception as exc:  # noqa: BLE001 - whatever a store raises, it is named
            return failed(store, exc)
        # On the disk before the store forgets: a run that dies in between finds them again.
        self._keep()
        try:
            return erased_from(store)
        except Exception as exc:  # noqa: BLE001 - likewise
            return failed(store, exc)

    def _missing(self, subject: DataSubject, searched: Collection[str]) -> Iterable[StoreErasure]:
        """Yield the stores with writes of the person in the trail, and no client to search them."""
        for name in sorted(set(subject.stores) - set(searched)):
            # It has writes of theirs, so that not asking it cannot pass for an answer.
            status = VOUCHED if name in self._vouched else FAILED
            yield StoreErasure(name=name, title=_ELSEWHERE, status=status, messages=(_MISSING,))

    def _pseudonyms(self, unsettled: list[str]) -> int | None:
        self._tell("forgetting pseudonyms")
        try:
            return self._data.erase_pseudonyms()
        except NotErasedError as exc:
            if _VAULT not in self._vouched:
                unsettled.append(f"vault: {exc}")
            return None
        except Exception as exc:  # noqa: BLE001 - it is named, and keeps the trail
            unsettled.append(f"the vault could not erase: it raised {type(exc).__name__}")
            return None

    # -- what is looked for ------------------------------------------------------------------------

    def _keep(self, rows: Iterable[bytes] = ()) -> None:
        """Keep what is looked for, before there is nothing left to learn it from."""
        words = KeptWords(self._residue.texts(), self._kept.rows.union(rows))
        if words == self._kept or self._lost:  # what is kept now would be taken for all
            return
        ring = self._log.ring
        with self._log.tables.writing() as (connection, _head):
            known = kept_words(connection, ring, self._request)
            if known is not None:  # else another run has ended the request meanwhile
                keep_words(connection, ring, self._request, known.union(words))
        self._kept = words

    def _take_kept(self) -> None:
        """Look for what another run of the same request has kept meanwhile, too."""
        with self._log.reading() as snapshot:
            known = kept_words(snapshot, self._log.ring, self._request) or KeptWords()
        self._kept = self._kept.union(known)
        self._residue = ResidueTexts(self._kept.texts | self._residue.texts())

    def _searched(self, store: StoreData, result: StoreErasure) -> StoreErasure:
        try:
            paths = store.files()
        except Exception as exc:  # noqa: BLE001 - likewise
            return failed(store, exc)
        return result.searched(search(self._residue.needles(), paths))

    def _searched_places(self) -> Iterable[PlaceSearch]:
        words = self._residue.needles()
        files: Mapping[str, Sequence[Path]] = {}
        try:
            files = self._data.files()
        # The folder of a log file cannot be listed, say: named, and not taken for clean.
        except OSError:
            yield searched_place(_FILES, Search(unread=("the folder of the log file",)))
        for name, paths in files.items():
            yield searched_place(name, search(words, paths))
        path = self._log.path
        if path is not None:
            # Pages as they were are in the write-ahead log until it is truncated.
            beside = [path.with_name(f"{path.name}{end}") for end in ("", "-wal", "-journal")]
            rows: list[Needle] = [(each,) for each in self._kept.rows]
            yield searched_place(TRAIL, search([*words, *rows], beside))

    def _sealed(self) -> Iterable[PlaceSearch]:
        try:
            found = self._data.sealed()
        except Exception as exc:  # noqa: BLE001 - likewise
            message = f"the journal or the audit spool could not be read: {type(exc).__name__}"
            found = {"journal": SealedFiles((message,))}
        for name, (waiting, others) in found.items():
            status = PARTIAL if waiting else COMPLETE
            yield PlaceSearch(name=name, status=status, messages=(*waiting, *others))

    # -- the request -------------------------------------------------------------------------------

    def _requested(self) -> bool:
        """Return whether the request was under way already."""
        ring, tables = self._log.ring, self._log.tables
        by_id = [(each, _aliases_of(each, ring)) for each in self._subjects()]
        aliases = [alias for _subject, its in by_id for alias in its.values()]
        with tables.writing() as (connection, head):
            found = connection.execute(_FIND.format(marks(len(aliases))), aliases)
            there: dict[str, str] = dict(found.fetchall())
            # By any of the ids: who asks again may name fewer of them, or others besides.
            request = next((there[each] for each in aliases if each in there), None)
            # A second request would prove that nothing was there, which was not so.
            if request is None and self._uids and not _are_there(connection, self._uids):
                raise ErasedMeanwhileError
            self._request = request or secrets.token_hex(8)
            known = kept_words(connection, ring, self._request) if request else None
            self._lost = request is not None and known is None and _FILES not in self._vouched
            if known is None and not self._lost:
                keep_words(connection, ring, self._request, KeptWords())
            for subject, its in by_id:
                # An id that was given with this run and not with the one before.
                if there.keys().isdisjoint(its.values()):
                    alias = its[ring.current_id]
                    add_alias(
                        connection,
                        alias,
                        ring.current_id,
                        id_type=UNDER_WAY,
                        uid=self._request,
                        spelling=subject.spelling(alias),
                    )
            # In the same transaction: a request without its event could not be proved.
            name = RESUMED if request else REQUESTED
            self._began = tables.note(connection, head, name, {"request": self._request}).size
        self._kept = known or KeptWords()
        self._residue = ResidueTexts(self._kept.texts)
        return request is not None

    def _subjects(self) -> list[Subject]:
        keys = self._log.ring.current
        first = Subject(self._customer, tenant=self._tenant, keys=keys)
        others = (Subject(each.customer, tenant=each.tenant, keys=keys) for each in self._others)
        return [first, *others]

    def _proven(self, erasure: Erasure) -> Erasure:
        self._tell("writing the proof")
        tables = self._log.tables
        with tables.writing() as (connection, head):
            proof = _proof_of(connection, self._request)
            # One proof for what is one erasure: the run that has written it leaves the receipt.
            if proof is not None and proof >= self._began:
                raise ErasedMeanwhileError
            # One from before this run stands: its receipt is not out yet, or is just being left.
            if proof is None or not erasure.complete or erasure.has_removed:
                name = COMPLETED if erasure.complete else INCOMPLETE
                proof = tables.note(connection, head, name, erasure.proof()).size - 1
        return replace(erasure, seq=proof)

    def _close(self) -> None:
        """Keep nothing of the request any more."""
        tables = self._log.tables
        with tables.writing() as (connection, head):
            gone = connection.execute(
                "DELETE FROM audit_subject_alias WHERE subject_uid = ?", (self._request,)
            )
            if gone.rowcount:  # else another run of it was first: its end is sealed once
                drop_words(connection, self._request)
                tables.note(connection, head, CLOSED, {"request": self._request})
        # SQLite leaves what was deleted in free pages until they are written over.
        self._log.scrub()

    # -- the trail ---------------------------------------------------------------------------------

    def _shredded(
        self,
        stores: Iterable[StoreErasure],
        sealed: Iterable[PlaceSearch],
        unsettled: Collection[str],
    ) -> int | None:
        """Return how many details were shredded. None: they are still needed."""
        self._keep()
        waits = unsettled or any(each.status != COMPLETE for each in sealed)
        # The details say which threads and memories are theirs, and the next run needs them.
        if waits or any(each.holds_on for each in stores):
            return None
        self._tell("shredding the trail")
        identities = (Identity(self._customer, self._tenant or ""), *self._others)
        with self._log.reading() as snapshot:
            # Found again: what settled since may have made the customer known anew.
            uids = snapshot.uids_of(identities)
            rows = _samples(snapshot, snapshot.family(uids)) if uids else []
        self._keep(rows)
        tenants = dict.fromkeys(each.tenant for each in identities)
        # First in other shards: once the customer is gone here, nobody knows what was theirs there.
        others = (each for each in self._log.trail.shards if each is not self._log)
        there = [each for each in others if each.tables.database.exists()]
        unnamed = sum(each.subjects.erase_unnamed(uids, *tenants) for each in there)
        # Its key, that is: what is sealed with it nobody reads again, in backups either.
        return unnamed + sum(self._shred(uid, *tenants) for uid in uids)

    def _scrub_after_another(self) -> None:
        """Rid all files of what a run has deleted that was killed before it came to that."""
        for each in self._log.trail.shards:
            if each.tables.database.exists():
                each.scrub()

    def _shred(self, uid: str, *tenants: str) -> int:
        try:
            return self._log.subjects.erase(uid, *tenants)
        except AuditError:
            with self._log.reading() as snapshot:
                if _are_there(snapshot, [uid]):
                    raise
            return 0  # another run of this request has just done it


def _aliases_of(subject: Subject, ring: Keyring) -> dict[str, str]:
    """Return what each secret knows a request by: nobody is found by it as a customer."""
    return {key_id: subject.hashed(_PURPOSE, keys) for key_id, keys in ring}


def _proof_of(connection: ReadConnection, request: str) -> int | None:
    """Return the number of the proof that *request* is complete. None: its last run was not."""
    proof = None
    for seq, each in log_events(connection, COMPLETED, INCOMPLETE):
        if each["data"]["request"] == request:
            proof = seq if each["data"]["complete"] else None
    return proof


def _are_there(connection: AnyConnection, uids: Sequence[str]) -> bool:
    """Return whether one of the subjects *uids* is not erased."""
    found = connection.execute(
        f"SELECT 1 FROM audit_subject WHERE subject_uid IN ({marks(len(uids))}) "  # noqa: S608 - marks
        "AND state <> 'erased'",
        uids,
    )
    return found.fetchone() is not None


def _samples(snapshot: Snapshot, uids: Sequence[str]) -> list[bytes]:
    """Return aliases, wrapped keys and some ciphertexts: what the trail's files must lose."""
    whose = f"subject_uid IN ({marks(len(uids))})"
    queries = (
        f"SELECT alias FROM audit_subject_alias WHERE {whose}",  # noqa: S608 - marks
        f"SELECT dek_wrapped FROM audit_subject WHERE dek_wrapped IS NOT NULL AND {whose}",  # noqa: S608
        f"SELECT sealed FROM audit_detail WHERE {whose} ORDER BY seq LIMIT {_SAMPLES}",  # noqa: S608
    )
    # A few of each, as needles: whether SQLite has really let go of them is looked up in its files.
    found: list[Any] = [row for each in queries for row in snapshot.execute(each, uids).fetchall()]
    return [_bytes(value)[:_SAMPLE_BYTES] for (value,) in found]


def _bytes(value: Any) -> bytes:
    return value.encode() if isinstance(value, str) else bytes(value)

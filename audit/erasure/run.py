"""
The erasure of one customer, with its proof: ``mnemoscope audit erase``.

The order makes it safe to interrupt and resume. The stores come first, while the trail still knows
which threads and deleted memories are theirs; a store that fails keeps the trail from being
shredded. Every step can be made twice. A request that is under way is in the database until it is
done: as an event, which names nobody, and as a keyed alias beside the customers' own, until the
last step.

Residue is looked for: every store is read again, and the files are searched for texts that were
there. The texts are in this process's memory alone, so an erasure that was interrupted after a step
has fewer of them when it resumes; the proof says how many.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ...memory.subject_data.records import CustomerData, DataSubject, NotErasedError
from ...telemetry.event.spelling import Identity
from ...telemetry.event.subject import Subject
from ..database.database import marks
from ..record.subjects import add_alias
from .customer_ids import data_subject
from .report import Erasure, StoreErasure, erased_from
from .residue_scan import ResidueTexts, traces

if TYPE_CHECKING:
    from ..log import AuditLog
    from ..store.snapshot import Snapshot

REQUESTED, RESUMED = "privacy.erase.requested", "privacy.erase.resumed"
COMPLETED, INCOMPLETE = "privacy.erase.completed", "privacy.erase.incomplete"

TRAIL = "audit"
"""The name of the trail's own files in a proof."""

_PURPOSE = "audit/erasing"
UNDER_WAY = "erasing"
"""The type of an alias that names a request by its number, and no customer."""
_FIND = (
    f"SELECT subject_uid FROM audit_subject_alias WHERE id_type = '{UNDER_WAY}' "  # noqa: S608 - literals
    "AND alias IN ({})"
)
_SAMPLES = 8
_SAMPLE_BYTES = 32


def _nothing(_step: str) -> None:
    return


class ErasureRun:
    """
    The erasure of one customer.

    Args:
        log: The audit trail.
        data: Their data everywhere else.
        customer: Their id, as the stores know it.
        tenant: The tenant they are a customer of.
        others: Further ids of theirs, which `data` knows as well.
        tell: Called with the name of each step as it begins.
    """

    def __init__(
        self,
        log: AuditLog,
        data: CustomerData,
        *,
        customer: str,
        tenant: str | None = None,
        others: Sequence[Identity] = (),
        tell: Callable[[str], None] = _nothing,
    ) -> None:
        self._log = log
        self._data = data
        self._customer = customer
        self._tenant = tenant
        self._others = tuple(others)
        self._tell = tell
        self._residue = ResidueTexts()

    def run(self) -> Erasure:
        """
        Erase them, or resume an erasure that was interrupted.

        Raises:
            AuditError: The trail cannot be read or written. What was erased so far stays
                erased, and the next run resumes.
        """
        self._tell("opening the request")
        request, resumed = self._requested()
        self._tell("settling what is under way")
        unsettled = self._settled()
        subject = data_subject(
            self._log, self._customer, self._tenant, self._residue, others=self._others
        )
        stores = tuple(self._stores(subject))
        pseudonyms = self._pseudonyms(unsettled)
        unsettled += self._settled()  # the vault's own event is about them, too
        details, trail = self._shredded(stores, unsettled)
        self._tell("searching files")
        found = self._found(trail)
        return self._proven(
            Erasure(
                request=request,
                resumed=resumed,
                stores=stores,
                pseudonyms=pseudonyms,
                details=details,
                searched_texts=len(self._residue) + len(trail),
                traces=found,
                unsettled=tuple(dict.fromkeys(unsettled)),
            )
        )

    def _settled(self) -> list[str]:
        try:
            return list(self._data.settle())
        except Exception as exc:  # noqa: BLE001 - likewise
            return [f"pending writes could not be settled: {type(exc).__name__}"]

    def _stores(self, subject: DataSubject) -> Iterable[StoreErasure]:
        for store in self._data.stores(subject):
            self._tell(f"forgetting in {store.name}")
            yield erased_from(store, self._residue)

    def _pseudonyms(self, unsettled: list[str]) -> int | None:
        self._tell("forgetting pseudonyms")
        try:
            return self._data.erase_pseudonyms()
        except NotErasedError as exc:
            unsettled.append(f"vault: {exc}")
            return None
        except Exception as exc:  # noqa: BLE001 - it is named, and keeps the trail
            unsettled.append(f"the vault could not erase: it raised {type(exc).__name__}")
            return None

    # -- the request -------------------------------------------------------------------------------

    def _requested(self) -> tuple[str, bool]:
        """Return the number of the request, and whether it was under way already."""
        aliases = self._aliases()
        tables = self._log.tables
        with tables.writing() as (connection, head):
            found = connection.execute(_FIND.format(marks(len(aliases))), [*aliases.values()])
            row = found.fetchone()
            request = row[0] if row else secrets.token_hex(8)
            self._log.tables.note(
                connection, head, RESUMED if row else REQUESTED, {"request": request}
            )
            if row is None:
                key_id = self._log.ring.current_id
                alias = aliases[key_id]
                spelling = self._subject().spelling(alias)
                add_alias(
                    connection, alias, key_id, id_type=UNDER_WAY, uid=request, spelling=spelling
                )
        return request, row is not None

    def _aliases(self) -> dict[str, str]:
        """Return what each secret knows this request by: nobody is found by it as a customer."""
        ring = self._log.ring
        subject = self._subject()
        return {key_id: subject.hashed(_PURPOSE, keys) for key_id, keys in ring}

    def _subject(self) -> Subject:
        return Subject(self._customer, tenant=self._tenant, keys=self._log.ring.current)

    def _proven(self, erasure: Erasure) -> Erasure:
        self._tell("writing the proof")
        tables = self._log.tables
        with tables.writing() as (connection, head):
            name = COMPLETED if erasure.complete else INCOMPLETE
            seq = tables.note(connection, head, name, erasure.proof()).size - 1
            if erasure.complete:
                connection.execute(
                    "DELETE FROM audit_subject_alias WHERE subject_uid = ?", (erasure.request,)
                )
        if erasure.complete:
            self._log.scrub()
        return replace(erasure, seq=seq)

    # -- the trail ---------------------------------------------------------------------------------

    def _shredded(
        self, stores: Sequence[StoreErasure], unsettled: Sequence[str]
    ) -> tuple[int | None, list[tuple[bytes, ...]]]:
        """Return how many details were shredded, and what to look for in the trail's files."""
        if unsettled or any(each.holds_on for each in stores):
            return None, []
        self._tell("shredding the trail")
        identities = (Identity(self._customer, self._tenant or ""), *self._others)
        with self._log.reading() as snapshot:
            found = {
                uid for each in identities for uid in snapshot.uids(each.customer, each.tenant)
            }
            needles = _samples(snapshot, snapshot.family(sorted(found))) if found else []
        tenants = dict.fromkeys(each.tenant for each in identities)
        return sum(self._log.subjects.erase(uid, *tenants) for uid in sorted(found)), needles

    def _found(self, trail: Sequence[tuple[bytes, ...]]) -> dict[str, int]:
        words = self._residue.needles()
        found = {name: traces(words, paths) for name, paths in self._data.files().items()}
        path = self._log.path
        if path is not None:
            files = [path.with_name(f"{path.name}{end}") for end in ("", "-wal", "-journal")]
            found[TRAIL] = traces([*words, *trail], files)
        return found


def _samples(snapshot: Snapshot, uids: Sequence[str]) -> list[tuple[bytes, ...]]:
    """Return aliases, wrapped keys and some ciphertexts: what the trail's files must lose."""
    whose = f"subject_uid IN ({marks(len(uids))})"
    queries = (
        f"SELECT alias FROM audit_subject_alias WHERE {whose}",  # noqa: S608 - marks
        f"SELECT dek_wrapped FROM audit_subject WHERE dek_wrapped IS NOT NULL AND {whose}",  # noqa: S608
        f"SELECT sealed FROM audit_detail WHERE {whose} ORDER BY seq LIMIT {_SAMPLES}",  # noqa: S608
    )
    found: list[Any] = [row for each in queries for row in snapshot.execute(each, uids).fetchall()]
    return [(_bytes(value)[:_SAMPLE_BYTES],) for (value,) in found]


def _bytes(value: Any) -> bytes:
    return value.encode() if isinstance(value, str) else bytes(value)

"""The check of the tables of customers and keys, without knowing who anybody is."""

from __future__ import annotations

from typing import Any

from ..database.database import blob, log_events
from ..database.errors import UNREADABLE, KeyMissingError
from ..erasure.run import CLOSED, COMPLETED, REQUESTED, RESUMED, UNDER_WAY
from ..record.keys import Keyring, log_key
from ..record.subjects import CUSTOMER, NOBODY
from ..store.snapshot import Snapshot
from .report import FindingKind, Verification

_SUBJECTS = """
    SELECT s.subject_uid, s.kind, s.state, s.dek_wrapped IS NULL, s.merged_into, m.subject_uid,
      s.erased_us
    FROM audit_subject s LEFT JOIN audit_subject m ON m.subject_uid = s.merged_into
"""
_STRAY_ALIASES = f"""
    SELECT count(*) FROM audit_subject_alias a
    LEFT JOIN audit_subject s ON s.subject_uid = a.subject_uid
    WHERE a.id_type <> '{UNDER_WAY}' AND (s.subject_uid IS NULL OR s.state = 'erased')
"""  # noqa: S608 - a literal of ours
_UNLISTED_ALIASES = """
    SELECT a.key_id, count(*) FROM audit_subject_alias a
    WHERE a.key_id NOT IN (SELECT key_id FROM audit_key) GROUP BY a.key_id
"""
_KEPT_REQUESTS = "SELECT subject_uid FROM audit_subject_alias WHERE id_type = ?"


def check_subjects(snapshot: Snapshot, report: Verification) -> None:
    """Check that every customer's row is consistent, and that every alias names a customer."""
    for uid, *columns in snapshot.stream(_SUBJECTS):
        if not _is_sound(*columns):
            report.tampered(f"the subject {uid} is inconsistent")
    found: Any = snapshot.execute(_STRAY_ALIASES).fetchone()
    if found[0]:
        report.tampered(f"{found[0]:,} aliases name no customer")
    _check_secrets(snapshot, report)
    _check_requests(snapshot, report)


def _check_secrets(snapshot: Snapshot, report: Verification) -> None:
    """
    Find aliases of secrets that are not known.

    A spool that was written with a secret that the log was never opened with leaves some. That
    nobody else added them is shown by the sums of the tables.
    """
    found = snapshot.stream(_UNLISTED_ALIASES)
    unknown = sum(count for key_id, count in found if key_id not in snapshot.ring)
    if unknown:
        what = f"{unknown:,} aliases are of a secret that is not here and that the log was never "
        report.find(FindingKind.UNVERIFIABLE, f"{what}opened with: whom they name cannot be told")


def _check_requests(snapshot: Snapshot, report: Verification) -> None:
    """Hold the erasures that are under way against the events that began and ended them."""
    kept = {uid for (uid,) in snapshot.stream(_KEPT_REQUESTS, (UNDER_WAY,))}
    noted: dict[str, set[str]] = {each: set() for each in (REQUESTED, RESUMED, COMPLETED, CLOSED)}
    for _seq, header in log_events(snapshot.connection, *noted):
        noted[header["operation"]].add(header["data"]["request"])
    begun, done, closed = noted[REQUESTED] | noted[RESUMED], noted[COMPLETED], noted[CLOSED]
    # Retention may have removed the event that began one, never one that came after its end.
    strays = kept & closed if snapshot.first_seq else kept - (begun - closed)
    if strays:
        report.tampered(f"{len(strays):,} aliases name an erasure that is not under way")
    if begun - done - kept:
        report.tampered(f"{len(begun - done - kept):,} erasures can no longer be resumed")


def _is_sound(kind: str, state: str, is_shredded: int, merged_into: str | None, *rest: Any) -> bool:
    merged, erased_us = rest
    # The state is derived from what only the key can make, and not believed.
    expected = "erased" if is_shredded else "merged" if merged_into is not None else "active"
    return (
        kind in {CUSTOMER, NOBODY}
        and state == expected
        and merged == merged_into
        and (erased_us is not None) == bool(is_shredded)
    )


def check_keys(snapshot: Snapshot, ring: Keyring, report: Verification) -> None:
    """Check that every secret that is here unwraps the same key of the log."""
    log_keys: set[bytes] = set()
    found: list[Any] = snapshot.execute("SELECT key_id, wrapped FROM audit_key").fetchall()
    for key_id, wrapped in found:
        if key_id not in ring:
            continue
        try:
            log_keys.add(log_key(ring.unwrapping(), blob(wrapped), key_id, snapshot.origin).key)
        except (KeyMissingError, *UNREADABLE):
            report.tampered(f"what is wrapped with the key {key_id} was changed")
    if len(log_keys) > 1:
        report.tampered("two secrets unwrap two different keys of the log")

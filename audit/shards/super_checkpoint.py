"""
The checkpoint over all shards: a signed note, whose leaves are what each shard's own says.

It is a C2SP checkpoint like a log's. Its tree has a leaf for each shard, a line with the shard's
number, origin, size and root, and the lines follow as its extensions. It is kept in every shard, so
that each shows that another was put back, and announced as other checkpoints are.
"""

from __future__ import annotations

import base64
import logging
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from typing import Any

from ...telemetry.process.fork import reset_after_fork
from ..database.database import latest_log_event, log_events
from ..database.errors import AuditError
from ..log import AuditLog
from ..proof.merkle import Frontier, Prover, leaf_hash, root_of
from ..proof.note import Checkpoint, Signer, checkpoint_text, parse_checkpoint, verified
from ..store.checkpoints import Announce, nowhere
from ..store.shard_count import SHARDS_SIGNED, say_shards
from ..store.snapshot import Snapshot
from ..store.tree import StoredHashes
from ..store.writer import signer_of
from ..verification.report import FindingKind, Verification

EVERY_S = 60.0
SUFFIX = "/shards"
"""What the origin of such a note has behind that of the first shard."""

_NONE, _UNREAD = "-", "?"
"""In place of a shard's origin: it has no event yet; it could not be read."""

logger = logging.getLogger("mnemoscope.audit")


class SuperSigner:
    """
    Signs over all shards once a minute, and as the last sink closes. Thread-safe.

    Args:
        trail: All shards, for reading.
        logs: The shards that this process writes: each keeps the note.
        clock: Monotonic seconds.

    Attributes:
        announce: Sends the notes to the other sinks.
    """

    def __init__(
        self,
        trail: AuditLog,
        logs: Sequence[AuditLog],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.announce: Announce = nowhere
        self._trail, self._logs, self._clock = trail, logs, clock
        self.forked()
        reset_after_fork(self)

    def forked(self) -> None:
        """Begin anew in a child."""
        self._guard = threading.Lock()
        self._due_at, self._open, self._lines = 0.0, len(self._logs), [""]
        self._has_written = False

    def sign_if_due(self) -> None:
        """Sign, unless this or another process did so within a minute, or is at it here."""
        if self._clock() >= self._due_at and self._guard.acquire(blocking=False):
            try:
                due_at, self._due_at = self._due_at, self._clock() + EVERY_S
                with suppress(AuditError), self._logs[0].begun() as first:
                    if first is None:
                        self._due_at = due_at  # with the first events, and not a minute later
                        return
                    last = latest_log_event(first.connection, SHARDS_SIGNED)
                    age_us = self._logs[0].now_us() - last["recorded_at"] if last else None
                    if age_us is None or not 0 <= age_us < EVERY_S * 1e6:
                        self.sign()
            finally:
                self._guard.release()

    def shard_closed(self, *, has_written: bool) -> None:
        """Note that a shard's sink has closed; with the last of them, sign what was written."""
        with self._guard:
            self._open -= 1
            self._has_written |= has_written
            is_last = self._open == 0
        if is_last:
            if self._has_written:
                self.sign()
            for each in (*self._logs, self._trail):
                each.close()

    def sign(self) -> str | None:
        """Sign, keep and announce a note, and return it. None: there is nothing new to sign."""
        try:
            shards = self._trail.shards
            lines = [_line(number, each) for number, each in enumerate(shards)]
            origin = lines[0].split()[1]
            if origin in {_NONE, _UNREAD} or lines == self._lines:
                return None
            for number, each in enumerate(lines):
                if each.split()[1] == _UNREAD:
                    logger.warning("audit shard %d cannot be read: no checkpoint has it", number)
            text = checkpoint_text(f"{origin}{SUFFIX}", len(lines), _root(lines), *lines)
            note = signer_of(origin, self._trail.ring).sign(text)
            self.announce(note)
            said = {"shards": len(lines), "note": note}
            if not say_shards(self._logs[0].tables, SHARDS_SIGNED, said):
                return None
            for number, log in enumerate(self._logs[1:], 1):
                if lines[number].split()[1] not in {_NONE, _UNREAD}:
                    log.append_log_event(SHARDS_SIGNED, said)
            self._lines = [_line(number, each) for number, each in enumerate(shards)]
        except AuditError as exc:
            logger.warning("no checkpoint over the audit shards: %s", exc)
            return None
        return note


def _line(number: int, log: AuditLog) -> str:
    """Return what a note says of one shard."""
    try:
        with log.begun() as snapshot:
            if snapshot is None:
                return f"{number} {_NONE}"
            snapshot.check_head()
            found: Any = snapshot.execute("SELECT frontier FROM audit_log").fetchone()
            root = Frontier.from_bytes(snapshot.size, bytes(found[0])).root()
            return f"{number} {snapshot.origin} {snapshot.size} {base64.b64encode(root).decode()}"
    except AuditError:
        return f"{number} {_UNREAD}"


def _root(lines: Sequence[str]) -> bytes:
    return root_of([leaf_hash(each.encode()) for each in lines])


def check_notes(trail: AuditLog, elsewhere: Sequence[str], reports: Sequence[Verification]) -> int:
    """
    Hold every note over the shards against the shards, and return how many there are.

    Args:
        trail: All shards.
        elsewhere: Notes that were kept elsewhere.
        reports: Of each shard; takes what is found about it.
    """
    notes = dict.fromkeys([*elsewhere, *(note for log in trail.shards for note in _kept(log))])
    origins = {
        parse_checkpoint(each).origin.removesuffix(SUFFIX) for each in notes if is_note(each)
    }
    keys = [
        Signer(origin, its.key("audit/sign")).verifier_key
        for origin in origins
        for _key_id, its in trail.ring
    ]
    claims: dict[str, None] = {}
    for note in notes:
        claim = parse_checkpoint(note) if is_note(note) else None
        if claim is None or not _is_whole(claim):
            reports[0].tampered("a checkpoint over the shards is not as it was signed")
            continue
        if not any(verified(note, key) for key in keys):
            what = "a checkpoint over the shards is changed, or of a secret that is not here"
            reports[0].find(FindingKind.UNVERIFIABLE, what)
            continue
        claims |= dict.fromkeys(claim.extensions)
    by_shard: dict[int, list[list[str]]] = {}
    for line in claims:
        number, *said = line.split(" ")
        by_shard.setdefault(int(number), []).append(said)
    for shard, (log, report) in enumerate(zip(trail.shards, reports, strict=True)):
        _check_shard(shard, log, by_shard.get(shard, []), report)
    return len(notes)


def _check_shard(
    number: int, log: AuditLog, claims: Sequence[Sequence[str]], report: Verification
) -> None:
    signed = [each for each in claims if each[0] not in {_NONE, _UNREAD}]
    try:
        with log.begun() as snapshot:
            if snapshot is None:
                if signed:
                    most = max(int(each[1]) for each in signed)
                    report.tampered(f"shard {number} is missing: {most:,} events of it are signed")
                elif [_NONE] in claims:
                    report.is_empty = True
                else:
                    what = f"shard {number} has no event, and no checkpoint says whether it had one"
                    report.find(FindingKind.UNVERIFIABLE, what)
                return
            if not signed:
                what = f"no checkpoint over the shards has shard {number} (yet)"
                report.find(FindingKind.UNVERIFIABLE, what)
            for kind, wrong in dict.fromkeys(differences(snapshot, signed)):
                report.find(kind, f"shard {number} {wrong}")
    except AuditError as exc:
        report.find(FindingKind.UNVERIFIABLE, f"shard {number} cannot be read: {exc}")


def differences(
    snapshot: Snapshot, claims: Iterable[Sequence[str]]
) -> Iterator[tuple[FindingKind, str]]:
    """Yield what a log is of which name, size and root were signed as in *claims*."""
    hashes, tampered = StoredHashes(snapshot), FindingKind.TAMPERED
    for origin, size, root in claims:
        if origin != snapshot.origin:
            yield tampered, f"is another log: {snapshot.origin} stands where {origin} was signed"
        elif int(size) > snapshot.size and snapshot.connection.is_replica():
            yield FindingKind.UNVERIFIABLE, "is behind: this replica has fewer events than signed"
        elif int(size) > snapshot.size:
            yield tampered, "was put back or cut: it has fewer events than were signed"
        elif Prover(hashes, int(size)).root() != base64.b64decode(root):
            yield tampered, "was rewritten: it has another root than was signed"


def signed_shards(first: Snapshot) -> set[int]:
    """Return the shards that had an event when a note over them was kept last."""
    found = latest_log_event(first.connection, SHARDS_SIGNED)
    lines = parse_checkpoint(found["data"]["note"]).extensions if found else ()
    return {number for number, each in enumerate(lines) if each.split()[1] != _NONE}


def _kept(log: AuditLog) -> Iterator[str]:
    with log.begun(as_it_is=True) as snapshot:
        found = () if snapshot is None else log_events(snapshot.connection, SHARDS_SIGNED)
        yield from (header["data"]["note"] for _seq, header in found)


def is_note(note: str) -> bool:
    """Return whether *note* is a checkpoint over shards, by its origin."""
    try:
        return parse_checkpoint(note).origin.endswith(SUFFIX)
    except ValueError:
        return False


def _is_whole(claim: Checkpoint) -> bool:
    lines = claim.extensions
    named = [each.split(" ")[0] for each in lines]
    return (
        claim.size == len(lines)
        and named == [*map(str, range(len(lines)))]
        and claim.root == _root(lines)
    )

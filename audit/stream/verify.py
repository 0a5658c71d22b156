"""The verification of a copy from what is in it alone: chain, tree, and signed checkpoints."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from itertools import chain, count, groupby
from typing import Any

import orjson

from ..bundle.temporary_database import temporary_database
from ..database.errors import UNREADABLE
from ..proof.merkle import HASH_BYTES, Frontier
from ..proof.note import verified
from ..store.roll import NOBODY
from ..verification.clocks import check_clocks
from ..verification.events import Pass, row_of
from ..verification.report import FindingKind, Verification
from ..verification.tree import BEYOND, UNSIGNED, Notary, size_of
from ..verification.whole import SIGNED_WITHIN_S
from ..verification.writers import Endings, check_endings, check_gaps, check_spools
from .record import CHECKPOINT, EVENT, CopyRecord, proven
from .target import Copy

NOT_COVERED = (
    "the end of the copy cut back to an earlier checkpoint: one kept elsewhere shows it",
    "what stands beside events and checkpoints: keys, marks and times of records, sealed details",
)
_WHOSE = "whose log it is: compare the key that signed it with yours (--key)"
_MOST = 1 << 62
_TABLE = """
    CREATE TABLE record(origin TEXT, kind TEXT, seq INTEGER, header BLOB, leaf BLOB,
      PRIMARY KEY(origin, kind, seq, header, leaf)) WITHOUT ROWID
"""
_TYPES = (str, str, int, bytes, bytes)
_INSERT = "INSERT OR IGNORE INTO record VALUES (?, ?, ?, ?, ?)"
_LOGS = "SELECT count(*), origin FROM record WHERE origin > '' GROUP BY origin ORDER BY 1"
_OTHERS = "SELECT count(*) FROM record WHERE origin <> ?"
_NOTES = (
    "SELECT seq, header, leaf FROM record WHERE origin = ? AND kind = 'checkpoint' ORDER BY seq"
)
_EVENTS = (
    "SELECT seq, min(header), leaf, count(*) FROM record WHERE origin = ? AND kind = 'event' "
    "GROUP BY seq ORDER BY seq"
)
_KEYS = (
    "SELECT header FROM record WHERE origin = ? AND kind = 'event' "
    "AND instr(header, CAST('\"verifier_key\":' AS BLOB))"
)
_IS_SHARD = (
    "SELECT 1 FROM record WHERE origin = ? AND kind = 'event' "
    'AND instr(header, CAST(\'"operation":"shards.\' AS BLOB)) LIMIT 1'
)


def verify_copy(
    copy: Copy,
    now_us: int,
    *,
    key: str | None = None,
    checkpoints: Sequence[str] = (),
    progress: Callable[[int], object] = lambda _done: None,
) -> Verification:
    """
    Recompute all hashes and signatures of *copy*, from it alone, in bounded memory.

    Args:
        copy: Which. It is put in order in a temporary file as large as it is.
        now_us: The time, microseconds since 1970 UTC.
        key: The verifier key of the log. None: those that its events name.
        checkpoints: Signed notes that were kept elsewhere.
        progress: Called with the number of records that were read since.

    Raises:
        CopyError: It cannot be read to its end.
        ValueError: The key is not one.
    """
    if key is not None:
        verified("", key)  # one that is none is found before anything is read
    with closing(temporary_database()) as database:
        database.execute(_TABLE)
        database.executemany(_INSERT, _rows(copy, progress))
        whole = _WholeCopy(database, copy, key)
        whole.walk(checkpoints)
        whole.rest(now_us)
        return whole.report


def _rows(copy: Copy, progress: Callable[[int], object]) -> Iterator[tuple[Any, ...]]:
    for origin, kind, seq, _key, header, leaf, _detail in copy.records():
        row = (origin, kind, seq, header, leaf)
        # By type: a column of a file may have another one, and the table leaves out what is NULL.
        is_one = (
            tuple(map(type, row)) == _TYPES and kind in {EVENT, CHECKPOINT} and 0 <= seq < _MOST
        )
        yield row if is_one else ("", "", 0, b"", b"")
        progress(1)


class _WholeCopy:
    def __init__(self, database: Any, copy: Copy, key: str | None) -> None:
        self._database, self._copy, self._key = database, copy, key
        logs = database.execute(_LOGS).fetchall()
        origin: str = key.partition("+")[0] if key else logs[-1][1] if logs else ""
        not_covered = NOT_COVERED if key else (*NOT_COVERED, _WHOSE)
        self.report = Verification(origin=origin, not_covered=not_covered)
        ((others,),) = self._found(_OTHERS)
        if others:
            self.report.tampered(f"{others:,} records are of another log, or of none")
        named = {name for (header,) in self._found(_KEYS) if (name := _named_in(header))}
        self._notary = Notary(origin, [key] if key else [], named)
        self._passed = Pass(origin, 0, bytes(HASH_BYTES).hex())
        self._frontier: Frontier | None = Frontier()
        self._holes: list[tuple[int, int]] = []
        self._notes: Any = None
        self._note: Any = None
        self._at = self._start = self._compacted = self._unproven = 0
        self._claimed = self._unknown = 0

    def _found(self, statement: str) -> Any:
        return self._database.execute(statement, (self.report.origin,))

    def walk(self, checkpoints: Sequence[str]) -> None:
        """Check each stretch of events without a hole, and the checkpoints within it."""
        report, places = self.report, count()
        # Those from elsewhere have no proof with them, and no leaf.
        given = [
            (report.origin, CHECKPOINT, size_of(each), each.encode(), b"") for each in checkpoints
        ]
        self._database.executemany(_INSERT, given)
        self._notes = self._found(_NOTES)
        self._note = self._notes.fetchone()
        for _, stretch in groupby(self._found(_EVENTS), lambda row: row[0] - next(places)):
            self._stretch(stretch)
        while self._note is not None:
            self._take_note(None)
        report.size, report.events, report.valid_events = (
            self._at,
            self._passed.events,
            self._passed.valid,
        )
        report.root = "" if self._frontier is None else self._frontier.root().hex()
        for wrong in self._copy.wrong:
            report.tampered(wrong)
        for name in self._copy.unread:
            what = f"{name} cannot be read: what is in it cannot be told"
            report.find(FindingKind.UNVERIFIABLE, what)
        report.removals = [each.as_document() for each in self._passed.removals]

    def _hole(self, stop: int) -> None:
        self._unproven += self._at - max(self.report.signed, self._start)
        if self._copy.compacted:  # too many to remember each
            self._compacted += stop - self._at
        else:
            self._holes.append((self._at, stop))
        self._at = self._start = stop
        self._frontier = None

    def _stretch(self, found: Iterator[Any]) -> None:
        first = next(found)
        if first[0]:
            self._hole(first[0])
        prev = _prev(first[1]) if first[0] else bytes(HASH_BYTES).hex()
        passed = Pass(self.report.origin, first[0], prev)
        for leaves in passed.leaves(map(self._row, chain([first], found))):
            done, begin = 0, self._at
            self._at += len(leaves)
            while self._note is not None and self._note[0] <= self._at:
                cut = max(done, self._note[0] - begin)
                self._grow(leaves[done:cut])
                done = cut
                self._take_note(leaves[cut - 1] if self._note[0] > self._start else None)
            self._grow(leaves[done:])
        for wrong in passed.wrong:
            self.report.tampered(wrong)
        self._passed.absorb(passed)

    def _row(self, found: Any) -> Sequence[Any]:
        seq, header, leaf, times = found
        if times > 1:
            self.report.tampered(f"event {seq} is there {times} times, and differs")
        return row_of(seq, header, leaf)

    def _grow(self, leaves: Sequence[bytes]) -> None:
        if self._frontier is not None:
            self._frontier.extend(leaves)

    def _take_note(self, last: bytes | None) -> None:
        """Check the next checkpoint. *last*: the hash of its last event; None: that is not here."""
        report, (size, header, leaf) = self.report, self._note
        self._note = self._notes.fetchone()
        report.checkpoints += 1
        try:
            sent = CopyRecord(report.origin, CHECKPOINT, size, report.origin, header, leaf)
            note, edge = proven(sent) if leaf else (header.decode(), None)
        except ValueError:
            report.tampered(f"the checkpoint of {size:,} events is not as it was sent")
            return
        # Where the beginning is gone, the first proof is where the tree goes on from.
        tree = edge if last is None or self._frontier is None else self._frontier
        checked = self._notary.checked(note, {} if tree is None else {size: tree.root()})
        wrong = checked.wrong
        if edge is not None and tree is not None and not wrong:
            is_its = leaf == (last or leaf) and edge.root() == tree.root()
            wrong = "" if is_its else "proves another event, or is of another tree"
        if wrong == UNSIGNED and (self._holes or self._compacted or self._copy.unread):
            self._unknown = size  # the event that names its key may be gone
        elif tree is None and 0 < size <= self._at:
            what = "comes before all that is here, and has no proof with it"
            report.find(FindingKind.UNVERIFIABLE, f"a checkpoint of {size:,} events {what}")
        elif wrong == BEYOND and not leaf:  # the log may have had them, and the copy not yet
            what = f"a checkpoint of {size:,} events, kept elsewhere, is of more than the copy has"
            report.find(FindingKind.UNVERIFIABLE, f"{what}: it is behind, or was cut back")
        elif wrong:
            report.tampered(f"the checkpoint of {size:,} events {wrong}")
        else:
            report.valid_checkpoints += 1
            self._claimed = size
            if last is not None:
                self._frontier = tree
                report.signed = size if checked.is_own or not self._key else report.signed

    def rest(self, now_us: int) -> None:
        """Find what is not there, and say why; and how writers ended, where nothing is missing."""
        report, passed = self.report, self._passed
        if self._claimed > self._at:
            self._holes.append((self._at, self._claimed))
        pruned_to = max((each["to_seq"] for each in passed.pruned), default=-1)
        # What retention removed the log says itself.
        holes = [each for each in self._holes if each[1] - 1 > pruned_to]
        expired = sum(self._missing(*each) for each in holes)
        left = f"; {self._unproven:,} of those left have no proof" if self._unproven else ""
        for lost, why in ((expired, "has expired"), (self._compacted, "is compacted")):
            if lost:
                report.find(FindingKind.LOSS, f"{lost:,} events are gone, the copy {why}{left}")
        if self._copy.compacted:
            report.covered_less.append("the copy may keep no more than the last record of a key")
        if self._unknown > report.signed:
            what = "checkpoints are signed with a key that no event here names: give it (--key)"
            report.find(FindingKind.UNVERIFIABLE, what)
        unsigned = self._at - report.signed
        is_new = report.signed and abs(now_us - passed.last_us) <= SIGNED_WITHIN_S * 1e6
        if unsigned > 0 and not is_new:
            what = f"{unsigned:,} events from {report.signed:,} on are not signed (yet)"
            report.find(FindingKind.UNVERIFIABLE, f"{what}: still being written, or cut back")
        if not passed.events:
            report.find(FindingKind.UNVERIFIABLE, "there is no event in the copy")
        elif self._found(_IS_SHARD).fetchone():
            report.covered_less.append("the numbers of writers, some of which are in other shards")
        elif not self._compacted and all(start == 0 for start, _stop in holes):
            self._writers()

    def _missing(self, start: int, stop: int) -> int:
        """Find why events ``[start, stop)`` are missing. Returns how many of them have expired."""
        if stop <= self._copy.expired:
            return stop - start
        events = f"events {start:,} to {stop - 1:,}"
        if start == 0:
            self.report.find(
                FindingKind.UNVERIFIABLE, f"{events} are not in the copy: it begins later"
            )
        elif start >= self._claimed:
            self.report.find(
                FindingKind.UNVERIFIABLE, f"{events} are not there yet: still being written"
            )
        elif self._is_unread(start, stop):
            self.report.find(
                FindingKind.UNVERIFIABLE, f"{events} are missing, or in what cannot be read"
            )
        else:
            self.report.tampered(f"{events} are missing")
        return 0

    def _is_unread(self, start: int, stop: int) -> bool:
        """Return whether all events ``[start, stop)`` may be in parts that cannot be read."""
        for first, end in sorted(self._copy.unread.values()):
            if first <= start:
                start = max(start, end)
        return start >= stop

    def _writers(self) -> None:
        report, passed, is_all = self.report, self._passed, not self._holes
        lists = (passed.gaps, passed.under_way, ())
        gaps = check_gaps(passed.writers, *lists, report, from_one=is_all)
        # As of the copy's own last moment: one of last year is no loss of this year.
        known = Endings(passed.writers, gaps, NOBODY, False, passed.last_us, is_all)
        check_endings(passed.words, known, report)
        check_spools(passed.spools, report, is_all=is_all)
        check_clocks(passed.stretches, passed.clocks, report)


def _prev(header: bytes) -> str:
    """Return the hash that a header has of the event before; empty: it is none."""
    try:
        return str(orjson.loads(header)["prev"])
    except UNREADABLE:
        return ""


def _named_in(header: bytes) -> str:
    """Return the key that an event names, if it is one that can check signatures."""
    try:
        key = orjson.loads(header)["data"]["verifier_key"]
        verified("", key)
    except UNREADABLE:
        return ""
    return str(key)

"""The check of sealed events, one after the other: number, hash, predecessor, columns."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from hashlib import sha256
from itertools import islice
from operator import itemgetter
from typing import Any, NamedTuple

import msgspec
import orjson
from msgspec import UNSET, UnsetType
from msgspec.structs import astuple

from ..database.database import blob
from ..database.schema import columns_of
from ..record.lived_time import CLOCK_JUMPED, SILENCE_US, Stretch, joined
from ..record.rows import LOG
from ..record.seals import added, identities_in
from ..record.sequence_gaps import UNDER_WAY
from ..record.spool_numbers import SpoolAccount, note_spool
from ..record.writer_events import ABOUT_WRITERS
from ..store.customers import ERASED
from ..store.kept_rows import BROKEN
from ..store.retention import PRUNED
from .writers import LastWords, MissingRange, Writers, last_words, later_words

GAP = "audit.gap"
BLOCK = 512
"""Events that are checked at once, and whose hashes are handed on: they fit a core's cache."""

_COLUMNS = columns_of("audit_event")
_SEALED_AS = {
    "writer_id": "writer",
    "writer_seq": "wseq",
    "occurred_us": "occurred_at",
    "recorded_us": "recorded_at",
}
_sealed = itemgetter(*(_SEALED_AS.get(each, each) for each in _COLUMNS[:-2]))
_BROKEN = (KeyError, TypeError, ValueError, AttributeError)

SELECT = f"SELECT {', '.join(_COLUMNS)} FROM audit_event WHERE seq >= ? AND seq < ? ORDER BY seq"  # noqa: S608 - columns of ours
"""What `Pass.leaves` is given."""


class RecordedRemoval(NamedTuple):
    """
    What was removed, as the log says.

    Attributes:
        name: The event that says it.
        recorded_us: When it was recorded, microseconds since 1970 UTC.
        newest_us: When the newest of the events had been recorded; None: it does not say.
        to_seq: The last of the events; -1: none went.
        kept_days: How long they were kept, if less than six months; else 0.
        reason: Why that was enough.
    """

    name: str
    seq: int
    recorded_us: int
    writer: str
    events: int
    details: int
    newest_us: int | None
    to_seq: int
    kept_days: int = 0
    reason: str = ""

    def as_document(self) -> dict[str, Any]:
        """Return the removal as JSON types."""
        document = self._asdict()
        del document["to_seq"]
        if not self.kept_days:
            del document["kept_days"], document["reason"]
        return document


def row_of(seq: int, header: bytes, leaf: bytes) -> Sequence[Any]:
    """Return an event that stands in no table as a row of `SELECT`, from its header."""
    try:
        return (seq, *_columns(astuple(_read(header)))[1:], header, leaf)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        # What is sealed cannot be read: the check finds that, whatever the columns are.
        return (seq, *(0 for _ in _COLUMNS[1:-2]), header, leaf)


class _Sealed(msgspec.Struct, frozen=True, gc=False):
    """What is compared and counted of a header: first what the table repeats, in its order."""

    seq: int
    writer: str
    wseq: int
    kind: str
    occurred_at: int
    recorded_at: int
    operation: str
    op_class: str
    store: str
    method: str
    status: str
    nested: bool
    duration_us: int
    feature: str | None
    prev: str
    log: str
    detail_commit: str | UnsetType | None = UNSET
    usage: dict[str, Any] | UnsetType | None = UNSET
    identities: str | None = None


# By msgspec, which skips the fields that are not compared.
_read = msgspec.json.Decoder(_Sealed).decode
_columns = itemgetter(slice(len(_COLUMNS) - 2))  # all but header and leaf


class Pass:
    """
    A check of consecutive events.

    Args:
        first: Number of the first event.
        prev: Hash of the one before it, in hexadecimal.

    Attributes:
        prev: Hash of the last one, in hexadecimal.
        next_seq: The number that comes next.
        valid: How many of them are as they were sealed.
        events: How many there were; how many of them are *operations*, how many committed to a
            detail, and how many say what a model call consumed (*usages*).
        gone: How many details were deleted, as the log says.
        gone_sum: Which they are, as a keyed sum; see `missing_details`.
        identities: The keyed sum of customers and their identifiers, as the events have it.
        removals: Each time that something was removed.
        last_us: When the last one was recorded.
        stretches: How time went on, oldest first.
        clocks: The data of each event that says that a clock jumped, by its number.
        writers: What each writer has counted.
        words: What each said of itself last.
        spools: What the log says of each spool.
        keys: Verifier keys that the log names.
        gaps: Losses that it declares; *under_way*: the holes of calls that were not over.
        pruned: The data of each step of retention: what it removed, and the counts of that.
    """

    def __init__(self, origin: str, first: int, prev: str) -> None:
        self.prev = prev
        self.next_seq: int = first
        self.events = self.operations = self.committed = self.usages = self.gone = 0
        self.valid: int = 0
        self.last_us = self.gone_sum = self.identities = 0
        self.removals: list[RecordedRemoval] = []
        self.writers = Writers()
        self.words: dict[str, LastWords] = {}
        self.spools: dict[str, SpoolAccount] = {}
        self.keys: set[str] = set()
        self.gaps: list[MissingRange] = []
        self.under_way: list[MissingRange] = []
        self.pruned: list[dict[str, Any]] = []
        self.stretches: list[Stretch] = []
        self.clocks: dict[int, dict[str, Any]] = {}
        self.wrong: list[str] = []
        self._origin = origin

    def absorb(self, later: Pass) -> None:
        """Go on from where *later* ended, which began where this one is, and found all in order."""
        self.prev, self.next_seq, self.last_us = later.prev, later.next_seq, later.last_us
        self.events += later.events
        self.valid += later.valid
        self.operations += later.operations
        self.committed += later.committed
        self.usages += later.usages
        self.gone += later.gone
        self.gone_sum = added(self.gone_sum, later.gone_sum)
        self.identities = added(self.identities, later.identities)
        self.removals += later.removals
        self.writers.update(later.writers)
        for writer, words in later.words.items():
            self.words[writer] = later_words(self.words.get(writer), words)
        for spool, account in later.spools.items():
            self.spools.setdefault(spool, SpoolAccount()).absorb(account)
        self.keys |= later.keys
        self.gaps += later.gaps
        self.under_way += later.under_way
        self.pruned += later.pruned
        self.stretches = joined([*self.stretches, *later.stretches])
        self.clocks |= later.clocks

    def counted_before(self, name: str) -> int:
        """Return what was counted as *name* in the events that retention removed."""
        # A step counts what those said that it removed itself, so that none is counted twice.
        return sum(each.get(name, 0) for each in self.pruned)

    def leaves(self, rows: Iterable[Any]) -> Iterator[list[bytes]]:
        """Check *rows* of `SELECT`, and yield their hashes as they are, in blocks."""
        ordered = iter(rows)
        while block := list(islice(ordered, BLOCK)):
            # All at once while all is in order; row by row only where it is to be said what is not.
            yield self._in_order(block) or [self._leaf(row) for row in block]
            self._went_on(block)

    def _went_on(self, rows: list[Any]) -> None:
        """Note how time went on through *rows*."""
        times = [row[5] for row in rows]
        if times == sorted(times) and times[-1] - times[0] <= SILENCE_US:
            parts = [Stretch(rows[0][0], rows[-1][0], times[0], times[-1])]
        else:
            parts = [Stretch(row[0], row[0], row[5], row[5]) for row in rows]
        # The last one may go on; those before it have ended, however many they are.
        self.stretches[-1:] = joined([*self.stretches[-1:], *parts])

    def _in_order(self, rows: list[Any]) -> list[bytes] | None:
        """
        Check *rows* all at once, and return their hashes.

        None: it cannot be told of all of them that they are in order; nothing is counted then.
        """
        headers = [blob(row[-2]) for row in rows]
        leaves = [sha256(b"\x00" + each).digest() for each in headers]
        try:
            known = list(map(_read, headers))
            if not self._follow(known, leaves, rows):
                return None
        except (msgspec.MsgspecError, *_BROKEN):
            return None
        self.events += len(rows)
        self.valid += len(rows)
        self._count_all(known, headers, rows)
        self.prev, self.next_seq, self.last_us = leaves[-1].hex(), known[-1].seq + 1, rows[-1][5]
        return leaves

    def _follow(self, known: list[_Sealed], leaves: list[bytes], rows: list[Any]) -> bool:
        """Return whether each has its hash, follows the one before it, and says what it sealed."""
        times = [row[5] for row in rows]
        return (
            leaves == [row[-1] for row in rows]
            and list(map(_columns, rows)) == list(map(_columns, map(astuple, known)))
            and [each.prev for each in known] == [self.prev, *(each.hex() for each in leaves[:-1])]
            and [each.log for each in known].count(self._origin) == len(rows)
            and [row[0] for row in rows] == [*range(self.next_seq, self.next_seq + len(rows))]
            # Time may go back where an event says that a clock jumped, which is looked at row by
            # row.
            and times[0] >= self.last_us
            and times == sorted(times)
        )

    def _count_all(self, known: list[_Sealed], headers: list[bytes], rows: list[Any]) -> None:
        for each, header, row in zip(known, headers, rows, strict=True):
            commit, usage = each.detail_commit, each.usage
            # A header that lacks one of the two was not written by this library.
            if each.kind == LOG or each.identities is not None or commit is UNSET or usage is UNSET:
                self._count_one(header, row)
                continue
            self.operations += 1
            self.committed += commit is not None
            self.usages += usage is not None
            self.writers.add(each.writer, each.wseq)

    def _count_one(self, header: bytes, row: Any) -> None:
        """Count an event that says more than an operation does, or less than it should."""
        try:
            self._count(orjson.loads(header), row)
        except _BROKEN:
            self.wrong.append(f"event {row[0]}: what is sealed cannot be read")
            self.valid -= 1

    def _leaf(self, row: Any) -> bytes:
        header, seq = blob(row[-2]), row[0]
        leaf = sha256(b"\x00" + header).digest()
        try:
            known = orjson.loads(header)
            is_valid: bool = (
                known["prev"] == self.prev
                and seq == self.next_seq
                and leaf == row[-1]
                and _sealed(known) == tuple(row[:-2])
                and (row[5] >= self.last_us or _is_set_back(known, self.last_us))
                and known["log"] == self._origin
            ) or self._is_valid(known, row, leaf)
            self._count(known, row)
        except _BROKEN:
            self.wrong.append(f"event {seq}: what is sealed cannot be read")
            is_valid = False
        self.events += 1
        self.valid += is_valid
        self.prev, self.next_seq, self.last_us = leaf.hex(), seq + 1, row[5]
        return leaf

    def _is_valid(self, known: dict[str, Any], row: Any, leaf: bytes) -> bool:
        """Return False, and add to `wrong` what does not hold."""
        seq, before = row[0], len(self.wrong)
        if known["prev"] != self.prev:
            self.wrong.append(f"event {seq} does not follow the one before it")
        if seq != self.next_seq:
            self.wrong.append(f"events {self.next_seq} to {seq - 1} are missing")
        if leaf != row[-1]:
            self.wrong.append(f"event {seq} is not what was sealed")
        names = zip(_COLUMNS[:-2], _sealed(known), row[:-2], strict=True)
        self.wrong += [
            f"event {seq}: column {name} is not what was sealed"
            for name, sealed, column in names
            if sealed != column
        ]
        if row[5] < self.last_us and not _is_set_back(known, self.last_us):
            self.wrong.append(f"event {seq} was recorded before the one before it")
        if known["log"] != self._origin:
            self.wrong.append(f"event {seq} is of another log")
        return len(self.wrong) == before

    def _count(self, known: dict[str, Any], row: Any) -> None:
        if known["kind"] == LOG or "identities" in known:
            self.identities = added(self.identities, identities_in(known))
        if known["kind"] == LOG:
            self._note(known, known["data"], row[5])
            return
        self.operations += 1
        self.committed += known["detail_commit"] is not None
        self.usages += known["usage"] is not None
        self.writers.add(row[1], row[2])

    def _note(self, known: dict[str, Any], data: dict[str, Any], recorded_us: int) -> None:
        name = known["operation"]
        if "gone" in data:
            self.gone_sum = added(self.gone_sum, int(data["gone"], 16))
        if name == BROKEN:
            at = f"the head of the log, of {data['from']:,} events"
            self.wrong.append(f"event {known['seq']}: {at}, had been changed by somebody else")
        if name in {PRUNED, ERASED}:
            self.removals.append(_removal(known, data))
        self.gone += data.get("n_details", 0)
        if "verifier_key" in data:
            self.keys.add(data["verifier_key"])
        if name == PRUNED:
            self.pruned.append(data)
        if name == CLOCK_JUMPED:
            self.clocks[known["seq"]] = data
        if name in ABOUT_WRITERS:
            writer = data["writer"]
            self.words[writer] = last_words(self.words.get(writer), name, data, recorded_us)
        note_spool(self.spools, name, data)
        if name == GAP:
            gap = MissingRange(data["writer"], data["from_wseq"], data["to_wseq"])
            # Nobody was told that these were done, so they are no loss.
            (self.under_way if data.get("reason") == UNDER_WAY else self.gaps).append(gap)


def _is_set_back(known: dict[str, Any], last_us: int) -> bool:
    """Return whether an event says that time goes back with it, from where it was."""
    is_jump = known["kind"] == LOG and known["operation"] == CLOCK_JUMPED
    return bool(is_jump and known["data"]["newest_us"] == last_us)


def _removal(known: dict[str, Any], data: dict[str, Any]) -> RecordedRemoval:
    events = data["to_seq"] - data["from_seq"] + 1 if "to_seq" in data else 0
    newest_us = data.get("newest_us")
    at = (known["operation"], known["seq"], known["recorded_at"], known["writer"])
    details, to_seq = data.get("n_details", 0), data.get("to_seq", -1)
    sooner = data.get("kept_days", 0), data.get("reason", "")
    return RecordedRemoval(*at, events, details, newest_us, to_seq, *sooner)

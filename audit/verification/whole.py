"""The verification of a whole log, or of what came since an earlier one."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from ...telemetry.queue.folder import files_in, writer_of
from ..database.database import blob
from ..database.errors import UNREADABLE, AuditError, KeyMissingError
from ..log import AuditLog
from ..proof.merkle import HASH_BYTES, TILE_BITS, TILE_LEAVES, Frontier, Prover
from ..proof.note import Signer
from ..sink.spool import beside, spool_files, spool_stats
from ..store.departed import all_declared, all_recorded
from ..store.heads import stored_heads
from ..store.roll import NOBODY, Roll, RollState, roll_beside
from ..store.snapshot import Snapshot
from ..store.tree import StoredHashes
from .clocks import check_clocks
from .details import Details
from .events import BLOCK, SELECT, Pass
from .ranges import (
    LEAST,
    LESS_WORK,
    Each,
    LogLocation,
    UnsoundError,
    checked,
    mark,
    processes,
    ranges,
)
from .report import FindingKind, Verification
from .subjects import check_keys, check_subjects
from .tables import Tables, wrong_tiles
from .tree import (
    BEYOND,
    CheckpointResult,
    Notary,
    StoredCheckpoint,
    TreeGrowth,
    check_from_elsewhere,
    check_head,
    check_kept,
    kept_checkpoints,
    size_of,
)
from .writers import (
    Elsewhere,
    Endings,
    MissingRange,
    Writers,
    check_endings,
    check_gaps,
    check_spools,
)

_AHEAD = "a checkpoint of {:,} events is of more than this replica has: it is behind, or was cut"
SIGNED_WITHIN_S = 10.0
"""Seconds after which an event that nothing signs is a finding: a writer signs within one."""

Progress = Callable[[int], object]
Said = Callable[[str], object]


def _unsaid(_text: str) -> None:
    """Say nothing."""


def verify(
    log: AuditLog,
    *,
    since: int = 0,
    checkpoints: Sequence[str] = (),
    with_details: bool = True,
    progress: Progress = lambda _done: None,
    jobs: int = 1,
    said: Said = _unsaid,
) -> Verification:
    """
    Recompute all hashes, seals and signatures of *log*.

    Args:
        log: Which.
        since: The first event to check; what is before is taken for what it says it is.
        checkpoints: Signed notes that were kept elsewhere.
        with_details: Whether to open each detail, which takes most of the time.
        progress: Called with the number of events and details that were checked since.
        jobs: Processes that share a large log. They import the main module of this one, which
            must do nothing when it is imported.
        said: Called with the reason why one process has to do it after all.

    Raises:
        AuditError: The log cannot be read.
        ValueError: There is no event *since*.
    """
    # Read before the log: who ends in between is in the log.
    standing, waiting = _beside(log)
    with log.reading(as_it_is=True) as snapshot:
        if not 0 <= since <= snapshot.size:
            raise ValueError(f"the log has {snapshot.size:,} events: there is none after {since:,}")
        counted_once = _ProgressOnce(progress)
        # What retention has removed cannot be checked again; its hashes can.
        first = max(since, _first_seq(snapshot))
        options = VerifyOptions(first, checkpoints, with_details, counted_once, standing, waiting)
        least = LEAST if with_details else LEAST * LESS_WORK
        if jobs > 1 and snapshot.size - options.since >= least:
            try:
                with processes(jobs) as each:
                    return report_of(log, snapshot, options, each)
            except UnsoundError as exc:
                said(f"verified again by one process: {exc}")
                counted_once.begin_again()
        return report_of(log, snapshot, options)


def _first_seq(snapshot: Snapshot) -> int:
    """Return the first event that there may be: a head may claim any, and each one takes time."""
    tiles: int = _row(snapshot, "SELECT count(*) FROM audit_tile WHERE level = 0")[0]
    return min(snapshot.first_seq, tiles * TILE_LEAVES, snapshot.size)


class VerifyOptions(NamedTuple):
    """The options of `verify`."""

    since: int = 0
    checkpoints: Sequence[str] = ()
    with_details: bool = True
    progress: Progress = lambda _done: None
    standing: RollState = NOBODY
    waiting: int = 0


def _beside(log: AuditLog) -> tuple[RollState, int]:
    """Return the living writers of this machine, and how many events wait in its spool."""
    path, folder = log.spool_path, log.relay_folder
    # A file is there until all that is in it is delivered, and the end of its writer is declared.
    relayed = frozenset[str]() if folder is None else frozenset(map(writer_of, files_in(folder)))
    if path is None:
        return RollState({}, relayed), 0
    standing = Roll(roll_beside(path), log.ring).standing()
    standing = standing._replace(alive=standing.alive | relayed)
    return standing, spool_stats(path).events


def _elsewhere(log: AuditLog) -> Elsewhere:
    """Return what is beside a shard, read after it: what has come into it since counts as well."""
    writers, gaps = Writers(), list[MissingRange]()
    others = [each for each in log.trail.shards if each is not log]
    # By files: a shard that came just now is in no log, and what waits for it was counted.
    spools = beside(log.trail.spool_path).values()
    has_spool = any(spool_stats(each).events for each in spools if each != log.spool_path)
    if not others:
        return Elsewhere(writers, gaps, has_spool)
    for each in (*others, log):
        with each.begun(as_it_is=True) as snapshot:
            if snapshot is None:
                continue
            if each is not log:
                begun = dict[str, int]()
                for writer, first, last in all_recorded(snapshot.connection):
                    writers.add_range(writer, first, last)
                    begun[writer] = min(first, begun.get(writer, first))
                if snapshot.first_seq:  # what retention has removed was there
                    gaps += (MissingRange(writer, 1, first - 1) for writer, first in begun.items())
                gaps += (MissingRange(*its) for its in all_declared(snapshot.connection))
            else:
                gaps += (MissingRange(*its) for its in all_recorded(snapshot.connection))
    return Elsewhere(writers, gaps, has_spool)


def report_of(
    log: AuditLog, snapshot: Snapshot, options: VerifyOptions, each: Each | None = None
) -> Verification:
    """
    Check one moment of *log*.

    Args:
        log: Which.
        snapshot: The moment.
        options: How much of it.
        each: What checks ranges of it, beside each other. None: one pass over all of it.

    Raises:
        UnsoundError: A range is not in order; what is wrong, one pass can tell.
    """
    whole = _Whole(log, snapshot, options)
    try:
        whole.check(each)
    except UnsoundError:
        raise
    except Exception as exc:
        # The database's own error: a definition that was changed may break any query.
        if not whole.report.counts[FindingKind.TAMPERED]:
            raise
        whole.report.tampered(f"the rest of it cannot be read ({type(exc).__name__})")
    return whole.report


class _ProgressOnce:
    """A progress callback that counts each event once, however often it is checked."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._counted = self._again = 0

    def __call__(self, done: int) -> None:
        again = min(done, self._again)
        self._again -= again
        self._counted += done - again
        self._progress(done - again)

    def begin_again(self) -> None:
        """Count nothing until the events that were counted are checked again."""
        self._again = self._counted


class _Whole:
    def __init__(self, log: AuditLog, snapshot: Snapshot, options: VerifyOptions) -> None:
        since = options.since
        self.report = Verification(size=snapshot.size, since=since, origin=snapshot.origin)
        self._log = log
        self._snapshot = snapshot
        self._options = options
        self._since = self._unopened = since
        self._usages = 0
        self._has_stopped = False
        self._is_all = since <= snapshot.first_seq
        self._hashes = StoredHashes(snapshot)
        self._tables = Tables(snapshot, self.report)
        self._passed = Pass(snapshot.origin, since, self._before(since))

    def _before(self, since: int) -> str:
        """Return the hash of the event before *since*, in hexadecimal; empty: it is not there."""
        if not since:
            return bytes(HASH_BYTES).hex()
        found = self._hashes.leaves(since - 1, since)
        return blob(found[0]).hex() if found else ""

    def check(self, each: Each | None) -> None:
        """Check all of it; see `report_of`."""
        with self.readable("the head of the log"):
            self.tables()
        with self.readable("what is sealed"):
            self.events(each)
        if self._options.with_details:
            with self.readable("what may be erased"):
                self.details()
        self.places()

    @contextmanager
    def readable(self, what: str) -> Generator[None]:
        """Turn what a changed row makes of the body into a finding: it can break anything."""
        try:
            yield
        except UNREADABLE as exc:
            self.report.tampered(f"{what} cannot be read to its end ({type(exc).__name__})")
            self._has_stopped = True

    def places(self) -> None:
        """Say where something stands that kept a check from its end."""
        for each in self._snapshot.connection.wrong_values() if self._has_stopped else ():
            self.report.tampered(each)

    def tables(self) -> None:
        """Check the definitions of the tables, and the seal of the head."""
        # An index is held against its table by reading both, which is for a whole check.
        is_whole = self._is_all and self._options.with_details
        self._tables.definitions(with_indexes=is_whole)
        if not self._snapshot.head:
            return
        try:
            self._tables.seal()
        except KeyMissingError:
            self.report.find(
                FindingKind.UNVERIFIABLE, "seals cannot be checked: the secret is not here"
            )

    def events(self, each: Each | None) -> None:
        """Check the sealed events, the tree over them, and the checkpoints."""
        snapshot, passed, elsewhere = self._snapshot, self._passed, self._options.checkpoints
        kept = kept_checkpoints(snapshot, 0 if self._is_all else self._since)
        heads = stored_heads(snapshot.connection)
        notes = [*(heads or ()), *elsewhere]
        sizes = [snapshot.size, *(each.size for each in kept), *map(size_of, notes)]
        growth = self._grown(sizes)
        if each is None:
            self._walk(growth)
        else:
            self._join(growth, each)
        for wrong in (*passed.wrong, *growth.wrong):
            self.report.tampered(wrong)
        self.report.events = snapshot.size - self._since
        self.report.valid_events = passed.valid
        self._head(growth.frontier)
        self._writers()
        check_clocks(passed.stretches, passed.clocks, self.report)
        self._tables.removals(passed, self._log.retention_days)
        for size in map(size_of, notes):
            if 0 <= size < self._since:
                # From the stored hashes, which the roots that are computed anew have to fit.
                growth.roots[size] = Prover(self._hashes, size).root()
        notary = Notary(snapshot.origin, self._own_keys(), self._named_keys())
        self._checkpoints(kept, elsewhere, notary, growth.roots)
        self._signed_end(heads, notary, growth.roots)

    def _walk(self, growth: TreeGrowth) -> None:
        rows = self._snapshot.stream(SELECT, (self._since, self._snapshot.size))
        for leaves in self._passed.leaves(rows):
            growth.grow(leaves)
            self._options.progress(len(leaves))

    def _join(self, growth: TreeGrowth, each: Each) -> None:
        """Put together what the ranges of the log are, details included."""
        snapshot, report = self._snapshot, self.report
        (events,) = _row(snapshot, "SELECT count(*) FROM audit_event")
        # Otherwise a range that is empty would be found to be in order.
        if events < snapshot.size - self._since:
            raise UnsoundError("events are missing")
        given = ranges(self._since, snapshot.size, growth.sizes_in)
        for part in checked(self._where(), given, each):
            self._passed.absorb(part.passed)
            growth.graft(part.subtrees)
            report.details += part.details
            report.valid_details += part.details
            self._usages += part.usages
            self._options.progress(part.passed.events + part.details)
        self._unopened = snapshot.size

    def _where(self) -> LogLocation:
        log, snapshot, opens = self._log, self._snapshot, self._options.with_details
        try:
            if opens:
                snapshot.check_keys()
        except (AuditError, *UNREADABLE):
            raise UnsoundError("its details cannot be opened") from None
        secrets = log.ring.unwrapping()
        return LogLocation(log.url, secrets, mark(snapshot), self._since, self._passed.prev, opens)

    def _grown(self, sizes: Sequence[int]) -> TreeGrowth:
        """Return the tree as it was before the first event that is checked."""
        if not self._is_all:
            before = Prover(self._hashes, self._since).frontier()
            return TreeGrowth(before, sizes, self._snapshot)
        growth = TreeGrowth(Frontier(), sizes, self._snapshot)
        for start in range(0, self._since, BLOCK):  # what retention removed has left its hashes
            growth.grow(self._hashes.leaves(start, min(start + BLOCK, self._since)))
        return growth

    def _head(self, frontier: Frontier) -> None:
        """Hold the head of the log against the events."""
        report, passed, snapshot = self.report, self._passed, self._snapshot
        report.root = frontier.root().hex()
        self._strays()
        head = snapshot.head
        if not head:
            return
        if passed.next_seq != snapshot.size:
            report.tampered(f"events {passed.next_seq} to {snapshot.size - 1} are missing")
        end = blob(head["prev_leaf"]).hex(), blob(head["frontier"])
        if end != (passed.prev, frontier.to_bytes()):
            report.tampered("the head of the log does not match its last event")
        # The column has had another name since version 7 of the tables.
        newest_us = head.get("newest_us", head.get("recorded_us"))
        if passed.events and newest_us != passed.last_us:
            report.tampered("the head of the log has another time than its last event")
        operations = passed.operations + passed.counted_before("n_operations")
        if self._is_all and snapshot.operations != operations:
            report.tampered("the head of the log counts another number of operations")
        removed_to = passed.pruned[-1]["to_seq"] if passed.pruned else -1
        if self._is_all and removed_to + 1 != snapshot.first_seq:
            report.tampered("events are gone that retention did not remove")

    def _strays(self) -> None:
        snapshot, report = self._snapshot, self.report
        (beyond,) = _row(
            snapshot,
            "SELECT count(*) FROM audit_event WHERE seq < ? OR seq >= ?",
            (snapshot.first_seq, snapshot.size),
        )
        if beyond:
            report.tampered(f"{beyond:,} events are outside of the log: its head was rolled back")
        for table in ("audit_memory", "audit_detail", "audit_usage"):
            (strays,) = _row(
                snapshot,
                f"SELECT count(*) FROM {table} WHERE seq < 0 OR seq >= ?",  # noqa: S608 - ours
                (snapshot.size,),
            )
            if strays:
                report.tampered(f"{strays:,} rows of {table} are of events that there are not")
        levels = range(1, snapshot.size.bit_length() // TILE_BITS + 1)
        full = {each: snapshot.size >> TILE_BITS * each for each in levels}
        full[0] = snapshot.first_seq // TILE_LEAVES + self._kept_before()
        if wrong_tiles(snapshot, full, _tile_bytes):
            report.tampered("the number of tiles does not fit the number of events")

    def _kept_before(self) -> int:
        """Return how many tiles of leaves are kept whose events retention is about to drop."""
        snapshot, kept = self._snapshot, 0
        first = snapshot.first_seq // TILE_LEAVES
        statement = "SELECT hash FROM audit_tile WHERE level = 0 AND idx >= ? ORDER BY idx"
        for (tile,) in snapshot.stream(statement, (first,)):
            at = (first + kept) * TILE_LEAVES
            if blob(tile) != b"".join(self._hashes.leaves(at, at + TILE_LEAVES)):
                break
            kept += 1
        return kept

    def _writers(self) -> None:
        """Look for gaps in the sequences of writers, declared or not."""
        report, passed, elsewhere = self.report, self._passed, _elsewhere(self._log)
        writers = passed.writers
        writers.update(elsewhere.writers)
        lists = (passed.gaps, passed.under_way, elsewhere.gaps)
        gaps = check_gaps(writers, *lists, report, from_one=not self._since)
        spool = self._log.spool_path
        known = Endings(
            writers,
            gaps,
            self._options.standing,
            has_spool=elsewhere.has_spool or (spool is not None and bool(spool_files(spool))),
            now_us=self._log.now_us(),
            is_all=not self._since,
        )
        check_endings(passed.words, known, report)
        report.waiting = self._options.waiting
        check_spools(passed.spools, report, is_all=not self._since)

    def _checkpoints(
        self,
        kept: Sequence[StoredCheckpoint],
        elsewhere: Sequence[str],
        notary: Notary,
        roots: dict[int, bytes],
    ) -> None:
        checked = [*(check_kept(each, notary, roots) for each in kept)]
        checked += [check_from_elsewhere(each, notary, roots) for each in elsewhere]
        # An old checkpoint by a lost secret is vouched for by a newer one over it.
        covered = max((each.size for each in checked if each.is_own and not each.wrong), default=-1)
        self.report.signed = max(covered, 0)
        for each in checked:
            self._count_checkpoint(each, covered)

    def _signed_end(
        self, heads: Sequence[str] | None, notary: Notary, roots: dict[int, bytes]
    ) -> None:
        """Hold the signed end against the tree, and find events that are signed by nothing."""
        report, snapshot = self.report, self._snapshot
        for each in heads or ():
            end = check_head(each, notary, roots)
            if end.wrong:
                report.tampered(end.wrong)
            elif end.is_own:
                report.signed = max(report.signed, end.size)
        if heads is None:
            return  # of an older version, which signed now and then
        if len(heads) != 1 and snapshot.size:
            report.find(FindingKind.UNVERIFIABLE, "the end of the log is not signed (yet)")
        unsigned = snapshot.size - report.signed
        if unsigned > 0 and not self._is_new(report.signed):
            what = f"{unsigned:,} events from {report.signed:,} on are not signed (yet)"
            report.find(FindingKind.UNVERIFIABLE, what)

    def _is_new(self, seq: int) -> bool:
        """Return whether an event was recorded just now: it is signed in a moment."""
        statement = "SELECT recorded_us FROM audit_event WHERE seq = ?"
        found = _row(self._snapshot, statement, (seq,))
        age_us = None if found is None else self._log.now_us() - found[0]
        # In both directions: clocks of two machines differ.
        return age_us is not None and abs(age_us) <= SIGNED_WITHIN_S * 1e6

    def _count_checkpoint(self, checked: CheckpointResult, covered: int) -> None:
        self.report.checkpoints += 1
        if checked.wrong:
            # Of a log that is behind, a checkpoint kept elsewhere is of what comes yet.
            is_behind = checked.wrong.endswith(BEYOND) and self._snapshot.connection.is_replica()
            kind = FindingKind.UNVERIFIABLE if is_behind else FindingKind.TAMPERED
            self.report.find(kind, _AHEAD.format(checked.size) if is_behind else checked.wrong)
        elif not checked.is_own and checked.size > covered:
            whose = "is signed with a secret that is not here"
            self.report.find(
                FindingKind.UNVERIFIABLE, f"the checkpoint of {checked.size:,} events {whose}"
            )
        else:
            self.report.valid_checkpoints += 1

    def _own_keys(self) -> list[str]:
        keys = (each.key("audit/sign") for _key_id, each in self._log.ring)
        return [Signer(self._snapshot.origin or "-", each).verifier_key for each in keys]

    def _named_keys(self) -> set[str]:
        """Return the keys that the log itself names, and see that its table names the same."""
        named = self._passed.keys
        found = self._snapshot.execute("SELECT verifier_key FROM audit_key").fetchall()
        listed = {key for (key,) in found}
        if self._since:
            return named | listed  # the events that name them are not looked at, or gone
        if listed != named:
            self.report.tampered("the keys that are listed are not those that the log names")
        return named

    def details(self) -> None:
        """Check what may be erased, as far as that was not done along with the events."""
        report, passed = self.report, self._passed
        if not self._snapshot.size:
            return
        check_keys(self._snapshot, self._log.ring, report)
        try:
            self._snapshot.check_keys()
        except KeyMissingError:
            report.find(
                FindingKind.UNVERIFIABLE, "details cannot be opened: the secret is not here"
            )
            return
        with self.readable("the sums of the tables"):
            self._tables.sums()
        check_subjects(self._snapshot, report)
        details = Details(self._snapshot, report, self._options.progress)
        details.check(self._unopened)
        usages = self._usages + details.check_usages(self._unopened)
        if usages != passed.usages:
            report.tampered(f"{passed.usages:,} events have a usage, and {usages:,} are listed")
        if self._is_all:
            self._tables.gone(passed)
            with self.readable("the customers and their identifiers"):
                self._tables.identities(passed)
        report.erased = max(0, passed.committed - report.details)
        missing = passed.committed + passed.counted_before("n_committed") - report.details
        erased = passed.gone + passed.counted_before("n_gone")
        if missing > erased or (self._is_all and missing < erased):
            report.tampered(
                f"{missing:,} details are gone, and the log declares {erased:,} as erased"
            )


def _tile_bytes(level: int) -> int:
    return HASH_BYTES if level else HASH_BYTES * TILE_LEAVES


def _row(snapshot: Snapshot, statement: str, values: Sequence[int] = ()) -> Any:
    return snapshot.execute(statement, values).fetchone()

"""
The whole mutation sweep: make audit-sweep.

Every byte of every value of every row of a log of 200 operations is changed, one at a time, and the
log verified; then every byte of an export. Then all that somebody without the key can do to rows,
columns, indexes and triggers is done, in SQLite and in PostgreSQL. And every byte of the spool of a
process that was killed is changed, each record and the files themselves removed;
then the next process comes. Last, somebody has the key as well, and makes all that they changed fit
again: what shows by itself is counted, and what shows against a checkpoint kept elsewhere. What was
not found out fails the sweep, save changes of an export that change nothing that is in it, and
changes beside a spool of which every event gets into the log.

An event is verified with its neighbours first, as a range of the log is by one of several
processes. Only a range that is found to be in order leaves it to the whole verification to say so;
and of those that are not, some are verified as a whole too, which must find the same.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import shutil
import sys
import tempfile
import time
import zipfile
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import closing, suppress
from functools import lru_cache, partial
from itertools import islice
from pathlib import Path
from typing import Any

from mnemoscope.audit.bundle import verify as bundles
from mnemoscope.audit.bundle.contract import Request
from mnemoscope.audit.bundle.source import source
from mnemoscope.audit.bundle.writing import write_bundle
from mnemoscope.audit.database.errors import AuditError
from mnemoscope.audit.log import AuditLog
from mnemoscope.audit.sink.sink import AuditSink
from mnemoscope.audit.sink.spool import Spool, spool_files
from mnemoscope.audit.verification.ranges import LogLocation, Range, check_range, mark
from mnemoscope.audit.verification.whole import verify
from mnemoscope.memory.privacy.engine.content import content_again
from mnemoscope.telemetry.delivery.drain import Drain
from mnemoscope.telemetry.event.event import Event, OperationClass, Status
from mnemoscope.telemetry.event.subject import SubjectKeys
from mnemoscope.telemetry.event.trace import TraceRef
from mnemoscope.telemetry.files.framing import scan
from mnemoscope.telemetry.queue.event_file import KIND, STATE_AT
from tests.kit import database_attacks, key_holder, tampering
from tests.kit.postgres import Postgres

KEYS = SubjectKeys(b"a secret for a sweep")
IN_MEMORY = Path("/dev/shm")  # noqa: S108 - what is made in it has a name of its own
CONTROL = 64
"""Of so many changes that a range shows, one is verified as a whole, too."""
MADE_ANEW = (
    *("audit_tile", "audit_event.leaf"),
    *(f"audit_log.{each}" for each in ("size", "operations", "prev_leaf", "frontier")),
    *(f"audit_log.{each}" for each in ("newest_us", "sums", "seal")),
)
"""What whoever has the key computes from the rest, so that nothing is left of a change of it."""
BEYOND_ANCHORS = ("audit_erasure", "audit_key", "audit_log.")
"""What they may change unseen: no event has it, and none of it is a customer's data."""
WITHOUT_DETAILS = {"audit_log", "audit_event", "audit_tile"}
"""What the details have no part in: the shorter verification is a part of the whole one."""


def event(**given: Any) -> Event:
    """Return an event as the tests make them."""
    known: dict[str, Any] = {
        "writer_id": "00000000000000aa",
        "started_ns": 1_700_000_000_123_456_789,
        "duration_s": 0.0125,
        "operation": "search_memory",
        "op_class": OperationClass.RECALL,
        "store": "mem0",
        "method": "search",
        "status": Status.OK,
        "trace": TraceRef(0xA1, 0xB1),
        "tenant": "acme",
    }
    return Event(**(known | given))


def rows(path: Path, share: int, shares: int) -> tuple[Counter[Any], Counter[Any]]:
    """Return how many bytes of one share were changed, and how many of them unseen."""
    copy = tampering.copy_of(path, path.with_name(f"copy-{share}.db"))
    tried: Counter[Any] = Counter()
    missed: Counter[Any] = Counter()
    log = AuditLog(copy, KEYS)
    nearby = Nearby(log)
    with closing(tampering.Tampering(copy)) as tamper:
        for number, (cell, value) in enumerate(islice(changes(path), share, None, shares)):
            if tamper.set(cell, value):
                tried[cell.kind, cell.column] += 1
                is_near = number % CONTROL != 0 and nearby.finds(cell)
                missed[cell.kind, cell.column] += not (is_near or is_found(log, cell))
                tamper.put_back(cell, value)
    log.close()
    return tried, missed


class Nearby:
    """
    Finds a changed event with the ones beside it alone.

    Args:
        log: In order.
    """

    def __init__(self, log: AuditLog) -> None:
        with log.reading() as snapshot:
            self._size = snapshot.size
            moment = mark(snapshot)
        secrets, prev = log.ring.unwrapping(), bytes(32).hex()
        headers = LogLocation(log.url, secrets, moment, 0, prev, with_details=False)
        self._where = {"audit_event": headers} | dict.fromkeys(
            ("audit_detail", "audit_memory"), headers._replace(with_details=True)
        )

    def finds(self, cell: tampering.Cell) -> bool:
        """Return whether an event, or the one behind it, is no longer in order."""
        where = self._where.get(cell.table)
        if where is None or cell.column == "seq":
            return False
        start = cell.key[0]
        return check_range(where, Range(start, min(start + 2, self._size), [])) is None


def changes(path: Path) -> Iterator[tuple[tampering.Cell, Any]]:
    """Yield every byte of every value, changed."""
    for cell in tampering.cells(path):
        for value in tampering.flips(cell.value):
            yield cell, value


def is_found(log: AuditLog, cell: tampering.Cell) -> bool:
    """Return whether the log no longer verifies."""
    is_event = cell.table == "audit_event"
    since = cell.key[0] if is_event and cell.column != "seq" else 0
    found = verify(log, since=since, with_details=cell.table not in WITHOUT_DETAILS)
    return found.state not in {"ok", "loss"}


def attacks(path: Path, share: int, shares: int) -> tuple[Counter[Any], Counter[Any]]:
    """Return how many attacks of one share were made on a log in SQLite, and how many unseen."""
    with closing(database_attacks.SqliteTarget(path)) as target:
        chosen = database_attacks.attacks_on(target, each=6)[share::shares]
    copy = path.with_name(f"attacked-{share}.db")
    return judged(database_attacks.attacked_files(path, chosen, copy))


def attacks_with_the_key(path: Path, share: int, shares: int) -> tuple[Counter[Any], Counter[Any]]:
    """
    Return how many changes of rows were made by somebody who has the key, too, and how many unseen.

    Whatever can be computed from the changed rows is made anew with the key: columns, chain, tree,
    head, checkpoints, signed end, sums. A checkpoint from before is kept elsewhere.
    """
    anchor = path.with_name(f"anchored-{share}.db")
    log = AuditLog(tampering.copy_of(path, anchor), KEYS)
    note = log.checkpoint_now()
    log.close()
    with closing(database_attacks.SqliteTarget(anchor)) as target:
        made = database_attacks.row_attacks(target, each=3)
        chosen = [each for each in made if not each.target.startswith(MADE_ANEW)][share::shares]
    tried: Counter[Any] = Counter()
    missed: Counter[Any] = Counter()
    copy = path.with_name(f"forged-{share}.db")
    for attack, forged in database_attacks.attacked_files(anchor, chosen, copy):
        with suppress(Exception):  # nothing can be made of what it says: it stays as it is
            key_holder.forge(forged, KEYS, attack.target)
        tried[attack.target, "changed"] += 1
        missed[attack.target, "by itself"] += not is_shown(forged)
        missed[attack.target, "against an anchor"] += not is_shown(forged, note)
    return tried, missed


def attacks_on_server(folder: Path, every: int) -> tuple[Counter[Any], Counter[Any]]:
    """Return the same of a log in PostgreSQL."""
    server = Postgres(folder)
    try:
        url = server.new_database()
        tampering.build(url, KEYS, event, 40)
        with closing(database_attacks.PostgresTarget(url)) as target:
            chosen = database_attacks.attacks_on(target, each=3)[::every]
        return judged(database_attacks.attacked_databases(server.url, url, chosen))
    finally:
        server.close()


def judged(
    made: Iterable[tuple[database_attacks.Attack, Any]],
) -> tuple[Counter[Any], Counter[Any]]:
    """Count attacks, and those after which the log still verifies."""
    tried: Counter[Any] = Counter()
    missed: Counter[Any] = Counter()
    for attack, url in made:
        tried[attack.target, attack.name] += 1
        missed[attack.target, attack.name] += not is_shown(url)
    return tried, missed


def is_shown(url: str | Path, *anchors: str) -> bool:
    """Return whether a log does not verify, or is refused."""
    log = AuditLog(url, KEYS)
    try:
        return verify(log, checkpoints=anchors).state not in {"ok", "loss"}
    except AuditError:
        return True
    finally:
        log.close()


SPOOLED = 3
"""Events in the spool that is attacked."""


def process(url: Path, spool: Path, count: int) -> AuditSink:
    """Return the trail of a process that has written so many events, one at a time."""
    log = AuditLog(url, KEYS)
    log.spool_path = spool
    sink = AuditSink(log, Spool(spool, log.ring, content=content_again), mode="durable")
    sink._heartbeat.start = lambda **_how: None  # type: ignore[method-assign]
    drain = Drain([sink])
    sink.attach(drain)
    for _ in range(count):
        sink.write([event(writer_id=drain.writer_id, writer_seq=drain.next_seq())])
    return sink


def spooled(folder: Path) -> Path:
    """Return the spool of a process that was killed while its database was away."""
    spool = folder / "spool" / "audit.spool"
    folder.joinpath("away").touch()
    sink = process(folder / "away" / "audit.db", spool, SPOOLED)
    assert sink.spool is not None
    assert sink._presence.roll is not None
    sink._presence.roll.forked()
    sink.spool.close()
    sink.log.close()
    return spool


def spool_attacks(spool: Path) -> Iterator[tuple[str, str, bytes | None]]:
    """Yield what can be done: its name, to which file, and what becomes of that file."""
    (file,) = spool_files(spool)
    name, data = file.name, file.read_bytes()
    yield "removed", name, None
    yield "emptied", name, b""
    records = scan(data, KIND).records
    used = {*range(records[0].end), *range(STATE_AT, len(data))}  # the page's rest is empty
    for at in sorted(used):
        yield "any byte", name, data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]
    for span in records[1:]:
        yield "cut", name, data[: span.start]
        yield "record removed", name, data[: span.start] + data[span.end :]
        yield "record doubled", name, data + data[span.start : span.end]


def spools(path: Path, share: int, shares: int) -> tuple[Counter[Any], Counter[Any]]:
    """Return the same of one share of what can be done to a spool."""
    tried: Counter[Any] = Counter()
    missed: Counter[Any] = Counter()
    made = list(spool_attacks(path))[share::shares]
    for name, target, data in made:
        with tempfile.TemporaryDirectory() as folder:
            copy = Path(folder) / "spool"
            copy.mkdir()
            for each in path.parent.iterdir():
                shutil.copyfile(each, copy / each.name)
            if data is None:
                (copy / target).unlink()
            else:
                (copy / target).write_bytes(data)
            tried["spool", name] += 1
            missed["spool", name] += not is_told(Path(folder), copy / path.name)
    return tried, missed


def is_told(folder: Path, spool: Path) -> bool:
    """Return whether the next process has every event, or the log says that it has not."""
    sink = process(folder / "audit.db", spool, 1)
    sink.close(1.0)
    return sink.log.count() == SPOOLED + 1 or verify(sink.log).state != "ok"


def bundle(path: Path, share: int, shares: int) -> tuple[Counter[Any], Counter[Any]]:
    """Return the same of one share of the bytes of an export."""
    data = path.read_bytes()
    contents = contents_of(path)
    copy = path.with_name(f"copy-{share}.zip")
    tried: Counter[Any] = Counter()
    missed: Counter[Any] = Counter()
    # The same two notes, over and over, by arithmetic in plain Python.
    bundles.is_signed = lru_cache(64)(bundles.is_signed)
    for place in range(share, len(data), shares):
        copy.write_bytes(data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :])
        tried["export", "any byte"] += 1
        if bundles.check(copy).code != bundles.CHANGED:
            kind = "bookkeeping" if contents_of(copy) == contents else "content"
            missed["export", kind] += 1
    return tried, missed


def contents_of(path: Path) -> dict[str, bytes]:
    """Return all files in an archive."""
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def made(folder: Path, operations: int) -> tuple[Path, Path]:
    """Make a log and an export of it."""
    log = tampering.build(folder / "audit.db", KEYS, event, operations)
    request = Request(request_id="sweep", generated_us=1_800_000_000_000_000, version="0")
    with source(log, "ada", "acme") as found:
        written = write_bundle(
            folder / "export.zip", request, found.evidence, history=found.history, stores=[Empty()]
        )
    log.close()
    return folder / "audit.db", written.path


class Empty:
    """A store that answers, and holds nothing."""

    name = store = "mem0"
    title = "Facts"
    unavailable = None

    def records(self) -> Iterator[Any]:
        """Return none."""
        return iter(())


def swept(what: Any, path: Path, processes: int, every: int) -> tuple[Counter[Any], Counter[Any]]:
    """Sweep in several processes."""
    with multiprocessing.get_context("spawn").Pool(processes) as pool:
        parts = pool.map(partial(what, path, shares=processes * every), range(processes))
    return sum((each[0] for each in parts), Counter()), sum((each[1] for each in parts), Counter())


_SWEPT = (
    *("bytes of the log", "bytes of the export", "attacks on SQLite"),
    *("attacks on the spool", "attacks on PostgreSQL"),
)


def told_of_key_holders(tried: Counter[Any], missed: Counter[Any]) -> int:
    """Print what shows of them, and return how much does not show that is not listed."""
    total, unlisted = tried.total(), 0
    for how in ("by itself", "against an anchor"):
        unseen = {target: count for (target, each), count in missed.items() if each == how}
        found = total - sum(unseen.values())
        sys.stdout.write(f"changes with the key: {found:,} of {total:,} found {how}\n")
    for target, count in sorted(unseen.items()):
        is_listed = target.startswith(BEYOND_ANCHORS)
        unlisted += 0 if is_listed else count
        sys.stdout.write(f"{count:>7,} of them never{'' if is_listed else ' (!)'}  {target}\n")
    return unlisted


def main() -> int:
    """Sweep, print what was found, and return 1 if anything was missed that is not listed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--operations", type=int, default=200)
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--every", type=int, default=1, help="change every so many bytes only")
    given = parser.parse_args()
    how = {"processes": given.processes, "every": given.every}
    began = time.monotonic()
    with tempfile.TemporaryDirectory(dir=IN_MEMORY if IN_MEMORY.is_dir() else None) as name:
        log, export = made(Path(name), given.operations)
        results = [swept(rows, log, **how), swept(bundle, export, **how)]
        results += [swept(attacks, log, **how), swept(spools, spooled(Path(name)), **how)]
        results += [attacks_on_server(Path(name), given.every)]
        forged = swept(attacks_with_the_key, log, **how)
    unlisted = 0
    for tried, missed in results:
        for place, number in sorted(tried.items()):
            unseen = missed[place]
            unlisted += unseen
            sys.stdout.write(f"{number - unseen:>7,} of {number:>7,} found  {'.'.join(place)}\n")
    for name, (tried, missed) in zip(_SWEPT, results, strict=True):
        found = tried.total() - missed.total()
        sys.stdout.write(f"{name}: {found:,} of {tried.total():,} found\n")
    unlisted += told_of_key_holders(*forged)
    bookkeeping, content = (results[1][1]["export", kind] for kind in ("bookkeeping", "content"))
    sys.stdout.write(
        f"{bookkeeping:,} bytes of the export are bookkeeping of the zip format (times, modes): "
        f"changed, every file in it is still the same\n{time.monotonic() - began:,.0f} s\n"
    )
    return 1 if unlisted or content else 0


if __name__ == "__main__":
    raise SystemExit(main())

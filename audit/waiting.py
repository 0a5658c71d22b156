"""What has not come into a log yet: events in spools and relay folders of this machine."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from ..telemetry.queue.folder import files_in, writer_of
from ..telemetry.queue.source import state_of
from ..telemetry.text import utc_text
from .database.errors import AuditError
from .log import AuditLog
from .sink.spool import beside, spool_stats
from .store.snapshot import Snapshot


def what_waits(log: AuditLog) -> list[str]:
    """
    Return where events wait that an answer from *log* does not have, and how many: a line each.

    Changes nothing. What is in the queues of processes at work is there
    for a moment, and is not seen.
    """
    return [*_in_spool(log), *_in_relay(log), *_after_replica(log)]


def _after_replica(trail: AuditLog) -> Iterator[str]:
    for log in trail.shards if trail.path is None else ():
        with suppress(AuditError), log.begun() as snapshot:  # the answer itself says what is wrong
            if snapshot is not None and snapshot.connection.is_replica():
                newest = utc_text(snapshot.head["newest_us"])
                yield (
                    f"what came after the {snapshot.size:,} sealed events that a replica has, the "
                    f"newest of {newest}"
                )


def _in_spool(log: AuditLog) -> Iterator[str]:
    spools = [log.spool_path] if log.trail is not log else [*beside(log.spool_path).values()]
    for path in spools:
        waiting = 0 if path is None else spool_stats(path).events
        if waiting:
            # Some of them may be recorded by now: a file is removed once all that is in it is.
            yield (
                f"up to {waiting:,} events wait in the spool {path}: the next process with this "
                "audit trail records them"
            )


def _in_relay(log: AuditLog) -> Iterator[str]:
    folder = log.relay_folder
    if folder is None:
        return
    counted = _counted(folder)
    recorded = 0
    for shard in log.shards:
        with shard.begun() as snapshot:
            recorded += sum(_recorded(snapshot, each) for each in counted) if snapshot else 0
    waiting = max(0, sum(counted.values()) - recorded)
    if waiting:
        yield f"{waiting:,} events wait in {folder}: `mnemoscope relay {folder}` records them"


def _counted(folder: Path) -> dict[str, int]:
    """Return how many events each writer has in files of *folder*, or had in earlier ones."""
    counted: defaultdict[str, int] = defaultdict(int)
    for path in files_in(folder):
        with suppress(OSError):
            state = state_of(path)
            writer = writer_of(path)
            counted[writer] = max(counted[writer], state.counter - state.dropped)
    return counted


def _recorded(snapshot: Snapshot, writer: str) -> int:
    found: Any = snapshot.execute(
        "SELECT count(*) FROM audit_event WHERE kind = 'operation' AND writer_id = ?", (writer,)
    ).fetchone()
    return int(found[0])

"""Random logs, streamed to ClickHouse by streams that break off."""

# ruff: noqa: S608 - all of it is written here

from __future__ import annotations

import random
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import closing

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mnemoscope.audit import AuditLog
from mnemoscope.audit.stream import CopyError, CopyRecord, open_target, ship
from tests.kit import tampering
from tests.kit.clickhouse import clickhouse
from tests.kit.lengths import examples
from tests.kit.sample_events import events

__all__ = ["clickhouse"]

HOUR_NS = 3_600_000_000_000
VIEWS = {
    "spend": "day, feature, node, model, sum(calls), sum(input_tokens), sum(unpriced_tokens)",
    "recall": "day, store, sum(searches), sum(empties), sum(failures), sum(hits), sum(scored)",
    "deviation": "hour, agent, operation, calls, median_us, mad_us, median_hits, mad_hits, "
    "median_bytes, mad_bytes",
}

histories = st.lists(
    st.tuples(st.integers(-3, 40).map(lambda tenths: tenths * HOUR_NS // 10), events),
    min_size=1,
    max_size=12,
)
"""Batches of events, and the time that passes before each: at times a clock is set back."""


class Interrupted:
    """
    A target that breaks off at random, with any part of a batch stored.

    Args:
        target: What it is.
        chance: Of breaking off and of storing, by a seed.
    """

    def __init__(self, target, chance):
        self.target, self.chance = target, chance

    def resume_at(self, origin: str) -> int:
        return self.target.resume_at(origin)

    def send(self, records: Sequence[CopyRecord]) -> int:
        if self.chance.random() < 0.6:
            self.target.send([each for each in records if self.chance.random() < 0.5])
            raise CopyError("broken off")
        return self.target.send(records)

    def close(self) -> None:
        if self.chance.random() < 0.5:  # else it was killed
            self.target.close()


@pytest.fixture
def streamed(clickhouse):
    """Return what streams a log to its end, however often that breaks off."""

    def streamed(log, chance):
        while True:
            target = Interrupted(open_target(clickhouse.url), chance)
            with closing(target):
                try:
                    for shipped in ship(log, target):
                        if shipped.at == shipped.size:
                            return
                except CopyError:
                    continue

    return streamed


@pytest.mark.long
@settings(
    max_examples=examples(10),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],  # each history is a log of its own
)
@given(histories, st.integers(0, 2**32))
def test_a_copy_is_its_log_however_often_the_stream_breaks_off(
    clickhouse, streamed, tmp_path_factory, subject_keys, history, seed
):
    """
    By number, header and leaf; and its views show what its events add up to.

    Events come between two streams, hours end while none runs, and clocks are set back.
    """
    chance = random.Random(seed)  # noqa: S311 - the same again by its seed
    now_ns = [1_800_000_000_000_000_000]
    path = tmp_path_factory.mktemp("log") / "audit.db"
    log = AuditLog(path, subject_keys, clock_ns=lambda: now_ns[0])
    with closing(log):
        for number, (passed_ns, event) in enumerate(history, 1):
            now_ns[0] += passed_ns
            log.append([msgspec.structs.replace(event, writer_seq=number)])
            if chance.random() < 0.4:
                streamed(log, chance)
        streamed(log, chance)

        with log.reading() as snapshot:
            origin = snapshot.origin
            kept = snapshot.execute("SELECT seq, header, leaf FROM audit_event ORDER BY seq")
            wanted = kept.fetchall()
    of_log = "WHERE origin = {origin:String}"
    asked = f"SELECT seq, header, leaf FROM audit_event FINAL {of_log} ORDER BY seq"
    copied = clickhouse.ask(asked, origin=origin)
    assert copied == wanted
    for name, figures in VIEWS.items():
        view = "audit_deviations" if name == "deviation" else f"audit_{name}"
        group = "GROUP BY ALL" if "sum(" in figures else ""
        shown, added = (
            clickhouse.ask(
                f"SELECT {figures} FROM {table} {of_log} {group} ORDER BY ALL",
                origin=origin,
            )
            for table in (view, f"audit_{name}_hours")
        )
        assert shown == added


_STREAM = """
import sys
from mnemoscope.audit import AuditLog
from mnemoscope.audit.stream import open_target, ship, source
from mnemoscope.telemetry.event.subject import SubjectKeys

source.BATCH = 32
log = AuditLog("sqlite:///" + sys.argv[1], SubjectKeys(b"sixteen bytes or more"))
for shipped in ship(log, open_target(sys.argv[2])):
    print(shipped.at, flush=True)
    if shipped.at == shipped.size:
        break
"""


@pytest.mark.long
def test_a_stream_that_is_killed_loses_nothing(tmp_path, subject_keys, event_factory):
    """By SIGKILL, in the middle of whatever the engine does with a batch."""
    from tests.kit.clickhouse import ClickHouse

    path, url = tmp_path / "audit.db", f"chdb://{tmp_path / 'clickhouse'}"
    tampering.build(path, subject_keys, event_factory, 600)
    chance = random.Random(7)  # noqa: S311 - the same again
    command = [sys.executable, "-c", _STREAM, str(path), url]
    for _ in range(6):
        with subprocess.Popen(command, stdout=subprocess.PIPE) as stream:
            for _ in range(chance.randrange(1, 4)):
                stream.stdout.readline()
            time.sleep(chance.random() / 10)
            stream.kill()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)

    asked = "SELECT seq, header, leaf FROM audit_event"
    with closing(AuditLog(path, subject_keys)) as log, log.reading() as snapshot:
        wanted = snapshot.execute(f"{asked} ORDER BY seq").fetchall()
    with closing(ClickHouse(tmp_path / "clickhouse")) as copied:
        assert copied.ask(f"{asked} FINAL ORDER BY seq") == wanted
        (searches,) = copied.ask("SELECT sum(searches) FROM audit_recall")[0]
        assert [(searches,)] == copied.ask("SELECT sum(searches) FROM audit_recall_hours")

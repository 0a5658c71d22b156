"""Clocks that are wrong: nothing is removed on their word, and nothing is kept for ever."""

from __future__ import annotations

import random
import time

import pytest
from msgspec import structs

from mnemoscope.audit import AuditLog
from mnemoscope.audit.record.lived_time import DAY_US, SILENCE_US, Cut, Stretch
from mnemoscope.audit.store import retention
from mnemoscope.audit.verification.whole import verify
from mnemoscope.telemetry.event.subject import SubjectKeys
from tests.kit.elapsed_days import DAY_S

NOW_S = 1_790_000_000
RETENTION_DAYS = 200
WRONG_DAYS = (-9_000, -500, -40, -2, 2, 40, 500, 2_000)
"""How far a clock is off: in the past of all events, after 2038, and near by as well."""

YEAR_9999_S = 253_370_764_800


class World:
    """True time, and a log that processes with clocks of their own write."""

    def __init__(self, url, keys):
        self.true_s, self.off_s = NOW_S, 0
        self.moments = []
        self._url, self._keys = url, keys
        self.log = self.opened()

    def opened(self):
        return AuditLog(
            self._url,
            self._keys,
            clock_ns=lambda: int(self.true_s + self.off_s) * 10**9,
            retention_days=RETENTION_DAYS,
        )

    def restart(self, off_s):
        """Start another process, whose clock is that far off."""
        self.log.close()
        self.off_s, self.log = off_s, self.opened()

    def write(self, events):
        """Record *events*, and note when that really was."""
        self.log.append(events)
        with self.log.reading() as snapshot:
            self.moments += [self.true_s] * (snapshot.size - len(self.moments))

    def first(self):
        with self.log.reading() as snapshot:
            return snapshot.first_seq

    def youngest_removed_days(self):
        """Return how old the youngest event is that is not there any more, in true days."""
        first = self.first()
        return (self.true_s - self.moments[first - 1]) / DAY_S if first else float("inf")


@pytest.fixture(
    params=["sqlite", pytest.param("postgres", marks=pytest.mark.xdist_group("postgres"))]
)
def world(request, path, subject_keys):
    url = path if request.param == "sqlite" else request.getfixturevalue("postgres_url")
    world = World(url, subject_keys)
    yield world
    world.log.close()


@pytest.mark.parametrize("off_s", [-NOW_S - DAY_S, -40 * NOW_S, 8 * 10**12, 10**14])
def test_a_clock_that_no_date_has_stops_no_other(world, event_factory, off_s):
    """Before 1970, or behind the year 9999: the trail goes on, and nobody is said to change it."""
    world.write([event_factory()])
    world.restart(off_s)
    late = structs.replace(event_factory(), started_ns=int(NOW_S + off_s) * 10**9)
    world.write([late, event_factory()])
    world.restart(0)
    world.write([event_factory()])
    found = verify(world.log)

    assert found.valid_events == found.events == len(world.moments)
    assert found.state == "unverifiable"
    assert [row.recorded_us for row in world.log.rows()][-1] == NOW_S * 10**6


@pytest.mark.parametrize("off_s", [500 * DAY_S, YEAR_9999_S])
def test_a_clock_that_is_ahead_removes_nothing(world, event_factory, caplog, off_s):
    """It says so once, however much it writes; later events have their own time again."""
    world.write([event_factory() for _ in range(600)])
    world.restart(off_s)
    for _ in range(3):
        world.write([event_factory()])
        assert world.log.prune() == 0
    world.restart(0)
    world.write([event_factory()])
    (last,) = [row.recorded_us for row in world.log.rows()][-1:]

    assert world.first() == 0
    assert last == NOW_S * 10**6
    ahead = [each for each in caplog.messages if "ahead of its newest event" in each]
    assert len(ahead) == 1
    assert verify(world.log).state == "unverifiable"


@pytest.mark.long_but_each(3)
@pytest.mark.parametrize("seed", range(6))
def test_whatever_the_clocks_say(path, subject_keys, event_factory, seed):
    """What goes is as old as was asked for; what was lived through goes, once clocks are right."""
    draw = random.Random(seed)  # noqa: S311 - a history
    world = World(path, subject_keys)
    world.write([event_factory() for _ in range(300)])
    for _ in range(25):
        world.true_s += draw.choice([60, DAY_S, 5 * DAY_S, 20 * DAY_S])
        wrong = draw.choice([0, 0, *(days * DAY_S for days in WRONG_DAYS), YEAR_9999_S])
        world.restart(wrong)
        world.write([event_factory() for _ in range(40)])
        world.log.prune()
        assert world.youngest_removed_days() >= RETENTION_DAYS - SILENCE_US / DAY_US
    world.restart(0)
    before = world.first()
    there = len(world.moments)
    for _ in range(20):
        world.true_s += 15 * DAY_S
        world.write([event_factory() for _ in range(40)])
        world.log.prune()
        assert world.youngest_removed_days() >= RETENTION_DAYS - SILENCE_US / DAY_US
    found = verify(world.log)
    world.log.close()

    assert before < there - 256 < world.first()  # all but what shares a tile with later events
    assert found.counts["tampered"] == found.counts["loss"] == 0


def test_years_without_a_process_do_not_keep_it_for_ever(world, event_factory):
    """The first process after years removes nothing at once, and it all as it lives on."""
    world.write([event_factory() for _ in range(300)])
    world.true_s += 1_500 * DAY_S
    world.restart(0)
    world.write([event_factory()])
    assert world.log.prune() == 0
    for _ in range(9):
        world.true_s += 25 * DAY_S
        world.write([event_factory()])

    assert world.log.prune() == 256
    assert verify(world.log).state == "ok"


def test_a_clock_beside_the_databases_is_not_followed(postgres_url, event_factory, caplog):
    """Two against one: the log has the time that it and the database's own clock agree on."""
    world = World(postgres_url, SubjectKeys(bytes(range(32))))
    world.true_s = time.time()
    world.write([event_factory()])
    world.restart(500 * DAY_S)
    world.write([event_factory()])
    world.write([event_factory()])
    rows = [row.recorded_us for row in world.log.rows()]
    world.restart(0)
    found = verify(world.log)
    world.log.close()

    assert rows[-1] - rows[0] < 3_600 * 10**6
    assert len(caplog.messages) == 1
    assert [each.partition(": ")[2] for each in found.findings["unverifiable"]] == [
        "the clock of a process was 500 days off the log's and the database's: it was not followed"
    ]


def test_what_an_earlier_release_removed_is_found(path, subject_keys, event_factory, monkeypatch):
    """It believed the clock: what is left says that the time was not lived through."""
    world = World(path, subject_keys)
    world.write([event_factory() for _ in range(300)])
    world.off_s = 500 * DAY_S
    world.write([event_factory()])
    everything = Cut(Stretch(0, 299, 0, 0), world.log.now_us())
    monkeypatch.setattr(retention, "_cut", lambda *_args: everything)
    assert world.log.prune() == 256
    world.log.checkpoint_now()
    found = verify(world.log)
    world.log.close()

    assert found.state == "unverifiable"
    assert [each.partition(": ")[2][:36] for each in found.findings["loss"]] == [
        "retention removed 256 events on the "
    ]

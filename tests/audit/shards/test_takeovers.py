"""What a writer has left is no loss, whoever takes it over, and whatever others do meanwhile."""

from __future__ import annotations

import shutil
from contextlib import closing
from itertools import count

import orjson
import pytest

from mnemoscope.audit.verification.whole import verify
from tests.kit.command_line import run
from tests.kit.interleaving import interrupted
from tests.kit.sharded_trails import TENANTS, ShardedTrail
from tests.kit.takeovers import GoneWriter, taker

pytestmark = [pytest.mark.long, pytest.mark.forks_often]


@pytest.fixture(autouse=True)
def no_threads(monkeypatch):
    """Let nobody look but who is told to."""
    monkeypatch.setattr(
        "mnemoscope.audit.sink.heartbeat.Heartbeat.start", lambda *_args, **_options: None
    )


ONE_SHARD = TENANTS[:1] * 12
"""The tenants of a writer whose events are all of one shard."""

OF_THE_LAST = TENANTS[3:4] * 3
"""Tenants of the third shard of three, so that what is missing is at a writer's end."""


def copied(trail, folder, url=None):
    """Return a trail that is as another one was left."""
    shutil.copytree(trail.folder, folder)
    return ShardedTrail(folder, url)


def said(trail, name):
    """Return what shards say by an event of that name."""
    found = []
    with closing(trail.log(3)) as logs:
        for log in logs.shards:
            with log.begun() as snapshot:
                if snapshot is not None:
                    statement = "SELECT header FROM audit_event WHERE operation = ?"
                    rows = snapshot.execute(statement, (name,)).fetchall()
                    found += [orjson.loads(bytes(header))["data"] for (header,) in rows]
    return found


def settled(trail, tenants, shards=3):
    """Have two more processes look, and return what is declared as lost."""
    for _ in range(2):
        taker(trail, 3)()
    with closing(trail.log(3)) as log:
        assert log.count() == len(tenants)
    assert len(said(trail, "writer.ended")) == shards
    assert not [*trail.folder.glob("roll-*")]
    return [each for each in said(trail, "audit.gap") if each["reason"] != "under_way"]


@pytest.mark.parametrize(
    ("shards", "first", "other"),
    [(3, 2, 3), (3, 3, 2), (3, 3, 3), (3, 1, 3), (3, 3, 1), (2, 1, 3), (2, 3, 1), (1, 2, 3)],
)
def test_two_processes_take_over_what_one_has_left(tmp_path, shards, first, other):
    """Both at once, the one between any two steps of the other."""
    steps = taken_over(tmp_path, shards, first, other, lambda: None)

    assert steps > (20 if min(shards, first) > 1 else 10)  # with one spool there is less to do


@pytest.mark.xdist_group("postgres")
@pytest.mark.usefixtures("postgres_steps")
@pytest.mark.parametrize(("shards", "first", "other"), [(3, 1, 3), (3, 2, 3), (1, 2, 3)])
def test_two_processes_take_over_what_one_has_left_to_a_server(
    tmp_path, postgres, shards, first, other
):
    """Both at once, the one between any two steps of the other, its turns to write included."""
    steps = taken_over(tmp_path, shards, first, other, postgres.new_database)

    assert steps > 10


def taken_over(tmp_path, shards, first, other, new_database):
    """Let *other* processes in before each step of the *first*, and return how many it has."""
    left = ShardedTrail(tmp_path / "left")
    left.folder.mkdir()
    GoneWriter(left, shards, TENANTS).end()

    for step in count(1):
        trail = copied(left, tmp_path / f"trail-{step}", new_database())
        look, look_too = taker(trail, first), taker(trail, other)
        if not interrupted(look, trail.folder, step, look_too):
            break
        assert (step, settled(trail, TENANTS, shards)) == (step, [])
        shutil.rmtree(trail.folder)
    return step


@pytest.mark.parametrize("shards", [1, 2])
def test_what_waits_in_a_shards_spool_is_known_before_any_log_tells_of_the_shard(
    sharded, monkeypatch, capsys, shards
):
    """To answers, which name it, and to verify, for which nothing of it is lost or under way."""
    monkeypatch.delenv("MNEMOSCOPE_AUDIT_SHARDS")
    GoneWriter(sharded, 3, [*TENANTS, *OF_THE_LAST]).end()
    taker(sharded, shards)()
    monkeypatch.setenv("MNEMOSCOPE_AUDIT_SHARDS", str(shards))
    found = [verify(each) for each in sharded.log(shards).shards]
    run(["spend"])
    waits = [line for line in capsys.readouterr().err.splitlines() if "wait in the spool" in line]

    assert not [each for each in said(sharded, "audit.gap") if each["reason"] != "under_way"]
    assert {(each.state, each.under_way) for each in found} == {("unverifiable", 0)}
    assert ["shard2-" in each for each in waits] == [False] * (2 - shards) + [True]


@pytest.mark.parametrize("tenants", [TENANTS, ONE_SHARD])
def test_a_process_looks_while_another_one_is_killed(tmp_path, tenants):
    """Between any two of its steps: what it saw before of the other one is no longer so."""
    for step in count(1):
        trail = ShardedTrail(tmp_path / f"trail-{step}")
        trail.folder.mkdir()
        writer = GoneWriter(trail, 3, tenants)
        look = taker(trail, 2)
        has_step = interrupted(look, trail.folder, step, writer.end)
        if not has_step:
            writer.end()
            break
        assert (step, settled(trail, tenants)) == (step, [])
        shutil.rmtree(trail.folder)
    assert step > 5

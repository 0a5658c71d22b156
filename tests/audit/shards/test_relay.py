"""A relay that delivers to all shards, and is killed in between."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import contextmanager

import pytest

from mnemoscope.memory import context
from tests.kit.command_line import run
from tests.kit.patience import GIVE_UP_S, until
from tests.kit.sharded_trails import TENANTS, recaller

pytestmark = pytest.mark.long
COMMAND = "from mnemoscope.adapters.cli.root import main; main()"


@pytest.fixture(params=["sqlite", "postgresql"])
def trail(request, sharded, monkeypatch):
    """Return a trail whose processes leave their events to a relay."""
    if request.param == "postgresql":
        pytest.importorskip("psycopg", reason="needs mnemoscope[postgres]")
        sharded.settings["audit_url"] = request.getfixturevalue("postgres").new_database()
    for name, value in sharded.environment(4).items():
        monkeypatch.setenv(name, value)
    return sharded


@contextmanager
def relaying(trail, folder):
    """Run a relay; end it in order, unless it was killed."""
    variables = {**os.environ, **trail.environment(4), "MNEMOSCOPE_SINKS": "audit"}
    command = [sys.executable, "-c", COMMAND, "relay", str(folder)]
    with subprocess.Popen(command, env=variables, stderr=subprocess.DEVNULL) as process:
        try:
            yield process
        finally:
            process.terminate()
            process.wait(GIVE_UP_S)


def write(trail, folder, times, at=lambda _number: None):
    """Have a process recall something so many times for each tenant."""
    scope = trail.scope(4, relay=folder)
    recall = recaller(scope)
    for number, tenant in enumerate(TENANTS * times):
        at(number)
        with context(tenant=tenant, customer="ada"):
            recall()
    scope.close(GIVE_UP_S)


def test_what_a_killed_relay_had_left_is_in_its_tenants_shard_once(trail, tmp_path):
    """And all shards verify, while the relay is at work and after it."""
    folder, log = tmp_path / "relay", trail.log(4)
    with relaying(trail, folder) as relay:
        write(trail, folder, 2)
        until(lambda: log.shards[0].tables.database.exists() and log.count() > 0)
        write(trail, folder, 10, lambda number: number == 100 and relay.kill())
    with relaying(trail, folder):
        until(lambda: log.count() >= 12 * len(TENANTS))
        until(lambda: run(["audit", "verify"]) == 0)

    assert log.count() == 12 * len(TENANTS)
    assert run(["audit", "verify"]) == 0
    log.close()

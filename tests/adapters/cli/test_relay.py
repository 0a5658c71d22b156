"""``mnemoscope relay``: what it reads, and what it says where it cannot."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys

import pytest

from mnemoscope.adapters.cli.root import run
from mnemoscope.telemetry.relay.folder import Beat, beat, standing, take_folder
from tests.kit.patience import GIVE_UP_S, until


@pytest.fixture(autouse=True)
def environment(monkeypatch, tmp_path):
    """Begin each test with no settings but the cheapest, in folders of its own."""
    for name in list(os.environ):
        if name.startswith(("MNEMOSCOPE_", "OTEL_", "LANGSMITH_", "LANGCHAIN_")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("MNEMOSCOPE_PII_MODEL", "none")
    monkeypatch.setenv("MNEMOSCOPE_SINKS", "logs,audit")
    monkeypatch.setenv("MNEMOSCOPE_LOG_FILE", str(tmp_path / "events.jsonl"))


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Return the folder that the environment names."""
    monkeypatch.setenv("MNEMOSCOPE_RELAY", str(tmp_path / "relay"))
    return tmp_path / "relay"


APPLICATION = """
from mnemoscope.memory import configure
scope = configure()
recall = scope.observe(store="crm", operation="search_memory", neutral=list, inline=True)(list)
for _ in range(3):
    recall()
"""

RELAY = "from mnemoscope.adapters.cli.root import main; main()"


def test_it_delivers_until_it_is_stopped(folder, tmp_path):
    """What a process that is gone by then has left; and SIGTERM ends it in order."""
    subprocess.run([sys.executable, "-c", APPLICATION], timeout=GIVE_UP_S, check=True)
    command = [sys.executable, "-c", RELAY, "relay"]
    lines = tmp_path / "events.jsonl"
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as relay:
        delivered = until(lambda: lines.exists() and len(lines.read_text().splitlines()) == 3)
        relay.send_signal(signal.SIGTERM)
        _out, said = relay.communicate(timeout=GIVE_UP_S)

    assert delivered
    assert relay.returncode == 0
    assert said == f"mnemoscope relay reads {folder} and delivers to logs, audit\n"


def test_a_second_one_says_who_reads_the_folder(folder, capfd):
    """In one line."""
    lock = take_folder(folder)

    assert run(["relay"]) == 2
    assert capfd.readouterr().err == (
        f"mnemoscope: process {os.getpid()} reads {folder} already: a folder has one relay\n"
    )
    lock.release()


def test_a_look_says_whether_a_relay_reads_the_folder(folder, capfd):
    """For a container's health check: it changes nothing, and starts no relay."""
    before = run(["relay", "--check"])
    lock = take_folder(folder)
    meanwhile = run(["relay", "--check"])
    lock.release()
    beat(folder, Beat(pid=os.getpid(), at=1_000.0))
    long_after = run(["relay", "--check"])

    assert (before, meanwhile, long_after) == (1, 0, 1)
    said = capfd.readouterr().err.splitlines()
    assert [f"no relay reads {folder}" in said[0], f"reads {folder}" in said[1]] == [True, True]


def test_a_relay_that_is_behind_is_not_started_anew(folder, capfd, monkeypatch):
    """A back end that is away is no reason to end what keeps its events."""
    folder.mkdir(mode=0o700)
    monkeypatch.setattr(standing, "__defaults__", (lambda: 1_001.0,))
    beat(folder, Beat(pid=7, at=1_000.0, lag_s=75.0, slowest="otlp"))

    assert run(["relay", "--check"]) == 0
    assert "otlp has not taken events of 75 s ago" in capfd.readouterr().err


def test_without_a_folder_it_says_how_one_is_named(capfd):
    """Nothing is done."""
    assert run(["relay"]) == 4
    assert "MNEMOSCOPE_RELAY" in capfd.readouterr().err


def test_a_folder_that_others_may_read_is_refused(folder, capfd):
    """With what mends it."""
    folder.mkdir(mode=0o755)

    assert run(["relay", str(folder)]) == 4
    assert "chmod 700" in capfd.readouterr().err


def checks(capfd):
    """Return the checks of ``mnemoscope doctor`` by name."""
    run(["doctor", "--json"])
    return {each["name"]: each for each in json.loads(capfd.readouterr().out)["checks"]}


def test_doctor_tells_that_no_relay_reads(folder, capfd):
    """And looks at the sinks that the relay would deliver to; it makes no folder."""
    found = checks(capfd)

    assert (found["relay"]["state"], found["sink.audit"]["state"]) == ("failed", "ok")
    assert f"start `mnemoscope relay {folder}`" in found["relay"]["detail"]
    assert not folder.exists()


def test_doctor_tells_that_a_relay_is_behind(folder, capfd, monkeypatch):
    """As a warning: it lives."""
    folder.mkdir(mode=0o700)
    monkeypatch.setattr(standing, "__defaults__", (lambda: 1_001.0,))
    beat(folder, Beat(pid=7, at=1_000.0, lag_s=75.0, slowest="otlp"))
    found = checks(capfd)["relay"]

    assert found["state"] == "warning"
    assert "otlp has not taken events of 75 s ago" in found["detail"]


def test_doctor_tells_that_a_relay_is_well(folder, capfd, monkeypatch):
    """And who it is."""
    folder.mkdir(mode=0o700)
    monkeypatch.setattr(standing, "__defaults__", (lambda: 1_001.0,))
    beat(folder, Beat(pid=7, at=1_000.0))

    assert checks(capfd)["relay"]["state"] == "ok"


def test_doctor_tells_that_others_may_read_the_folder(folder, capfd):
    """Which neither a process nor a relay will use."""
    folder.mkdir(mode=0o755)

    assert "chmod 700" in checks(capfd)["relay"]["detail"]

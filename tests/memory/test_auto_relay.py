"""``relay="auto"``: one relay for the applications of a user, which they start and it outlives."""

from __future__ import annotations

import logging
import os
import signal
import socket
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from mnemoscope.memory import Mnemoscope, context, load_settings
from tests.kit.auto_relays import World, beat_of
from tests.kit.patience import GIVE_UP_S, until

pytestmark = pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="looks into /proc")


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    """Return a home without a relay."""
    made = World(tmp_path)
    yield made
    made.close()


def left_in(folder: Path) -> list[Path]:
    """Return the files of events that wait in a folder."""
    return [*folder.glob("*.events")]


CANARIES = {
    "OTEL_EXPORTER_OTLP_HEADERS": "authorization=canary-header-5f2c",
    "OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:9",
    "LANGSMITH_API_KEY": "canary-langsmith-9d1e",
    "MNEMOSCOPE_AUDIT_PSEUDONYM_KEY": "c0ffee" * 10,
    "OPENAI_API_KEY": "canary-stranger-77aa",
}


def test_what_an_application_did_reaches_the_sinks_and_the_relay_ends(world):
    """It ends behind its last application, once all is delivered, and leaves no events."""
    application = world.start().ready()
    application.order("call", 20)
    relay = world.relay()
    ended = application.end()

    assert until(lambda: not world.processes())
    assert (relay > 0, world.logged()) == (True, 20)
    assert not left_in(world.folders()[0])
    assert "relay" not in ended


def test_a_process_that_has_closed_its_scope_needs_no_relay(world):
    """However long it lives."""
    application = world.start().ready()
    application.order("call", 5)
    world.relay()
    application.order("close")

    assert until(lambda: not world.processes())
    assert world.logged() == 5


def test_what_was_done_survives_the_kill_of_its_application(world):
    """The relay is nobody's child, in a session of its own."""
    application = world.start().ready()
    application.order("call", 20)
    relay = world.relay()
    parent = int(Path(f"/proc/{relay}/stat").read_text().rpartition(")")[2].split()[1])
    session = os.getsid(relay)
    os.kill(application.process.pid, signal.SIGKILL)

    assert until(lambda: not world.processes())
    assert world.logged() == 20
    assert parent != application.process.pid
    assert session != os.getsid(0)


@pytest.mark.long
def test_applications_that_start_at_once_have_one_relay(world):
    """Whoever takes the lock of the folder starts it, and hands the lock over: in 30 rounds."""
    counts = []
    for _ in range(30):
        several = [world.start() for _ in range(3)]
        for each in several:
            each.ready()
        relay = world.relay()
        counts.append(len(world.processes() | {relay}))
        for each in several:
            each.kill()
        os.kill(relay, signal.SIGKILL)
        until(lambda: not world.processes())
        (world.folders()[0] / "beat.json").unlink(missing_ok=True)

    assert counts == [1] * 30


def test_a_second_application_joins_and_the_relay_outlives_the_first(world):
    """Both are delivered by the same process."""
    first = world.start().ready()
    relay = world.relay()
    second = world.start().ready()
    first.end()
    second.order("call", 5)

    assert until(lambda: world.logged() == 5)
    assert world.processes() == {relay}


def test_a_relay_that_was_killed_is_started_again_by_the_next_application(world):
    """Which has what the first one left delivered."""
    first = world.start().ready()
    first.order("call", 7)
    os.kill(world.relay(), signal.SIGKILL)
    first.kill()
    (world.folders()[0] / "beat.json").unlink()
    world.start().ready()

    assert until(lambda: world.logged() == 7)
    assert len(world.processes()) == 1


def test_a_forked_child_has_the_relay_of_its_parent(world):
    """And keeps it, when the parent has gone."""
    parent = world.start().ready()
    relay = world.relay()
    parent.order("fork", 5)
    parent.order("call", 5)

    assert until(lambda: world.logged() == 10)
    assert world.processes() == {relay}


def test_the_relay_inherits_no_descriptor(world):
    """No socket of a server, no file, no pipe of its application, whether inheritable or not."""
    with socket.socket() as server, (world.folder / "open.txt").open("w") as file:
        server.bind(("127.0.0.1", 0))
        server.listen()
        os.set_inheritable(server.fileno(), True)
        os.set_inheritable(file.fileno(), True)
        application = world.start(server.fileno(), file.fileno()).ready()
        kept = descriptors(application.process.pid)
        relay = world.relay()
        found = descriptors(relay)
        inode = os.fstat(server.fileno()).st_ino

    own = {each for each in found if not each.startswith(str(world.folder))} - {"/dev/null"}
    assert f"socket:[{inode}]" in kept  # the application has it
    assert f"socket:[{inode}]" not in found
    assert str(world.folder / "open.txt") not in found
    assert not [each for each in own if each.startswith("pipe:")]
    assert found[:3] == ["/dev/null"] * 3


def descriptors(pid: int) -> list[str]:
    """Return what the descriptors of a process lead to, by their numbers."""
    found = sorted(Path(f"/proc/{pid}/fd").iterdir(), key=lambda each: int(each.name))
    return [str(each.readlink()) for each in found]


def test_no_secret_is_on_the_command_line_in_the_environment_or_in_a_file(world):
    """Keys and headers reach the relay through a pipe, and what no sink reads does not."""
    application = world.start(**CANARIES, MNEMOSCOPE_SINKS="logs,otlp,langsmith,audit").ready()
    application.order("call", 3)
    relay = world.relay()
    until(lambda: world.logged() == 3)
    shown = {
        name: Path(f"/proc/{relay}/{name}").read_bytes() for name in ("cmdline", "environ", "comm")
    }
    shown |= {str(each): each.read_bytes() for each in world.relays.rglob("*") if each.is_file()}

    secrets = [each.rpartition("=")[2] for each in CANARIES.values() if not each.startswith("http")]
    found = [name for name, said in shown.items() if any(each.encode() in said for each in secrets)]
    assert found == []
    assert {each.stat().st_mode & 0o077 for each in world.relays.rglob("*")} == {0}


def test_other_settings_have_another_relay(world):
    """Where an application delivers to is never chosen by another one."""
    world.start().ready()
    relay = world.relay()
    world.start(MNEMOSCOPE_LOG_FILE=str(world.folder / "other.jsonl")).ready()
    world.start(OTEL_EXPORTER_OTLP_HEADERS="authorization=another").ready()

    assert until(lambda: len({*map(beat_of, world.folders())} - {None}) == 3)
    assert relay in world.processes()
    assert len(world.processes()) == 3


@pytest.fixture
def configured(tmp_path, monkeypatch):
    """Return a function that starts a scope with a relay of its own, and its log file."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    scopes = []

    def configure() -> Mnemoscope:
        settings = load_settings(
            relay="auto",
            sinks="logs,audit",
            log_file=tmp_path / "events.jsonl",
            pii_model="none",
            audit_pseudonym_key="ab" * 32,
        )
        scopes.append(Mnemoscope(settings))
        return scopes[-1]

    yield configure
    for each in scopes:
        each.close()


def one_processor(monkeypatch, _relays):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _pid: {0}, raising=False)


def frozen(monkeypatch, _relays):
    monkeypatch.setattr(sys, "frozen", True, raising=False)


def other_interpreter(monkeypatch, _relays):
    monkeypatch.setattr(sys, "executable", "/usr/sbin/uwsgi")


def no_program(monkeypatch, _relays):
    monkeypatch.setattr(sys, "executable", "/nowhere/python3")


def serverless(monkeypatch, _relays):
    monkeypatch.setenv("K_SERVICE", "agent")


def first_of_a_container(monkeypatch, _relays):
    monkeypatch.setattr(os, "getpid", lambda: 1)


def a_link(_monkeypatch, relays):
    relays.parent.mkdir(parents=True)
    elsewhere = relays.parent / "elsewhere"
    elsewhere.mkdir(mode=0o700)
    relays.symlink_to(elsewhere)


def open_to_others(_monkeypatch, relays):
    relays.mkdir(parents=True)
    relays.chmod(0o755)


def somebody_elses(monkeypatch, relays):
    relays.mkdir(parents=True, mode=0o700)
    own = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: own + 1)


def no_folder(_monkeypatch, relays):
    relays.parent.mkdir(parents=True)
    relays.write_text("")


@pytest.mark.parametrize(
    ("hinder", "reason"),
    [
        (one_processor, "one processor"),
        (frozen, "no Python interpreter"),
        (other_interpreter, "no Python interpreter"),
        (no_program, "No such file"),
        (serverless, "K_SERVICE"),
        (first_of_a_container, "container"),
        (a_link, "is a link"),
        (open_to_others, "open to other users"),
        (somebody_elses, "belongs to user"),
        (no_folder, "File exists"),
    ],
)
def test_where_no_relay_can_be_the_process_delivers_by_itself(
    hinder, reason, configured, tmp_path, monkeypatch, caplog
):
    """And says so once, with the reason."""
    hinder(monkeypatch, tmp_path / "data" / "mnemoscope" / "relay")
    with caplog.at_level(logging.WARNING, "mnemoscope"):
        scope = configured()
    monkeypatch.undo()
    with context(tenant="acme", customer="ada"):
        scope.observe(store="crm", operation="search_memory", neutral=list)(lambda: [1])()
    flushed = scope.flush(GIVE_UP_S)

    said = [each.getMessage() for each in caplog.records if "MNEMOSCOPE_RELAY" in each.getMessage()]
    assert len(said) == 1
    assert reason in said[0]
    assert flushed
    assert len((tmp_path / "events.jsonl").read_text().splitlines()) == 1


@pytest.mark.parametrize(
    ("given", "staying"),
    [
        ({}, {"sink.relay", "sink.prometheus", "sink.logs"}),
        ({"sinks": "logs,otlp,audit"}, {"sink.relay", "sink.otlp"}),
        ({"sinks": "logs"}, {"sink.logs"}),
    ],
    ids=["all", "a provider in code", "none that a relay could feed"],
)
def test_sinks_that_only_this_process_can_feed_stay_in_it(given, staying, tmp_path, monkeypatch):
    """Its /metrics, its own log handlers, a provider in its code."""
    for name in ("OTEL_EXPORTER_OTLP_ENDPOINT", "LANGSMITH_TRACING", "LANGCHAIN_TRACING_V2"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    log_file = tmp_path / "events.jsonl" if "otlp" in given.get("sinks", "") else None
    scope = Mnemoscope(load_settings(relay="auto", pii_model="none", log_file=log_file, **given))
    found = {each.name for each in scope.health().checks if each.name.startswith("sink.")}
    scope.close()

    assert found == staying


def test_events_of_other_settings_that_nobody_delivers_are_said(world):
    """They wait for a process with those settings: no other one may have them."""
    first = world.start().ready()
    first.order("call", 3)
    folder = world.folders()[0]
    os.kill(world.relay(), signal.SIGSTOP)
    first.kill()
    for each in world.processes():
        os.kill(each, signal.SIGKILL)
    (folder / "beat.json").unlink()
    left = bool(left_in(folder))
    second = world.start(MNEMOSCOPE_LOG_FILE=str(world.folder / "other.jsonl")).ready()

    assert (left, f"{folder}: events wait" in second.end()) == (True, True)

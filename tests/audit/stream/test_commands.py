"""``mnemoscope audit stream``, and ``audit verify --from``."""

from __future__ import annotations

import json
import sqlite3
import sys
from contextlib import closing
from pathlib import Path

import pytest

from mnemoscope.audit import AuditLog
from tests.kit import tampering
from tests.kit.command_line import run

pytest.importorskip("pyarrow", reason="needs mnemoscope[parquet]")


@pytest.fixture
def log(tmp_path, monkeypatch, subject_keys, event_factory):
    """Return a signed trail of three operations, which is the configured one."""
    monkeypatch.setenv("MNEMOSCOPE_AUDIT_URL", f"sqlite:///{tmp_path}/audit.db")
    monkeypatch.chdir(tmp_path)
    with closing(AuditLog(tmp_path / "audit.db", subject_keys)) as log:
        log.append([event_factory() for _ in range(3)])
        log.checkpoint_now()
        yield log


def test_a_copy_is_sent_and_verified(log, capfd):
    """With the exit code 0, JSON, and what nothing covers."""
    assert run(["audit", "stream", "--to", "file://copy", "--json"]) == 0
    sent = json.loads(capfd.readouterr().out)
    assert sent == {"at": 4, "size": 4, "set_aside": 0, "removed": 0}

    assert run(["audit", "verify", "--from", "file://copy", "--json"]) == 0
    found = json.loads(capfd.readouterr().out)
    assert (found["state"], found["signed"], len(found["not_covered"])) == ("ok", 4, 3)

    assert run(["audit", "verify", "--from", "file://copy"]) == 0
    said = capfd.readouterr()
    assert said.out == "OK: 1/1 checkpoints valid, 4/4 events valid\n"
    assert "not covered: whose log it is" in said.err


def test_the_key_and_a_checkpoint_vouch_for_whose_copy_it_is(log, capfd):
    """What was not covered without them is."""
    with log.reading() as snapshot:
        (key,) = snapshot.execute("SELECT verifier_key FROM audit_key").fetchone()
    run(["audit", "stream", "--to", "file://copy"])
    (beside,) = Path("copy").glob("*.checkpoint")
    capfd.readouterr()

    options = ["--key", key, "--checkpoint", str(beside)]
    assert run(["audit", "verify", "--from", "file://copy", *options]) == 0
    assert "whose log it is" not in capfd.readouterr().err


def test_a_changed_source_makes_a_copy_that_does_not_verify(log, tmp_path, capfd):
    """1, as of the trail itself."""
    with (
        closing(sqlite3.connect(tmp_path / "audit.db")) as connection,
        tampering.unguarded(connection),
    ):
        connection.execute(
            "UPDATE audit_event SET header = CAST(header || ' ' AS BLOB) WHERE seq = 2"
        )

    assert run(["audit", "stream", "--to", "file://copy"]) == 0
    assert run(["audit", "verify", "--from", "file://copy"]) == 1
    assert "event 2 is not what was sealed" in capfd.readouterr().err


@pytest.mark.parametrize(
    "options",
    [
        ["--from", "file://copy", "--jobs", "2"],
        ["--from", "file://copy", "--key", "x"],
        ["--from", "http://copy"],
        ["--from", "file://copy", "--bundle", "x.zip"],
        ["--key", "x"],
    ],
)
def test_wrong_usage_is_4(log, options, capfd):
    """In one line, before anything is read."""
    run(["audit", "stream", "--to", "file://copy"])
    capfd.readouterr()

    assert run(["audit", "verify", *options]) == 4
    assert capfd.readouterr().err.count("\n") == 1


@pytest.mark.parametrize(
    ("package", "url", "extra"),
    [("pyarrow", "file://copy", "parquet"), ("confluent_kafka", "kafka://h:1/t", "kafka")],
)
def test_an_extra_that_is_missing_is_named(log, monkeypatch, capfd, package, url, extra):
    """With what installs it."""
    for each in [name for name in sys.modules if name.startswith("mnemoscope.audit.stream.")]:
        if each.rpartition(".")[2] in {"parquet", "kafka"}:
            monkeypatch.delitem(sys.modules, each)
    monkeypatch.setitem(sys.modules, package, None)

    assert run(["audit", "stream", "--to", url]) == 3
    assert f"pip install 'mnemoscope[{extra}]'" in capfd.readouterr().err


def test_a_trail_that_is_not_there_is_3(tmp_path, monkeypatch, capfd):
    """And no copy of nothing is begun."""
    monkeypatch.setenv("MNEMOSCOPE_AUDIT_URL", f"sqlite:///{tmp_path}/none.db")

    assert run(["audit", "stream", "--to", f"file://{tmp_path}/copy"]) == 3
    assert not (tmp_path / "copy").exists()

"""``mnemoscope audit verify``: one line, and an exit code that a script can trust."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
from contextlib import closing, nullcontext

import pytest

from mnemoscope.adapters.cli.root import run
from mnemoscope.audit import AuditLog
from mnemoscope.audit.verification import whole
from mnemoscope.telemetry.event.subject import SubjectKeys
from tests.kit import tampering
from tests.kit.outlived_details import outlive
from tests.kit.witness import loopback_witness

SECRET = bytes(range(32))
GAP = {"writer": "00000000000000aa", "from_wseq": 2, "to_wseq": 3, "count": 2, "reason": "full"}


@pytest.fixture
def log(tmp_path, monkeypatch, event_factory):
    """An audit trail of two events, signed, which is the configured one."""
    log = AuditLog(tmp_path / "audit.db", SubjectKeys(SECRET))
    log.append([event_factory(writer_seq=1), event_factory(writer_seq=4)])
    log.append_log_event("audit.gap", GAP)
    log.append([event_factory(writer_seq=2), event_factory(writer_seq=3)])
    log.checkpoint_now()
    monkeypatch.setenv("MNEMOSCOPE_AUDIT_URL", f"sqlite:///{tmp_path}/audit.db")
    monkeypatch.setenv("MNEMOSCOPE_AUDIT_PSEUDONYM_KEY", SECRET.hex())
    monkeypatch.chdir(tmp_path)
    yield log
    log.close()


def tampered(path, statement):
    copy = tampering.copy_of(path, path.with_name("copy.db"))
    with (
        closing(sqlite3.connect(copy, isolation_level=None)) as connection,
        tampering.unguarded(connection),
    ):
        connection.execute(statement)
    return f"sqlite:///{copy}"


def test_in_order_is_0(log, capfd):
    """One line on standard output; what nothing vouches for is said beside it."""
    code = run(["audit", "verify"])

    printed = capfd.readouterr()
    assert code == 0
    assert printed.out == "OK: 1/1 checkpoints valid, 6/6 events valid, 4/4 details valid\n"
    assert [each.partition(":")[0] for each in printed.err.splitlines()] == ["not covered"] * 3


@pytest.mark.parametrize(("given", "jobs"), [([], [2, 1]), (["--jobs", "7"], [7])])
def test_a_large_trail_is_shared_among_processes(log, monkeypatch, capfd, given, jobs):
    """One a core, as long as nothing else is said."""
    counts = []

    def processes(count):
        counts.append(count)
        return nullcontext(map)

    monkeypatch.setattr(whole, "LEAST", 1)
    monkeypatch.setattr(whole, "processes", processes)
    for cores in jobs:
        monkeypatch.setattr(os, "sched_getaffinity", lambda _pid, cores=cores: range(cores))
        assert run(["audit", "verify", *given]) == 0

    assert counts == [each for each in jobs if each > 1]
    assert capfd.readouterr().out.startswith("OK: 1/1 checkpoints valid, 6/6 events valid")


@pytest.mark.fault(80, "tampering, on the command line", expected="exit code 1, says where")
def test_tampered_is_1(log, tmp_path, capfd):
    """And says what and where."""
    log.close()
    code = run(
        ["audit", "verify", "--audit-url", tampered(log.path, "UPDATE audit_event SET store = 'x'")]
    )

    printed = capfd.readouterr()
    assert code == 1
    assert printed.out.startswith("TAMPERED: ")
    assert "event 1: column store is not what was sealed" in printed.err


def test_declared_loss_is_2(log, capfd, event_factory):
    """In order, and yet something never arrived."""
    log.append([event_factory(writer_seq=8)])
    log.append_log_event("audit.gap", {**GAP, "from_wseq": 5, "to_wseq": 7, "count": 3})
    code = run(["audit", "verify"])

    assert code == 2
    assert capfd.readouterr().out.endswith("1 declared gaps (3 events)\n")


def test_what_cannot_be_told_is_3(log, capfd, monkeypatch):
    """Without the secret: events hold, details cannot be opened."""
    monkeypatch.setenv("MNEMOSCOPE_AUDIT_PSEUDONYM_KEY", bytes(32).hex())
    code = run(["audit", "verify"])

    printed = capfd.readouterr()
    assert code == 3
    assert "6/6 events valid" in printed.out
    assert "the secret is not here" in printed.err


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["--from-event", "99"], 4, "there is none after 99"),
        (["--from-event", "-1"], 4, "--from-event"),
        (["--key", "x"], 4, "--key needs --bundle"),
        (["--bundle", "x.zip"], 4, "there is no x.zip"),
        (["--bundle", "audit.db", "--from-event", "1"], 4, "takes no other option"),
        (["--checkpoint", "none.txt"], 4, "none.txt"),
        (["--audit-url", "nonsense"], 4, "must begin with"),
        (["--audit-url", "sqlite:////no/where"], 3, "there is no"),
    ],
)
def test_a_mistake_ends_in_one_line(log, capfd, arguments, code, said):
    """4 where it is the caller's, 3 where there is nothing to verify; never 0, 1 or 2."""
    ended = run(["audit", "verify", *arguments])

    printed = capfd.readouterr()
    assert (ended, printed.out) == (code, "")
    assert said in printed.err
    assert len(printed.err.splitlines()) == 1


def test_json_is_for_scripts(log, capfd):
    """All figures and findings, and the same exit code."""
    code = run(["audit", "verify", "--json"])

    found = json.loads(capfd.readouterr().out)
    assert code == 0
    assert (found["state"], found["size"], found["signed"]) == ("ok", 6, 6)
    assert found["events"] == {"checked": 6, "valid": 6}


def test_since_checks_the_rest(log, capfd):
    """From event 4 on."""
    code = run(["audit", "verify", "--from-event", "4"])

    assert code == 0
    assert "2/2 events valid" in capfd.readouterr().out


def test_headers_only_leaves_out_the_details(log, capfd):
    """Faster, and says nothing of what it did not look at."""
    run(["audit", "verify", "--headers-only"])

    assert "details" not in capfd.readouterr().out


def test_a_checkpoint_kept_elsewhere_is_held_against_it(log, tmp_path, capfd, event_factory):
    """An old copy that was put back is found by it alone."""
    log.close()
    old = tampering.copy_of(log.path, tmp_path / "old.db")
    log.append([event_factory(writer_seq=5)])
    (tmp_path / "note.txt").write_text(log.checkpoint_now())
    arguments = ["audit", "verify", "--checkpoint", "note.txt"]

    assert run(arguments) == 0
    assert run([*arguments, "--audit-url", f"sqlite:///{old}"]) == 1
    assert "an old copy put back" in capfd.readouterr().err


@pytest.mark.usefixtures("log")
def test_a_bundle_is_checked_by_itself(tmp_path, capfd, monkeypatch, event_factory):
    """Without the trail and its secret: its own line and code, also as JSON."""
    outlive(tmp_path / "old.db", SubjectKeys(SECRET), event_factory)
    monkeypatch.setenv("MNEMOSCOPE_AUDIT_URL", f"sqlite:///{tmp_path}/old.db")
    customer = ["--customer", "ada@example.com", "--out", "x.zip"]
    run(["audit", "export", *customer])
    monkeypatch.delenv("MNEMOSCOPE_AUDIT_URL")
    monkeypatch.delenv("MNEMOSCOPE_AUDIT_PSEUDONYM_KEY")
    capfd.readouterr()

    assert run(["audit", "verify", "--bundle", "x.zip"]) == 0
    printed = capfd.readouterr()
    assert printed.out.startswith("OK: 11 files and 0 events")
    assert printed.err.startswith("signed by mnemoscope/")
    assert run(["audit", "verify", "--bundle", "x.zip", "--json"]) == 0
    assert json.loads(capfd.readouterr().out)["problem"] is None
    assert run(["audit", "verify", "--bundle", "audit.db"]) == 1


def test_what_was_removed_is_told(log, capfd):
    """How much, when, and by which process."""
    log.subjects.erase(log.subjects.resolve("ada@example.com", "acme"), "acme")
    assert run(["audit", "verify"]) == 0

    said = [each for each in capfd.readouterr().err.splitlines() if each.startswith("removed:")]
    assert len(said) == 1
    assert "removed: 4 details, " in said[0]
    assert said[0].endswith("(subject.erased, event 6)")


def test_the_finding_comes_first(log, capfd):
    """Before what was removed, and what nothing covers: nobody looks for it below."""
    log.close()
    with closing(sqlite3.connect(log.path)) as connection, connection:
        connection.execute("UPDATE audit_subject SET created_us = 1")

    assert run(["audit", "verify"]) == 1
    lines = capfd.readouterr().err.splitlines()
    assert lines[0].startswith("tampered: rows of audit_subject were changed")
    assert lines[-1].startswith("not covered:")


@pytest.fixture
def witness(log, tmp_path):
    """Return a witness that knows of the trail."""
    with loopback_witness() as witness:
        witness.learn(tmp_path / "audit.db")
        yield witness


def test_a_database_that_was_put_back_shows(log, witness, tmp_path, event_factory, capfd):
    """Every byte of it is as the log wrote it: only the witness knows that there was more."""
    ask = ["audit", "witness", witness.url, "--key", witness.verifier_key]
    log.close()
    shutil.copy(tmp_path / "audit.db", tmp_path / "copy.db")
    log.append([event_factory(writer_seq=5)])
    assert run(ask) == 0
    log.close()
    for each in tmp_path.glob("audit.db*"):
        each.unlink()
    shutil.copy(tmp_path / "copy.db", tmp_path / "audit.db")

    assert run(ask) == 1
    assert "it was put back" in capfd.readouterr().err


def test_what_a_witness_signed_is_a_checkpoint_from_elsewhere(log, witness, tmp_path, capfd):
    """The trail is held against it without the witness."""
    out = tmp_path / "checkpoint.note"

    ask = ["audit", "witness", witness.url, "--key", witness.verifier_key, "--out", str(out)]
    assert run(ask) == 0
    assert run(["audit", "verify", "--checkpoint", str(out)]) == 0
    assert "cosigned" in capfd.readouterr().err


def test_a_witness_that_is_away_is_said(log, witness, capfd):
    """The trail is neither right nor wrong for that."""
    ask = ["audit", "witness", "http://127.0.0.1:9/w", "--key", witness.verifier_key]

    assert run(ask) == 3
    assert "the witness cannot be asked" in capfd.readouterr().err

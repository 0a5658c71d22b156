"""The command line: exit codes and one-line mistakes."""

import subprocess
import sys

import pytest
from patience import GIVE_UP_S

from mnemoscope.adapters.cli.root import run
from mnemoscope.audit.log import AuditLog
from mnemoscope.telemetry.event.subject import Subject, SubjectKeys

SECRET = bytes(range(32))


@pytest.fixture
def trail(tmp_path, monkeypatch, event_factory):
    """An audit trail that holds one write for ada and one for bob, and is the configured one."""
    keys = SubjectKeys(SECRET)
    log = AuditLog(f"sqlite:///{tmp_path}/audit.db", keys)
    people = {name: Subject(name, tenant="acme", keys=keys) for name in ("ada", "bob")}
    log.append(
        [
            event_factory(writer_seq=n, subject=people[name], tenant="acme")
            for n, name in enumerate(("ada", "bob"), start=1)
        ]
    )
    log.close()
    monkeypatch.setenv("MNEMOSCOPE_AUDIT_URL", f"sqlite:///{tmp_path}/audit.db")
    monkeypatch.setenv("MNEMOSCOPE_AUDIT_PSEUDONYM_KEY", SECRET.hex())
    return tmp_path


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["audit", "export"], 4, "Missing option '--customer'"),
        (["frobnicate"], 4, "No such command"),
        (["audit", "export", "--customer", "x", "--audit-url", "nonsense"], 4, "must begin with"),
        (
            ["audit", "export", "--customer", "x", "--audit-url", "sqlite:////no/where"],
            3,
            "there is no",
        ),
        (["audit", "export", "--customer", "x", "--out", "/no/such/folder/x"], 2, "No such file"),
    ],
    ids=["option missing", "unknown command", "bad URL", "no database", "no folder"],
)
def test_a_mistake_ends_in_one_line(trail, capfd, arguments, code, said):
    """A user's mistake gives one line on standard error and the documented exit code."""
    ended = run(arguments)

    error = capfd.readouterr().err
    assert ended == code
    assert said in error
    assert len(error.splitlines()) == 1
    assert "Traceback" not in error


def test_a_conversation_that_is_none_ends_in_one_line(tmp_path, capfd):
    """A file that is no conversation: one line that says what is wrong, and exit code 2."""
    file = tmp_path / "shopping.txt"
    file.write_text("milk, eggs")

    code = run(["demo", "--conversation", str(file)])

    error = capfd.readouterr().err
    assert code == 2
    assert len(error.splitlines()) == 1
    assert "milk" not in error


def test_help_exits_with_zero(capfd):
    """``--help`` is an answer, not a mistake."""
    code = run(["--help"])

    assert code == 0
    assert "audit" in capfd.readouterr().out


def test_help_loads_no_store_sink_or_settings():
    """A command imports what it needs when it runs, so that ``--help`` is fast."""
    heavy = "mem0 qdrant_client langgraph pydantic prometheus_client sqlite3 cryptography spacy"
    script = (
        "import sys; from mnemoscope.adapters.cli.root import run; run(['--help']); "
        f"print([name for name in {heavy.split()} if name in sys.modules], file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        timeout=GIVE_UP_S,
        check=True,
    )

    assert done.stderr.strip() == "[]"

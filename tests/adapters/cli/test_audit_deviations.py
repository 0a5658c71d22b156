"""``mnemoscope audit deviations``: the screen, JSON, exit codes, and mistakes in one line."""

from __future__ import annotations

import json
import time

import pytest
from rich.cells import cell_len

from mnemoscope.audit import AuditLog
from mnemoscope.memory.api import OperationClass, Status, TraceRef, Usage
from tests.kit.command_line import run

SECRET = b"sixteen bytes or more"
DAY_S = 86_400


@pytest.fixture
def trail(tmp_path, monkeypatch, subject_keys):
    """The configured trail, and nothing in it."""
    log = AuditLog(f"sqlite:///{tmp_path}/audit.db", subject_keys)
    monkeypatch.setenv("MNEMOSCOPE_AUDIT_URL", f"sqlite:///{tmp_path}/audit.db")
    monkeypatch.setenv("MNEMOSCOPE_AUDIT_PSEUDONYM_KEY", SECRET.hex())
    monkeypatch.setenv("COLUMNS", "80")
    yield log
    log.close()


@pytest.fixture
def weeks(trail, event_factory):
    """Return a function that records recalls of 30 days, those of the last two days *changed*."""

    def record(**changed):
        usage = Usage(model="m", node="n", input_tokens=9, output_tokens=9, cost_usd=0.5)
        model = {"operation": "chat", "op_class": OperationClass.MODEL, "status": Status.ERROR}
        begun_ns = time.time_ns() - 30 * DAY_S * 10**9
        events = [
            event_factory(
                agent="reader",
                run=f"run-{number}",
                started_ns=begun_ns + number * DAY_S // 8 * 10**9,
                trace=TraceRef(number + 1, 1),
                **({"hits": 5} | (changed if number > 8 * 28 else {})),
            )
            for number in range(8 * 30)
        ]
        latest = {"agent": "reader", "run": "run-239", "usage": usage, "trace": TraceRef(240, 2)}
        latest["started_ns"] = time.time_ns() - 3_600 * 10**9
        trail.append([*events, event_factory(**latest, **model)])

    return record


def test_runs_that_deviate_are_listed_newest_first(weeks, capfd):
    """In 80 columns, with what is otherwise and what is usual; the exit code says that some do."""
    weeks(duration_s=0.1, hits=0)

    code = run(["audit", "deviations", "--before", "30d"])

    said = capfd.readouterr().out.splitlines()
    assert code == 1
    assert " reader: 15 runs, where 0.6 were to be expected" in said
    assert "   search_memory: 8 times the usual seconds (0.1, usually 0.0125)" in said
    names = [line.split()[-1] for line in said if line.startswith("     ") and "run-" in line]
    assert names == ["run-239", "run-238", "run-237", "run-236", "run-235"]
    assert "     and 10 more" in said
    assert "   $0.500 of $0.500 of model calls that failed" in said
    assert max(map(cell_len, said)) <= 80


def test_json_has_all_of_it(weeks, capfd):
    """Figures as numbers, times as text."""
    weeks(duration_s=0.1, hits=0)

    assert run(["audit", "deviations", "--before", "30d", "--json"]) == 1

    found = json.loads(capfd.readouterr().out)
    (finding,) = found["findings"]
    assert (finding["agent"], finding["operation"], finding["runs"]) == (
        "reader",
        "search_memory",
        15,
    )
    assert {each["measure"] for each in finding["evidence"]} == {"seconds", "results"}
    assert len(finding["newest"]) == 15
    assert {"agent": "reader", "operation": None, "what": "usd", "amount": 0.5} in found["idle"]


def test_what_is_as_usual_is_said(weeks, capfd):
    """What there is too little of to judge is said besides, and is no good answer."""
    weeks()

    assert run(["audit", "deviations", "--before", "30d"]) == 3

    said = capfd.readouterr().out
    assert " None deviates from the days before.\n" in said
    assert " unknown: reader chat: 0 runs before, 50 are needed\n" in said


@pytest.mark.parametrize(
    ("arguments", "code", "line"),
    [
        (["--since", "soon"], 4, "--since takes an age"),
        (["--before", "1d"], 4, "--before must be before --since"),
        (["--audit-url", "sqlite:////no/where"], 3, "there is no audit database"),
    ],
)
def test_a_mistake_is_one_line(trail, capfd, arguments, code, line):
    """What was expected, and no traceback."""
    assert run(["audit", "deviations", *arguments]) == code

    said = capfd.readouterr().err
    assert line in said
    assert said.count("\n") == 1

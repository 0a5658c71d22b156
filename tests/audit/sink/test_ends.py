"""How processes end: what `verify` says of it is what happened, whoever else is slow at exit."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys

import pytest

from mnemoscope.audit import AuditLog
from mnemoscope.audit.verification.report import FindingKind
from mnemoscope.audit.verification.whole import verify
from mnemoscope.telemetry.event.subject import SubjectKeys
from tests.kit.patience import GIVE_UP_S

KEY = "ab" * 32
CALLS = 20

SCRIPT = """
import atexit, multiprocessing, os, signal, sys, threading, time, types
import mnemoscope.memory
from mnemoscope.telemetry.process import exit_deadline

# What a loaded machine needs does not count; what others take at exit is a step of the clock.
late = [0.0]
exit_deadline.time = types.SimpleNamespace(monotonic=lambda: time.monotonic() + late[0])
exit_deadline.EXIT_DEADLINE_S = {patience}

{before}
scope = mnemoscope.memory.configure(pii_model="none")

@mnemoscope.memory.observe(store="crm", operation="search_memory", neutral=list)
def recall():
    return []

CALLS = {calls}

def work():
    for _ in range(CALLS):
        recall()

{after}
work()
{end}
"""
SLOW = f"atexit.register(late.__setitem__, 0, {GIVE_UP_S + 0.15})"
ENDS = {
    "returns": "",
    "exits": "sys.exit(3)",
    "fails": "raise LookupError",
    "is told to end": (
        "signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))\n"
        "os.kill(os.getpid(), signal.SIGTERM)"
    ),
    "forks workers": "multiprocessing.get_context('fork').Process(target=work).start()",
    "forks": "work() if os.fork() == 0 else os.wait()",
    "leaves a daemon thread": "threading.Thread(target=time.sleep, args=(9,), daemon=True).start()",
    "closes before": "scope.close()",
    "forgets a scope": (
        "def forgotten():\n"
        "    from mnemoscope.memory import Mnemoscope, load_settings\n"
        "    other = Mnemoscope(load_settings(pii_model='none'))\n"
        "    ask = other.observe(store='crm', operation='search_memory', neutral=list)(list)\n"
        "    [ask() for _ in range(CALLS)]\n"
        "forgotten(); __import__('gc').collect()"
    ),
}
HANDLERS = {
    "none": ("", ""),
    "a slow one, registered before": (SLOW, ""),
    "a slow one, registered after": ("", SLOW),
    "one that works, registered before": (
        "import mnemoscope.telemetry.delivery.drain; atexit.register(lambda: work())",
        "",
    ),
    "one that works, registered after": ("", "atexit.register(work)"),
}
SINKS = {
    "all well": {"MNEMOSCOPE_SINKS": "audit"},
    "a dead collector": {
        "MNEMOSCOPE_SINKS": "audit,otlp",
        "OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:9",
    },
}


def ran(folder, end, handlers=("", ""), sinks=SINKS["all well"]):
    """Run a process to its end, and return its exit code."""
    before, after = handlers
    script = SCRIPT.format(before=before, after=after, end=end, calls=CALLS, patience=GIVE_UP_S)
    quiet = {name: value for name, value in os.environ.items() if "OTEL" not in name}
    done = subprocess.run(
        [sys.executable, "-c", script],
        env=quiet
        | sinks
        | {
            "MNEMOSCOPE_AUDIT_URL": f"sqlite:///{folder / 'audit.db'}",
            "MNEMOSCOPE_AUDIT_SPOOL": str(folder / "audit.spool"),
            "MNEMOSCOPE_AUDIT_PSEUDONYM_KEY": KEY,
        },
        capture_output=True,
        timeout=GIVE_UP_S,
        check=False,
    )
    return done.returncode


@pytest.fixture
def found(tmp_path):
    """Return what `verify` says of the trail."""

    def found():
        log = AuditLog(tmp_path / "audit.db", SubjectKeys(bytes.fromhex(KEY)))
        log.spool_path = tmp_path / "audit.spool"
        assert log.count() % CALLS == 0
        return verify(log), log.count()

    return found


def drawn():
    """Yield an end with handlers and sinks: each of them, and each of the others, at least once."""
    draw = random.Random(5)  # noqa: S311 - not secret
    handlers = [*HANDLERS, *HANDLERS][: len(ENDS)]
    draw.shuffle(handlers)
    for number, end in enumerate(ENDS):
        yield end, handlers[number], [*SINKS][number % 2]


@pytest.mark.parametrize(("end", "handlers", "sinks"), [*drawn()])
@pytest.mark.long
def test_an_ordinary_end_is_one(tmp_path, found, end, handlers, sinks):
    """All events are there and signed, and each process has said that it ended."""
    ran(tmp_path, ENDS[end], HANDLERS[handlers], SINKS[sinks])
    report, events = found()

    assert report.state == "ok", report.findings
    assert report.signed == report.size
    writers = 1 + ("forks" in end or "forgets" in end)
    assert report.writers | {"stopped": writers} == report.writers
    assert events >= CALLS * (writers + ("works" in handlers))


def test_what_comes_after_our_own_end_is_told_as_missing(tmp_path, found):
    """A handler that was registered before ours comes after it: nobody delivers any more."""
    ran(tmp_path, "", ("atexit.register(lambda: work())", ""))
    report, events = found()
    (line,) = report.findings[FindingKind.LOSS]

    assert (report.state, report.writers["unknown"], events) == ("loss", 1, CALLS)
    assert "missing for sure, and at most" in line


def test_an_end_while_others_are_at_it_is_told_already(tmp_path, found):
    """A process that is killed in somebody else's exit handler had said that it was at its end."""
    kill = f"atexit.register(os.kill, os.getpid(), {int(signal.SIGKILL)})"
    code = ran(tmp_path, "", ("", kill))
    report, events = found()

    assert code == -signal.SIGKILL
    assert (report.state, report.writers["stopped"], events) == ("ok", 1, CALLS)


def test_a_process_that_is_killed_when_all_is_recorded_lost_nothing(tmp_path, found):
    """As servers end that pass a signal on: how it ended is unknown, and nothing is missing."""
    ran(tmp_path, f"scope.flush(); os.kill(os.getpid(), {int(signal.SIGKILL)})")
    report, events = found()

    assert (report.state, report.writers["unknown"], events) == ("ok", 1, CALLS)

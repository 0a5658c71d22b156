"""Ways to serve while the store breaks and comes back: the short version of `servers.py`."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

SERVERS = (
    *("gunicorn", "gunicorn --preload", "gunicorn, loaded anew", "gunicorn, threads"),
    *("gunicorn, gevent", "uvicorn", "uvicorn, two workers"),
)


@pytest.mark.fault(
    26, "gunicorn and uvicorn while the store breaks", expected="all that was answered is there"
)
@pytest.mark.parametrize("name", SERVERS)
def test_what_was_answered_is_there(name, full, seen):
    """In the store, in the audit trail and in the log, however it is served."""
    writes = "400" if full else "24"
    done = subprocess.run(
        [
            *(sys.executable, "-m", "benchmarks.faults.servers", "--json"),
            "--server",
            name,
            "--writes",
            writes,
        ],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode in {0, 1}, done.stderr
    outcome = json.loads(done.stdout)[name]
    seen(f"{name}: {outcome['answered']} answered, {outcome['waited']} of them after the outage")

    assert outcome["answered"]
    assert outcome["waited"]
    assert not outcome["not_stored"]
    assert not outcome["not_told"]
    assert min(outcome["events"]) >= outcome["answered"]
    assert outcome["findings"] == []

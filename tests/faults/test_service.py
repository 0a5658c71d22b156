"""A web service on a store that breaks now and then: the short version of `service.py`."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.kit.patience import GIVE_UP_S

ROOT = Path(__file__).parents[2]


@pytest.mark.fault(
    53,
    "a web service on a store that breaks",
    expected="no 500 that a healthy store would not give",
)
def test_service(full, seen):
    """Exceptions, corrupt answers and hangs below the guard: none of them is answered with 500."""
    deadlines = {f"MNEMOSCOPE_DEADLINE_{each}_S": "1" for each in ("RECALL", "REMEMBER", "FORGET")}
    seconds, others_s, clients = ("60", "6", "50") if full else ("8", "1", "10")
    done = subprocess.run(
        [
            *(sys.executable, "-m", "benchmarks.faults.service", "--json", "--concurrent", clients),
            *("--seconds", seconds, "--others-seconds", others_s, "--hang-seconds", "2"),
        ],
        env={**os.environ, **deadlines},
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=GIVE_UP_S,
        check=False,
    )
    assert done.returncode in {0, 1}, done.stderr
    result = json.loads(done.stdout)
    guarded = result["services"]["guarded, breaking"]
    injected = guarded["injected"]
    seen(
        f"{sum(guarded['statuses'].values()):,} answers, {guarded['degraded']:,} of them neutral; "
        f"injected {', '.join(f'{n:,} {what}' for what, n in injected.items())}"
    )

    assert result["not_excused"] == {}
    assert injected["exceptions"]
    assert injected["corrupt answers"]
    assert injected["hangs"]

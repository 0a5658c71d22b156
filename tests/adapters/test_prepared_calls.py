"""Calls of every kind of wrapped client, once `scope.prepare` has returned."""

from __future__ import annotations

from pathlib import Path

from own_process import run_python

PROGRAM = Path(__file__).parents[1] / "shared" / "prepared_calls.py"


def test_no_call_of_a_prepared_scope_loads_anything(tmp_path):
    """No module is imported and no file opened by us, on any thread that makes a call."""
    ended = run_python(
        str(PROGRAM), folder=tmp_path, MEM0_TELEMETRY="False", MNEMOSCOPE_PII_MODEL="none"
    )

    assert ended.stdout.split("\n") == [""]

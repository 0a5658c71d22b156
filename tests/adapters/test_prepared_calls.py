"""Calls of every kind of wrapped client, once `scope.prepare` has returned."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.kit.own_process import run_python

ROOT = Path(__file__).parents[2]


@pytest.mark.long
def test_no_call_of_a_prepared_scope_loads_anything(tmp_path):
    """No module is imported and no file opened by us, on any thread that makes a call."""
    ended = run_python(
        *("-m", "tests.kit.prepared_calls"),
        folder=tmp_path,
        PYTHONPATH=str(ROOT),
        MEM0_TELEMETRY="False",
        MNEMOSCOPE_PII_MODEL="none",
    )

    assert ended.stdout.split("\n") == [""]

"""mem0 inside a process of its own: offline, and quiet as the process ends."""

from __future__ import annotations

import pytest

from tests.kit.own_process import run_python

PROGRAM = """
from pathlib import Path
from mnemoscope.demo import embedded_memory
from mnemoscope.memory import configure

scope = configure(sinks="", pii_model="none")
memory = scope.mem0(embedded_memory(Path("mem0")))

from mem0.memory import telemetry
print(telemetry.MEM0_TELEMETRY)
"""


@pytest.mark.long
def test_a_program_that_wraps_it_ends_quietly_and_offline(tmp_path):
    """Nothing is sent to mem0's makers, and no clean-up comes after the interpreter's end."""
    ended = run_python("-c", PROGRAM, folder=tmp_path)

    assert ended.stdout == "False\n"
    assert "Exception ignored" not in ended.stderr
    assert "Traceback" not in ended.stderr

"""Python programs run as a user would run them: in a process of their own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from tests.kit.patience import GIVE_UP_S, UNHURRIED


def run_python(*arguments: str, folder: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run Python in *folder* with no variables but *variables*, and check that it exits with 0."""
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(folder),
        "XDG_DATA_HOME": str(folder / "data"),
        **UNHURRIED,
    }
    ended = subprocess.run(
        [sys.executable, *arguments],
        cwd=folder,
        env=environment | variables,
        capture_output=True,
        text=True,
        timeout=GIVE_UP_S,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    return ended


def run_code(code: str, env: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    """Run *code* here, with *env* as all of its variables, and check that it exits with 0."""
    return subprocess.run(
        [sys.executable, "-c", code],
        env=env,
        capture_output=True,
        text=True,
        timeout=GIVE_UP_S,
        check=True,
    )


def leaving(module: str, sink: str) -> str:
    """Return a program that ends with an event in *sink*, and prints how long that took."""
    return f"""
import atexit, time
from mnemoscope.telemetry.delivery.drain import Drain
from mnemoscope.telemetry.event.event import Event, OperationClass, Status
from mnemoscope.telemetry.{module} import {sink}
from mnemoscope.telemetry.event.trace import TraceRef

drain = Drain([{sink}()])
drain.emit(Event(writer_id="0", writer_seq=1, started_ns=1, duration_s=0.1, store="mem0",
                 operation="search_memory", op_class=OperationClass.RECALL, method="search",
                 status=Status.OK, trace=TraceRef(1, 2)))
time.sleep(1.0)
left_at = time.monotonic()
atexit.register(lambda: print(time.monotonic() - left_at, flush=True))
atexit.register(drain.close)
"""

"""Each module of the product can be imported, on each Python and with each version it is for."""

from __future__ import annotations

import subprocess
import sys

from tests.kit.frameworks import is_for_another_environment
from tests.kit.patience import GIVE_UP_S

PROGRAM = """
import importlib, pkgutil, warnings

warnings.simplefilter("ignore")
for package in ("memory", "telemetry", "audit", "adapters"):
    top = importlib.import_module(f"mnemoscope.{package}")
    for each in pkgutil.walk_packages(top.__path__, f"{top.__name__}."):
        try:
            importlib.import_module(each.name)
        except Exception as exc:
            print(f"{each.name}: {type(exc).__name__}: {exc}")
"""
"""Lists the modules that cannot be imported: in a process of its own, since it imports them all."""


def test_each_module_can_be_imported():
    """Also those that only one command, or one client, would load: no user finds it out first."""
    command = [sys.executable, "-c", PROGRAM]

    ended = subprocess.run(command, capture_output=True, text=True, check=True, timeout=GIVE_UP_S)

    failed = [(line.partition(":")[0], line) for line in ended.stdout.splitlines()]
    assert [line for name, line in failed if not is_for_another_environment(name)] == []

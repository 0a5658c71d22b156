"""Modules that another thread is importing just now are there, and their names are not."""

from __future__ import annotations

import os
import sys
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType

import pytest

from mnemoscope.adapters.mcp.adapter import _kind
from mnemoscope.memory.privacy.detectors.pace import running_loop
from mnemoscope.memory.scope import quiet_clients
from mnemoscope.telemetry.langsmith.sink import capture_parent
from mnemoscope.telemetry.otlp.host import host_meter_provider, host_tracer_provider
from mnemoscope.telemetry.text import code_class

READERS = {
    "opentelemetry.sdk.trace": host_tracer_provider,
    "opentelemetry.sdk.metrics": host_meter_provider,
    "langsmith.run_helpers": capture_parent,
    "asyncio": running_loop,
    "langchain.mcp": partial(_kind, "langchain.mcp", "MCPAdapter"),
}
"""What looks into modules that somebody else may have imported, by the module."""


@pytest.mark.parametrize("module", READERS)
@pytest.mark.parametrize("state", ["not imported", "half imported"])
def test_it_counts_as_not_imported(monkeypatch, module, state):
    """Nobody can have set it up yet, and looking is no error."""
    if state == "not imported":
        monkeypatch.delitem(sys.modules, module, raising=False)
    else:
        monkeypatch.setitem(sys.modules, module, ModuleType(module))

    assert READERS[module]() is None


def test_a_class_of_a_half_imported_module_goes_by_one_above_it(monkeypatch):
    """Its own name cannot be found in code yet, so that it may be anybody's."""
    monkeypatch.setitem(sys.modules, "half", ModuleType("half"))

    assert code_class(type("Unready", (ValueError,), {"__module__": "half"})) is ValueError


def test_a_half_imported_client_has_sent_nothing(monkeypatch, caplog):
    """Its telemetry reads the variable when it comes to that line."""
    monkeypatch.setenv("MEM0_TELEMETRY", "True")
    monkeypatch.setitem(sys.modules, "mem0.memory.telemetry", ModuleType("telemetry"))
    quiet_clients(is_wanted=True)

    assert os.environ["MEM0_TELEMETRY"] == "False"
    assert caplog.records == []


def test_every_look_into_the_modules_is_checked_here():
    """Our code asks `sys.modules` for no other module."""
    looking = {
        f"{package}/{path.relative_to(folder).as_posix()}"
        for package in ("memory", "telemetry", "adapters", "audit")
        for folder in find_spec(f"mnemoscope.{package}").submodule_search_locations
        for path in Path(folder).rglob("*.py")
        if "sys.modules.get(" in path.read_text() or "sys.modules[" in path.read_text()
    }

    assert looking == {
        *("telemetry/otlp/host.py", "telemetry/langsmith/sink.py"),
        *("telemetry/text.py", "memory/scope.py", "adapters/mcp/adapter.py"),
        "memory/privacy/detectors/pace.py",
    }

"""Guarded libraries keep their own modules: no name in them leads to something of ours."""

from __future__ import annotations

import asyncio
import re
import sys
from importlib import import_module
from pathlib import Path
from types import FunctionType, ModuleType
from unittest.mock import patch

import pytest
from mem0 import AsyncMemoryClient

from mnemoscope.memory.testing.adapter_trial import trial
from tests.kit.adapter_cases import CASES, hosted_account

LIBRARIES = ("mem0", "qdrant_client", "langgraph", "asyncio", "httpx", "concurrent")
_IMPORT = re.compile(r"^import ([\w.]+)(?: as (\w+))?$", re.MULTILINE)


@pytest.fixture
def wrapped(monkeypatch):
    """Wrap a client of each kind, and make a call of each."""
    monkeypatch.setattr(AsyncMemoryClient, "_validate_api_key", hosted_account)
    with asyncio.Runner() as runner:
        for case in (make() for make in CASES.values()):
            with trial(case, runner) as tried:
                name = next(iter(case.calls))
                tried.call(name, case.calls[name]("tea"))


def modules():
    """Return the loaded modules of the libraries, by name."""
    found = [(name, each) for name, each in sys.modules.items() if each is not None]
    return {name: each for name, each in found if name.split(".")[0] in LIBRARIES}


def stand_ins(loaded):
    """Return the names in modules that lead to something else than what they import, or to ours."""
    found = [name for name, module in loaded.items() if not isinstance(module, ModuleType)]
    for name, module in loaded.items():
        for key, value in dict(vars(module)).items():
            made_by = value.__module__ if type(value) is FunctionType else type(value).__module__
            if str(made_by).split(".")[0] == "mnemoscope":
                found.append(f"{name}.{key}")
    files = [name for name, each in loaded.items() if getattr(each, "__file__", None)]
    for name in [each for each in files if each.startswith("mem0.")]:
        for imported, alias in _IMPORT.findall(Path(loaded[name].__file__).read_text("utf-8")):
            top = imported if alias else imported.split(".")[0]
            key = alias or top
            if vars(loaded[name]).get(key) is not sys.modules[top]:
                found.append(f"{name}.{key}")
    return sorted(set(found))


@pytest.mark.usefixtures("wrapped")
def test_no_module_has_a_stand_in():
    """After clients of every kind were wrapped and called."""
    assert stand_ins(modules()) == []


def test_a_stand_in_would_be_found(monkeypatch):
    """For a module, and for a function in one."""

    class Like(ModuleType):
        """As a stand-in that says that it is a module."""

    main = import_module("mem0.memory.main")
    monkeypatch.setattr(main, "asyncio", Like("asyncio"))
    monkeypatch.setattr(import_module("httpx"), "get", trial)

    assert stand_ins(modules()) == ["httpx.get", "mem0.memory.main.asyncio"]


@pytest.mark.usefixtures("wrapped")
def test_a_patch_in_a_librarys_name_for_a_module_is_undone():
    """As tests of mem0 itself patch it."""
    before = asyncio.to_thread
    with patch("mem0.memory.main.asyncio.to_thread"):
        assert asyncio.to_thread is not before

    assert asyncio.to_thread is before

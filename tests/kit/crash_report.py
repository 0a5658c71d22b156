"""A test process that dies says where and how, in the report of the test that it was at."""

from __future__ import annotations

import faulthandler
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import pytest

FOLDER = pytest.StashKey[Path]()
"""Where the processes write."""
HELD = pytest.StashKey[Any]()
LAST_S = 5.0


@pytest.hookimpl(trylast=True)  # after pytest's own, which has it written to the terminal
def pytest_configure(config: pytest.Config) -> None:
    """Have a fatal error of this process written to a file."""
    given = getattr(config, "workerinput", None)
    if given is None:
        config.stash[FOLDER] = Path(tempfile.mkdtemp(prefix="crashes-"))
        return
    written = Path(given["crashes"], given["workerid"])
    config.stash[HELD] = written.open("w", encoding="utf8")  # for as long as this process lives
    faulthandler.enable(config.stash[HELD])


def pytest_unconfigure(config: pytest.Config) -> None:
    """Leave no file."""
    if FOLDER in config.stash:
        shutil.rmtree(config.stash[FOLDER], ignore_errors=True)


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Tell a process where to write."""
    node.workerinput["crashes"] = str(node.config.stash[FOLDER])


@pytest.hookimpl(optionalhook=True)
def pytest_handlecrashitem(crashitem: str, report: Any, sched: Any) -> None:
    """Add what it wrote, and its exit code."""
    node = report.node
    written = node.config.stash[FOLDER] / node.gateway.id
    text = written.read_text(encoding="utf8") if written.exists() else ""
    report.longrepr = f"{report.longrepr}\nexit code {_exit_code(node)}\n{text}"
    # At once as well: where tests are grouped, xdist may not get as far as its summary.
    node.config.get_terminal_writer().write(f"\n{crashitem}\n{report.longrepr}\n")


def _exit_code(node: Any) -> int | str:
    try:
        return node.gateway._io.popen.wait(LAST_S)
    except (AttributeError, subprocess.TimeoutExpired) as exc:
        return f"unknown ({type(exc).__name__})"

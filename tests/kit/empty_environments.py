"""Environments with nothing in them, and a wheel of this project."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from tests.kit.patience import UNHURRIED

ROOT = Path(__file__).parents[2]

_BUILT = shutil.ignore_patterns(
    ".git", ".venv*", ".*_cache", ".hypothesis", "__pycache__", "build", "dist", "*.egg-info"
)


def copy_sources(folder: Path) -> Path:
    """Copy what is in the repository into *folder*, as a clone would have it."""
    return Path(shutil.copytree(ROOT, folder, symlinks=True, ignore=_BUILT))


def build_wheel(folder: Path) -> Path:
    """Build the wheel in *folder*, and return its path."""
    sources = copy_sources(folder / "sources")
    wheels = folder / "wheels"
    command = [sys.executable, "-m", "build", "--wheel", "--outdir", str(wheels), str(sources)]
    subprocess.run(command, check=True, capture_output=True, text=True)
    (wheel,) = wheels.glob("*.whl")
    return wheel


def variables(home: Path, *first_on_path: Path) -> dict[str, str]:
    """Return the variables of somebody who has just come: a home of their own, and no settings."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(
            ("MNEMOSCOPE_", "OTEL_", "LANG", "MAKE", "PYTHON", "VIRTUAL_ENV", "XDG_")
        )
    }
    home.mkdir(parents=True, exist_ok=True)
    path = os.pathsep.join([*map(str, first_on_path), os.environ["PATH"]])
    own = {"HOME": str(home), "PATH": path, "LANG": "C.UTF-8", "MEM0_TELEMETRY": "False"}
    return {**kept, **own, **UNHURRIED}


class Environment:
    """
    A virtual environment in a folder and home of its own.

    Attributes:
        folder: Where programs run.
        python: Its interpreter.
    """

    def __init__(self, folder: Path, python: str = sys.executable) -> None:
        self.folder = folder
        base = Path(python).resolve()
        subprocess.run([str(base), "-m", "venv", str(folder / "venv")], check=True)
        self.python = folder / "venv/bin/python"
        self._variables = variables(folder / "home", self.python.parent)

    def run(self, command: str, **further: str) -> subprocess.CompletedProcess[str]:
        """Run a command line, with both of its streams in one."""
        return subprocess.run(
            ["bash", "-c", command],  # noqa: S607 - the one on the PATH
            cwd=self.folder,
            env=self._variables | further,
            check=False,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

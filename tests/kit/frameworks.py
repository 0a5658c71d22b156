"""Frameworks whose tests have an environment of their own, and whose adapters need them."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

FRAMEWORKS = frozenset(
    each.parent.name for each in (Path(__file__).parents[1] / "doors").glob("*/requirements.txt")
)
"""The names of the folders in tests/doors: those of the frameworks' packages, and of adapters."""


def is_for_another_environment(module: str) -> bool:
    """Tell whether *module* is in the adapter of a framework that is not installed here."""
    _, package, room, *_ = (*module.split("."), "", "")
    return package == "adapters" and room in FRAMEWORKS and find_spec(room) is None

"""
What tests import of the packages besides public names, by room: a list that only shrinks.

Each private import is a line that changes whenever a file of its room moves. Public is what the
pages of docs/api list, as for tests/test_border.py.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from pathlib import Path

import pytest

# One worker reads the files.
pytestmark = pytest.mark.xdist_group("private imports")

TESTS = Path(__file__).parent
LISTED = TESTS / "private_imports.txt"
"""A line for each room: how many names at most, and why."""

PUBLIC = {
    name
    for page in (TESTS.parent / "docs/settings.md", *(TESTS.parent / "docs/api").glob("*.md"))
    for name in re.findall(r"^::: (\S+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
}
MODULES = {name.rpartition(".")[0] for name in PUBLIC}


def private_names(path: Path) -> Iterator[str]:
    """Yield each private name or module that a file imports, with its module."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names = [each.name for each in node.names]
            yield from (each for each in names if each.startswith("mnemoscope."))
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("mnemoscope"):
            for each in node.names:
                is_public = node.module in MODULES and (
                    each.name in import_module(node.module).__all__
                )
                if not is_public:
                    yield f"{node.module}.{each.name}"


def room_of(name: str) -> str:
    """Return the room of a private name: a folder of a package, or the package's own files."""
    parts = name.removeprefix("mnemoscope.").split(".")
    folder = Path(import_module(f"mnemoscope.{parts[0]}").__file__ or "").parent
    if len(parts) > 1 and (folder / parts[1]).is_dir():
        return f"{parts[0]}/{parts[1]}"
    return parts[0]


@cache
def rooms_imported() -> Counter[str]:
    """Return how many private names of each room tests and their kit import."""
    return Counter(room_of(name) for path in TESTS.rglob("*.py") for name in private_names(path))


def rooms_listed() -> dict[str, int]:
    """Return how many private names of each room the list allows."""
    lines = LISTED.read_text(encoding="utf-8").splitlines()
    listed = (each.split(maxsplit=2) for each in lines if each and not each.startswith("#"))
    return {room: int(most) for room, most, _reason in listed}


def test_private_imports_do_not_grow():
    """No more names of a room than are listed, and none of a room that is not."""
    allowed = rooms_listed()
    grown = {room: n for room, n in rooms_imported().items() if n > allowed.get(room, 0)}

    assert grown == {}


def test_the_list_shrinks():
    """What the list allows and nothing imports is taken off it, by the next who comes by."""
    found = rooms_imported()
    slack = {room: most - found[room] for room, most in rooms_listed().items()}

    assert {room: n for room, n in slack.items() if n > 10} == {}

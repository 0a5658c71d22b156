"""What programs in strings use of ours is there: nobody checks their types."""

from __future__ import annotations

import ast
import pkgutil
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
OURS = re.compile(r"mnemoscope(\.\w+)+")
IMPORT = re.compile("(?:import|from) mnemoscope")
FOLDERS = ("adapters", "audit", "docs", "examples", "grafana", "memory", "telemetry", "tests")


def programs() -> Iterator[tuple[str, ast.Module]]:
    """Yield the programs in strings that import ours, each with its place."""
    for path in sorted(path for folder in FOLDERS for path in (ROOT / folder).rglob("*.py")):
        text = path.read_text()
        if not IMPORT.search(text):
            continue
        for each in ast.walk(ast.parse(text)):
            if not isinstance(each, ast.Constant) or not isinstance(each.value, str):
                continue
            if not IMPORT.search(each.value):
                continue
            try:
                program = ast.parse(each.value)
            except SyntaxError:  # prose, or an example of a shell
                continue
            yield f"{path.relative_to(ROOT).as_posix()}:{each.lineno}", program


def used(program: ast.Module) -> Iterator[str]:
    """Yield the dotted names of ours that *program* uses."""
    for each in ast.walk(program):
        if isinstance(each, ast.ImportFrom):
            names = [f"{each.module}.{alias.name}" for alias in each.names]
        elif isinstance(each, ast.Import):
            names = [alias.name for alias in each.names]
        else:
            names = [ast.unparse(each)] if isinstance(each, ast.Attribute) else []
        yield from (name for name in names if OURS.fullmatch(name))


def called(program: ast.Module) -> Iterator[str]:
    """Yield the dotted names of ours that *program* calls."""
    for each in ast.walk(program):
        if isinstance(each, ast.Call) and OURS.fullmatch(name := ast.unparse(each.func)):
            yield name


def found(name: str) -> object:
    """Return what a dotted name leads to. None: nothing."""
    try:
        return pkgutil.resolve_name(name)
    except (AttributeError, ImportError):
        return None


def test_what_programs_in_strings_use_is_there():
    """A name that was moved is moved in them too, and what they call is no module."""
    all_of_them = list(programs())
    absent = [
        (place, name) for place, each in all_of_them for name in used(each) if found(name) is None
    ]
    uncallable = [
        (place, name)
        for place, each in all_of_them
        for name in called(each)
        if not callable(found(name))
    ]

    assert len(all_of_them) > 20
    assert (absent, uncallable) == ([], [])

"""The wiring: what an object needs it is given as it is made, or by a method of its own."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
WIRING = sorted(
    [
        *(ROOT / "memory").glob("*.py"),
        *(ROOT / "memory").glob("*/maker.py"),
        *(ROOT / "adapters" / "langgraph").glob("*/adapter.py"),
        ROOT / "adapters" / "langgraph" / "runs" / "callbacks.py",
        ROOT / "adapters" / "langgraph" / "runs" / "gate.py",
        ROOT / "adapters" / "langgraph" / "runs" / "stream.py",
        ROOT / "adapters" / "qdrant" / "adapter.py",
        ROOT / "adapters" / "toolkit" / "wrapping.py",
    ]
)
"""The modules that put scopes, guards and watched graphs together."""

RECORDS = {"run", "chain", "meter.totals"}
"""Names of what is not wired but filled in: the record of a run, and its totals."""


def assigned(tree: ast.Module) -> Iterator[str]:
    """Yield each attribute that is assigned of another object than ``self``."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Attribute) or not isinstance(node.ctx, ast.Store):
            continue
        of = ast.unparse(node.value)
        if of not in {"self", *RECORDS} and not of.startswith("weakref.finalize("):
            yield ast.unparse(node)


@pytest.mark.parametrize("path", WIRING, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_no_part_is_changed_from_outside(path: Path) -> None:
    """An object that is complete once it is made cannot be met half wired."""
    assert list(assigned(ast.parse(path.read_text()))) == []


def test_an_assignment_from_outside_is_found() -> None:
    """However deep it is, and beside others."""
    tree = ast.parse("a.b = c.d.e = 1\nself.f = 2\nself.g.h += 3\nwatch().i: int = 4\nrun.j = 5")

    assert sorted(assigned(tree)) == ["a.b", "c.d.e", "self.g.h", "watch().i"]

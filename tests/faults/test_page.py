"""docs/faults.md has every fault that `make faults` injects, and no other."""

from __future__ import annotations

import ast
from pathlib import Path

from tests.kit.fault_report import WAITING

ROOT = Path(__file__).parents[2]


def injected():
    """Yield number and name of each fault that a test is marked with, wherever it is."""
    for path in (ROOT / "tests").rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        if ".fault(" not in text:
            continue
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "pytest.mark.fault":
                number, name = map(ast.literal_eval, node.args)
                yield str(number), name


def test_the_page_lists_the_faults_that_are_injected():
    """By number and name: a fault that is added is run at full size, and told."""
    page = (ROOT / "docs/faults.md").read_text(encoding="utf-8")
    rows = [line.split(" | ") for line in page.splitlines() if line.startswith("| ")][1:]

    told = {(number.removeprefix("| "), name) for number, _sign, name, *_rest in rows}

    waiting = {(number, name) for number, (name, *_rest) in WAITING.items()}
    assert told == {*injected(), *waiting}
    assert len(told) > 80

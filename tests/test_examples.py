"""Every example runs as a person would run it, offline, and prints what it says it does."""

import ast
from pathlib import Path

import pytest

from tests.kit.own_process import run_python

EXAMPLES = sorted((Path(__file__).parents[1] / "examples").glob("*.py"))


def test_there_is_an_example_for_each_store_and_one_for_the_decorators():
    """Whoever plugs one thing in finds a script for just that."""
    names = {path.stem for path in EXAMPLES}

    assert names >= {
        "checkpointer",
        "decorators",
        "langgraph_store",
        "mem0_memory",
        "qdrant_documents",
        "token_usage",
    }


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_runs(example, tmp_path):
    """It ends well, and prints what its first lines say; three dots leave the end of a line out."""
    said = ast.get_docstring(ast.parse(example.read_text(encoding="utf-8"))) or ""
    told = [line.strip() for line in said.partition("Prints:\n")[2].splitlines()]

    ended = run_python("-W", "default", str(example), folder=tmp_path)

    assert "Traceback" not in ended.stderr
    lines = ended.stdout.splitlines()
    cut = [
        line[: len(begun) - 1] + "…" if begun.endswith("…") else line
        for begun, line in zip(told, lines, strict=False)
    ]
    assert told
    assert [*cut, *lines[len(told) :]] == told

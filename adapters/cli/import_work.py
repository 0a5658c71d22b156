"""What a module does when it is imported, besides defining names."""

from __future__ import annotations

import ast
from importlib.util import find_spec
from pathlib import Path

_WORK = (ast.For, ast.AsyncFor, ast.While, ast.With, ast.AsyncWith)


def work_on_import(name: str) -> tuple[int, str] | None:
    """
    Return the line and the words of the first thing that importing *name* does.

    A call whose value is thrown away, or a loop: a graph that runs, a server that starts. What
    stands behind ``if`` may not run, and is not looked at. None: there is no such line, or the
    source cannot be read.
    """
    try:
        spec = find_spec(name)
        source = Path(spec.origin).read_text("utf-8") if spec and spec.origin else ""
        statements = ast.parse(source).body
    except (ImportError, OSError, ValueError, SyntaxError):
        return None
    for each in statements:
        if isinstance(each, ast.Expr) and isinstance(each.value, (ast.Call, ast.Await)):
            return each.lineno, _called(each.value)
        if isinstance(each, _WORK):
            return each.lineno, f"a {type(each).__name__.lower().removeprefix('async')} block"
    return None


def _called(value: ast.expr) -> str:
    while isinstance(value, (ast.Await, ast.Call)):
        value = value.value if isinstance(value, ast.Await) else value.func
    return f"{ast.unparse(value)}(…)" if isinstance(value, (ast.Name, ast.Attribute)) else "a call"

"""What may import what: the rules that keep the packages apart and the import cheap."""

from __future__ import annotations

import ast
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from textwrap import dedent

import pytest

ROOT = Path(__file__).parents[1]
PACKAGES = ("memory", "telemetry", "adapters", "audit")
ARROWS = {
    "telemetry": set(),
    "memory": {"telemetry"},
    "audit": {"telemetry"},
    "adapters": {"memory", "telemetry", "audit"},
}
DOORS = {"memory/front_door.py", "memory/assembly.py"}
"""The modules of memory that reach adapters and audit, and only inside functions."""

STORES = "mem0 qdrant_client langgraph pydantic"
SINKS = (
    "opentelemetry.sdk opentelemetry.exporter grpc prometheus_client loguru langsmith requests "
    "sqlite3 cryptography"
)

FILES = sorted(path for package in PACKAGES for path in (ROOT / package).rglob("*.py"))
OUTSIDE = sorted(
    path for folder in ("tests", "examples", "grafana") for path in (ROOT / folder).rglob("*.py")
)


def name_of(path: Path) -> str:
    """Return *path* as the repository has it."""
    return path.relative_to(ROOT).as_posix()


def imports(tree: ast.AST, path: Path) -> Iterator[tuple[ast.stmt, str, int]]:
    """Yield each import in *tree*, the dotted name from the repository's root, and its level."""
    folder = path.relative_to(ROOT).parent.parts
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((node, alias.name, 0) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            yield node, node.module or "", 0
        elif isinstance(node, ast.ImportFrom):
            above = folder[: len(folder) - node.level + 1]
            for alias in node.names:
                yield node, ".".join((*above, *filter(None, (node.module, alias.name)))), node.level


def below(tree: ast.Module, *kinds: type[ast.stmt]) -> set[ast.AST]:
    """Return all nodes inside statements of *kinds*; of ``if``, only under TYPE_CHECKING."""
    return {
        node
        for each in ast.walk(tree)
        if isinstance(each, kinds)
        and (not isinstance(each, ast.If) or ast.unparse(each.test) == "TYPE_CHECKING")
        for node in ast.walk(each)
    }


def test_packages_import_one_another_relatively():
    """An accidental ``import memory`` from the checkout then fails instead of loading a copy."""
    wrong = [
        f"{name_of(path)}: {name}"
        for path in FILES
        for _node, name, level in imports(ast.parse(path.read_text()), path)
        if level == 0 and name.startswith("mnemoscope")
    ]

    assert wrong == []


def test_nobody_imports_a_package_by_its_folders_name():
    """``memory`` and ``adapters`` are other people's packages on PyPI."""
    wrong = [
        f"{name_of(path)}: {name}"
        for path in (*FILES, *OUTSIDE)
        for _node, name, level in imports(ast.parse(path.read_text()), path)
        if level == 0 and name.partition(".")[0] in PACKAGES
    ]

    assert wrong == []


def test_the_arrows_run_one_way():
    """Adapters → memory → telemetry ← audit; the front door alone reaches back, in functions."""
    assert [each for path in FILES for each in against_the_arrows(path)] == []


def against_the_arrows(path: Path) -> Iterator[str]:
    """Yield the imports of *path* that its package may not have."""
    tree, package = ast.parse(path.read_text()), path.relative_to(ROOT).parts[0]
    later = below(tree, ast.If, ast.FunctionDef, ast.AsyncFunctionDef)
    for node, name, level in imports(tree, path):
        target = name.partition(".")[0]
        if level == 0 or target not in PACKAGES or target in ARROWS[package] | {package}:
            continue
        if name_of(path) not in DOORS or node not in later:
            yield f"{name_of(path)}: {name}"


def test_only_redaction_makes_redacted_content():
    """Whoever could construct it could call anything redacted."""
    makers = {
        name_of(path)
        for path in FILES
        for each in ast.walk(ast.parse(path.read_text()))
        if isinstance(each, ast.Call) and ast.unparse(each.func).rpartition(".")[2] == "Redacted"
    }

    assert {name for name in makers if not name.startswith("memory/redaction/")} == set()
    assert makers


def test_every_package_is_listed():
    """Else it would be missing from the wheel, and nowhere else."""
    tools = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]
    folders = {
        "mnemoscope." + ".".join(path.parent.relative_to(ROOT).parts)
        for path in FILES
        if path.name == "__init__.py"
    }

    assert folders == set(tools["packages"]) == set(tools["package-dir"])


def test_every_folder_with_modules_is_a_package():
    """A folder without ``__init__`` would not be found by the list."""
    assert {path.parent for path in FILES} == {
        path.parent for path in FILES if path.name == "__init__.py"
    }


def test_every_top_level_package_is_typed():
    """Type checkers of our users believe only what says so."""
    assert all((ROOT / package / "py.typed").exists() for package in PACKAGES)


@pytest.mark.parametrize(
    ("module", "heavy"),
    [
        (
            "mnemoscope.memory",
            f"{STORES} {SINKS} presidio_analyzer spacy phonenumbers numpy typer rich",
        ),
        ("mnemoscope.telemetry", SINKS),
        ("mnemoscope.adapters", f"{STORES} typer rich opentelemetry"),
        ("mnemoscope.audit", "sqlite3 cryptography presidio_analyzer"),
    ],
)
def test_importing_a_package_costs_nothing(module, heavy):
    """No store, no back end, no thread: each is imported by what first needs it."""
    script = dedent(
        f"""
        import sys, threading
        import {module}
        loaded = {{name for name in {heavy.split()!r} if name in sys.modules}}
        print(sorted(loaded), threading.active_count())
        """
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True
    )

    assert done.stdout.strip() == "[] 1"

"""What may import what: the rules that keep the packages apart and the import cheap."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from textwrap import dedent
from typing import NamedTuple

import pytest

from tests.kit.patience import GIVE_UP_S

# One worker reads the files.
pytestmark = pytest.mark.xdist_group("imports")

ROOT = Path(__file__).parents[1]
PACKAGES = ("memory", "telemetry", "adapters", "audit")
INSTALLED = (
    *PACKAGES,
    *("examples/demo", "examples/hybrid_search", "grafana/alerting", "grafana/dashboards"),
)
"""The folders that are installed below ``mnemoscope``, by the last part of their name."""
ARROWS = {
    "telemetry": set(),
    "memory": {"telemetry"},
    "audit": {"telemetry"},
    "adapters": {"memory", "telemetry", "audit"},
    "alerting": set(),
    "dashboards": set(),
    "demo": set(),
    "hybrid_search": set(),
}
CLI = ROOT / "adapters" / "cli"
ELSEWHERE = tuple(f"mnemoscope.{each.partition('/')[2]}" for each in INSTALLED if "/" in each)
"""What is not installed from a folder of the repository's root: no relative import leads there."""

SHARED = "memory.subject_data.records"
"""The one module of memory that audit may import: contracts without code, declared once."""
DOORS = ("memory/scope.py", "memory/building/")
"""What of memory reaches adapters and audit, and only inside functions."""

STORES = "mem0 qdrant_client langgraph pydantic"
SINKS = (
    "opentelemetry.sdk opentelemetry.exporter grpc prometheus_client loguru langsmith requests "
    "sqlite3 cryptography"
)

FILES = sorted(path for package in INSTALLED for path in (ROOT / package).rglob("*.py"))
OUTSIDE = sorted(
    path for folder in ("tests", "grafana") for path in (ROOT / folder).rglob("*.py")
) + sorted((ROOT / "examples").glob("*.py"))


def name_of(path: Path) -> str:
    """Return *path* as the repository has it."""
    return path.relative_to(ROOT).as_posix()


def installed_parts(path: Path) -> tuple[str, ...]:
    """Return where *path* is below ``mnemoscope``."""
    parts = path.relative_to(ROOT).parts
    return parts[1:] if parts[0] in {"examples", "grafana"} else parts


class Import(NamedTuple):
    """
    One import.

    Attributes:
        name: Dotted, from the repository's root where it is relative.
        level: Its dots.
        is_late: Whether it is inside a function, or for types alone.
    """

    name: str
    level: int
    is_late: bool


@cache
def imports(path: Path) -> tuple[Import, ...]:
    """Return all imports of a file, wherever in it: each file is read once for all tests."""
    return tuple(_imports(ast.parse(path.read_text()), installed_parts(path)[:-1], is_late=False))


def _imports(tree: ast.AST, folder: tuple[str, ...], *, is_late: bool) -> Iterator[Import]:
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.Import):
            yield from (Import(alias.name, 0, is_late) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            yield Import(node.module or "", 0, is_late)
        elif isinstance(node, ast.ImportFrom):
            above = folder[: len(folder) - node.level + 1]
            for alias in node.names:
                name = ".".join((*above, *filter(None, (node.module, alias.name))))
                yield Import(name, node.level, is_late)
        elif not isinstance(node, ast.expr):  # no expression holds a statement
            yield from _imports(node, folder, is_late=is_late or is_for_later(node))


def is_for_later(node: ast.AST) -> bool:
    """Return whether what stands inside *node* is not run as its module is imported."""
    if isinstance(node, ast.If):
        return ast.unparse(node.test) == "TYPE_CHECKING"
    return isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))


def test_packages_import_one_another_relatively():
    """
    An accidental ``import memory`` from the checkout then fails instead of loading a copy.

    What is in another folder imports what is installed, and so does the command line of it.
    """
    wrong = [
        f"{name_of(path)}: {name}"
        for path in FILES
        for name, level, _is_late in imports(path)
        if level == 0
        and name.startswith("mnemoscope")
        and path.relative_to(ROOT).parts[0] in PACKAGES
        and not (path.parent == CLI and name.startswith(ELSEWHERE))
    ]

    assert wrong == []


def modules() -> dict[str, Path]:
    """Return the file of each installed module, by its name below ``mnemoscope``."""
    parts = {path: installed_parts(path.with_suffix("")) for path in FILES}
    return {
        ".".join(each[:-1] if each[-1] == "__init__" else each): path
        for path, each in parts.items()
    }


def imported_by(path: Path, known: dict[str, Path]) -> Iterator[str]:
    """Yield the modules that *path* imports, wherever in it and for whatever reason."""
    for name, level, _is_late in imports(path):
        below_root = name if level else name.removeprefix("mnemoscope.")
        found = next(
            (each for each in (below_root, below_root.rpartition(".")[0]) if each in known), None
        )
        if found is not None:
            yield found


def test_no_modules_import_one_another_in_a_ring():
    """Type-only imports and those inside functions included: each can be read by itself."""
    known = modules()
    needs = {name: set(imported_by(path, known)) - {name} for name, path in known.items()}
    while free := {name for name, others in needs.items() if not others & needs.keys()}:
        for name in free:
            del needs[name]

    assert needs == {}


def room_of(path: Path) -> str:
    """Return the folder of *path*, or the file itself where it is at the top of a package."""
    parts = path.relative_to(ROOT).parts
    return "/".join(parts if len(parts) == 2 else parts[:-1])


def test_no_rooms_form_a_ring():
    """
    A room, a folder, can be read, replaced and left out without those that stand on it.

    Every import counts: those inside functions, and those for types alone.
    """
    known = modules()
    needs: dict[str, set[str]] = {}
    for path in known.values():
        room = room_of(path)
        others = {room_of(known[each]) for each in imported_by(path, known)}
        needs.setdefault(room, set()).update(others - {room})
    while free := {room for room, others in needs.items() if not others & needs.keys()}:
        for room in free:
            del needs[room]

    assert needs == {}


def test_nobody_imports_a_package_by_its_folders_name():
    """``memory`` and ``adapters`` are other people's packages on PyPI."""
    wrong = [
        f"{name_of(path)}: {name}"
        for path in (*FILES, *OUTSIDE)
        for name, level, _is_late in imports(path)
        if level == 0 and name.partition(".")[0] in PACKAGES
    ]

    assert wrong == []


def test_the_arrows_run_one_way():
    """
    Adapters → memory → telemetry ← audit.

    The front door alone reaches back, in functions; audit imports one module of memory.
    """
    assert [each for path in FILES for each in against_the_arrows(path)] == []


def against_the_arrows(path: Path) -> Iterator[str]:
    """Yield the imports of *path* that its package may not have."""
    package = installed_parts(path)[0]
    for name, level, is_late in imports(path):
        target = name.partition(".")[0]
        if level == 0 or target not in ARROWS or target in ARROWS[package] | {package}:
            continue
        if package == "audit" and name.startswith(f"{SHARED}."):
            continue
        if not name_of(path).startswith(DOORS) or not is_late:
            yield f"{name_of(path)}: {name}"


def test_the_contracts_that_audit_shares_import_nothing_but_errors():
    """Else audit would reach the rest of memory through them."""
    path = ROOT / f"{SHARED.replace('.', '/')}.py"
    found = {name for name, level, _is_late in imports(path) if level}

    assert found == {"memory.errors.ScopeError"}


def test_only_redaction_makes_redacted_content():
    """Whoever could construct it could call anything redacted."""
    makers = {
        name_of(path)
        for path in FILES
        if "Redacted" in (code := path.read_text())
        for each in ast.walk(ast.parse(code))
        if isinstance(each, ast.Call) and ast.unparse(each.func).rpartition(".")[2] == "Redacted"
    }

    assert {name for name in makers if not name.startswith("memory/privacy/")} == set()
    assert makers


def test_one_module_maps_files():
    """It has their blocks allocated: a write to a hole on a full disk kills the application."""
    mapping = {
        path.relative_to(ROOT).as_posix()
        for path in FILES
        if re.search("mmap|memmap", code := path.read_text())
        for node in ast.walk(ast.parse(code))
        if isinstance(node, (ast.Import, ast.ImportFrom, ast.Name, ast.Attribute, ast.Constant))
        and {"mmap", "memmap", "mmap_mode"} & {*names_in(node)}
    }

    assert mapping == {"telemetry/files/mapped_file.py"}


def names_in(node: ast.AST) -> Iterator[str]:
    """Yield what *node* imports, names or is."""
    for each in getattr(node, "names", ()):
        yield from each.name.split(".")
    for name in ("module", "id", "attr", "value"):
        if isinstance(found := getattr(node, name, None), str):
            yield found


def test_every_package_is_listed():
    """Else it would be missing from the wheel, and nowhere else."""
    tools = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]
    folders = {
        "mnemoscope." + ".".join(installed_parts(path)[:-1])
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
    assert all((ROOT / package / "py.typed").exists() for package in INSTALLED)


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
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        timeout=GIVE_UP_S,
        check=True,
    )

    assert done.stdout.strip() == "[] 1"


OPTIONAL = (
    "assemble",
    "budgets",
    "handoff",
    "hygiene",
    "journal",
    "relay",
    "reveal",
    "rules",
    "shared_recalls",
    "vault",
)
"""Rooms that a scope need not have, by the last part of their name."""


def test_what_is_not_configured_is_not_imported():
    """A room that a scope does not use costs its start nothing."""
    script = dedent(
        """
        import json, sys

        def loaded():
            return [each.removeprefix("mnemoscope.") for each in sys.modules if "." in each]

        import mnemoscope.memory
        first = loaded()
        mnemoscope.memory.configure(sinks="", pii_model="none", audit_pseudonym_key="00" * 32)
        print(json.dumps([first, loaded()]))
        """
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        timeout=GIVE_UP_S,
        check=True,
    )

    def optional(names: list[str]) -> set[str]:
        ours = (each for each in names if each.startswith(("memory.", "telemetry.")))
        return {each for each in ours if {*OPTIONAL} & {*each.split(".")[1:-1]}}

    first, configured = map(optional, json.loads(done.stdout))
    assert first == set()
    assert configured == set()


def test_a_scope_is_built_without_what_the_first_text_needs():
    """Most of a start is imports: they are counted, since their time depends on the machine."""
    script = dedent(
        """
        import sys
        from mnemoscope.memory import configure
        configure(sinks="none", pii_model="none", audit_pseudonym_key="00" * 32)
        engine = "mnemoscope.memory.privacy.engine.engine"
        late = ("pydantic", "spacy", "importlib.metadata", engine)
        ours = [each for each in sys.modules if each.startswith("mnemoscope.")]
        detectors = [each for each in ours if ".detectors." in each]
        print([each for each in late if each in sys.modules], len(ours), len(detectors))
        """
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        timeout=GIVE_UP_S,
        check=True,
    )

    late, ours, detectors = done.stdout.strip().rsplit(" ", 2)
    assert late == "[]"
    assert int(ours) <= 131
    assert int(detectors) <= 8


def test_the_first_call_of_an_observed_function_imports_nothing_of_ours():
    """A signal handler that makes that call inside an import would meet half a module."""
    script = dedent(
        """
        import sys
        from mnemoscope.memory import Mnemoscope
        from mnemoscope.memory.settings import load_settings
        from mnemoscope.memory.testing import CapturingSink

        key = "00" * 32
        settings = load_settings(audit_pseudonym_key=key, pii_model="none")
        scope = Mnemoscope(settings, only_sinks=[CapturingSink()])
        recall = scope.observe(store="crm", operation="search_memory", neutral=list)(lambda: [])
        before = set(sys.modules)
        recall()
        print(sorted(each for each in set(sys.modules) - before if "mnemoscope" in each))
        """
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        timeout=GIVE_UP_S,
        check=True,
    )

    assert done.stdout.strip() == "[]"

"""What a package exports stays what it is, whatever else was imported before, in any order."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.kit.frameworks import is_for_another_environment
from tests.kit.patience import GIVE_UP_S

PACKAGES = ("memory", "telemetry", "adapters", "audit", "demo", "hybrid_search")
CODE = """
import json, sys, types
from importlib import import_module

order, packages = json.load(sys.stdin)
for name in order:
    import_module(name)

def what(thing):
    kind = getattr(thing, "__module__", None), getattr(thing, "__qualname__", None)
    return [type(thing).__name__, *(each if isinstance(each, str) else None for each in kind)]

found = {}
for package in packages:
    exported = import_module(package)
    for name in getattr(exported, "__all__", ()):
        found[f"{package}.{name}"] = what(getattr(exported, name))
print(json.dumps(found))
"""


def folders() -> list[tuple[str, Path]]:
    """Return the names and folders of our packages, as they are installed."""
    found = [(name, find_spec(name)) for name in (f"mnemoscope.{each}" for each in PACKAGES)]
    return [
        (name, Path(spec.submodule_search_locations[0]))
        for name, spec in found
        if spec is not None and spec.submodule_search_locations
    ]


def modules() -> list[str]:
    """Return the names of all our modules and packages."""
    names = [
        ".".join((package, *path.relative_to(folder).with_suffix("").parts)).removesuffix(
            ".__init__"
        )
        for package, folder in folders()
        for path in folder.rglob("*.py")
        if "__main__" not in path.name
    ]
    return sorted(each for each in names if not is_for_another_environment(each))


def exported(order: list[str]) -> dict[str, list[str | None]]:
    """Return what each exported name is, in a process that first imports the modules of *order*."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", CODE],
        input=json.dumps([order, modules()]),
        capture_output=True,
        text=True,
        timeout=GIVE_UP_S,
        check=True,
    )
    found: dict[str, list[str | None]] = json.loads(done.stdout)
    return found


@pytest.fixture(scope="module")
def alone() -> dict[str, list[str | None]]:
    """Return what each exported name is where nothing was imported before."""
    return exported([])


@pytest.mark.long
@pytest.mark.parametrize("order", ["sorted", "reversed", "shuffled 1", "shuffled 2"])
def test_no_module_takes_the_place_of_an_exported_name(alone, order):
    """``from mnemoscope.memory import observe`` gives the decorator in every module."""
    names = modules()
    if order == "reversed":
        names.reverse()
    elif order != "sorted":
        random.Random(order).shuffle(names)  # noqa: S311 - no secret

    found = exported(names)

    assert len(found) > 100
    assert {name: kind for name, kind in found.items() if kind != alone[name]} == {}
    assert [name for name, (kind, *_) in found.items() if kind == "module"] == []

"""docs/supported.md: its versions are those that the tests run with, its proofs are tests."""

from __future__ import annotations

import json
import re

import pytest
from packaging.version import Version

from tests.kit.bounds import pins
from tests.kit.supported import BOUNDED, KINDS, PAGE, ROOT, SUPPORTED, TESTED, written

PROOFS = [(row, kind) for row in SUPPORTED for kind in row.proofs]


def test_its_versions_are_those_that_the_tests_run_with():
    """Where one has changed, `python -m tests.kit.supported` writes the page anew."""
    page = PAGE.read_text("utf-8")

    assert written(page) == page


def test_the_lowest_versions_that_passed_are_our_bounds():
    """Where one was raised, it is to be tested anew: by `make test-lowest` on each Python."""
    tested = json.loads(TESTED.read_text("utf-8"))["lowest"]
    bounds = dict(each.partition(";")[0].strip().split("==") for each in pins())

    assert [
        f"{name} on {python}"
        for python, versions in tested.items()
        for name in BOUNDED
        if Version(versions[name]) != Version(bounds[name])
    ] == []


@pytest.mark.parametrize(
    ("row", "kind"), PROOFS, ids=[f"{row.distribution}-{kind}" for row, kind in PROOFS]
)
def test_a_proof_is_a_test_of_what_it_is_said_of(row, kind):
    """It exists, and its file or what is beside it names the class."""
    path, _, name = row.proofs[kind].partition("::")
    test = ROOT / path
    kit = ROOT / "tests" / "kit"
    beside = [test, test.parent / "conftest.py", kit / "every_store.py", *kit.glob("*_cases.py")]
    code = "".join(each.read_text("utf-8") for each in beside if each.exists())
    classes = re.findall(r"`(\w+)`", row.what)

    assert kind in KINDS
    assert re.search(rf"def {name}\(", test.read_text("utf-8"))
    assert [each for each in classes if each not in code] == []


def test_what_is_not_proved_is_said():
    """A row without export and erasure says why, or keeps nothing of its own."""
    silent = [
        row.distribution
        for row in SUPPORTED
        if "export and erasure" not in row.proofs and not row.cannot_tell
    ]

    assert silent == ["langmem", "deepagents", "langgraph-supervisor", "langgraph-swarm"]

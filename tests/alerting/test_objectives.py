"""Latency objectives: what a file may say, what it means, and what is refused."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from mnemoscope.alerting.objectives import CLASSES, Objective, Objectives, ObjectivesError
from mnemoscope.alerting.objectives_file import read_objectives, template
from mnemoscope.alerting.stories import stories
from mnemoscope.memory.api import OperationClass
from mnemoscope.telemetry.event.error_kinds import ErrorKind


@pytest.fixture
def read(tmp_path):
    """Return how to read a text as an objectives file."""

    def objectives(text):
        path = tmp_path / "objectives.yaml"
        path.write_text(text)
        return read_objectives(path)

    return objectives


def of(objectives, store, op_class):
    """Return the objectives that hold for a class of one store's operations."""
    return [
        each.objective
        for each in objectives.promises()
        if OperationClass(op_class) in each.classes
        if (store not in each.except_stores if each.store is None else each.store == store)
    ]


def test_what_is_not_stated_is_as_without_a_file(read):
    """An empty list of stores changes nothing, and neither does what the command prints."""
    assert read("stores: {}") == read(template()) == Objectives()


def test_the_file_in_the_documentation_is_one(read):
    """Whoever copies it has objectives."""
    page = (Path(__file__).parents[2] / "docs" / "operating.md").read_text()
    (block,) = re.findall(r"```yaml\n(default:.*?)```", page, re.DOTALL)

    assert of(read(block), "qdrant", "recall") == [Objective(target=0.999, within_s=0.1)]
    assert of(read(block), "archive", "remember") == []


def test_the_documentation_tells_every_kind_of_error():
    """The set is closed, and people read what is in it."""
    page = (Path(__file__).parents[2] / "docs" / "telemetry.md").read_text()

    assert [each for each in ErrorKind if f"\n| `{each.value}` |" not in page] == []


@pytest.mark.parametrize("op_class", CLASSES)
@pytest.mark.parametrize("store", ["qdrant", "mem0", "crm"])
def test_one_objective_at_most_holds_for_an_operation(read, store, op_class):
    """A store's own replaces the default, so that nobody is told twice."""
    objectives = read(
        """
        default: {read: {target: 99.9%, within: 250ms}}
        stores:
          qdrant: {recall: {target: 99%, within: 100ms}, write: none}
          mem0: {write: {target: 95%, within: 10 s}, checkpoint: {target: 99%, within: 1s}}
        """
    )

    held = of(objectives, store, op_class)

    is_write = op_class not in {OperationClass.RECALL, OperationClass.RESUME}
    assert len(held) == (0 if store == "qdrant" and is_write else 1)
    if (store, op_class) == ("qdrant", OperationClass.RECALL):
        assert held == [Objective(target=0.99, within_s=0.1)]
    if (store, op_class) == ("mem0", OperationClass.CHECKPOINT):
        assert held == [Objective(target=0.99, within_s=1.0)]


def test_every_class_that_a_store_has_can_have_an_objective():
    """Whatever is added to the classes: only model calls are no store's."""
    assert set(CLASSES) == set(OperationClass) - {OperationClass.MODEL}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "the file must have lines such as name: value"),
        ("- qdrant", "the file must have lines such as name: value"),
        ("objectives: {}", "the file: a name is not known; it must be default or stores"),
        ("stores: {1: {}}", "stores: a name is not known; it must be text"),
        ("default: {reads: none}", "default: a name is not known; it must be"),
        ("default: {read: fast}", "default.read must have lines"),
        ("default: {read: {target: 99%}}", "default.read must be none, or state both"),
        ("default: {read: {target: 0.99, within: 1s}}", "default.read.target must be a share such"),
        ("default: {read: {target: 99%, within: 1}}", "default.read.within must be a time such as"),
        ("default: {read: {target: 100%, within: 1s}}", "target must be a share from 95 %"),
        ("default: {read: {target: 90%, within: 1s}}", "target must be a share from 95 %"),
        (
            "default: {read: {target: 99%, within: 300ms}}",
            "of recall, must be the bound of a bucke",
        ),
        ("default: {read: {target: 99%, within: 300ms}}", "200 ms or 250 ms"),
        ("default: {read: none, write: none}", "no objective is left"),
        ("stores: {a: {}, a: {}}", "line 1 is not understood: a name is there twice"),
        ("default: {read: none,\n  read: none}", "line 1 is not understood"),
        ("default: [", "line 1 is not understood"),
        ("default: !!python/object:os.system {}", "line 1 is not understood"),
        ("\a", "a character is not allowed"),
    ],
)
def test_what_is_not_understood_is_refused_in_one_line(read, text, said):
    """It says where, and what to write: a typing error is never no objective at all."""
    with pytest.raises(ObjectivesError, match=r".") as refused:
        read(text)

    assert said in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_store_may_have_any_name(read):
    """Quotes and backslashes in it select nothing else."""
    objectives = read("stores: {'a\"b\\c': {read: {target: 99%, within: 1s}}}")

    own = next(each for each in objectives.promises() if each.store)
    assert own.matchers.endswith('store="a\\"b\\\\c"')
    series = [
        each["series"]
        for test in stories(objectives, "", ["rules.yaml"])["tests"]
        for each in test["input_series"]
        if "any-other" not in each["series"]
    ]
    assert series
    assert all('store="a\\"b\\\\c",' in each for each in series)

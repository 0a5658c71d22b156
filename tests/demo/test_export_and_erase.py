"""The end of the demo: a customer's data is exported and erased."""

from __future__ import annotations

import json
import zipfile

import pytest

from tests.kit.remains import found_in

# qdrant-client's local mode opens a database to ask its version, and leaves it.
pytestmark = pytest.mark.filterwarnings("ignore:unclosed database:ResourceWarning")

ADA_SAID, BOB_SAID = "I like green tea", "I drive an electric car"


def test_nothing_of_who_left_is_in_any_file_but_their_own_copy(left):
    """In stores, trail, logs, spans and runs; with the control that the other is still there."""
    files = [each for each in left.out.rglob("*") if each.is_file() and each.suffix != ".zip"]

    assert left.code == 0
    assert found_in(files, ADA_SAID, BOB_SAID) == {ADA_SAID}


def test_they_take_with_them_what_was_remembered(left):
    """The export was written before they were forgotten."""
    with zipfile.ZipFile(left.out / "export.zip") as bundle:
        remembered = bundle.read("memories.jsonl").decode()

    assert BOB_SAID in remembered
    assert ADA_SAID not in remembered
    assert left.figures["parting"]["exported"]["memories"] > 4


def test_every_store_answers(left):
    """Also the one whose documents are nobody's: it is asked, and holds nothing."""
    with zipfile.ZipFile(left.out / "export.zip") as bundle:
        manifest = json.loads(bundle.read("manifest.json"))

    assert manifest["complete"] is True
    assert {each["status"] for each in left.figures["parting"]["erased"]["stores"]} == {"complete"}


def test_the_figures_say_what_became_of_them(left):
    """Each store, the trail, and the event that proves it."""
    parting = left.figures["parting"]

    removed = {each["name"]: each["removed"] for each in parting["erased"]["stores"]}
    assert parting["erased"]["complete"]
    assert removed["mem0"] == 12  # of each of four: the fact, its history, the message
    assert removed["langgraph.store"] == 1
    assert removed["langgraph.checkpoint"] == 2
    assert parting["operations_left"] == 0


def test_the_sinks_still_agree(left):
    """Sealed events are no less for an erasure."""
    assert left.figures["sinks_agree"]


def test_a_person_sees_it_on_80_columns(demo, short):
    """Who left, what they took, and that nothing is left."""
    run = demo(conversation=short, erase=True)

    assert run.code == 0
    assert "Bob Lind leaves" in run.said
    assert "Forgotten." in run.said
    assert max(len(line) for line in run.said.splitlines()) <= 80


def test_an_export_is_kept_where_the_command_was_given(demo, short, tmp_path):
    """Under the name on the screen; it opens."""
    said = demo(conversation=short, export=True).said

    (file,) = tmp_path.glob("*.zip")
    assert file.name in "".join(said.split())
    with zipfile.ZipFile(file) as bundle:
        assert bundle.testzip() is None
        assert BOB_SAID in bundle.read("memories.jsonl").decode()


def test_nobody_leaves_unless_asked(kept):
    """Without the options nothing is exported or erased."""
    assert kept.figures["parting"] is None

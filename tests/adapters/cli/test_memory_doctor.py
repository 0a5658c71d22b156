"""``mnemoscope memory doctor``: what it finds in trail and stores, prints, lists and exits with."""

from __future__ import annotations

import json
import sys
import types
from importlib.metadata import entry_points

import pytest
from langgraph.store.memory import InMemoryStore

from mnemoscope.memory import Mnemoscope, context, load_settings
from mnemoscope.memory.api import Page, VectorDimensions
from mnemoscope.memory.hygiene import hygiene
from tests.kit.patience import GIVE_UP_S

pytest.importorskip("rapidfuzz", reason="near duplicates are an extra: mnemoscope[hygiene]")

KEY = "00" * 32
TEXT = "Likes green tea in the morning"
FACTS = ("c-1", "facts")


def run(arguments):
    """Return the exit code of the command, as it is installed."""
    (command,) = entry_points(group="console_scripts", name="mnemoscope")
    main = command.load()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["mnemoscope", *arguments])
        with pytest.raises(SystemExit) as ended:
            main()
    return ended.value.code


class Store(InMemoryStore):
    """A store that a test may switch off."""

    __slots__ = ("is_away",)

    def batch(self, ops):
        if getattr(self, "is_away", False):
            raise ConnectionError
        return super().batch(ops)

    async def abatch(self, ops):
        return self.batch(ops)


@pytest.fixture
def store(tmp_path, monkeypatch):
    """Return a guarded store of the scope at ``doctor_app:scope``, whose trail is configured."""
    monkeypatch.setenv("MNEMOSCOPE_AUDIT_URL", f"sqlite:///{tmp_path}/audit.db")
    monkeypatch.setenv("MNEMOSCOPE_AUDIT_PSEUDONYM_KEY", KEY)
    monkeypatch.setenv("COLUMNS", "80")
    settings = load_settings(
        sinks="audit", pii_model="none", deadline_recall_s=0, deadline_remember_s=0
    )
    scope = Mnemoscope(settings, extra_features=[hygiene])
    app = types.ModuleType("doctor_app")
    app.bare = Store()
    app.scope, app.store = scope, scope.store(app.bare, customer_at=0)
    monkeypatch.setitem(sys.modules, "doctor_app", app)
    yield app.store
    scope.close()


def put(store, key, text, run="r-1", customer="c-1"):
    """Write a fact."""
    with context(customer=customer, run=run):
        store.put((customer, "facts"), key, {"text": text})


@pytest.fixture
def trail(store):
    """An echo of one customer, and nothing of another."""
    put(store, "a", TEXT)
    with context(customer="c-1", run="r-2"):
        store.search(("c-1",), limit=5)
    put(store, "b", TEXT.lower(), run="r-2")
    put(store, "z", "Owns a bicycle", customer="c-2")
    assert sys.modules["doctor_app"].scope.flush(GIVE_UP_S)


def test_findings_are_shown_by_ids_alone(trail, capfd):
    """In 80 columns; it exits with 1."""
    assert run(["memory", "doctor", "--customer", "c-1"]) == 1

    printed, said = capfd.readouterr()
    assert "2 memories: 1 echo, 1 duplicate" in printed
    assert "found 1 times in 1 runs, 7 tokens a run; 1 were ever recalled" in printed
    assert "tea" not in printed.lower()
    assert max(map(len, printed.splitlines())) <= 80
    assert "pass --scope" in said


def test_whoever_has_no_finding_is_well(trail, capfd):
    """It exits with 0."""
    assert run(["memory", "doctor", "--customer", "c-2"]) == 0
    assert "1 memories, and nothing was found" in capfd.readouterr().out


def test_everybody_is_looked_at_by_the_trail(trail, capfd):
    """Each by themselves, the worst first."""
    assert run(["memory", "doctor", "--all", "--json"]) == 1

    found = json.loads(capfd.readouterr().out)
    assert [len(each["findings"]) for each in found] == [2, 0]
    assert [each["finding"] for each in found[0]["findings"]] == ["echo", "duplicate"]


def test_stores_are_read_with_a_scope(trail, store, capfd):
    """What is stored counts, and what is gone without a deletion is told."""
    sys.modules["doctor_app"].bare.delete(FACTS, "a")

    assert run(["memory", "doctor", "--customer", "c-1", "--scope", "doctor_app:scope", "--json"])
    (found,) = json.loads(capfd.readouterr().out)
    assert found["memories"] == 1
    gone = [each for each in found["findings"] if each["finding"] == "gone"]
    assert [each["memories"][0]["memory_id"] for each in gone] == ["a"]


def test_a_cleaning_list_is_to_be_approved(trail, tmp_path, capfd):
    """Each memory that another one supersedes, once; nothing is changed."""
    path = tmp_path / "clean.json"
    run(["memory", "doctor", "--customer", "c-1", "--cleaning-list", str(path)])

    listed = json.loads(path.read_text())["supersede"]
    assert [(each["memory_id"], each["superseded_by"]["memory_id"]) for each in listed] == [
        ("b", "a")
    ]
    assert listed[0]["approved"] is False
    assert "tea" not in path.read_text()


def test_a_store_that_cannot_be_read_is_said(trail, capfd):
    """It exits with 3: what was not read may have more."""
    sys.modules["doctor_app"].bare.is_away = True

    assert run(["memory", "doctor", "--customer", "c-1", "--scope", "doctor_app:scope"]) == 3
    assert "could not be read (ConnectionError)" in capfd.readouterr().err


def test_an_embedder_of_another_length_is_told(trail, capfd):
    """By store, collection and numbers: it is about no single memory."""

    class Provider:
        store, title, unavailable = "vectors", "Notes", None

        async def page(self, subject, after=None):
            return Page(())

        async def dimensions(self):
            return VectorDimensions("notes", 384, 256)

    sys.modules["doctor_app"].scope.subject_data.add(Provider())

    assert run(["memory", "doctor", "--customer", "c-2", "--scope", "doctor_app:scope"]) == 1
    printed = " ".join(capfd.readouterr().out.split())
    assert "wrong_dimension vectors, notes: 384 of the embedder, 256 stored" in printed


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ([], 4),
        (["--customer", "c-1", "--all"], 4),
        (["--all", "--scope", "x:y"], 4),
        (["--customer", "nobody"], 6),
    ],
)
def test_mistakes_are_a_line(trail, capfd, arguments, code):
    """With the exit codes that every command has."""
    assert run(["memory", "doctor", *arguments]) == code
    assert capfd.readouterr().out == ""

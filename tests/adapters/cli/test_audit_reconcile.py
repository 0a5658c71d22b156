"""``mnemoscope audit reconcile``: what stands in stores and was not written through the guard."""

from __future__ import annotations

import json
import sys
import types
from importlib.metadata import entry_points

import pytest
from langgraph.checkpoint.base import create_checkpoint, empty_checkpoint
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.store.memory import InMemoryStore

from mnemoscope.memory import Mnemoscope, context, load_settings
from tests.kit.patience import GIVE_UP_S

KEY = "00" * 32
SCOPE = ["--scope", "reconciled_app:scope"]


def run(arguments):
    """Return the exit code of the command, as it is installed."""
    (command,) = entry_points(group="console_scripts", name="mnemoscope")
    main = command.load()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["mnemoscope", "audit", "reconcile", *arguments])
        with pytest.raises(SystemExit) as ended:
            main()
    return ended.value.code


@pytest.fixture
def app(tmp_path, monkeypatch):
    """Return a program with a guarded store and checkpointer, each of which has one record."""
    settings = load_settings(
        sinks="audit",
        audit_url=f"sqlite:///{tmp_path}/audit.db",
        audit_pseudonym_key=KEY,
        audit_mode="durable",
        pii_model="none",
        **{f"deadline_{each}_s": GIVE_UP_S for each in ("recall", "remember", "checkpoint")},
    )
    app = types.ModuleType("reconciled_app")
    app.scope, app.items, app.threads = Mnemoscope(settings), InMemoryStore(), InMemorySaver()
    store, saver = app.scope.store(app.items), app.scope.checkpointer(app.threads)
    with context(customer="c-1"):
        store.put(("notes",), "tea", {"text": "green"})
        save(saver, "t-1")
    app.guarded = store, saver
    monkeypatch.setitem(sys.modules, "reconciled_app", app)
    yield app
    app.scope.close()


def save(saver, thread):
    config = {"configurable": {"thread_id": thread, "checkpoint_ns": ""}}
    checkpoint = create_checkpoint(empty_checkpoint(), None, 0)
    saver.put(config, checkpoint, {"source": "loop", "step": 0}, {})


def test_what_went_through_the_guard_has_an_event(app, capfd):
    """It exits with 0."""
    assert run([*SCOPE, "--json"]) == 0
    stores = json.loads(capfd.readouterr().out)["stores"]
    assert {each["store"]: each["unwritten"] for each in stores} == {
        "langgraph.store": 0,
        "langgraph.checkpoint": 0,
    }
    assert all(each["records"] for each in stores)


def test_what_went_past_the_guard_has_none(app, capfd):
    """A number for each store; ids, which may be personal data, only where they are asked for."""
    app.items.put(("notes",), "hemlock", {"text": "put here by somebody"})
    save(app.threads, "t-2")

    assert run(SCOPE) == 1
    assert "hemlock" not in "".join(capfd.readouterr())
    assert run([*SCOPE, "--json", "--ids"]) == 1
    stores = {each["store"]: each for each in json.loads(capfd.readouterr().out)["stores"]}
    assert stores["langgraph.store"]["ids"] == [["item", "notes", "hemlock"]]
    assert stores["langgraph.checkpoint"]["unwritten"] > 0


def test_a_store_that_cannot_be_listed_is_said(app, monkeypatch, capfd):
    """It exits with 3: it may have such records."""
    monkeypatch.setattr(app.items, "_data", None)

    assert run(SCOPE) == 3
    assert "langgraph.store: listing it raised" in capfd.readouterr().err


def test_a_scope_is_needed(capfd):
    """The trail alone does not know what is in the stores."""
    assert run([]) == 4
    assert "pass --scope" in capfd.readouterr().err

"""Edits on the page Waiting: the text of a human is what is written, or what a run goes on with."""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor
from zipfile import ZipFile

import pytest
from langgraph.store.memory import InMemoryStore

from mnemoscope.audit import AuditError
from mnemoscope.memory import Approval, HeldError, RefusedError, context
from tests.kit.command_line import run
from tests.kit.console_world import draft
from tests.kit.gate_trail import Answer, Decided, Decision, decision_event, recheck, verdicts_in
from tests.kit.held_writes import Quarantine, held_write

TEXT = "likes marzipan"


@pytest.fixture(autouse=True)
def look_at_once(monkeypatch):
    """Read decisions whenever a write is held."""
    monkeypatch.setattr("mnemoscope.memory.rules.held_writes.LOOK_AGAIN_S", 0.0)


def written(scope, value=None, inner=None):
    """Make the write that was held once more, and return what the store has of it."""
    inner = inner or InMemoryStore()
    store = scope.store(inner)
    with context(customer="ada", run="r-1"):
        store.put(("facts",), "k", value or {"text": TEXT})
    return inner.get(("facts",), "k").value


def edit(browser, approval, text):
    """Decide to edit, with a text."""
    return browser.submit("/decide", approval=approval, choice="edit", text=text, why="")


def waiting_draft(browser, scope, text):
    """Have a draft wait, and return its graph, its thread and its approval."""
    gate = Approval("replies", outcome=lambda _text: 0.9, source="judge@1")
    config = {"configurable": {"thread_id": "t-1"}}
    with context(tenant="acme", customer="c-42"):
        graph = draft(scope, gate, text, config)
    approval = re.findall('name="approval" value="([^"]+)"', browser.get("/").text)[0]
    return graph, config, approval


def test_a_held_write_is_made_with_the_text_of_the_human(browser, scoped):
    """Once: the same write is held again after that."""
    scope = scoped(Quarantine())
    approval = held_write(scope)

    answer = edit(browser, approval, "likes nougat\r\nand tea")

    assert "Recorded: <strong>edit</strong>" in answer.text
    assert written(scope) == {"text": "likes nougat\nand tea"}
    with pytest.raises(HeldError):
        written(scope)


def test_the_write_is_recorded_as_it_was_made(browser, scoped):
    """The trail has the new text as the memory's, and the rule's verdict follows from its facts."""
    scope = scoped(Quarantine())
    edit(browser, held_write(scope), "likes nougat")
    written(scope)
    assert scope.flush()

    rows = [*scope.audit.rows()]
    puts = [each for each in rows if each.method == "put" and each.status.is_normal]

    assert ["nougat" in each.content for each in puts] == [True]
    kinds = {"Quarantine": Quarantine, "Decision": Decision}
    answers = {recheck(each, kinds).answer for each in verdicts_in(rows)}
    assert answers == {Answer.SAME}


def test_a_text_is_redacted_before_it_is_sealed(browser, scoped):
    """By the application's settings, and by the customer's id as the write is made."""
    scope = scoped(Quarantine())

    edit(browser, held_write(scope), "write to grace@example.com, says ada")

    assert written(scope)["text"].startswith("write to <EMAIL_ADDRESS>, says <")
    edits = [each for each in scope.audit.rows() if each.method == "edit"]
    assert ["example.com" in each.content for each in edits] == [False]


@pytest.mark.parametrize("more", [{}, {"text": TEXT}])
def test_an_edit_without_another_text_refuses_the_write(browser, scoped, more):
    """The application writes something else in its place."""
    scope = scoped(Quarantine())

    browser.submit("/decide", approval=held_write(scope), choice="edit", why="", **more)

    with pytest.raises(RefusedError):
        written(scope)


@pytest.mark.parametrize("text", [" ", "x" * 20_001])
def test_an_edit_has_a_text(browser, scoped, text):
    """Nothing is decided with none, or with one that is too long."""
    approval = held_write(scoped(Quarantine()))

    assert edit(browser, approval, text).status_code == 400
    assert TEXT in browser.get("/").text


@pytest.mark.parametrize("choice", ["approve", "reject", "skip"])
def test_a_text_counts_with_an_edit_alone(browser, scoped, choice):
    """Whoever approves has approved what was shown."""
    scope = scoped(Quarantine())
    approval = held_write(scope)

    browser.submit("/decide", approval=approval, choice=choice, text="likes nougat", why="")

    assert [each for each in scope.audit.rows() if each.method == "edit"] == []


def test_the_text_of_the_decision_that_is_sealed_first_holds(browser, scoped):
    """Whoever comes second, with another text or with none, has changed nothing."""
    scope = scoped(Quarantine())
    approval = held_write(scope)
    edit(browser, approval, "likes nougat")

    with ThreadPoolExecutor(2) as threads:
        answers = [*threads.map(lambda text: edit(browser, approval, text), ("tea", TEXT))]

    assert all("that decision holds" in each.text for each in answers)
    assert written(scope) == {"text": "likes nougat"}


def test_a_text_that_came_too_late_is_not_that_of_an_edit_without_one(
    browser, scoped, log, monkeypatch
):
    """Another process was faster: the text is in the trail, and belongs to no decision."""
    scope = scoped(Quarantine())
    approval = held_write(scope)
    record = log.append_about

    def record_late(*events):
        scope.audit.append([decision_event(approval, Decided.EDIT)])
        return record(*events)

    monkeypatch.setattr(log, "append_about", record_late)
    answer = edit(browser, approval, "likes nougat")

    assert "that decision holds: <strong>edit</strong>" in answer.text
    assert "edit" in [each.method for each in scope.audit.rows()]
    with pytest.raises(RefusedError):
        written(scope)


def test_an_edit_is_about_the_customer_and_erased_with_them(browser, scoped, log):
    """It is in their history; without it their write waits on, and is not made as it was."""
    scope = scoped(Quarantine())
    edit(browser, held_write(scope), "likes nougat")
    person = log.person("ada")

    theirs = [each.method for each in log.history(person)]
    log.subjects.erase(person.uids[0])

    assert "edit" in theirs
    with pytest.raises(HeldError):
        written(scope)


def test_what_has_several_texts_or_a_vector_is_not_edited_here(browser, scoped):
    """No text is offered of several; beside a vector the write stays refused."""
    scope = scoped(Quarantine())
    value = {"text": TEXT, "vector": [0.1, 0.2]}
    store = scope.store(InMemoryStore())
    with context(customer="ada", run="r-1"):
        with pytest.raises(HeldError):
            store.put(("facts",), "two", {"text": TEXT, "more": "and tea"})
        assert scope.flush()
        assert "<textarea" not in browser.get("/").text
        with pytest.raises(HeldError) as raised:
            store.put(("facts",), "k", value)
    assert scope.flush()

    edit(browser, raised.value.approval, "likes nougat")

    with pytest.raises(RefusedError):
        written(scope, value)


def test_a_text_that_is_a_key_as_well_is_not_edited(browser, scoped):
    """Which of the two is meant cannot be told: the write stays refused."""
    scope = scoped(Quarantine())
    edit(browser, held_write(scope, key=TEXT), "likes nougat")

    with context(customer="ada", run="r-1"), pytest.raises(RefusedError):
        scope.store(InMemoryStore()).put(("facts",), TEXT, {"text": TEXT})


def test_a_run_goes_on_with_the_draft_of_the_human(browser, scoped):
    """As it is resumed, with nothing but the decision of the trail."""
    text = "Your refund is on its way."
    graph, config, approval = waiting_draft(browser, scoped(), text)

    edit(browser, approval, "Your refund comes on Friday.")
    state = graph.invoke(None, config)

    assert state["approval"]["choice"] == "edit"
    assert state["reply"] == "Your refund comes on Friday."


@pytest.mark.parametrize(
    "text", ["Write to ada@example.com.", "Dear <PERSON>, your refund comes on Friday."]
)
def test_no_draft_is_sent_with_what_stands_for_personal_data(browser, scoped, text):
    """The trail has no personal data: such a draft is edited where its run is resumed."""
    graph, config, approval = waiting_draft(browser, scoped(), "Your refund is on its way.")

    assert edit(browser, approval, text).status_code == 400
    assert "__interrupt__" in graph.invoke(None, config)


def test_a_draft_whose_edit_was_erased_is_not_sent_as_it_was(browser, scoped, log):
    """The run fails, rather than going on with what a human has changed."""
    graph, config, approval = waiting_draft(browser, scoped(), "Your refund is on its way.")
    edit(browser, approval, "Your refund comes on Friday.")
    log.subjects.erase(log.person("c-42").uids[0])

    with pytest.raises(AuditError, match="erased"):
        graph.invoke(None, config)


def test_a_trail_with_edits_verifies(browser, scoped, settings, monkeypatch, capfd, tmp_path):
    """They are sealed as all else is, and are in the export of the customer with their proofs."""
    scope = scoped(Quarantine())
    edit(browser, held_write(scope), "likes nougat")
    written(scope)
    assert scope.flush()
    for name, value in settings.items():
        monkeypatch.setenv(f"MNEMOSCOPE_{name.upper()}", str(value))

    assert run(["audit", "verify"]) == 0
    bundle = tmp_path / "ada.zip"
    assert run(["audit", "export", "--customer", "ada", "--out", f"{bundle}"]) == 3
    assert run(["audit", "verify", "--bundle", f"{bundle}"]) == 3  # no store was asked
    capfd.readouterr()
    with ZipFile(bundle) as files:
        assert any(b"likes nougat" in files.read(each) for each in files.namelist())

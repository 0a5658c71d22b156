"""The page Waiting: what it shows of what rules held, and what a human decides there."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

import pytest
from langgraph.store.memory import InMemoryStore

from mnemoscope.adapters.console import build_console
from mnemoscope.memory import (
    Approval,
    Facts,
    Outcome,
    Point,
    Stopping,
    Verdict,
    context,
)
from tests.kit.command_line import run
from tests.kit.console_browser import ORIGIN, Browser
from tests.kit.console_world import draft
from tests.kit.held_writes import Quarantine, held_write


def test_a_held_write_is_shown_with_what_it_would_write(browser, scoped):
    """The content, the rule, since when and in which run; the rule's word is folded away."""
    held_write(scoped(Quarantine()))

    page = browser.get("/").text

    assert "likes marzipan" in page
    assert "held by quarantine" in page
    assert "r-1" in page
    assert "from_outside" in page.partition("<summary>What the rule says</summary>")[2]


@pytest.mark.parametrize("choice", ["approve", "edit", "reject"])
def test_a_decision_is_sealed_and_the_card_goes(browser, scoped, choice):
    """The same as by the command, and it says so."""
    approval = held_write(scoped(Quarantine()))

    answer = browser.submit("/decide", approval=approval, choice=choice, why="known_customer")

    assert f"Recorded: <strong>{choice}</strong>" in answer.text
    assert "Nothing waits" in browser.get("/").text


def test_skipping_leaves_the_card(browser, scoped):
    """To skip is no decision."""
    approval = held_write(scoped(Quarantine()))

    browser.submit("/decide", approval=approval, choice="skip", why="ask_legal")

    assert "likes marzipan" in browser.get("/").text


def test_whoever_decides_second_is_told_the_first_decision(browser, scoped):
    """From a page that was open for long."""
    approval = held_write(scoped(Quarantine()))
    browser.submit("/decide", approval=approval, choice="reject", why="")

    answer = browser.submit("/decide", approval=approval, choice="approve", why="")

    assert "that decision holds: <strong>reject</strong>" in answer.text


def test_an_approved_write_passes(browser, scoped, monkeypatch):
    """Once, as by the command."""
    monkeypatch.setattr("mnemoscope.memory.rules.held_writes.LOOK_AGAIN_S", 0.0)
    scope = scoped(Quarantine())
    approval = held_write(scope)
    browser.submit("/decide", approval=approval, choice="approve", why="")

    store = scope.store(InMemoryStore())
    with context(customer="ada", run="r-1"):
        store.put(("facts",), "k", {"text": "likes marzipan"})

    assert store.get(("facts",), "k").value == {"text": "likes marzipan"}


def test_a_draft_is_shown_with_its_evidence_and_its_run_takes_the_decision(browser, scoped):
    """The draft and its findings; resumed, the run goes by what was decided on the page."""
    scope = scoped()
    gate = Approval("replies", outcome=lambda _text: 0.9, source="judge@1")
    config = {"configurable": {"thread_id": "t-1"}}
    graph = draft(scope, gate, "Hello {{first_name}}, your refund is on its way.", config)
    page = browser.get("/").text
    approval = re.findall('name="approval" value="([^"]+)"', page)[0]

    browser.submit("/decide", approval=approval, choice="reject", why="placeholder")

    assert "your refund is on its way" in page
    assert "placeholder" in page.partition("<details>")[0]
    assert graph.invoke(None, config)["approval"]["choice"] == "reject"


def test_a_blind_draft_shows_the_verdict_after_the_decision(browser, scoped):
    """Neither score nor reason nor findings before; all of it after."""
    scope = scoped()
    gate = Approval("replies", outcome=lambda _text: 0.875, source="judge@1", blind=1.0)
    text = "Your refund is on its way, {{name}}."
    draft(scope, gate, text, {"configurable": {"thread_id": "t-1"}})
    page = browser.get("/").text
    approval = re.findall('name="approval" value="([^"]+)"', page)[0]

    answer = browser.submit("/decide", approval=approval, choice="approve", why="")

    assert text in page
    assert "decided blind" in page
    assert "placeholder" not in page
    assert "<details>" not in page
    assert "0.875" not in page
    assert "would have let it pass: no" in answer.text


def test_a_stopped_run_is_shown_with_its_facts_until_it_is_acknowledged(browser, scoped):
    """Once, and the trail has who has seen it."""
    scope = scoped()
    scope.tell_verdict(Stopping(max_cost_usd=1.0), Facts(Point.MODEL, cost_usd=2.0))
    assert scope.flush()
    page = browser.get("/").text
    approval = re.findall('name="approval" value="([^"]+)"', page)[0]

    after = browser.submit("/decide", approval=approval, choice="approve", why="").text

    assert "A stopped run, ended by stopping" in page
    assert "cost_usd" in page
    assert "Nothing waits" in after


@dataclass(frozen=True, kw_only=True)
class Asking(Quarantine):
    """A rule that would end a run, and asks a human first."""

    name: str = "stopping"
    points = frozenset({Point.MODEL})

    def decide(self, facts):
        evidence = {"approval": "ab" * 16, "passed": 0, "cost_usd": facts.cost_usd}
        return Verdict(Outcome.HOLD, "cost", evidence)


def test_a_run_that_waits_for_a_human_shows_its_figures(browser, scoped):
    """They are what is decided on: nothing is folded away, and no content is missed."""
    scope = scoped()
    scope.tell_verdict(Asking(), Facts(Point.MODEL, cost_usd=2.31))
    assert scope.flush()

    page = browser.get("/").text
    answer = browser.submit("/decide", approval="ab" * 16, choice="approve", why="")

    assert "A run, held by stopping" in page
    assert "2.31" in page
    assert "<details>" not in page
    assert "erased" not in page
    assert "Recorded: <strong>approve</strong>" in answer.text


def test_cards_come_on_pages_of_twenty(browser, scoped):
    """The oldest first, and a page number that makes no sense is the first or the last."""
    scope = scoped(Quarantine())
    for number in range(21):
        held_write(scope, f"memory number {number}.", f"k{number}")

    first, second = browser.get("/").text, browser.get("/?page=2").text

    assert first.count("<article") == 20
    assert "memory number 0." in first
    assert second.count("<article") == 1
    assert "memory number 20." in second
    assert browser.get("/?page=99").text == second
    assert browser.get("/?page=-1").text == first
    assert browser.get("/?page=²").text == first


def test_showing_content_is_sealed_once_a_session(browser, scoped, log):
    """The numbers of what was shown, and the session's."""
    held_write(scoped(Quarantine()))
    browser.get("/")
    browser.get("/")

    with log.reading() as snapshot:
        rows = snapshot.execute(
            "SELECT count(*) FROM audit_event WHERE operation = 'console.shown'"
        ).fetchall()

    assert [*rows[0]] == [1]


def test_a_site_of_one_tenant_shows_and_decides_nothing_of_another(scoped, site, tokens):
    """What is there of another tenant is answered as what is not there."""
    theirs = held_write(scoped(Quarantine()), tenant="globex")
    with Browser(build_console(replace(site, tenant="acme"))) as browser:
        browser.get("/sign-in", params={"token": tokens[-1]})
        page = browser.get("/").text
        answers = {
            (answer.status_code, answer.text)
            for approval in (theirs, "0" * 32)
            for answer in [
                browser.post(
                    "/decide",
                    data={"csrf": browser.csrf(), "approval": approval, "choice": "approve"},
                    headers={"origin": ORIGIN},
                )
            ]
        }

    assert "marzipan" not in page
    assert len(answers) == 1
    assert {status for status, _text in answers} == {404}


def test_what_the_console_records_is_a_trail_that_verifies(
    browser, scoped, settings, monkeypatch, capfd
):
    """Sign-in, what was shown and a decision are sealed as all else is, and say whose they are."""
    approval = held_write(scoped(Quarantine()))
    browser.submit("/decide", approval=approval, choice="approve", why="")
    for name, value in settings.items():
        monkeypatch.setenv(f"MNEMOSCOPE_{name.upper()}", str(value))

    assert run(["audit", "verify"]) == 0
    assert run(["audit", "show", "--customer", "grace@example.com", "--json"]) == 0
    assert '"sign_in"' in capfd.readouterr().out


def test_a_handle_of_another_page_is_no_decision(browser, log, event_factory):
    """What a session has found elsewhere is known by a handle, too."""
    log.append([event_factory()])
    person = browser.submit("/person", customer="ada@example.com").url.path

    assert browser.get(person.replace("/person/", "/decided/")).status_code == 404

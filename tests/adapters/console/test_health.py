"""The page *Health*: the words of the commands, and no waiting for what hangs."""

from __future__ import annotations

import dataclasses
import html
import itertools
import os
import re
import threading

import pytest
from langgraph.store.memory import InMemoryStore

from mnemoscope.adapters.console import build_console
from mnemoscope.memory import Check, Health, State
from mnemoscope.memory.api import OperationClass, Usage
from tests.kit.console_browser import Browser
from tests.kit.patience import GIVE_UP_S

NOW_S = 1_700_000_000


def words(page):
    """Return what a page says, without its markup."""
    return " ".join(html.unescape(re.sub("<[^>]+>", " ", page.text)).split())


@pytest.fixture
def at_health(site, tokens):
    """Return the page Health of the site with what is overridden, asked for so many times."""

    def pages(times=1, **overridden):
        with Browser(build_console(dataclasses.replace(site, **overridden))) as browser:
            browser.get("/sign-in", params={"token": tokens[-1]})
            return [browser.get("/health") for _ in range(times)]

    return pages


@pytest.fixture(autouse=True)
def environment(monkeypatch, tmp_path):
    """Have no settings but a folder."""
    for name in list(os.environ):
        if name.startswith("MNEMOSCOPE_"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))


def test_the_doctor_says_what_the_command_does(at_health):
    """State, check and detail of each, by the environment where there is no scope."""
    check = Check(name="sink.otlp", state=State.FAILED, detail="takes nothing just now")

    (page,) = at_health(environment_health=lambda: Health(checks=(check,)))

    assert page.status_code == 200
    assert "failed sink.otlp takes nothing just now" in words(page)


def test_what_hangs_is_unknown_and_is_not_asked_twice(at_health):
    """A store that is down costs one thread, however often and for how long somebody looks."""
    asked, released, seconds = [], threading.Event(), itertools.count(NOW_S, 60)

    def hangs():
        asked.append(1)
        released.wait(GIVE_UP_S)
        return Health(checks=())

    try:
        pages = at_health(
            times=3, environment_health=hangs, answer_s=0.05, clock=lambda: float(next(seconds))
        )
    finally:
        released.set()

    assert all("unknown: no answer within 0.05 s" in words(each) for each in pages)
    assert all("No model call was recorded." in words(each) for each in pages)
    assert len(asked) == 1


def test_an_answer_is_good_for_a_while(at_health):
    """Looking again and again asks no store again and again."""
    asked = []

    def answers():
        asked.append(1)
        return Health(checks=())

    at_health(times=3, environment_health=answers, clock=lambda: float(NOW_S))

    assert len(asked) == 1


def test_what_fails_is_unknown_by_the_name_of_its_error(at_health):
    """Its message may quote a record, and is nobody's to see."""

    def fails():
        raise RuntimeError("c-ada likes tea")

    (page,) = at_health(environment_health=fails)

    assert "unknown: it failed: RuntimeError" in words(page)
    assert "tea" not in page.text


def test_spend_is_by_feature_of_a_day(at_health, log, event_factory):
    """With the sentence of the command on what moved most."""
    usage = Usage(model="m", input_tokens=100, output_tokens=20, cost_usd=0.25)
    model = {"operation": "chat", "op_class": OperationClass.MODEL, "store": "langgraph.model"}
    log.append([event_factory(usage=usage, feature="draft", started_ns=NOW_S * 10**9, **model)])

    (page,) = at_health(clock=lambda: NOW_S + 60.0)

    assert "draft spent most" in words(page)
    assert "draft 120 $0.2500" in words(page)


def test_stores_are_measured_by_their_own_counts(at_health, sealed):
    """Rows and sizes as the command has them; and the doctor names each store."""
    scope = sealed()
    store = scope.store(InMemoryStore(), customer_at=1)
    store.put(("profiles", "c-ada"), "likes", {"text": "tea"})

    (page,) = at_health(scope=scope, log=scope.audit, answer_s=GIVE_UP_S)
    said = words(page)

    assert "langgraph.store item unknown 1" in said
    assert "ok store.langgraph.store" in said


def test_a_journal_says_what_waits(at_health, monkeypatch, tmp_path):
    """Or that there is none, in one line."""
    monkeypatch.setenv("MNEMOSCOPE_JOURNAL", str(tmp_path / "journal.db"))

    (page,) = at_health()

    assert "unknown: there is no journal at" in words(page)

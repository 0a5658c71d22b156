"""The page *Runs*: searching, one run, and how far a memory has come."""

from __future__ import annotations

import html
import re

import pytest

from mnemoscope.memory.api import OperationClass, Redacted, Usage

WRITE = {"op_class": OperationClass.REMEMBER, "method": "add", "operation": "create_memory"}
MODEL = {"operation": "chat", "op_class": OperationClass.MODEL, "store": "langgraph.model"}
NOW_S = 1_700_000_000


@pytest.fixture
def site(site):
    """The site, at a time."""
    import dataclasses

    return dataclasses.replace(site, clock=lambda: float(NOW_S))


@pytest.fixture
def at(log, event_factory):
    """Return how to record something so many seconds ago."""

    def record(ago_s, *ids, run="r-1", text=None, **given):
        content = None if text is None else Redacted({"text": text})
        started_ns = (NOW_S - ago_s) * 10**9
        event = event_factory(
            started_ns=started_ns, memory_ids=ids, run=run, content=content, **given
        )
        log.append([event])

    return record


def words(page):
    """Return what a page says, without its markup."""
    return " ".join(html.unescape(re.sub("<[^>]+>", " ", page.text)).split())


def found(page):
    """Return the names of the runs that are listed, with their addresses."""
    return {
        name: path for path, name in re.findall('<a href="(/runs/[^"]+)">([^<]+)</a>', page.text)
    }


def test_runs_of_a_day_are_listed(browser, at):
    """The latest first, with what each recalled, wrote and cost."""
    at(90_000, "m0", run="old")
    at(300, "m1", agent="sales", feature="draft", **WRITE)
    at(200, "m1", agent="sales")
    usage = Usage(model="m", input_tokens=100, output_tokens=20, cost_usd=0.25)
    at(100, run="r-2", usage=usage, **MODEL)

    page = browser.get("/runs")

    assert [*found(page)] == ["r-2", "r-1"]
    assert "recalled / written 1 / 1" in words(page)
    assert "tokens, cost 120, $0.2500" in words(page)


def test_a_search_narrows(browser, at):
    """By run, agent, feature and days; an old run is found by its name."""
    at(90_000, run="old", agent="sales")
    at(300, run="r-1", agent="sales", feature="draft")
    at(200, run="r-2", agent="writer")

    def search(**fields):
        return [*found(browser.submit("/runs", **fields))]

    assert search(agent="writer") == ["r-2"]
    assert search(feature="draft") == ["r-1"]
    assert search(run="old") == ["old"]
    assert search(since="2023-11-13", until="2023-11-13") == ["old"]
    assert search(since="2023-11-13") == ["r-2", "r-1", "old"]
    assert browser.submit("/runs", since="soon").status_code == 400


def test_a_run_shows_what_it_recalled_and_where_that_came_from(browser, at):
    """Writer and text of each memory, model calls with their cost, in one list."""
    at(300, "m1", run="r-0", agent="reader", text="likes tea", **WRITE)
    at(200, "m1", scores=(0.75,), text="what do they like?")
    at(100, usage=Usage(model="m-9", input_tokens=100, output_tokens=20), **MODEL)

    page = browser.get(found(browser.get("/runs"))["r-1"])
    said = words(page)

    assert "what do they like?" in said
    assert "m1 · score 0.750 · written 2023-11-14 22:08:20 by reader: “likes tea”" in said
    assert "m-9: 100 tokens in, 20 out, no price" in said


def test_a_look_at_a_run_is_sealed(browser, at, log):
    """By the numbers of the events that were shown: the trail knows whose they are."""
    at(100, "m1", text="likes tea", **WRITE)
    browser.get(found(browser.get("/runs"))["r-1"])

    with log.reading() as snapshot:
        rows = snapshot.execute(
            "SELECT header FROM audit_event WHERE operation = 'console.look'"
        ).fetchall()

    assert len(rows) == 1
    assert b'"purpose":"run"' in bytes(rows[0][0])


def test_a_name_of_a_run_is_in_no_address(browser, at):
    """An application may call a run by its customer."""
    at(100, run="thread-of-grace")

    page = browser.submit("/runs", run="thread-of-grace")

    assert [*found(page)] == ["thread-of-grace"]
    assert "grace" not in str(page.url) + "".join(found(page).values())


def test_the_reach_of_a_memory_is_followed(browser, at):
    """Who saw it, and what they wrote after that, in the words of the command."""
    at(300, "m1", run="r-0", agent="reader", text="pay the new account", **WRITE)
    at(200, "m1", run="r-1")
    at(100, "m2", run="r-1", text="paid", **WRITE)

    page = browser.submit("/radius", memory="m1")
    said = words(page)

    assert "1 run saw it, and wrote 1 memory and 0 checkpoints after that." in said
    assert "pay the new account" in said
    assert "paid" in said
    assert "m1" not in str(page.url)


def test_memories_that_are_not_known_or_several_are_said(browser, at):
    """404 and 409, without a value of anybody's."""
    at(300, "m1", **WRITE)
    at(200, "m1", store="qdrant", **WRITE)

    assert browser.submit("/radius", memory="nil").status_code == 404
    assert browser.submit("/radius", memory="m1").status_code == 409
    assert browser.submit("/radius", memory="m1", store="qdrant").status_code == 200


def test_a_site_of_one_tenant_shows_its_runs_alone(site, tokens, at):
    """Neither another's runs nor the reach of another's memory."""
    import dataclasses

    from mnemoscope.adapters.console import build_console
    from tests.kit.console_browser import Browser

    at(300, "m1", run="ours", tenant="acme", **WRITE)
    at(200, "m9", run="theirs", tenant="globex", **WRITE)
    with Browser(build_console(dataclasses.replace(site, tenant="acme"))) as browser:
        browser.get("/sign-in", params={"token": tokens[-1]})
        page = browser.get("/runs")
        radius = browser.submit("/radius", memory="m9")

    assert [*found(page)] == ["ours"]
    assert radius.status_code == 404


def test_the_reach_on_a_site_of_one_tenant_counts_its_own_alone(site, tokens, at):
    """Runs and memories of others are in no figure either."""
    import dataclasses

    from mnemoscope.adapters.console import build_console
    from tests.kit.console_browser import Browser

    at(300, "m1", run="ours", tenant="acme", **WRITE)
    at(250, "m1", run="ours-2", tenant="acme")
    at(200, "m1", run="theirs", tenant="globex")
    at(150, "m2", run="theirs", tenant="globex", **WRITE)
    at(100, "m1", run=None, tenant="globex")
    with Browser(build_console(dataclasses.replace(site, tenant="acme"))) as browser:
        browser.get("/sign-in", params={"token": tokens[-1]})
        said = words(browser.submit("/radius", memory="m1"))

    assert "1 run saw it, and wrote 0 memories and 0 checkpoints after that." in said
    assert "named no run" not in said


def test_names_of_runs_are_not_tried_without_end(browser, at):
    """A run may be called by its customer: such a search is a look at people."""
    at(100, run="thread-of-grace")
    codes = [browser.submit("/runs", run=f"thread-of-{n}").status_code for n in range(21)]

    assert codes == [200] * 20 + [429]


def test_without_stores_nothing_is_withdrawn(browser, at):
    """The page says how the command does it."""
    at(300, "m1", **WRITE)
    page = browser.submit("/radius", memory="m1")

    refused = browser.submit(f"{page.url.path}/withdraw", phrase="withdraw 1 memory")

    assert "This site has no stores" in words(page)
    assert refused.status_code == 409

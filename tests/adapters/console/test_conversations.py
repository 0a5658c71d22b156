"""Long conversations, and a person's whole request, on both databases of the trail."""

from __future__ import annotations

import dataclasses
import html
import json
import re
from pathlib import Path

import pytest
from langgraph.store.memory import InMemoryStore

from mnemoscope.adapters.console import build_console
from mnemoscope.memory import context
from mnemoscope.memory.api import OperationClass, Redacted, Subject
from tests.kit.console_browser import Browser
from tests.kit.patience import until

LOCOMO = Path(__file__).parents[4] / "shared/data/locomo"
ADA, TENANT = "c-ada", "acme"


@pytest.fixture(
    params=["sqlite", pytest.param("postgres", marks=pytest.mark.xdist_group("postgres"))]
)
def settings(request, settings):
    """The settings, with a trail in either database."""
    if request.param == "postgres":
        return settings | {"audit_url": request.getfixturevalue("postgres_url")}
    return settings


def said_on(pages):
    """Return what pages say, without their markup."""
    return " ".join(html.unescape(re.sub("<[^>]+>", " ", each.text)) for each in pages)


@pytest.mark.parametrize("settings", ["sqlite"], indirect=True)
@pytest.mark.skipif(not LOCOMO.exists(), reason="the LoCoMo files are not here")
def test_each_turn_of_a_conversation_is_on_a_page(browser, log, event_factory):
    """Whatever people say to one another, in the words that the trail has of it."""
    held = json.loads((LOCOMO / "conv_26.json").read_text())
    sessions = (held.get(f"session_{number}", []) for number in range(1, 40))
    turns = [" ".join(each["text"].split()) for session in sessions for each in session]
    subject = Subject(ADA, tenant=TENANT, keys=log.ring.current)
    write = {"op_class": OperationClass.REMEMBER, "method": "add", "operation": "create_memory"}
    log.append(
        [
            event_factory(
                subject=subject,
                started_ns=(1_700_000_000 + number) * 10**9,
                memory_ids=(f"turn-{number}",),
                content=Redacted({"text": text}),
                **write,
            )
            for number, text in enumerate(turns)
        ]
    )

    path = browser.submit("/person", customer=ADA).url.path
    count = -(-len(turns) // 50)
    said = said_on([browser.get(path, params={"page": str(each)}) for each in range(1, count + 1)])

    assert len(turns) > 300
    missing = [each for each in turns if each not in said]
    assert missing == []


def test_a_request_from_look_up_to_receipt(site, tokens, scoped, log):
    """Look-up, as of today, export, erasure and receipt: on SQLite and on PostgreSQL."""
    scope, plain = scoped(), InMemoryStore()
    guarded = scope.store(plain, customer_at=1)
    with context(tenant=TENANT, customer=ADA, run="r-1"):
        guarded.put(("profiles", ADA), "likes", {"text": "likes marzipan in her porridge"})
        guarded.get(("profiles", ADA), "likes")
    assert scope.flush()

    with Browser(build_console(dataclasses.replace(site, scope=scope))) as browser:
        browser.get("/sign-in", params={"token": tokens[-1]})

        def done(page):
            assert until(lambda: "Under way." not in browser.get(page.url.path).text)
            return browser.get(page.url.path), browser.get(f"{page.url.path}/file")

        path = browser.submit("/person", customer=ADA).url.path
        pages = [browser.get(f"{path}{each}") for each in ("", "/history", "/recipients")]
        runs = browser.get("/runs")
        exported, bundle = done(browser.submit(f"{path}/export"))
        erased, receipt = done(browser.submit(f"{path}/erase", phrase=f"erase {ADA}"))
        gone = browser.submit("/person", customer=ADA)

    assert all(each.status_code == 200 for each in pages)
    assert "marzipan" in pages[0].text
    assert "r-1" in runs.text
    assert "1 remembered now" in exported.text
    assert "Forgotten." in erased.text
    assert (bundle.content[:2], receipt.content[:2]) == (b"PK", b"PK")
    assert gone.status_code == 404
    del guarded

"""The scan itself: it knows every entity, and finds what is planted, however it is spelt."""

from __future__ import annotations

import base64
import hashlib
import json
import logging
import warnings
from urllib.parse import quote

import prometheus_client
import pytest
from langgraph.store.memory import InMemoryStore
from loguru import logger

from mnemoscope.memory import RedactionError
from mnemoscope.memory.privacy.detectors.finding import DIRECT
from mnemoscope.memory.privacy.engine.redactor import build_redactor
from mnemoscope.telemetry.event.subject import SubjectKeys
from tests.kit.canaries import CANARIES, SUBJECT, email, key, leaks, places, text, value


def test_there_is_a_canary_of_every_entity():
    """An entity that the redactor learns of needs one, too."""
    assert set(CANARIES) == DIRECT


def test_each_canary_is_known_for_what_it_is():
    """By the redactor with patterns only; so whatever comes out was not shown to it."""
    redaction = build_redactor(model="none", keys=SubjectKeys(b"s" * 16)).begin(known=(SUBJECT,))
    redaction.text(text("anywhere"))

    assert set(redaction.counts) == DIRECT


@pytest.mark.parametrize("entity", CANARIES)
@pytest.mark.parametrize(
    "spelt",
    [
        str.encode,
        lambda each: each.upper().encode(),
        lambda each: json.dumps({"x": each}).encode(),
        lambda each: quote(each).encode(),
        lambda each: b"id=" + base64.b64encode(f"user {each} said".encode()),
        lambda each: each.encode().hex().encode(),
        lambda each: each.encode("utf-16-le"),
        lambda each: hashlib.md5(each.encode()).hexdigest().encode(),  # noqa: S324 - looked for
        lambda each: hashlib.sha256(each.lower().encode()).hexdigest().encode(),
    ],
    ids=["plain", "upper", "json", "percent", "base64", "hex", "utf16", "md5", "sha256"],
)
def test_a_planted_canary_is_found(entity, spelt):
    """Of each entity, in each spelling that a sink or a store may give it."""
    held = b"\x00page\xff" + spelt(CANARIES[entity].text) + b"\x00rest"

    assert any(each.startswith(entity) for each in leaks(held))


def test_a_leak_tells_where_it_came_in():
    """By the place in its address, in a text as well as in a value of any depth."""
    assert leaks(email("here").encode()) == ["canary from here"]
    assert places(value("there")) == {"there", "theredeep", "therelist", "thereaskey"}


def test_a_key_is_a_leak_only_where_it_may_not_be():
    """A store finds its records by it; a sink may not know it."""
    held = key("user").encode()

    assert leaks(held) == []
    assert leaks(held, keys=True) == ["key from user"]


class Shown:
    """Shows what it holds, as a dataclass does; it is passed off as ours."""

    __module__ = "mnemoscope.memory.shown"

    def __init__(self) -> None:
        self.held = [text("shown")]

    def __repr__(self) -> str:
        return str(self.held)


async def test_every_exit_is_looked_at(make_exits):
    """The control of the suite: with nothing redacted, or planted there, each exit is a leak."""
    exits = make_exits(redacts=False)
    shown = Shown()
    registry = prometheus_client.REGISTRY
    prometheus_client.Counter("planted", email("metric"), registry=registry)
    await exits.given(lambda: exits.scope.store(InMemoryStore()).put(("a",), "k", value("value")))
    print(email("output"))  # noqa: T201 - looked for
    warnings.warn(email("warning"), stacklevel=1)
    logging.getLogger("mnemoscope").debug(email("log"))
    logging.getLogger("mem0").info(email("their-log"))
    logger.debug(email("loguru"))
    exits.sent.append(email("wire").encode())
    exits.raised += (RedactionError(email("ours")), ValueError(email("theirs")))
    (exits.stores / "pages").write_text(email("store"))
    found = {each.partition(": ")[0] for each in exits.leaks()}

    assert "shown" in str(shown)
    assert found >= {
        *("otlp", "prometheus", "logs", "langsmith", "audit", "output", "warnings"),
        *("our log records", "loguru", "repr of Shown", "our errors"),
        *("their log records", "stores", "wire", "their errors"),
    }


def test_nothing_is_found_where_nothing_is():
    """Tags, pseudonyms and ordinary words are no leak."""
    assert leaks(b"<EMAIL_ADDRESS> <PERSON_3f9a3f9a3f9a3f9a> likes tea", keys=True) == []

"""What stores answered, on spans: redacted where content is opted in, else how much it was."""

from __future__ import annotations

import json
from typing import Any

import pytest
from langgraph.store.memory import InMemoryStore
from qdrant_client import QdrantClient, models

from mnemoscope.memory.guard.steps.answer import MOST_CHARS
from mnemoscope.memory.testing import scope_for_tests
from mnemoscope.telemetry.otlp.conventions import semconv
from mnemoscope.telemetry.otlp.conventions.attributes import span_attributes
from tests.kit.patience import GIVE_UP_S

MAIL = "ada.lovelace@example.com"
TEXT = f"write to {MAIL} about tea"


def ask_qdrant(scope: Any, text: str) -> Any:
    client = QdrantClient(":memory:")
    client.create_collection("facts", models.VectorParams(size=2, distance=models.Distance.DOT))
    client.upsert("facts", [models.PointStruct(id=7, vector=[1, 0], payload={"text": text})])
    return scope.guard(client).query_points("facts", query=[1.0, 0.0], with_payload=True)


def ask_a_store(scope: Any, text: str) -> Any:
    store = InMemoryStore()
    store.put(("facts",), "tea", {"text": text})
    return scope.guard(store).search(("facts",))


def ask_a_function(scope: Any, text: str) -> Any:
    recalled = scope.observe(store="crm", operation="search_memory")(lambda _key: [{"text": text}])
    return recalled("tea")


ASKED = [ask_qdrant, ask_a_store, ask_a_function]


def asked(ask: Any, text: str = TEXT, **settings: Any) -> tuple[Any, Any]:
    """Return what the caller was given, and the event."""
    with scope_for_tests(**settings) as (scope, sink):
        found = ask(scope, text)
        scope.flush(GIVE_UP_S)
        (event,) = (each for each in sink.events if each.operation == "search_memory")
        return found, event


@pytest.mark.parametrize("ask", ASKED)
def test_it_is_redacted_where_content_is_opted_in(ask):
    """The caller has it as it was; whoever looks at the trace has not."""
    found, event = asked(ask, content_sinks="otlp")
    shown = span_attributes(event, content=True)

    assert MAIL in repr(found)
    assert MAIL not in repr(shown)
    assert "about tea" in shown[semconv.OUTPUT_VALUE]
    assert shown[semconv.OUTPUT_MIME_TYPE] == "application/json"
    assert json.loads(shown[semconv.OUTPUT_VALUE])


@pytest.mark.parametrize("ask", ASKED)
def test_elsewhere_it_is_how_much(ask):
    """Nobody asked for content: none is made, and none is shown by a sink that is not opted in."""
    _found, event = asked(ask)
    _found, other = asked(ask, content_sinks="langsmith")

    assert event.answer is None
    for each in (event, other):
        shown = span_attributes(each)
        assert "about tea" not in repr(shown)
        assert shown.get(semconv.OUTPUT_VALUE) in ("1 found", None)


def test_a_long_one_is_cut():
    """It is redacted on the thread of the caller."""
    _found, event = asked(ask_a_function, "tea " * 10_000, content_sinks="otlp")

    assert len(json.dumps(event.answer.value)) < 2 * MOST_CHARS


def test_one_that_cannot_be_redacted_is_left_out(monkeypatch):
    """And costs its caller nothing."""

    class Strange:
        def dict(self):
            raise RuntimeError(MAIL)

    def strange(scope, _text):
        return scope.observe(store="crm", operation="search_memory")(lambda _key: Strange())("tea")

    found, event = asked(strange, content_sinks="otlp")

    assert isinstance(found, Strange)
    assert event.answer is None

"""The part of an event that knows again what a run recalled, and what a customer has already."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from langgraph.store.base import BaseStore
from langgraph.store.memory import InMemoryStore

from mnemoscope.memory import Mnemoscope, context, load_settings
from mnemoscope.memory.hygiene import hygiene
from mnemoscope.memory.testing import CapturingSink
from tests.kit.patience import GIVE_UP_S

TEXT = "Likes green tea in the morning"
NAMESPACE = ("c-1", "facts")


@contextmanager
def watched() -> Iterator[tuple[BaseStore, CapturingSink, Mnemoscope]]:
    """Yield a guarded store of a scope that watches texts."""
    sink = CapturingSink()
    settings = load_settings(
        audit_pseudonym_key="00" * 32, pii_model="none", deadline_recall_s=0, deadline_remember_s=0
    )
    scope = Mnemoscope(settings, only_sinks=[sink], extra_features=[hygiene])
    try:
        yield scope.store(InMemoryStore(), customer_at=0), sink, scope
    finally:
        scope.close()


@pytest.fixture
def opened() -> Iterator[tuple[BaseStore, CapturingSink, Mnemoscope]]:
    """Return a guarded store, its sink and its scope."""
    with watched() as made:
        yield made


def told(opened: Any) -> list[dict[str, float]]:
    """Return what the parts of all writes measure."""
    _store, sink, scope = opened
    assert scope.flush(GIVE_UP_S)
    parts = [part for event in sink.events for part in event.parts]
    return [dict(part.measurements()) for part in parts if part.measurements()]


def test_a_write_of_what_its_run_recalled_is_an_echo(opened):
    """In any case and spacing, as another memory."""
    store = opened[0]
    with context(customer="c-1", run="r-1"):
        store.put(NAMESPACE, "a", {"text": TEXT})
    with context(customer="c-1", run="r-2"):
        store.get(NAMESPACE, "a")
        store.put(NAMESPACE, "b", {"text": f"  {TEXT.upper()} "})

    assert told(opened)[1] == {"written": 1, "echoes": 1, "repeats": 1}


def test_a_run_that_recalled_nothing_echoes_nothing(opened):
    """The same text is a repeat for the customer all the same."""
    store = opened[0]
    for key in ("a", "b"):
        with context(customer="c-1", run=f"r-{key}"):
            store.put(NAMESPACE, key, {"text": TEXT})

    assert told(opened) == [{"written": 1}, {"written": 1, "repeats": 1}]


def test_a_memory_that_is_written_again_as_it_is_repeats_nothing(opened):
    """It is the same memory."""
    store = opened[0]
    with context(customer="c-1", run="r-1"):
        store.put(NAMESPACE, "a", {"text": TEXT})
        store.get(NAMESPACE, "a")
        store.put(NAMESPACE, "a", {"text": TEXT})

    assert told(opened) == [{"written": 1}, {"written": 1}]


def test_what_was_deleted_may_be_written_anew(opened):
    """A deletion has the customer's texts forgotten."""
    store = opened[0]
    with context(customer="c-1"):
        store.put(NAMESPACE, "a", {"text": TEXT})
        store.delete(NAMESPACE, "a")
        store.put(NAMESPACE, "b", {"text": TEXT})

    assert told(opened)[-1] == {"written": 1}


@pytest.mark.parametrize("other", [{"customer": "c-2"}, {"tenant": "t-2"}])
def test_customers_and_tenants_are_apart(opened, other):
    """Two people may be told the same."""
    store = opened[0]
    for number, known in enumerate(({"customer": "c-1", "tenant": "t-1"}, other)):
        with context(**{"customer": "c-1", "tenant": "t-1", "run": "r"} | known):
            store.put((known.get("customer", "c-1"), "facts"), f"k{number}", {"text": TEXT})

    assert told(opened) == [{"written": 1}, {"written": 1}]


def test_short_texts_and_tags_count_for_nothing(opened):
    """They are in many memories."""
    store = opened[0]
    with context(customer="c-1"):
        store.put(NAMESPACE, "a", {"text": "yes", "tier": "canonical"})
        store.put(NAMESPACE, "b", {"text": "yes", "tier": "canonical"})

    assert told(opened) == [{"written": 1}, {"written": 1}]


def test_no_sink_but_the_trail_has_a_hash(opened):
    """Fields and attributes have counts; the detail, which can be erased, has hashes."""
    store, sink, scope = opened
    with context(customer="c-1", run="r"):
        store.put(NAMESPACE, "a", {"text": TEXT})
    assert scope.flush(GIVE_UP_S)
    (part,) = sink.events[0].parts

    ((written,),) = part.detail()["wrote"]
    assert len(written) == 16
    assert not {**part.fields(), **part.attributes(), **part.measurements()}.keys() - {"written"}
    assert part.sealed() is None


def test_what_is_kept_in_memory_is_bounded(opened):
    """Of each customer the latest thousand texts are known again."""
    store = opened[0]
    with context(customer="c-1"):
        for number in range(1_100):
            store.put(NAMESPACE, f"k{number}", {"text": f"The fact of number {number}"})
        for number, key in ((0, "first"), (1_099, "last")):
            store.put(NAMESPACE, key, {"text": f"The fact of number {number}"})

    assert told(opened)[-2:] == [{"written": 1}, {"written": 1, "repeats": 1}]

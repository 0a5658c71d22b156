"""On which thread the calls of LangGraph's stores and savers are made."""

from __future__ import annotations

import threading

import pytest
from langgraph.checkpoint.base import empty_checkpoint
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.store.memory import InMemoryStore

from mnemoscope.memory.testing import scope_for_tests

THREAD = {"configurable": {"thread_id": "t", "checkpoint_ns": ""}}


class AnotherStore(InMemoryStore):
    """A store of somebody else's, which may wait for anything."""


class AnotherSaver(InMemorySaver):
    """A saver of somebody else's."""


class Noted(dict):
    """The dictionary of a store, which notes the threads that read it."""

    def __init__(self, threads):
        super().__init__()
        self.threads = threads

    def __getitem__(self, key):
        self.threads.add(threading.get_ident())
        raise KeyError(key)

    def get(self, *given):
        self.threads.add(threading.get_ident())
        return super().get(*given)


class Serializer(JsonPlusSerializer):
    """A serializer that notes the threads on which it reads."""

    def __init__(self):
        super().__init__()
        self.threads = set()

    def loads_typed(self, data):
        self.threads.add(threading.get_ident())
        return super().loads_typed(data)


def embedded(texts):
    return [[1.0]] * len(texts)


def threads_that_read(store):
    threads: set[int] = set()
    store._data = Noted(threads)
    with scope_for_tests(deadline_recall_s=5.0) as (scope, _sink):
        scope.store(store).get(("memories",), "taste")
    return threads


def threads_that_resume(make, change=None):
    saver = make(serde=Serializer())
    saver.put(THREAD, empty_checkpoint(), {}, {})
    if change is not None:
        setattr(saver, change, getattr(saver, change))
    with scope_for_tests(deadline_resume_s=5.0) as (scope, _sink):
        scope.checkpointer(saver).get_tuple(THREAD)
    return saver.serde.threads


def test_dictionaries_are_read_on_the_callers_thread():
    """Nothing in them can hang, so calls of them are handed to no other thread."""
    assert threads_that_read(InMemoryStore()) == {threading.get_ident()}
    assert threads_that_resume(InMemorySaver) == {threading.get_ident()}


@pytest.mark.parametrize(
    "read",
    [
        lambda: threads_that_read(AnotherStore()),
        lambda: threads_that_read(InMemoryStore(index={"dims": 1, "embed": embedded})),
        lambda: threads_that_resume(AnotherSaver),
        lambda: threads_that_resume(InMemorySaver, change="get_tuple"),
    ],
    ids=["a-store's-subclass", "an-index", "a-saver's-subclass", "a-method-that-was-set"],
)
def test_what_may_wait_is_read_on_another_thread(read):
    """An embedder, or code of somebody else's, may hang: the caller does not hang with it."""
    threads = read()

    assert threads
    assert threading.get_ident() not in threads

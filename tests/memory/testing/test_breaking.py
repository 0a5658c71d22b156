"""Breaking a store on demand, for tests of users' own."""

from __future__ import annotations

import pytest
from langgraph.store.memory import InMemoryStore

from mnemoscope.memory.testing import breaking, scope_for_tests


class Roomy(InMemoryStore):
    """With attributes of its own, which slots leave no room for."""


@pytest.fixture(params=[InMemoryStore, Roomy])
def bare(request):
    """Return a store, without and with room for attributes."""
    return request.param()


def test_a_store_is_broken_for_everybody(bare):
    """The bare store as well, to which writes that wait are replayed."""
    with scope_for_tests() as (scope, _sink):
        store = scope.store(bare)
        with breaking(store, "get", ConnectionError):
            assert store.get(("a",), "k") is None
            with pytest.raises(ConnectionError):
                bare.get(("a",), "k")


def test_it_is_what_it_was_afterwards(bare):
    """Class, attributes and answers."""
    kind = type(bare)
    with scope_for_tests() as (scope, _sink):
        store = scope.store(bare)
        with breaking(store, "get", ConnectionError):
            assert isinstance(bare, kind)
        bare.put(("a",), "k", {"v": 1})

        assert type(bare) is kind
        assert "get" not in getattr(bare, "__dict__", {})
        assert store.get(("a",), "k").value == {"v": 1}


def test_other_stores_of_its_kind_are_not_broken(bare):
    """One object is."""
    other = type(bare)()
    with scope_for_tests() as (scope, _sink), breaking(scope.store(bare), "get", ConnectionError):
        assert other.get(("a",), "k") is None


def test_it_may_be_broken_twice(bare):
    """The inner one ends first, and the outer one is in force again."""
    with scope_for_tests() as (scope, _sink):
        store = scope.store(bare)
        with breaking(store, "get", ConnectionError):
            with breaking(store, "get", TimeoutError), pytest.raises(TimeoutError):
                bare.get(("a",), "k")
            with pytest.raises(ConnectionError):
                bare.get(("a",), "k")
        assert bare.get(("a",), "k") is None

"""Whatever stands in for a foreign object has that object's attributes, at all times."""

from __future__ import annotations

import ast
import asyncio
import copy
import functools
import inspect
from pathlib import Path
from types import SimpleNamespace

import pytest
from langgraph.store.memory import InMemoryStore
from mem0.memory import main

from mnemoscope.adapters.toolkit.stand_in import StandIn, is_marked, mark_of
from mnemoscope.memory.testing import scope_for_tests

ROOT = Path(__file__).parents[3]
IN_MEM0 = {
    "llm": {"generate_response"},
    "embedding_model": {"embed", "embed_batch"},
    "vector_store": {"insert", "search", "keyword_search", "update", "delete", "get", "list"},
    "db": {"add_history", "batch_add_history", "get_history", "save_messages"},
    "reranker": {"rerank"},
}
"""Methods of mem0's parts that are stood in for."""


def own_functions(part, names):
    """Give *part* functions of its own for its methods, which take attributes; return them."""
    made = {}
    for name in names & set(dir(part)):
        made[name] = own_function(getattr(part, name))
        setattr(part, name, made[name])
    return made


def own_function(method):
    """Return a function that does what *method* does."""

    @functools.wraps(method)
    def made(*args, **kwargs):
        return method(*args, **kwargs)

    return made


@pytest.fixture
def stood_in_for(make_memory):
    """Return each stand-in of a guarded mem0, and what it stands in for."""
    memory = make_memory()
    memory.reranker = SimpleNamespace(rerank=lambda _query, documents, **_kwargs: documents)
    foreign = {part: own_functions(getattr(memory, part), names) for part, names in IN_MEM0.items()}
    with scope_for_tests(pii_operators="PERSON=pseudonym") as (scope, _sink):
        _guarded = scope.mem0(memory)
        yield {
            (part, name): (vars(getattr(memory, part))[name], made)
            for part, methods in foreign.items()
            for name, made in methods.items()
        }


def test_every_one_passes_reads_and_writes_both_ways(stood_in_for):
    """What is set, changed or deleted on either side, whenever, is so on the other."""
    assert {part for part, _name in stood_in_for} == set(IN_MEM0)
    for stand_in, foreign in stood_in_for.values():
        assert type(stand_in) is StandIn
        foreign.calls = 1
        assert stand_in.calls == 1
        stand_in.calls += 1
        assert foreign.calls == 2
        del stand_in.calls
        assert not hasattr(foreign, "calls")
        foreign.__doc__ = "Says something else now."
        assert (stand_in.__doc__, stand_in.__name__) == (foreign.__doc__, foreign.__name__)
        assert inspect.signature(stand_in) == inspect.signature(foreign)


def test_nothing_else_stands_in_for_a_part_of_mem0s():
    """Copies of a moment are made by `functools.wraps`: the adapter uses it nowhere."""
    found = [
        path.name
        for path in (ROOT / "adapters/mem0").glob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.ImportFrom) and node.module == "functools"
        if {"wraps", "update_wrapper"} & {each.name for each in node.names}
    ]

    assert found == []


def test_asyncio_in_mem0_is_asyncio(make_memory, monkeypatch):
    """But for threads: what is set on the one is set on the other."""
    with scope_for_tests() as (scope, _sink):
        scope.mem0(make_memory())

        monkeypatch.setattr(main.asyncio, "of_a_test", 1, raising=False)
        assert asyncio.of_a_test == 1
        monkeypatch.undo()
        assert not hasattr(asyncio, "of_a_test")


def test_the_embeddings_of_a_store_are_its_owners():
    """Read, set and deleted through what stands in for them."""
    store = InMemoryStore(index={"dims": 1, "embed": lambda texts: [[1.0] for _ in texts]})
    foreign = store.embeddings
    with scope_for_tests(pii_operators="PERSON=pseudonym") as (scope, _sink):
        _guarded = scope.store(store)
        assert store.embeddings is not foreign
        foreign.calls = 1
        store.embeddings.calls += 1
        assert foreign.calls == 2
        del store.embeddings.calls

    assert not hasattr(foreign, "calls")


def test_a_mark_is_found_below_a_wrapper_of_the_hosts():
    """So that nothing is watched twice, though the host has wrapped what we watch."""

    def made():
        return 1

    stand_in = StandIn(made, lambda: 2, "spend")

    @functools.wraps(stand_in)
    def wrapped():
        return stand_in()

    assert (mark_of(stand_in), mark_of(wrapped), wrapped()) == ("spend", None, 2)
    assert is_marked(wrapped, "spend")
    assert not is_marked(wrapped, "phase")


def test_a_copy_of_its_owner_is_made_as_with_a_function():
    """Functions are not copied, nor is what stands in for one."""
    stand_in = StandIn(len, len, "phase")

    assert copy.deepcopy(stand_in) is copy.copy(stand_in) is stand_in

"""The embedder of a guarded mem0 is given texts without what stands for personal data."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from typing import Any
from unittest.mock import Mock

import pytest
from mem0.utils.factory import EmbedderFactory

from mnemoscope.memory import Mnemoscope
from mnemoscope.memory.testing import scope_for_tests

from .conftest import HashEmbedder

WRITTEN = "My name is Jennifer Smith and I like tea"
ASKED = "What does Jennifer Smith like?"


@pytest.fixture
def scope() -> Iterator[Mnemoscope]:
    """Return a scope that gives people pseudonyms."""
    with scope_for_tests(pii_operators="PERSON=pseudonym", deadline_recall_s=0) as (scope, _):
        yield scope


async def test_what_is_written_and_asked_is_embedded_without_stand_ins(
    scope, make_memory, kind, done
):
    """In every way in which mem0 embeds; what it stores keeps them."""
    memory = scope.mem0(make_memory(kind))
    written = await done(memory.add(WRITTEN, user_id="c-1", infer=False))
    await done(memory.search(ASKED, filters={"user_id": "c-1"}))
    await done(memory.add(WRITTEN, user_id="c-1"))
    await done(memory.update(written["results"][0]["id"], data=f"{WRITTEN} a lot"))
    kept = await done(memory.get_all(filters={"user_id": "c-1"}))

    seen = HashEmbedder.seen
    assert not any("<" in text or "Jennifer" in text for text in seen)
    assert {"My name is and I like tea", "What does like?", "My name is and I like tea a lot"} <= {
        *seen
    }
    assert any("<PERSON_" in each["memory"] for each in kept["results"])


async def test_a_batch_is_embedded_without_stand_ins(scope, make_memory, kind, monkeypatch):
    """Embedders with a batch of their own get the same texts, by position or by keyword."""
    batches: list[list[str]] = []

    def embed_batch(_self: Any, texts: list[str], memory_action: str = "add") -> list[list[float]]:
        batches.append(texts)
        return [[0.0] * 16 for _ in texts]

    monkeypatch.setattr(HashEmbedder, "embed_batch", embed_batch)
    memory = scope.mem0(make_memory(kind))
    embedder = memory.embedding_model
    embedder.embed_batch(["Hi <PERSON>!", "tea"], "add")
    embedder.embed_batch(texts=["Hi <PERSON>!"])
    embedder.embed(text="Hi <PERSON>!")

    assert batches == [["Hi!", "tea"], ["Hi!"]]
    assert HashEmbedder.seen == ["Hi!"]


def test_the_embedder_is_still_what_it_was(scope, make_memory):
    """Of its class, with its attributes, and with the same vectors for texts without stand-ins."""
    bare = make_memory()
    embedder, config = bare.embedding_model, bare.embedding_model.config
    before = embedder.embed("likes tea", "add")
    guarded = scope.mem0(bare)

    assert guarded.embedding_model is embedder
    assert isinstance(embedder, HashEmbedder)
    assert embedder.config is config
    assert embedder.embed("likes tea", "add") == before
    assert embedder.embed.__name__ == "embed"


def test_a_mock_in_its_place_is_still_a_mock(scope, make_memory):
    """Its calls are counted, and what it is told to return it returns, before and after."""
    bare = make_memory()
    embed = bare.embedding_model.embed = Mock(return_value=[0.25])
    _guarded = scope.mem0(bare)
    bare.embedding_model.embed.side_effect = lambda text, _action: [float(len(text))]

    assert bare.embedding_model.embed("Hi <PERSON>!", "add") == [3.0]
    assert bare.embedding_model.embed.call_count == embed.call_count == 1
    bare.embedding_model.embed.assert_called_once_with("Hi!", "add")


def test_a_client_that_is_wrapped_twice_is_given_the_text_once(make_memory):
    """By two scopes, say; and the embedder is its own again when both are gone."""
    bare = make_memory()
    with scope_for_tests() as (first, _), scope_for_tests() as (second, _):
        guarded = first.mem0(bare), first.mem0(bare), second.mem0(bare)
        once = vars(bare.embedding_model)["embed"]
        guarded[2].embedding_model.embed("Hi <PERSON>!", "add")

        assert HashEmbedder.seen == ["Hi!"]
        assert once.__wrapped__.__func__ is HashEmbedder.embed
        del guarded
    del first, second
    gc.collect()

    assert "embed" not in vars(bare.embedding_model)
    bare.embedding_model.embed("Hi <PERSON>!", "add")
    assert HashEmbedder.seen[-1] == "Hi <PERSON>!"


def test_an_embedder_that_takes_no_attribute_goes_on_as_it_is(scope, make_memory, monkeypatch):
    """It is given what is stored; the client works."""

    class Closed(HashEmbedder):
        def __setattr__(self, name: str, value: Any) -> None:
            if name == "embed":
                raise AttributeError(name)
            super().__setattr__(name, value)

    monkeypatch.setattr(EmbedderFactory, "create", classmethod(lambda _cls, *_given: Closed()))
    memory = scope.mem0(make_memory())
    memory.add(WRITTEN, user_id="c-1", infer=False)

    assert len(memory.get_all(filters={"user_id": "c-1"})["results"]) == 1

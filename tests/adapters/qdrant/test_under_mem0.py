"""mem0 on a guarded Qdrant client: accepted, redacted, and blamed on the right store."""

from __future__ import annotations

import hashlib
import sys
from contextlib import nullcontext
from dataclasses import replace
from types import ModuleType
from typing import Any

import httpx
import pytest
from qdrant_client import QdrantClient

from mnemoscope.adapters.mem0 import adapter as mem0
from mnemoscope.adapters.qdrant import adapter as qdrant
from mnemoscope.memory import ScopeError, context
from mnemoscope.memory.api import Status
from tests.kit.bench import wrapping

from .conftest import ADA

DIMENSIONS = 16
NOTE = f"I prefer tea, write to {ADA}"


class Hashed:
    """An embedder that needs no model."""

    def __init__(self, config: Any = None) -> None:
        self.config = config

    def embed(self, text: str, memory_action: str | None = None) -> list[float]:
        digest = hashlib.sha256(text.encode()).digest()
        return [byte / 255 for byte in digest[:DIMENSIONS]]

    def embed_batch(self, texts: list[str], memory_action: str = "add") -> list[list[float]]:
        return [self.embed(each) for each in texts]


class Silent:
    """A model that is never asked."""

    def __init__(self, config: Any = None) -> None:
        self.config = config


@pytest.fixture
def make_memory(monkeypatch):
    """Return a factory of ``mem0.Memory`` on a given client."""
    from mem0 import Memory
    from mem0.configs.llms.base import BaseLlmConfig
    from mem0.utils.factory import EmbedderFactory, LlmFactory

    # mem0 finds its parts by the path of a module, which a test has not.
    module = ModuleType("mnemoscope_test_parts")
    module.Hashed, module.Silent = Hashed, Silent
    monkeypatch.setitem(sys.modules, module.__name__, module)
    parts = (EmbedderFactory.provider_to_class, LlmFactory.provider_to_class)
    monkeypatch.setitem(parts[0], "lmstudio", f"{module.__name__}.Hashed")
    monkeypatch.setitem(parts[1], "vllm", (f"{module.__name__}.Silent", BaseLlmConfig))
    made = []

    def make(client: QdrantClient) -> Memory:
        store = {"client": client, "collection_name": "m", "embedding_model_dims": DIMENSIONS}
        memory = Memory.from_config(
            {
                "vector_store": {"provider": "qdrant", "config": store},
                "llm": {"provider": "vllm", "config": {}},
                "embedder": {"provider": "lmstudio", "config": {}},
                "history_db_path": ":memory:",
            }
        )
        made.append(memory)
        return memory

    yield make
    for each in made:
        each.close()


@pytest.fixture
def inner():
    """Return the client below."""
    client = QdrantClient(":memory:")
    yield client
    client.close()


pytestmark = [
    pytest.mark.filterwarnings("ignore:Payload indexes have no effect:UserWarning"),
]


def stored(client: QdrantClient) -> str:
    return str(client.scroll("m", limit=99)[0])


@pytest.mark.parametrize("owner_key", [None, "user_id"])
def test_mem0_runs_on_a_guarded_client(make_memory, inner, bench, events, owner_key):
    """Its settings accept it, and what was added is found for its user alone."""
    memory = make_memory(wrapping(qdrant.ADAPTER)(inner, bench, owner_key=owner_key))
    memory.add(NOTE, user_id=ADA, infer=False)
    memory.add("I prefer rum", user_id="bob", infer=False)
    found = memory.get_all(filters={"user_id": ADA})["results"]

    assert [each["memory"] for each in found] == ["I prefer tea, write to <EMAIL_ADDRESS>"]
    assert (ADA in stored(inner)) is (owner_key is not None)
    assert {each.store for each in events()} == {"qdrant"}


def test_a_guarded_mem0_marks_what_it_asks_of_qdrant(make_memory, inner, bench, events):
    """Qdrant's events are nested, inside one event of mem0's that is not."""
    memory = wrapping(mem0.ADAPTER)(make_memory(wrapping(qdrant.ADAPTER)(inner, bench)), bench)
    before = len(events())
    memory.add(NOTE, user_id=ADA, infer=False)
    made = events()[before:]

    assert [each.store for each in made if not each.nested] == ["mem0"]
    assert {each.store for each in made if each.nested} == {"qdrant"}
    assert {each.status for each in made} <= {Status.OK, Status.EMPTY}


def test_no_event_of_the_two_holds_the_user_id(make_memory, inner, bench, events):
    """mem0 hands the id on verbatim, as a key of the store: it stays out of what is told."""
    memory = wrapping(mem0.ADAPTER)(make_memory(wrapping(qdrant.ADAPTER)(inner, bench)), bench)
    memory.add(NOTE, user_id=ADA, infer=False)
    memory.get_all(filters={"user_id": ADA})

    assert ADA not in repr([(each, each.content and each.content.value) for each in events()])


def test_a_failing_qdrant_is_blamed_and_not_mem0_alone(make_memory, inner, bench, events):
    """The nested event says which store it was; mem0, which was called, degrades for both."""
    memory = wrapping(mem0.ADAPTER)(make_memory(wrapping(qdrant.ADAPTER)(inner, bench)), bench)
    inner.close()
    answer = memory.get_all(filters={"user_id": ADA})
    told = [(each.store, each.status) for each in events() if each.op_class == "recall"]

    assert answer == {"results": []}
    assert told[-2:] == [("qdrant", Status.ERROR), ("mem0", Status.DEGRADED)]


def test_a_write_lost_below_is_not_taken_for_written(make_memory, inner, bench, events):
    """A neutral value inside mem0 would make it report an id for what was never stored."""
    memory = wrapping(mem0.ADAPTER)(make_memory(wrapping(qdrant.ADAPTER)(inner, bench)), bench)
    inner.close()
    answer = memory.add(NOTE, user_id=ADA, infer=False)
    outer = [each for each in events() if each.store == "mem0"][-1]

    assert answer == {"results": []}
    assert (outer.status, outer.neutral) == (Status.DEGRADED, True)


def test_mem0s_own_requests_carry_its_span(make_memory, bench, events):
    """A server that only mem0 talks to is told which operation of mem0's it works for."""
    asked: list[httpx.Request] = []

    def answer(request: httpx.Request) -> httpx.Response:
        asked.append(request)
        nothing = {"points": [], "collections": [], "next_page_offset": None}
        result = True if request.method == "PUT" else nothing
        return httpx.Response(200, json={"result": result, "status": "ok", "time": 0.0})

    client = QdrantClient(
        url="http://qdrant.test", transport=httpx.MockTransport(answer), check_compatibility=False
    )
    memory = wrapping(mem0.ADAPTER)(make_memory(client), bench)
    asked.clear()
    memory.get_all(filters={"user_id": ADA})

    (event,) = events()
    assert (event.store, event.status) == ("mem0", Status.EMPTY)
    assert {each.headers["x-request-id"] for each in asked} == {event.trace.span_hex}


@pytest.mark.parametrize("owner_key", [None, "user_id"])
def test_enforced_tenancy_lets_mem0_ask_for_its_customer(make_memory, inner, bench, owner_key):
    """mem0 narrows what it asks of Qdrant; asked directly, Qdrant is refused what it cannot."""
    bench = replace(bench, policy=replace(bench.policy, enforce_tenancy=True))
    client = wrapping(qdrant.ADAPTER)(inner, bench, owner_key=owner_key)
    memory = wrapping(mem0.ADAPTER)(make_memory(client), bench)
    for customer, drink in (("c-42", "tea"), ("c-43", "rum")):
        with context(customer=customer):
            memory.add(f"I prefer {drink}", user_id=customer, infer=False)
    with context(customer="c-42"):
        found = memory.search("what to drink", filters={"user_id": "c-42"})["results"]
        memory.delete_all(user_id="c-42")
        with pytest.raises(ScopeError) if owner_key is None else nullcontext():
            assert client.scroll("m")[0] == []

    assert [each["memory"] for each in found] == ["I prefer tea"]
    assert "tea" not in stored(inner)
    assert "rum" in stored(inner)


def test_a_users_memories_stay_theirs_through_two_guards(make_memory, inner, bench, events):
    """The id is a key of the store: what is added, and changed by its own id, is still found."""
    memory = wrapping(mem0.ADAPTER)(make_memory(wrapping(qdrant.ADAPTER)(inner, bench)), bench)
    (added,) = memory.add(NOTE, user_id=ADA, infer=False)["results"]
    memory.update(added["id"], f"I prefer rum, write to {ADA}")
    found = memory.get_all(filters={"user_id": ADA, "OR": [{"user_id": {"in": [ADA, "bob"]}}]})[
        "results"
    ]

    assert [(each["memory"], each["user_id"]) for each in found] == [
        ("I prefer rum, write to <EMAIL_ADDRESS>", ADA)
    ]
    assert f"write to {ADA}" not in stored(inner)
    assert not any(each.foreign_hits for each in events())


def test_a_second_guard_changes_nothing_that_the_first_has_redacted(make_memory, bench):
    """What mem0 keeps in a guarded Qdrant is what it keeps in a bare one, word for word."""
    kept = []
    for guards in (wrapping(qdrant.ADAPTER), lambda client, _bench: client):
        bare = QdrantClient(":memory:")
        memory = wrapping(mem0.ADAPTER)(make_memory(guards(bare, bench)), bench)
        for text in TEXTS:
            memory.add(text, user_id=ADA, metadata={"from": ADA, "note": [text]}, infer=False)
        points, _next = bare.scroll("m", limit=99)
        kept.append(sorted(str(_timeless(each.payload)) for each in points))
        bare.close()

    assert kept[0] == kept[1]
    assert len(kept[0]) == len(TEXTS)


TEXTS = [
    NOTE,
    "My card is 4111 1111 1111 1111 and my IBAN is DE89 3704 0044 0532 0130 00",
    "I am Grace Hopper, call +44 20 7946 0958, or ask Rear Admiral Hopper",
    "password: hunter2hunter2, key sk-proj-abcdefghijklmnopqrstuvwxyz0123456789ABCD",
    "Ich heiße Jürgen Müller und wohne in der Lindenstraße 12, 10969 Berlin",
    "nothing of anybody's",
]


def _timeless(payload: dict[str, Any] | None) -> dict[str, Any]:
    return {k: v for k, v in (payload or {}).items() if k not in {"created_at", "updated_at"}}

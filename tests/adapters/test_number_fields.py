"""A number under a key that calls it personal, in each place where adapters have mappings."""

from __future__ import annotations

import operator
from dataclasses import dataclass
from typing import Annotated, Any, TypedDict

import chromadb
import pytest
from langchain_core.documents import Document
from langchain_core.messages import AIMessage
from langchain_core.vectorstores import InMemoryVectorStore
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph
from langgraph.store.memory import InMemoryStore
from qdrant_client import QdrantClient, models

from mnemoscope.memory import RedactionMatch, configure, context
from mnemoscope.memory.testing import scope_for_tests
from tests.kit.patience import GIVE_UP_S
from tests.kit.vector_store_cases import WordCounts

SSN, PHONE, PIN = 123456789, 4915112345678, 4711
CALL = {"name": "dial", "arguments": '{"phone": 4915112345678, "times": 2}'}
RECORD = {"ssn": SSN, "phone": PHONE, "pin": PIN, "visits": SSN}
UNHURRIED = {f"deadline_{each}_s": GIVE_UP_S for each in ("recall", "remember", "resume")}


@pytest.fixture
def scope(tmp_path):
    """Return a scope that shows agents what their customers said."""
    of = {"pii_operators": "*=pseudonym", "vault": tmp_path / "vault" / "names.db"}
    with scope_for_tests(pii_reveal="recall,resume", **of, **UNHURRIED) as (made, _sink):
        yield made


class Places:
    """The clients of one scope: what is put in, what stands there, and what a filter finds."""

    @staticmethod
    def store(scope) -> tuple[Any, Any, Any]:
        bare = InMemoryStore()
        guarded = scope.store(bare)
        guarded.put(("people",), "1", RECORD)
        found = guarded.search(("people",), filter={"ssn": SSN, "visits": SSN})
        return bare.get(("people",), "1").value, found[0].value, len(found)

    @staticmethod
    def qdrant(scope) -> tuple[Any, Any, Any]:
        bare = QdrantClient(":memory:")
        bare.create_collection("people", models.VectorParams(size=2, distance=models.Distance.DOT))
        guarded = scope.qdrant(bare)
        point = models.PointStruct(id=1, vector=[1.0, 0.0], payload={"of": RECORD})
        guarded.upsert("people", [point])
        matches = [
            ("of.ssn", models.MatchValue(value=SSN)),
            ("of.phone", models.MatchAny(any=[PHONE, PHONE + 1])),
            ("of.visits", models.MatchValue(value=SSN)),
        ]
        wanted = [models.FieldCondition(key=key, match=match) for key, match in matches]
        found, _ = guarded.scroll("people", models.Filter(must=wanted))
        return bare.retrieve("people", [1])[0].payload["of"], found[0].payload["of"], len(found)

    @staticmethod
    def chroma(scope) -> tuple[Any, Any, Any]:
        bare = chromadb.EphemeralClient().get_or_create_collection("people")
        guarded = scope.guard(bare, owner_key="customer")
        mine = {**RECORD, "customer": "c-1"}
        guarded.upsert(ids=["1"], embeddings=[[1.0, 0.0]], documents=["tea"], metadatas=[mine])
        found = guarded.get(where={"$and": [{"ssn": SSN}, {"phone": {"$in": [PHONE, PHONE + 1]}}]})
        return bare.get(ids=["1"])["metadatas"][0], found["metadatas"][0], len(found["ids"])

    @staticmethod
    def langchain(scope) -> tuple[Any, Any, Any]:
        bare = InMemoryVectorStore(WordCounts())
        guarded = scope.guard(bare, owner_key="customer")
        document = Document(page_content="tea", metadata={**RECORD, "customer": "c-1"}, id="1")
        guarded.add_documents([document])
        (found,) = guarded.get_by_ids(["1"])
        return bare.get_by_ids(["1"])[0].metadata, found.metadata, 1


@pytest.mark.parametrize("place", ["store", "qdrant", "chroma", "langchain"])
def test_a_number_is_stored_as_a_pseudonym_and_found_by_itself(scope, place):
    """A filter that compares it is redacted as the record was. What merely counts stays."""
    with context(customer="c-1", tenant="acme"):
        stored, _read, found = getattr(Places, place)(scope)

    assert [str(each) in str(stored) for each in (PHONE, PIN)] == [False, False]
    assert stored["ssn"].startswith("int(<US_SSN_")
    assert (stored["visits"], found) == (SSN, 1)


@pytest.mark.parametrize("place", ["store", "qdrant"])
def test_it_comes_back_as_a_number(scope, place):
    """To the customer's own agent, but for the secret, which has no way back."""
    with context(customer="c-1", tenant="acme"):
        _stored, read, _found = getattr(Places, place)(scope)

    assert (read["ssn"], read["phone"], read["visits"]) == (SSN, PHONE, SSN)
    assert {type(read[each]) for each in ("ssn", "phone")} == {int}
    assert read["pin"].startswith("int(<SECRET_")


def test_a_stranger_reads_the_pseudonym(scope):
    """Of the number as of any text."""
    bare = InMemoryStore()
    guarded = scope.store(bare)
    with context(customer="c-1", tenant="acme"):
        guarded.put(("people",), "1", RECORD)
    with context(customer="c-2", tenant="acme"):
        read = guarded.get(("people",), "1").value

    assert read["ssn"] == bare.get(("people",), "1").value["ssn"]


def test_a_text_and_a_number_of_the_same_digits_come_back_as_they_were(scope):
    """Though they have one pseudonym."""
    guarded = scope.store(InMemoryStore())
    with context(customer="c-1", tenant="acme"):
        guarded.put(("people",), "1", {"ssn": "123-45-6789"})
        guarded.put(("people",), "2", {"ssn": SSN})
        read = [guarded.get(("people",), each).value["ssn"] for each in ("1", "2")]

    assert read == ["123-45-6789", SSN]


@dataclass
class Caller:
    """What a node leaves in the state."""

    phone: int
    calls: int


class State(TypedDict):
    """A state whose channels add up, and hold an object and messages."""

    phone: int
    passport: str
    calls: Annotated[int, operator.add]
    total_tokens: Annotated[int, operator.add]
    caller: Caller
    messages: Annotated[list[Any], operator.add]


def test_a_state_is_resumed_with_its_numbers(scope):
    """Channels that add go on adding. What the saver holds has no number of anybody's."""
    bare = InMemorySaver()
    builder = StateGraph(State)
    step = {
        "phone": PHONE,
        "passport": "512345678",
        "calls": 12_345_678,
        "total_tokens": 12_345_678,
        "caller": Caller(PHONE, 2),
        "messages": [AIMessage("hi", additional_kwargs={"phone": PHONE, "function_call": CALL})],
    }
    builder.add_node("count", lambda _state: step)
    builder.add_edge(START, "count")
    graph = builder.compile(checkpointer=scope.checkpointer(bare))
    config = {"configurable": {"thread_id": "t-1", "pin": PIN}}
    with context(customer="c-1", tenant="acme"):
        graph.invoke({"calls": 1}, config)
        graph.invoke({"calls": 1}, config)
        state = graph.get_state(config).values
    held = str([bare.serde.loads_typed(each) for each in bare.blobs.values() if each[0] != "empty"])

    assert [each in held for each in (str(PHONE), "512345678")] == [False, False]
    assert str(PIN) not in str(next(bare.list(config)).metadata)
    assert "int(<PHONE_NUMBER_" in held
    assert (state["calls"], state["total_tokens"]) == (24_691_358, 24_691_356)
    assert (state["phone"], state["passport"]) == (PHONE, "512345678")
    assert state["caller"] == Caller(PHONE, 2)
    assert state["messages"][0].additional_kwargs == {"phone": PHONE, "function_call": CALL}


def test_the_application_has_its_say(tmp_path):
    """By path, as of a find in a text."""
    seen: list[RedactionMatch] = []

    def keep_phones(match: RedactionMatch) -> str | None:
        seen.append(match)
        return "keep" if match.path == "value.phone" else None

    bare = InMemoryStore()
    scope = configure(on_match=keep_phones, sinks="none", pii_model="none", **UNHURRIED)
    with context(customer="c-1", tenant="acme"):
        scope.store(bare).put(("people",), "1", dict(RECORD))
    value = bare.get(("people",), "1").value

    assert {each.path: each.entity for each in seen} == {
        "value.ssn": "US_SSN",
        "value.phone": "PHONE_NUMBER",
        "value.pin": "SECRET",
    }
    assert (value["phone"], value["ssn"] == SSN, value["visits"]) == (PHONE, False, SSN)

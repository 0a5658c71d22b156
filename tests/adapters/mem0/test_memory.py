"""`Memory` and `AsyncMemory` behind the chokepoint: what they answer and what is told of it."""

from __future__ import annotations

import copy
import inspect
from dataclasses import replace
from typing import Any

import pytest
from mem0 import AsyncMemory, Memory

from mnemoscope.adapters.mem0.adapter import ADAPTER
from mnemoscope.adapters.mem0.methods import METHODS
from mnemoscope.memory import UnsupportedClientError, context
from mnemoscope.memory.api import OperationClass, Status
from tests.kit.bench import wrapping

guarded = wrapping(ADAPTER)

ARGUMENTS: dict[str, dict[str, Any]] = {
    "add": {"messages": "tea is nice", "user_id": "u-17"},
    "search": {"query": "tea", "filters": {"user_id": "u-17"}},
    "get_all": {"filters": {"user_id": "u-17"}},
    "get": {"memory_id": "m-1"},
    "history": {"memory_id": "m-1"},
    "update": {"memory_id": "m-1", "text": "coffee"},
    "delete": {"memory_id": "m-1"},
    "delete_all": {"user_id": "u-17"},
    "reset": {},
}
NEUTRAL: dict[str, Any] = {
    "add": {"results": []},
    "search": {"results": []},
    "get_all": {"results": []},
    "get": None,
    "history": [],
    "update": {"message": "Not confirmed: the memory store did not answer."},
}
OPEN = {OperationClass.RECALL, OperationClass.REMEMBER}


def answering(memory: Any, method: str, answer: Any) -> None:
    """Make the bare *memory* answer, or raise, whatever it is asked."""
    asynchronous = inspect.iscoroutinefunction(getattr(type(memory), method))

    def called(**_given: Any) -> Any:
        if isinstance(answer, BaseException):
            raise answer
        return answer

    async def awaited(**given: Any) -> Any:
        return called(**given)

    setattr(memory, method, awaited if asynchronous else called)


def test_other_clients_are_refused(bench):
    """What is no mem0 client is named by its type, with what would do."""
    with pytest.raises(UnsupportedClientError, match=r"builtins\.dict: expected one of Memory"):
        guarded({}, bench)


@pytest.mark.parametrize("method", sorted(METHODS))
async def test_the_answer_is_the_stores_own_object(method, kind, make_memory, bench, events, done):
    """Each method hands back the very object that mem0 answered, in exactly one event."""
    bare, answer = make_memory(kind), {"results": []}
    answering(bare, method, answer)
    result = await done(getattr(guarded(bare, bench), method)(**ARGUMENTS[method]))

    assert result is answer
    assert [(each.store, each.method) for each in events()] == [("mem0", method)]
    assert events()[0].status.is_normal


@pytest.mark.parametrize("method", sorted(METHODS))
async def test_a_failing_store_gives_way_or_is_told(method, kind, make_memory, bench, events, done):
    """Recall and remember get the neutral value, forget gets the very exception."""
    bare, failure = make_memory(kind), ConnectionError("Ada's store")
    answering(bare, method, failure)
    call = getattr(guarded(bare, bench), method)
    if METHODS[method].op_class in OPEN:
        result: Any = await done(call(**ARGUMENTS[method]))
    else:
        with pytest.raises(ConnectionError) as raised:
            await done(call(**ARGUMENTS[method]))
        result = raised.value
    (event,) = events()

    if METHODS[method].op_class in OPEN:
        assert result == NEUTRAL[method]
        assert (event.status, event.neutral) == (Status.DEGRADED, True)
    else:
        assert result is failure
        assert (event.status, event.neutral) == (Status.ERROR, False)
    assert event.error == "ConnectionError"
    assert "Ada" not in repr(event)


async def test_an_add_is_told_in_one_event(kind, make_memory, bench, events, done):
    """The event of a write has the new ids, the customer's hash, and the words it wrote."""
    memory = guarded(make_memory(kind), bench)
    result = await done(memory.add("I drink tea", user_id="u-17", agent_id="sales", infer=False))
    (event,) = events()

    assert (event.operation, event.op_class) == ("create_memory", OperationClass.REMEMBER)
    assert (event.status, event.agent) == (Status.OK, "sales")
    assert event.memory_ids == tuple(each["id"] for each in result["results"])
    assert event.subject.hashed("logs")
    assert event.content.value == {"messages": "I drink tea", "infer": False}


async def test_a_search_is_told_with_its_ranking(kind, make_memory, bench, events, done):
    """The event of a recall has hits, ids and scores in rank order; content names no customer."""
    memory = guarded(make_memory(kind), bench)
    for text in ("I drink tea", "I drink coffee", "cats sleep"):
        await done(memory.add(text, user_id="u-17", infer=False))
    result = await done(memory.search("I drink tea", filters={"user_id": "u-17"}, top_k=2))
    event = events()[-1]

    assert (event.operation, event.status, event.hits) == ("search_memory", Status.OK, 2)
    assert event.memory_ids == tuple(each["id"] for each in result["results"])
    assert event.scores == tuple(each["score"] for each in result["results"])
    assert event.top_score == max(event.scores)
    assert event.content.value == {"query": "I drink tea", "filters": {}, "top_k": 2}


async def test_nothing_found_is_empty_not_degraded(kind, make_memory, bench, events, done):
    """A recall that finds nothing says so, in each method that recalls."""
    memory = guarded(make_memory(kind), bench)
    missing = "00000000-0000-0000-0000-000000000000"

    assert await done(memory.search("tea", filters={"user_id": "u-17"})) == {"results": []}
    assert await done(memory.get_all(filters={"user_id": "u-17"})) == {"results": []}
    assert await done(memory.get(missing)) is None
    assert await done(memory.history(missing)) == []
    assert [(each.status, each.hits, each.neutral) for each in events()] == [
        (Status.EMPTY, 0, False)
    ] * 4


async def test_the_life_of_a_memory(kind, make_memory, bench, events, done):
    """All methods work on the real thing, each in one event about that memory."""
    memory = guarded(make_memory(kind), bench)
    added = await done(memory.add("I drink tea", user_id="u-17", infer=False))
    memory_id = added["results"][0]["id"]
    await done(memory.update(memory_id, text="I drink coffee"))
    stored = await done(memory.get(memory_id))
    history = await done(memory.history(memory_id))
    await done(memory.delete(memory_id))
    await done(memory.delete_all(user_id="u-17"))
    told = events()

    assert stored["memory"] == "I drink coffee"
    assert [each["event"] for each in history] == ["ADD", "UPDATE"]
    assert [each.method for each in told] == [
        "add", "update", "get", "history", "delete", "delete_all",
    ]  # fmt: skip
    assert {each.status for each in told} == {Status.OK}
    assert {each.memory_ids for each in told[:-1]} == {(memory_id,)}


async def test_what_a_customer_did_not_ask_for_is_a_tripwire(
    kind, make_memory, bench, events, done
):
    """Memories of somebody else than the context's customer are counted."""
    memory = guarded(make_memory(kind), bench)
    await done(memory.add("I drink tea", user_id="u-17", infer=False))
    with context(customer="u-99"):
        await done(memory.get_all(filters={"user_id": "u-17"}))

    assert [each.foreign_hits for each in events()] == [0, 1]


@pytest.mark.parametrize(
    ("method", "arguments"),
    [
        ("add", {"messages": "tea"}),
        ("add", {"messages": "tea", "user_id": ""}),
        ("add", {"messages": "tea", "user_id": "two words"}),
        ("add", {"messages": 5, "user_id": "u-17"}),
        ("add", {"messages": None, "user_id": "u-17"}),
        ("add", {"messages": ("tea",), "user_id": "u-17"}),
        ("add", {"messages": "tea", "user_id": "u-17", "memory_type": "other"}),
        ("add", {"messages": "tea", "user_id": "u-17", "timestamp": 1}),
        ("add", {"messages": "tea", "user_id": "u-17", "expiration_date": "tomorrow"}),
        ("add", {}),
        ("add", {"messages": "tea", "user_id": "u-17", "colour": "red"}),
        ("search", {"query": "tea"}),
        ("search", {"query": "", "filters": {"user_id": "u-17"}}),
        ("search", {"query": None, "filters": {"user_id": "u-17"}}),
        ("search", {"query": "tea", "user_id": "u-17"}),
        ("search", {"query": "tea", "filters": {"user_id": "u-17"}, "threshold": 2}),
        ("search", {"query": "tea", "filters": {"user_id": None}}),
        ("search", {"query": "tea", "filters": {"OR": [{"user_id": "u-17"}]}}),
        ("get_all", {}),
        ("get_all", {"filters": {"user_id": "u-17"}, "top_k": -1}),
        ("get", {}),
        ("update", {"memory_id": "00000000-0000-0000-0000-000000000000"}),
        ("update", {"memory_id": "00000000-0000-0000-0000-000000000000", "text": "tea"}),
        ("delete", {"memory_id": "00000000-0000-0000-0000-000000000000"}),
        ("delete_all", {}),
    ],
)
async def test_a_callers_mistake_is_the_callers(
    method, arguments, kind, make_memory, bench, events, done
):
    """Wrong arguments raise what bare mem0 raises, type and message, whatever the class."""
    bare = make_memory(kind)
    with pytest.raises(Exception) as expected:  # noqa: PT011 - whatever it is
        await done(getattr(bare, method)(**copy.deepcopy(arguments)))
    with pytest.raises(Exception) as raised:  # noqa: PT011 - the same
        await done(getattr(guarded(bare, bench), method)(**arguments))

    assert type(raised.value) is type(expected.value)
    assert str(raised.value) == str(expected.value)
    assert [(each.status, each.neutral) for each in events()] == [(Status.ERROR, False)]


async def test_too_many_arguments_raise_the_clients_own_error(kind, make_memory, bench, done):
    """A call that does not fit the signature fails as it would without us."""
    memory = guarded(make_memory(kind), bench)

    with pytest.raises(TypeError, match="positional argument"):
        await done(memory.search("tea", "coffee"))


async def test_only_what_was_passed_is_passed_on(kind, make_memory, bench, done):
    """``expiration_date=None`` clears the date, which leaving it out does not."""
    memory = guarded(make_memory(kind), bench)
    added = await done(memory.add("tea", user_id="u-17", infer=False, expiration_date="2999-01-01"))
    memory_id = added["results"][0]["id"]
    await done(memory.update(memory_id, text="green tea"))
    kept = await done(memory.get(memory_id))
    await done(memory.update(memory_id, expiration_date=None))
    cleared = await done(memory.get(memory_id))

    assert kept["expiration_date"] == "2999-01-01"
    assert cleared["expiration_date"] is None


async def test_resetting_a_memory_is_passed_on(make_memory, bench, events):
    """``reset`` empties the store, in one event of the class that fails closed."""
    memory = guarded(make_memory(Memory), bench)
    memory.add("tea", user_id="u-17", infer=False)

    assert memory.reset() is None
    assert memory.get_all(filters={"user_id": "u-17"}) == {"results": []}
    assert [each.method for each in events()] == ["add", "reset", "get_all"]


async def test_a_shared_client_that_reset_closes_is_told(make_memory, bench, events):
    """``AsyncMemory.reset`` closes the client it was given and fails: so does the guarded one."""
    memory = guarded(make_memory(AsyncMemory), bench)
    with pytest.raises(RuntimeError, match="closed"):
        await memory.reset()

    assert [(each.method, each.status) for each in events()] == [("reset", Status.ERROR)]


async def test_enforced_tenancy_wants_a_customer(kind, make_memory, bench, done):
    """Under ``enforce`` an id alone is not enough: whose memory is it?"""
    policy = replace(bench.policy, enforce_tenancy=True)
    memory = guarded(make_memory(kind), replace(bench, policy=policy))

    with pytest.raises(ValueError, match="names no customer"):
        await done(memory.get("m-1"))
    with context(customer="u-17"):
        assert await done(memory.get("m-1")) is None

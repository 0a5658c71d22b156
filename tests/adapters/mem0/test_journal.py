"""mem0's writes in the journal: made again in order, once, whatever was left half done."""

from __future__ import annotations

import sqlite3
from typing import Any

import pytest
from mem0 import AsyncMemory, AsyncMemoryClient, Memory, MemoryClient

from mnemoscope.adapters.mem0.adapter import ADAPTER
from mnemoscope.adapters.mem0.journal import MARK, AddDeduplication
from mnemoscope.adapters.qdrant import adapter as qdrant
from mnemoscope.memory import context
from mnemoscope.telemetry.event.event import Journalled
from tests.kit.bench import wrapping

guarded = wrapping(ADAPTER)

ADA = "ada@example.com"


class Rig:
    """A guarded memory sync or async, and the bare one that it wraps."""

    def __init__(self, bare: Any, bench: Any, replay: Any, done: Any) -> None:
        self.bare = bare
        self.client = guarded(bare, bench)
        self._is_async = isinstance(bare, (AsyncMemory, AsyncMemoryClient))
        self._replay = replay
        self._done = done

    async def do(self, method: str, **given: Any) -> Any:
        return await self._done(getattr(self.client, method)(**given))

    async def rows(self, user: str = ADA) -> list[dict[str, Any]]:
        found = await self._done(self.bare.get_all(filters={"user_id": user}))
        return found["results"]

    async def texts(self) -> list[str]:
        return sorted(each["memory"] for each in await self.rows())

    async def replay(self) -> bool:
        return await self._replay(self.client, is_async=self._is_async)


@pytest.fixture
def rig(kind, make_memory, bench, journal, replay, done) -> Rig:
    return Rig(make_memory(kind), bench, replay, done)


@pytest.fixture
def outage(rig):
    """Return a function that takes the vector store down, or part of it, and one that ends it."""
    patch = pytest.MonkeyPatch()

    def begin(what: str = "insert") -> None:
        def fail(*_: Any, **__: Any) -> None:
            raise ConnectionError(ADA)

        patch.setattr(rig.bare.vector_store, what, fail)

    return begin, patch.undo


async def test_what_was_added_while_the_store_was_down_is_there_afterwards(rig, outage, events):
    """In order, redacted, under the same user."""
    begin, end = outage
    begin()
    for text in ("I like tea", f"write to {ADA}"):
        answer = await rig.do("add", messages=text, user_id=ADA, infer=False)
        assert answer == {"results": []}
    end()
    done = await rig.replay()

    assert done
    assert await rig.texts() == ["I like tea", "write to <EMAIL_ADDRESS>"]
    assert [each.journal.value for each in events()] == ["appended"] * 2 + ["replayed"] * 2


async def test_with_inference_too(rig, outage):
    """The model is asked again, and its facts are kept."""
    begin, end = outage
    begin("search")
    await rig.do("add", messages="I like tea", user_id=ADA)
    end()
    await rig.replay()

    assert await rig.texts() == ["likes tea"]


async def test_a_memory_that_was_stored_before_the_history_failed_is_not_stored_twice(
    rig,
):
    """It is found by the mark that every write carries."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rig.bare.db, "add_history", _locked)
        await rig.do("add", messages="I like tea", user_id=ADA, infer=False)
    stored = await rig.texts()
    await rig.replay()

    assert stored == ["I like tea"]
    assert await rig.texts() == ["I like tea"]


def _locked(*_: Any, **__: Any) -> None:
    raise sqlite3.OperationalError


async def test_of_a_write_that_was_half_stored_the_other_half_is_stored(rig, monkeypatch):
    """Each message is a memory of its own, and they are stored one after another."""
    insert, left = rig.bare.vector_store.insert, [2]

    def failing(*args: Any, **given: Any) -> Any:
        left[0] -= 1
        if left[0] < 0:
            raise ConnectionError
        return insert(*args, **given)

    monkeypatch.setattr(rig.bare.vector_store, "insert", failing)
    messages = [{"role": "system", "content": "be kind"}] + [
        {"role": "user", "content": f"fact {number}"} for number in range(4)
    ]
    await rig.do("add", messages=messages, user_id=ADA, infer=False)
    monkeypatch.setattr(rig.bare.vector_store, "insert", insert)
    await rig.replay()

    assert await rig.texts() == ["fact 0", "fact 1", "fact 2", "fact 3"]


async def test_the_callers_own_metadata_is_kept(rig, outage):
    """The mark stands beside it, in every memory."""
    begin, end = outage
    await rig.do("add", messages="a", user_id=ADA, infer=False, metadata={"topic": "tea"})
    begin()
    await rig.do("add", messages="b", user_id=ADA, infer=False, metadata={"topic": "tea"})
    end()
    await rig.replay()

    kept = [each["metadata"] for each in await rig.rows()]
    assert [each["topic"] for each in kept] == ["tea", "tea"]
    assert len({each[MARK] for each in kept}) == 2


async def test_updates_are_made_in_order(rig, outage):
    """The last one is what is remembered."""
    begin, end = outage
    added = await rig.do("add", messages="a", user_id=ADA, infer=False)
    memory_id = added["results"][0]["id"]
    begin("update")
    for text in ("b", "c"):
        await rig.do("update", memory_id=memory_id, text=text)
    end()
    await rig.replay()

    assert await rig.texts() == ["c"]


async def test_what_waits_and_is_deleted_does_not_come_back(rig, outage):
    """It is dropped where it waits."""
    begin, end = outage
    begin()
    await rig.do("add", messages="I like tea", user_id=ADA, infer=False)
    await rig.do("delete_all", user_id=ADA)
    end()

    assert await rig.replay()
    assert await rig.rows() == []


async def test_the_replay_is_somebodys(rig, outage, events):
    """The event of a write that is made again is about the same person."""
    begin, end = outage
    begin()
    with context(tenant="acme"):
        await rig.do("add", messages="I like tea", user_id=ADA, infer=False)
    end()
    await rig.replay()

    kept, made = events()
    assert made.journal is Journalled.REPLAYED
    assert made.subject.hashed("audit") == kept.subject.hashed("audit")
    assert made.hits == 1


@pytest.mark.parametrize("kind", [Memory])
async def test_on_a_guarded_qdrant_a_write_waits_once(rig, bench, events):
    """In mem0's queue, which knows what it was for; it is remembered once."""
    bare = rig.bare.vector_store.client
    rig.bare.vector_store.client = wrapping(qdrant.ADAPTER)(bare, bench)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bare, "upsert", _refused)
        await rig.do("add", messages="I like tea", user_id=ADA, infer=False)
    waiting = bench.journal.stats().waiting
    await rig.replay()
    found = await rig.do("get_all", filters={"user_id": ADA})

    assert waiting == {"mem0": 1}
    assert [each["memory"] for each in found["results"]] == ["I like tea"]
    written = [each for each in events() if each.journal]
    assert [(each.store, each.journal.value) for each in written] == [
        ("mem0", "appended"),
        ("mem0", "replayed"),
    ]


def _refused(*_: Any, **__: Any) -> None:
    raise ConnectionError


@pytest.mark.parametrize("kind", [MemoryClient, AsyncMemoryClient])
async def test_the_hosted_service_is_asked_whether_it_has_a_write(
    kind, make_client, service, bench, journal, replay, done
):
    """By the mark, for the same user; it is written only where it is not there."""
    rig = Rig(make_client(kind), bench, replay, done)
    service.answer = (503, {})
    await rig.do("add", messages="I like tea", user_id=ADA, metadata={"topic": "tea"})
    service.requests.clear()
    service.answer = (200, {"results": [{"id": "m-1", "memory": "likes tea"}]})
    done = await rig.replay()

    ((_post, _path, body),) = service.requests
    assert done
    assert body["filters"]["AND"][0] == {"user_id": ADA}
    assert body["filters"]["AND"][1]["metadata"].keys() == {MARK}


@pytest.mark.parametrize(
    ("messages", "found", "left"),
    [
        ([{"role": "user", "content": "a"}], 0, [{"role": "user", "content": "a"}]),
        ([{"role": "user", "content": "a"}], 1, None),
        (
            [{"role": "user", "content": "a"}, "odd", {"role": "user", "content": "b"}],
            1,
            ["odd", {"role": "user", "content": "b"}],
        ),
        ("a", 1, None),
    ],
)
def test_what_is_left_to_write_is_what_follows_what_is_there(messages, found, left):
    """Message by message, where each is a memory of its own."""
    arguments = {"messages": messages, "infer": False, "user_id": ADA}
    answer = {"results": [{"id": str(number)} for number in range(found)]}

    rest = AddDeduplication().left("add", arguments, answer)

    assert (rest and rest["messages"]) == left

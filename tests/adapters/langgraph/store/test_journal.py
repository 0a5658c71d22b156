"""The writes of LangGraph's store in the journal: in order, sync and async, batches too."""

from __future__ import annotations

from typing import Any

import pytest
from langgraph.store.base import GetOp, PutOp
from langgraph.store.memory import InMemoryStore

from mnemoscope.adapters.langgraph.store.adapter import ADAPTER
from tests.kit.bench import wrapping

guarded = wrapping(ADAPTER)

NAMESPACE = ("memories", "c-42")


class Flaky(InMemoryStore):
    """A store that can be down."""

    down = False

    def batch(self, ops):
        if self.down:
            raise ConnectionError
        return super().batch(ops)

    async def abatch(self, ops):
        return self.batch(ops)


class Rig:
    """A guarded store that is called sync or async."""

    def __init__(self, bench: Any, replay: Any, *, is_async: bool) -> None:
        self.bare = Flaky()
        self.store = guarded(self.bare, bench, customer_at=1)
        self._replay = replay
        self._is_async = is_async

    async def do(self, verb: str, *args: Any) -> Any:
        if self._is_async:
            return await getattr(self.store, f"a{verb}")(*args)
        return getattr(self.store, verb)(*args)

    async def replay(self) -> bool:
        return await self._replay(self.store, is_async=self._is_async)

    def items(self) -> dict[str, Any]:
        return {each.key: each.value for each in self.bare.search(NAMESPACE)}


@pytest.fixture(params=["sync", "async"])
def rig(request, bench, journal, replay) -> Rig:
    return Rig(bench, replay, is_async=request.param == "async")


async def test_what_was_put_while_the_store_was_down_is_there_afterwards(rig, events):
    """The last value of each key, redacted, and each put is told of twice."""
    rig.bare.down = True
    await rig.do("put", NAMESPACE, "k", {"mail": "ada@example.com", "n": 1})
    await rig.do("put", NAMESPACE, "k", {"n": 2, "t": [1, None, 2.5]})
    rig.bare.down = False
    done = await rig.replay()

    assert done
    assert rig.items() == {"k": {"n": 2, "t": [1, None, 2.5]}}
    told = [(each.method, each.journal.value) for each in events()]
    assert told == [("put", "appended")] * 2 + [("put", "replayed")] * 2


async def test_whose_a_replayed_write_is_stays_unsaid(rig, events):
    """The customer's id, a label of the namespace, is redacted in the second event, too."""
    rig.bare.down = True
    await rig.do("put", NAMESPACE, "k", {"n": 1})
    rig.bare.down = False
    await rig.replay()
    appended, replayed = [each.collection for each in events()]

    assert NAMESPACE[1] not in replayed
    assert replayed == appended


async def test_of_a_batch_only_what_it_writes_is_kept(rig, events):
    """Nobody waits for the rest any more; each operation is told of by itself."""
    rig.bare.down = True
    ops = [
        GetOp(NAMESPACE, "k"),
        PutOp(NAMESPACE, "k", {"n": 1}, index=False),
        PutOp(NAMESPACE, "j", {"n": 2}),
    ]
    answers = await rig.do("batch", ops)
    rig.bare.down = False
    await rig.replay()

    assert answers == [None, None, None]
    assert rig.items() == {"k": {"n": 1}, "j": {"n": 2}}
    assert [(each.method, each.journal.value) for each in events()] == [
        ("get", ""),
        ("put", "appended"),
        ("put", "appended"),
        ("put", "replayed"),
        ("put", "replayed"),
    ]


async def test_what_waits_and_is_deleted_does_not_come_back(rig):
    """Even where the store could not be reached: the caller is told so."""
    rig.bare.down = True
    await rig.do("put", NAMESPACE, "k", {"n": 1})
    with pytest.raises(ConnectionError):
        await rig.do("delete", NAMESPACE, "k")
    rig.bare.down = False
    await rig.replay()

    assert rig.items() == {}


async def test_a_value_that_text_cannot_hold_is_lost_and_counted(rig, events):
    """Rather than changed."""
    rig.bare.down = True
    await rig.do("put", NAMESPACE, "k", {"n": range(3)})

    assert [each.journal.value for each in events()] == ["lost"]


async def test_a_replay_is_told_of_the_namespaces_customer(rig, events):
    """The same one as the call that asked for it."""
    rig.bare.down = True
    await rig.do("put", NAMESPACE, "k", {"n": 1})
    rig.bare.down = False
    await rig.replay()

    subjects = {each.subject.hashed("audit") for each in events()}
    assert len(subjects) == 1

"""All facts that mem0 finds in one conversation are stored, whenever the process is killed."""

from __future__ import annotations

import json
from typing import Any

import pytest
from mem0 import AsyncMemory

from mnemoscope.adapters.mem0.adapter import ADAPTER
from mnemoscope.adapters.mem0.facts import FACTS, AddFactsDeduplication
from mnemoscope.adapters.mem0.journal import MARK
from mnemoscope.memory.api import Status
from mnemoscope.telemetry.event.event import Journalled
from tests.kit.bench import wrapping

from .conftest import EchoModel

guarded = wrapping(ADAPTER)

USER = "u-17"
TEXTS = ["likes green tea", "owns a bicycle", "plays the oboe", "works at night"]


class Killed(BaseException):
    """The process ends here: whatever comes after this was never run."""


@pytest.fixture(autouse=True)
def many_facts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have the model find four facts in everything."""
    facts = [{"text": text, "event": "ADD"} for text in TEXTS]
    answer = json.dumps({"memory": facts})
    monkeypatch.setattr(EchoModel, "generate_response", lambda *_args, **_kwargs: answer)


class Store:
    """
    The vector store below a memory, whose batches fail and whose single inserts do so too.

    Attributes:
        takes: Single inserts that succeed.
        then: What the next one raises, and all after it.
        batches: What a batch raises.
    """

    def __init__(self, bare: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        self.takes, self.then = len(TEXTS), ConnectionError
        self.batches: type[BaseException] | None = ConnectionError
        insert = bare.vector_store.insert

        def tried(vectors: list[Any], payloads: Any = None, ids: Any = None) -> Any:
            if len(vectors) > 1 and self.batches is not None:
                raise self.batches
            if len(vectors) == 1:
                self.takes -= 1
                if self.takes < 0:
                    raise self.then
            return insert(vectors=vectors, payloads=payloads, ids=ids)

        monkeypatch.setattr(bare.vector_store, "insert", tried)

    def heal(self) -> None:
        """Take everything from now on."""
        self.takes, self.batches = 1_000, None


@pytest.fixture
def bare(kind, make_memory) -> Any:
    return make_memory(kind)


@pytest.fixture
def store(bare, monkeypatch) -> Store:
    return Store(bare, monkeypatch)


@pytest.fixture
def memory(bare, store, bench, journal) -> Any:
    return guarded(bare, bench)


@pytest.fixture
def texts(bare, done):
    """Return a function that returns what is remembered."""

    async def found() -> list[str]:
        rows = (await done(bare.get_all(filters={"user_id": USER})))["results"]
        return sorted(each["memory"] for each in rows)

    return found


def told(events: Any) -> list[tuple[Status, Journalled]]:
    """Return how the calls of the memory ended, without those of its model."""
    return [(each.status, each.journal) for each in events() if each.store == "mem0"]


@pytest.mark.parametrize("stored", range(len(TEXTS) + 1))
async def test_a_kill_among_single_inserts_loses_nothing(
    stored, bare, memory, store, replay, texts, events, done
):
    """What waits is made again until all of it is there, and then it is told as made."""
    is_async = isinstance(bare, AsyncMemory)
    store.takes = 0
    assert await done(memory.add("a conversation", user_id=USER)) == {"results": []}
    store.takes, store.then = stored, Killed
    if stored < len(TEXTS):
        with pytest.raises(Killed):
            await replay(memory, is_async=is_async)
        assert len(await texts()) == stored
    store.heal()

    assert await replay(memory, is_async=is_async)
    assert await texts() == TEXTS
    assert [journal for _, journal in told(events)] == [Journalled.APPENDED, Journalled.REPLAYED]


async def test_facts_that_the_store_did_not_take_are_told_and_made_again(
    bare, memory, store, replay, texts, events, done
):
    """mem0 logs them, and reports success of the others."""
    store.takes = 2
    answer = await done(memory.add("a conversation", user_id=USER))
    store.heal()
    await replay(memory, is_async=isinstance(bare, AsyncMemory))

    assert answer == {"results": []}
    assert await texts() == TEXTS
    assert told(events) == [
        (Status.DEGRADED, Journalled.APPENDED),
        (Status.OK, Journalled.REPLAYED),
    ]


async def test_without_a_journal_they_are_told_too(bare, store, bench, events, done):
    """A part is not the whole: the caller is not told that all was remembered."""
    store.takes = 2
    answer = await done(guarded(bare, bench).add("a conversation", user_id=USER))

    assert answer == {"results": []}
    assert told(events) == [(Status.DEGRADED, Journalled.LOST)]


async def test_all_of_them_are_the_answer(bare, store, bench, events, done):
    """Whether together or one by one."""
    memory = guarded(bare, bench)
    one_by_one = await done(memory.add("a conversation", user_id=USER))
    store.heal()
    together = await done(memory.add("a conversation", user_id="u-18"))

    assert [each["memory"] for each in one_by_one["results"]] == TEXTS
    assert [each["memory"] for each in together["results"]] == TEXTS
    assert [status for status, _ in told(events)] == [Status.OK, Status.OK]


@pytest.mark.parametrize(
    ("attempts", "is_whole"),
    [
        (["a/3"], False),
        (["a/3", "a/3"], False),
        (["a/3", "a/3", "a/3"], True),
        (["a/3", "b/2"], False),
        (["a/3", "b/2", "b/2"], True),
        (["a/3", None], True),
        ([None], True),
        (["odd"], True),
        ([5], True),
    ],
)
def test_a_write_is_there_when_an_attempt_is_there_whole(attempts, is_whole):
    """A later attempt makes what earlier ones have not; a fact without a number is whole."""
    rows = [{"id": "m", "metadata": {FACTS: each} if each else None} for each in attempts]
    arguments = {"messages": "a conversation", "user_id": USER}

    left = AddFactsDeduplication().left("add", arguments, {"results": rows})

    assert left == (None if is_whole else arguments)


def test_message_by_message_nothing_is_numbered(bare, bench, journal):
    """Without inference each message is one memory, and their order tells what is there."""
    if isinstance(bare, AsyncMemory):
        return
    messages = [{"role": "user", "content": text} for text in TEXTS]
    guarded(bare, bench).add(messages, user_id=USER, infer=False)

    assert [
        each["metadata"].keys() for each in bare.get_all(filters={"user_id": USER})["results"]
    ] == [{MARK}] * len(TEXTS)


async def test_a_vector_store_that_cannot_be_watched_is_used_as_it_is(
    bare, bench, journal, texts, done
):
    """Its facts are not counted, which is said."""

    class Slotted:
        __slots__ = ("_of",)

        def __init__(self, of: Any) -> None:
            self._of = of

        def __getattr__(self, name: str) -> Any:
            return getattr(self._of, name)

        def insert(self, **given: Any) -> Any:
            return self._of.insert(**given)

    memory = guarded(bare, bench)
    bare.vector_store = Slotted(bare.vector_store)
    await done(memory.add("a conversation", user_id=USER))

    assert await texts() == TEXTS
    assert bench.faults.counts == {"mem0.facts": 1}


@pytest.fixture
def lame(bare, monkeypatch) -> Any:
    """Return a function after which the embedder fails on batches, and on some texts."""

    def fail_on(*texts: str) -> None:
        embed = bare.embedding_model.embed

        def tried(text: str, memory_action: str | None = None) -> Any:
            if text in texts:
                raise ConnectionError
            return embed(text, memory_action)

        def batch(_texts: list[str], memory_action: str | None = None) -> Any:
            raise ConnectionError

        monkeypatch.setattr(bare.embedding_model, "embed", tried)
        monkeypatch.setattr(bare.embedding_model, "embed_batch", batch, raising=False)

    return fail_on


@pytest.mark.parametrize("lost", [1, 3, 4])
async def test_facts_that_cannot_be_embedded_make_an_add_partial(
    lost, bare, lame, bench, events, done
):
    """mem0 answers with the others, as if they were all."""
    lame(*TEXTS[:lost])
    answer = await done(guarded(bare, bench).add("a conversation", user_id=USER))

    assert told(events) == [(Status.PARTIAL, Journalled.NO)]
    assert [each["memory"] for each in answer["results"]] == TEXTS[lost:]


async def test_an_add_whose_texts_are_embedded_one_by_one_is_whole(bare, lame, bench, events, done):
    """A batch that fails costs nothing where each text succeeds."""
    lame()
    await done(guarded(bare, bench).add("a conversation", user_id=USER))

    assert told(events) == [(Status.OK, Journalled.NO)]

"""What mem0 holds about a person beside its memories, and that all of it can be erased."""

from __future__ import annotations

import httpx
import pytest
from mem0 import AsyncMemoryClient, MemoryClient
from qdrant_client import models

from mnemoscope.adapters.mem0.adapter import ADAPTER
from mnemoscope.adapters.mem0.subject_data import HostedSubjectData, MemorySubjectData
from mnemoscope.memory.api import DataSubject
from mnemoscope.memory.errors import UnexpectedAnswerError
from mnemoscope.memory.subject_data.runner import SubjectDataRunner
from tests.kit.bench import wrapping
from tests.kit.hosted_memories import HostedMemories
from tests.kit.remains import found_in

from .conftest import ACCOUNT

guarded = wrapping(ADAPTER)

ADA, BOB = "c-ada", "c-bob"
WORDS = {ADA: "marzipan", BOB: "liquorice"}


@pytest.fixture
def runner():
    """Return what runs providers, in a loop of its own."""
    with SubjectDataRunner() as each:
        yield each


@pytest.fixture
def memory(make_memory, tmp_path):
    """Return a memory in files, in which two people are remembered."""
    memory = make_memory(history=str(tmp_path / "history.db"), path=str(tmp_path / "qdrant"))
    for customer, word in WORDS.items():
        memory.add(f"likes {word}", user_id=customer, infer=False)
        memory.db.save_messages([{"role": "user", "content": word}], f"user_id={customer}")
        _entity(memory, customer, word)
    return memory


def _entity(memory, customer, word):
    client, name = memory.vector_store.client, "facts_entities"
    if not client.collection_exists(name):
        size = models.VectorParams(size=2, distance=models.Distance.COSINE)
        client.create_collection(name, vectors_config=size)
    payload = {"data": word, "user_id": customer, "linked_memory_ids": []}
    point = models.PointStruct(id=len(customer + word), vector=[1.0, 0.0], payload=payload)
    client.upsert(name, [point])


def kinds(runner, provider, subject):
    """Return how many records there are of each kind."""
    pages, after = [], None
    while True:
        page = runner.run(provider.page(subject, after))
        pages.extend(each.kind for each in page.records)
        after = page.after
        if after is None:
            return {kind: pages.count(kind) for kind in pages}


EVERYTHING = {"memory": 1, "history": 1, "message": 1, "entity": 1}


class TestForgetting:
    def test_nothing_is_left_in_any_file(self, runner, memory, tmp_path):
        """Not in the vectors, the history, the messages or the entities; nobody else's goes."""
        provider = MemorySubjectData(memory)
        files = runner.run(provider.files())
        assert found_in(files, *WORDS.values()) == set(WORDS.values())
        assert kinds(runner, provider, DataSubject(customer=ADA)) == EVERYTHING

        erased = runner.run(provider.erase(DataSubject(customer=ADA)))

        assert erased.removed == 4
        assert found_in(runner.run(provider.files()), *WORDS.values()) == {WORDS[BOB]}
        assert found_in([tmp_path], *WORDS.values()) == {WORDS[BOB]}
        assert kinds(runner, provider, DataSubject(customer=ADA)) == {}
        assert kinds(runner, provider, DataSubject(customer=BOB)) == EVERYTHING

    def test_mem0s_own_way_leaves_plaintext(self, runner, memory, tmp_path):
        """The control: ``delete_all`` says that it deleted, and the files still have the word."""
        memory.delete_all(user_id=ADA)

        assert found_in([tmp_path], WORDS[ADA]) == {WORDS[ADA]}

    def test_what_was_deleted_before_is_found_by_its_id(self, runner, memory, tmp_path):
        """The history does not say whose a deleted memory was; the audit trail does."""
        (row,) = memory.get_all(filters={"user_id": ADA})["results"]
        memory.delete(row["id"])
        known = DataSubject(customer=ADA, memory_ids={"mem0": {row["id"]}})

        runner.run(MemorySubjectData(memory).erase(DataSubject(customer=ADA)))
        assert found_in([tmp_path], WORDS[ADA]) == {WORDS[ADA]}
        runner.run(MemorySubjectData(memory).erase(known))

        assert found_in([tmp_path], WORDS[ADA]) == set()

    def test_what_nobody_can_attribute_is_said(self, runner, memory):
        """A history of deleted memories that name nobody may be anybody's."""
        (row,) = memory.get_all(filters={"user_id": ADA})["results"]
        memory.delete(row["id"])

        (message,) = runner.run(MemorySubjectData(memory).erase(DataSubject(customer=BOB))).messages

        assert message.startswith("mem0's history keeps 1 memories that were deleted before")

    def test_forgetting_twice_is_forgetting_once(self, runner, memory):
        """A crash in the middle is mended by doing it again."""
        provider = MemorySubjectData(memory)
        runner.run(provider.erase(DataSubject(customer=ADA)))

        assert runner.run(provider.erase(DataSubject(customer=ADA))).removed == 0

    def test_a_session_is_theirs_by_the_whole_id(self, runner, memory):
        """``c-ad`` is another customer than ``c-ada``, and a sign in an id is no end of it."""
        memory.db.save_messages([{"role": "user", "content": "x"}], "agent_id=a&user_id=a%26b")

        assert kinds(runner, MemorySubjectData(memory), DataSubject(customer="c-ad")) == {}
        assert kinds(runner, MemorySubjectData(memory), DataSubject(customer="a&b")) == {
            "message": 1
        }


class TestWrapping:
    def test_each_client_has_a_provider(self, runner, make_memory, kind, bench):
        """Wrapping a client is all it takes."""
        client = guarded(make_memory(kind), bench)

        assert list(bench.subject_data.named()) == ["mem0"]
        assert client is not None

    def test_a_memory_over_a_guarded_qdrant_is_asked_past_that_guard(
        self, runner, make_memory, bench
    ):
        """Which fails open: an outage would look as if nothing were held."""
        from mnemoscope.adapters.qdrant import adapter as qdrant

        memory = make_memory()
        memory.add("likes marzipan", user_id=ADA, infer=False)
        bare = memory.vector_store.client
        memory.vector_store.client = bench.wrap(bare, qdrant.ADAPTER)
        provider = MemorySubjectData(memory)
        bare.close()

        with pytest.raises(RuntimeError, match="closed"):
            runner.run(provider.page(DataSubject(customer=ADA)))


@pytest.mark.parametrize("client_type", [MemoryClient, AsyncMemoryClient])
class TestHosted:
    def test_pages_are_followed(self, runner, make_client, service, client_type):
        """Until the service says that there is no next one."""
        provider = HostedSubjectData(make_client(client_type))
        service.answer = (200, {"next": "more", "results": [{"id": "1", "memory": "x"}]})
        first = runner.run(provider.page(DataSubject(customer=ADA)))
        service.answer = (200, {"next": None, "results": [{"id": "2", "memory": "y"}]})
        second = runner.run(provider.page(DataSubject(customer=ADA), first.after))

        assert [each.id for each in (*first.records, *second.records)] == ["1", "2"]
        assert second.after is None
        assert [request[1].partition("?")[2] for request in service.requests] == [
            "page=1",
            "page=2",
        ]

    def test_the_user_goes_with_the_memories(self, runner, make_client, service, client_type):
        """And with them what else the service keeps under that user."""
        service.records = [{"id": "1", "memory": "x"}]

        runner.run(HostedSubjectData(make_client(client_type)).erase(DataSubject(customer=ADA)))

        deleted = [target for method, target, _body in service.requests if method == "DELETE"]
        assert deleted[0].startswith("/v1/memories/?user_id=c-ada")
        assert deleted[1].startswith("/v2/entities/user/c-ada/")

    @pytest.mark.parametrize("path", ["/v3/memories/", "/v1/memories/", "/v2/entities/"])
    @pytest.mark.parametrize(
        "page", ["null", "[]", "{}", '{"detail": "x"}', "<html>Sign in</html>"]
    )
    def test_what_the_service_does_not_document_is_no_erasure(
        self, runner, make_client, service, client_type, path, page
    ):
        """Neither that nothing is held nor that it is gone can be said of such an answer."""
        service.records = [{"id": "1", "memory": "x"}]
        service.pages[path] = page

        with pytest.raises(UnexpectedAnswerError):
            runner.run(HostedSubjectData(make_client(client_type)).erase(DataSubject(customer=ADA)))

    def test_the_first_version_of_the_service_has_no_pages(
        self, runner, make_client, service, client_type
    ):
        """A list is all there is."""
        service.answer = (200, [{"id": "1", "memory": "x"}])

        page = runner.run(
            HostedSubjectData(make_client(client_type)).page(DataSubject(customer=ADA))
        )

        assert [each.id for each in page.records] == ["1"]
        assert page.after is None

    def test_what_has_expired_is_listed_and_erased(self, runner, client_type, make_client):
        """The service hides it and keeps it; how many there were is said."""
        service = HostedMemories(ACCOUNT, first_id="1")
        for number, date in enumerate(("2020-01-01", None)):
            said = [{"role": "user", "content": f"likes tea {number}"}]
            body = {"messages": said, "user_id": ADA, "expiration_date": date}
            service(httpx.Request("POST", "http://mem0.test/v3/memories/add/", json=body))
        provider = HostedSubjectData(make_client(client_type, service))
        listed = runner.run(provider.page(DataSubject(customer=ADA))).records
        erased = runner.run(provider.erase(DataSubject(customer=ADA)))

        assert [each.content for each in listed] == ["likes tea 0", "likes tea 1"]
        assert erased.removed == 2
        assert erased.messages[0].startswith("1 of them had a date on which the service hides")
        assert service.rows == {}


def test_what_embedder_and_collection_have_is_told(runner, memory):
    """Where the two differ, no search finds anything."""
    provider = MemorySubjectData(memory)
    assert runner.run(provider.dimensions()) == ("facts", 16, 16)

    memory.embedding_model.config.embedding_dims = 384
    assert runner.run(provider.dimensions()) == ("facts", 384, 16)

    memory.embedding_model.config.embedding_dims = None
    assert runner.run(provider.dimensions()) is None

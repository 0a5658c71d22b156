"""A memory and a crew of CrewAI, as its own pages write them, with a guarded storage."""

from __future__ import annotations

import asyncio
import json
import threading
import warnings
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # of the modules that it replaces as it is imported
    from crewai import Agent, Crew, Memory, Task
    from crewai.events import crewai_event_bus
    from crewai.flow.flow import Flow, listen, start
    from crewai.memory.storage.backend import StorageBackend
    from crewai.memory.storage.lancedb_storage import LanceDBStorage
    from crewai.memory.types import MemoryRecord

from mnemoscope.memory import ScopeError, context
from mnemoscope.memory.api import DataSubject
from tests.kit.hostile_ids import HOSTILE_IDS, check_apart, text_of
from tests.kit.patience import GIVE_UP_S

pytestmark = pytest.mark.filterwarnings("ignore")  # CrewAI's own, of several kinds
ADA = "ada.lovelace@example.com"
TOKENS = ("input", "output", "cached")
ANSWERS = {
    "MemoryAnalysis": {
        "suggested_scope": "/project/database",
        "categories": ["decisions"],
        "importance": 0.7,
        "extracted_metadata": {"entities": [], "dates": [], "topics": ["storage"]},
    },
    "ExtractedMemories": {"memories": [f"The report goes to {ADA}."]},
    "ConsolidationPlan": {"actions": [], "insert_new": True, "insert_reason": "new"},
}
"""What the model answers where it is to answer in a form."""


class Provider(BaseHTTPRequestHandler):
    """The interface of a provider of models, whose model is scripted."""

    asked: list

    def do_POST(self):
        """Answer a request for a chat or for vectors."""
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        answer = self._vectors(body) if "input" in body else self._chat(body)
        data = json.dumps({"model": body["model"], **answer}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def _vectors(self, body):
        vectors = [[1.0, len(each) / 100, each.count("a") / 10] for each in body["input"]]
        data = [{"object": "embedding", "index": n, "embedding": v} for n, v in enumerate(vectors)]
        return {"object": "list", "data": data, "usage": {"prompt_tokens": 1, "total_tokens": 1}}

    def _chat(self, body):
        self.asked.append(body["messages"])
        form = body.get("response_format", {}).get("json_schema", {}).get("name")
        text = json.dumps(ANSWERS[form]) if form else "Final Answer: The report is ready."
        message = {"role": "assistant", "content": text}
        return {
            "id": "chatcmpl-1", "object": "chat.completion", "created": 1,
            "choices": [{"index": 0, "finish_reason": "stop", "message": message}],
            "usage": {
                "prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120,
                "prompt_tokens_details": {"cached_tokens": 30},
            },
        }  # fmt: skip

    def log_message(self, *_args):
        """Say nothing."""


@pytest.fixture
def asked(tmp_path, monkeypatch):
    """Have CrewAI's default models asked on this machine, and return what they are asked."""
    kind = type("Own", (Provider,), {"asked": []})
    server = ThreadingHTTPServer(("127.0.0.1", 0), kind)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    address = f"http://127.0.0.1:{server.server_port}/v1"
    for name, value in {
        "CREWAI_DISABLE_TELEMETRY": "true",
        "CREWAI_TRACING_ENABLED": "false",
        "CREWAI_STORAGE_DIR": str(tmp_path / "crewai"),
        "OPENAI_API_KEY": "none",
        "OPENAI_BASE_URL": address,
        "OPENAI_API_BASE": address,
    }.items():
        monkeypatch.setenv(name, value)
    yield kind.asked
    server.shutdown()
    server.server_close()
    thread.join(GIVE_UP_S)


def record(text, scope="/customers/c-1", **more):
    """Return a record with a vector."""
    return MemoryRecord(content=text, scope=scope, embedding=[1.0, 0.0, 0.0], **more)


def test_the_quick_start_of_memory_works_behind_the_guard(watch, asked):
    """Its page's own, but for the storage. And what is told of it."""
    watched = watch()
    before = {each: watched.sample("mnemoscope_tokens_total", type=each) for each in TOKENS}
    storage = watched.scope.guard(LanceDBStorage())

    with context(tenant="acme", customer="c-1", feature="notes"):
        memory = Memory(storage=storage)
        memory.remember("We decided to use PostgreSQL for the user database.")
        matches = memory.recall("What database did we choose?")
        forgotten = memory.forget(scope="/project/old")

    assert isinstance(storage, LanceDBStorage)
    assert isinstance(storage, StorageBackend)
    (match,) = matches
    assert match.record.content == "We decided to use PostgreSQL for the user database."
    assert match.record.scope == "/project/database"
    assert forgotten == 0
    assert "/project/database (1 records)" in memory.tree()
    assert memory.info("/").record_count == 1

    crewai_event_bus.flush()
    after = {each: watched.sample("mnemoscope_tokens_total", type=each) for each in TOKENS}
    counted = {each: after[each] - before[each] for each in TOKENS}
    assert counted == {"input": 100, "output": 20, "cached": 30}
    (chat,) = watched.spans("chat")
    assert chat.attributes["gen_ai.usage.input_tokens"] == 100
    assert chat.attributes["gen_ai.request.model"] == "gpt-5.4-mini"
    told = [each for each in watched.events() if each.store == "crewai" and each.feature]
    # Similar ones, scopes and categories for the model, the record; what is found, and that it
    # was read.
    assert [(each.method, each.hits) for each in told] == [
        ("search", 0), ("list_scopes", 0), ("list_categories", 0), ("save", None),
        ("list_scopes", 1), ("search", 1), ("touch_records", None), ("delete", None),
    ]  # fmt: skip
    assert len(watched.spans("search_memory")) >= 4
    assert len(watched.spans("upsert_memory")) == len(watched.spans("delete_memory")) == 1
    (spent,) = watched.scope.audit.spend("feature")
    assert (spent.name, spent.calls, spent.input_tokens, spent.output_tokens) == (
        "notes", 1, 100, 20,
    )  # fmt: skip
    trail = [each.store for each in watched.scope.audit.history("c-1", "acme")]
    assert trail.count("crewai") == len(told)


def crew_with(memory):
    """Return the crew of its page."""
    researcher = Agent(role="Researcher", goal="Find out", backstory="You read.")
    task = Task(description="Write the report.", expected_output="A line.", agent=researcher)
    return Crew(agents=[researcher], tasks=[task], memory=memory)


def test_a_crew_remembers_and_recalls_what_is_redacted(watch, asked, tmp_path):
    """What a model took out of a task's result is stored redacted: a canary in files and sinks."""
    watched = watch()
    storage = watched.scope.guard(LanceDBStorage())

    with context(customer="c-1"):
        crew = crew_with(Memory(storage=storage))
        first = crew.kickoff()
        crew.kickoff()

    crewai_event_bus.flush()
    assert "The report is ready." in str(first)
    stored = storage.list_records()
    assert {each.content for each in stored} == {"The report goes to <EMAIL_ADDRESS>."}
    assert "The report goes to <EMAIL_ADDRESS>." in json.dumps(asked)
    assert ADA.encode() not in watched.held()
    assert {each.feature for each in watched.events()} == {None}


class Away(LanceDBStorage):
    """A storage that is down."""

    def search(self, *args, **kwargs):
        """Fail."""
        raise OSError(f"no space for {ADA}")

    save = list_scopes = list_categories = get_scope_info = list_records = delete = search


def test_a_crew_answers_while_its_storage_is_down(watch, asked):
    """Nothing is recalled, what was to be kept is counted as lost, and a deletion is told."""
    watched = watch()
    storage = watched.scope.guard(Away())
    memory = Memory(storage=storage)

    result = crew_with(memory).kickoff()
    memory.drain_writes()

    assert "The report is ready." in str(result)
    told = [each for each in watched.events() if each.store == "crewai"]
    assert {"search", "save"} <= {each.method for each in told}
    assert {(str(each.status), each.neutral) for each in told} == {("degraded", True)}
    assert memory.recall("What?") == []
    assert memory.tree() == "/ (0 records)"
    with pytest.raises(OSError, match="no space"):
        memory.forget(scope="/project")
    assert ADA.encode() not in watched.held()


def test_records_are_redacted_by_their_shape(watch, asked, tmp_path):
    """Texts, names of scopes, metadata and ids; not vectors, times and what the caller holds."""
    storage = watch().scope.guard(LanceDBStorage(), owner_scope="/customers")
    given = record(
        f"Write to {ADA}", f"/customers/c-1/{ADA}", metadata={"to": ADA}, categories=[ADA],
        source=ADA,
    )  # fmt: skip

    storage.save([given])

    (kept,) = storage.list_records("/customers/c-1")
    assert kept.content == "Write to <EMAIL_ADDRESS>"
    assert kept.scope.startswith("/customers/c-1/<EMAIL_ADDRESS_")
    assert ADA not in kept.model_dump_json()
    assert kept.metadata.keys() == {"to"}
    assert kept.created_at == given.created_at
    assert given.content == f"Write to {ADA}"
    assert len(storage.list_records(f"/customers/c-1/{ADA}")) == 1
    assert len(storage.search([1.0, 0.0, 0.0], metadata_filter={"to": ADA}, categories=[ADA])) == 1
    assert storage.delete(categories=[ADA]) == 1


def test_a_customers_records_are_exported_and_erased(watch, asked):
    """Not those of a customer whose id begins like it, nor those that are nobody's."""
    watched = watch()
    storage = watched.scope.guard(LanceDBStorage(), owner_scope="/customers")
    scopes = ("/customers/c-1/a", "/customers/c-10", "/customers/c-1", "/")
    storage.save([record(f"tea {n}", scope) for n, scope in enumerate(scopes)])
    ((data, _),) = watched.scope.subject_data.clients()
    subject = DataSubject(customer="c-1")

    async def export_and_erase():
        page = await data.page(subject)
        return page, await data.erase(subject)

    page, erased = asyncio.run(export_and_erase())

    assert {each.content["text"] for each in page.records} == {"tea 0", "tea 2"}
    assert (erased.removed, erased.retained) == (2, 0)
    assert "older versions" in erased.messages[0]
    assert {each.content for each in storage.list_records()} == {"tea 1", "tea 3"}


def test_a_deletion_that_a_storage_swallows_is_not_taken_for_one(watch, asked):
    """One of CrewAI's storages answers 0 and goes on as its deletion fails."""

    class Swallowing(LanceDBStorage):
        def delete(self, **_kwargs):
            return 0

    watched = watch()
    storage = watched.scope.guard(Swallowing(), owner_scope="/customers")
    storage.save([record("tea")])
    ((data, _),) = watched.scope.subject_data.clients()

    erased = asyncio.run(data.erase(DataSubject(customer="c-1")))

    assert (erased.removed, erased.retained) == (0, 1)
    assert "erase again" in erased.messages[0]


def test_with_tenancy_enforced_a_scope_is_its_customers(watch, asked):
    """What a storage finds of ``/c-10`` for ``/c-1`` goes. What cannot be told is refused."""
    storage = watch(tenancy="enforce").scope.guard(LanceDBStorage(), owner_scope="/customers")
    with context(customer="c-10"):
        theirs = record("coffee", "/", categories=["drinks"])
        storage.save([theirs])
    with context(customer="c-1"):
        storage.save([record("tea", "/notes", categories=["hot"])])

        assert [each.scope for each in storage.list_records()] == ["/customers/c-1/notes"]
        assert [each.content for each, _ in storage.search([1.0, 0.0, 0.0])] == ["tea"]
        assert storage.get_record(theirs.id) is None
        assert storage.list_scopes() == ["/customers/c-1/notes"]
        assert storage.list_categories() == {}
        for refused in (
            lambda: storage.update(theirs),
            lambda: storage.touch_records([theirs.id]),
            lambda: storage.delete(record_ids=[theirs.id]),
            lambda: storage.save([record("mine", "/customers/c-10")]),
            lambda: storage.list_records("/customers/c-10"),
            lambda: storage.get_scope_info("/customers/c-1"),
            lambda: storage.count("/customers/c-1"),
            storage.reset,
        ):
            with pytest.raises(ScopeError):
                refused()
    with context(customer="c-10"):
        assert [each.content for each in storage.list_records()] == ["coffee"]


def test_with_tenancy_enforced_a_customers_own_are_changed_by_their_ids(watch, asked):
    """As CrewAI does where it merges two memories, or has recalled one."""
    storage = watch(tenancy="enforce").scope.guard(LanceDBStorage(), owner_scope="/customers")
    tea, rum = record("tea", "/notes"), record("rum", "/notes")
    with context(customer="c-1"):
        storage.save([tea, rum])

        storage.update(tea.model_copy(update={"content": "green tea"}))
        storage.touch_records([tea.id])
        deleted = storage.delete(record_ids=[rum.id])
        with pytest.raises(ScopeError):
            storage.delete(scope_prefix="/customers/c-1")

        assert deleted == 1
        (left,) = storage.list_records()
        assert (left.content, left.scope) == ("green tea", "/customers/c-1/notes")


def test_a_flow_remembers_in_the_guarded_storage(watch, asked):
    """The quick start of memory in flows: the flow is given a memory as it is made."""
    watched = watch()
    storage = watched.scope.guard(LanceDBStorage(), owner_scope="/customers")
    memory = Memory(storage=storage, root_scope="/customers/c-1")

    class ResearchFlow(Flow):
        @start()
        def gather(self):
            self.remember([f"Ask {ADA}.", "Qdrant scales."], scope="/research")

        @listen(gather)
        def analyze(self):
            return [each.record.content for each in self.recall("research")]

    with context(customer="c-1", feature="research"):
        found = ResearchFlow(memory=memory).kickoff()

    crewai_event_bus.flush()
    assert sorted(found) == ["Ask <EMAIL_ADDRESS>.", "Qdrant scales."]
    assert {each.scope for each in storage.list_records()} == {"/customers/c-1/research"}
    told = [each for each in watched.events() if each.feature == "research"]
    used = [each.usage.input_tokens for each in told if each.usage]
    assert used == [100] * len(asked)
    assert [each.method for each in told].count("save") == 1
    assert ADA.encode() not in watched.held()


def test_without_owners_nothing_is_claimed(watch, asked):
    """Nobody says whose a record is."""
    watched = watch()
    _storage = watched.scope.guard(LanceDBStorage())
    ((data, _),) = watched.scope.subject_data.clients()

    assert "owner_scope=" in data.unavailable


@pytest.mark.parametrize("tenancy", ["observe", "enforce"])
def test_customers_with_ids_of_any_kind_are_apart(watch, tmp_path, tenancy):
    """Nobody's record is another's, and an id that is no name of a scope is refused."""
    watched = watch(tenancy=tenancy)
    storage = watched.scope.guard(LanceDBStorage(path=tmp_path / "l"), owner_scope="/customers")
    kept = []
    for each in HOSTILE_IDS:
        one = record(text_of(each), f"/customers/{each}")
        with context(customer=each):
            if "/" in each:
                with pytest.raises(ScopeError):
                    storage.save([one])
            else:
                storage.save([one])
                kept.append(each)
    provider = watched.scope.subject_data.named()["crewai"]

    asyncio.run(check_apart(provider, kept))
    for each in set(HOSTILE_IDS) - {*kept}:
        with pytest.raises(ScopeError, match="no name of a scope"):
            asyncio.run(provider.page(DataSubject(customer=each)))

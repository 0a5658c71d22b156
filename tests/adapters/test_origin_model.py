"""Origin held against a model of its own, in runs made at random, over three stores at once."""

from __future__ import annotations

from collections import Counter
from contextlib import closing
from random import Random

import pytest
from langchain_core.language_models import FakeListChatModel
from langgraph.graph import START, StateGraph
from langgraph.store.memory import InMemoryStore
from mem0.utils import spacy_models
from qdrant_client import QdrantClient, models

from mnemoscope.adapters.langgraph.runs.gate import gate
from mnemoscope.demo import embedded_memory
from mnemoscope.memory import Mnemoscope, Origin, Trust, context, load_settings
from tests.kit.origin_tools import ask_person, browse, crm_read

TOOLS = {"crm_read": Trust.INTERNAL_TOOL, "ask_person": Trust.PERSON}
DEMANDS = {"payments": Trust.INTERNAL_TOOL, "chat": Trust.OTHER_AGENT}
PLACE = ("facts",)
PERSON = {"user_id": "u-1"}
STORES = ("langgraph", "qdrant", "mem0")


class Evaluator:
    """What labels and answers should be: that of the latest write of a text, and no lower ones."""

    def __init__(self):
        self.read, self.labels, self.held = {}, {}, {}

    def reads(self, runs, trust):
        for each in runs:
            self.read[each] = min(self.least([each]), trust)

    def least(self, runs):
        return min(self.read.get(each, Trust.PERSON) for each in runs)

    def writes(self, runs, where, text):
        self.held[where] = text
        self.labels[where, text] = self.least(runs)

    def edits(self, where, text):
        self.held[where] = text

    def label(self, where):
        return self.labels.get((where, self.held[where]), Trust.EXTERNAL_TOOL)

    def finds(self, runs, store, purpose):
        trusts = {where: self.label(where) for where in self.held if where[0] == store}
        least = DEMANDS.get(purpose, Trust.EXTERNAL_TOOL)
        found = {where: trust for where, trust in trusts.items() if trust >= least}
        for trust in found.values():
            self.reads(runs, trust)
        return {where[1]: self.held[where] for where in found}


class Stores:
    """The three stores of one process, guarded; the bare ones outlive it."""

    def __init__(self, scope, bare):
        self.bare = bare
        self.langgraph = scope.store(bare["langgraph"])
        self.qdrant = scope.qdrant(bare["qdrant"])
        self.mem0 = scope.mem0(bare["mem0"])

    def put(self, store, key, text):
        if store == "langgraph":
            self.langgraph.put(PLACE, key, {"text": text})
        elif store == "qdrant":
            point = models.PointStruct(id=int(key), vector=[1.0, 0.0], payload={"text": text})
            self.qdrant.upsert("facts", [point])
        elif key in self.bare["ids"]:
            self.mem0.update(self.bare["ids"][key], text)
        else:
            added = self.mem0.add(text, user_id="u-1", infer=False)["results"]
            self.bare["ids"][key] = added[0]["id"]

    def edit(self, store, key, text):
        if store == "langgraph":
            self.bare["langgraph"].put(PLACE, key, {"text": text})
        elif store == "qdrant":
            self.bare["qdrant"].set_payload("facts", {"text": text}, [int(key)])
        else:
            self.bare["mem0"].update(self.bare["ids"][key], text)

    def recall(self, store):
        """Return the texts that are found, by their keys."""
        if store == "langgraph":
            return {each.key: each.value["text"] for each in self.langgraph.search(PLACE)}
        if store == "qdrant":
            points, _more = self.qdrant.scroll("facts", limit=99)
            return {str(each.id): each.payload["text"] for each in points}
        keys = {memory_id: key for key, memory_id in self.bare["ids"].items()}
        found = self.mem0.get_all(filters=PERSON, top_k=99)["results"]
        return {keys[each["id"]]: each["memory"] for each in found}


@pytest.fixture(params=["sqlite", "postgresql"])
def settings(request, tmp_path):
    """Return settings with an audit trail in the database."""
    url = f"sqlite:///{tmp_path}/audit.db"
    if request.param == "postgresql":
        url = request.getfixturevalue("postgres_url")
    made = load_settings(
        sinks="audit", audit_url=url, pii_model="none", audit_pseudonym_key="ab" * 32
    )
    with closing(Mnemoscope(made)) as scope:
        scope.audit.append_log_event("test.began", {})  # no reader comes as tables are made
    return made


@pytest.fixture
def bare(tmp_path, monkeypatch):
    """Return the stores as they are, and the ids of mem0's memories by their keys."""
    monkeypatch.setattr(spacy_models, "_load_failed_full", value=True)  # no network
    monkeypatch.setattr(spacy_models, "_load_failed_lemma", value=True)
    gate().clear()
    client, memory = QdrantClient(":memory:"), embedded_memory(tmp_path)
    size = models.VectorParams(size=2, distance=models.Distance.COSINE)
    client.create_collection("facts", vectors_config=size)
    yield {"langgraph": InMemoryStore(), "qdrant": client, "mem0": memory, "ids": {}}
    client.close()
    memory.close()
    memory.vector_store.client.close()
    gate().clear()


class Process:
    """A scope on the trail, whose agents do what is drawn."""

    def __init__(self, settings, bare, model, rng, number):
        self.origin = Origin(tools=TOOLS, demands=DEMANDS, hold=None)
        self.scope = Mnemoscope(settings, rules=[self.origin])
        self.stores = Stores(self.scope, bare)
        self.model, self.rng, self.number = model, rng, number
        self.done = Counter()

    def run_agent(self, outer=()):
        """Run an agent as a graph, in a run of its own, perhaps within another's."""
        runs = (*outer, f"p{self.number}-r{self.rng.randrange(6)}")

        def node(_state):
            for _ in range(self.rng.randrange(2, 7)):
                self.act(runs)
            return {}

        builder = StateGraph(dict)
        builder.add_node("agent", node)
        builder.add_edge(START, "agent")
        graph = self.scope.runnable(builder.compile())
        with context(run=runs[-1], agent=self.rng.choice(["a", "b"])):
            graph.invoke({})

    def act(self, runs):
        rng, model = self.rng, self.model
        store, key, text = rng.choice(STORES), f"{rng.randrange(3)}", rng.choice(["tea", "coffee"])
        what = rng.choice(
            ["read", "tool", "model", *["agent"] * 2, *["put"] * 4, "edit", *["recall"] * 4]
        )
        if what == "read":
            trust = rng.choice(list(Trust))
            model.reads(runs, trust)
            with self.origin.reading(trust):
                pass
        elif what == "tool":
            called = rng.choice([crm_read, ask_person, browse])
            model.reads(runs, TOOLS.get(called.name, Trust.EXTERNAL_TOOL))
            called.invoke({"query": text})
        elif what == "model":
            model.reads(runs, Trust.OWN_REFLECTION)
            FakeListChatModel(responses=["so be it"]).invoke(text)
        elif what == "agent" and len(runs) < 3:
            self.run_agent(runs)
        elif what == "put":
            model.writes(runs, (store, key), text)
            self.stores.put(store, key, text)
        elif what == "edit" and (store, key) in model.held:
            model.edits((store, key), text)
            self.stores.edit(store, key, text)
        elif what == "recall":
            purpose = rng.choice([None, "payments", "chat"])
            with context(purpose=purpose):
                found = self.stores.recall(store)
            assert found == model.finds(runs, store, purpose), (runs, store, purpose)
            self.done[purpose, bool(found)] += 1
        self.done[what] += 1


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.long
def test_labels_and_answers_are_those_of_an_evaluator(settings, bare, seed):
    """Of agents within agents, tools, models, three stores, edits past them, and a restart."""
    rng, model, done = Random(seed), Evaluator(), Counter()  # noqa: S311 - the same in every run
    for number in range(3):
        process = Process(settings, bare, model, rng, number)
        for _ in range(10):
            process.run_agent()
        assert process.scope.flush()
        process.scope.close()
        done += process.done

    assert min(done[each] for each in ("read", "tool", "model", "agent", "put", "recall")) >= 2
    assert done["payments", True]
    assert done["payments", False]

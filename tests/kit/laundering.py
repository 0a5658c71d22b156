"""
Ways in which a text of low trust may come into memory as one of a higher trust.

Each is an agent in a real graph, whose tools and model are watched, with real stores in memory.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypedDict

from langchain_core.language_models import FakeListChatModel
from langchain_core.tools import tool
from langgraph.graph import START, StateGraph
from langgraph.store.memory import InMemoryStore
from qdrant_client import QdrantClient, models

from mnemoscope.memory import Mnemoscope, MnemoscopeError, Origin, Trust, context, load_settings
from tests.kit.patience import GIVE_UP_S

PLACE, COLLECTION, PURPOSE = ("facts",), "facts", "payments"
_VECTOR = [1.0, 0.0]
_MOST = 10_000
Node = Callable[[], object]


class _State(TypedDict):
    said: list[str]


class Stores:
    """A store of LangGraph's and a collection of Qdrant's, both in memory."""

    def __init__(self) -> None:
        self.store = InMemoryStore()
        self.qdrant = QdrantClient(":memory:")
        size = models.VectorParams(size=2, distance=models.Distance.COSINE)
        self.qdrant.create_collection(COLLECTION, vectors_config=size)
        self.written = 0


class Agent:
    """
    An agent that remembers what it reads, in a scope with an `Origin`.

    Attributes:
        held: Writes that did not come to pass.
    """

    def __init__(self, stores: Stores, scope: Mnemoscope, origin: Origin) -> None:
        self.origin, self.scope = origin, scope
        self._stores = stores
        self._store, self._qdrant = scope.store(stores.store), scope.qdrant(stores.qdrant)
        self.held = 0
        self._runs = 0

    def run(self, *nodes: Node, name: str | None = None) -> None:
        """Run a graph of *nodes*, one after the other, as a run of its own."""
        self._runs += 1
        with context(run=name or f"r-{id(self)}-{self._runs}"):
            self._graph(nodes).invoke({"said": []})

    def _graph(self, nodes: tuple[Node, ...]) -> Any:
        builder = StateGraph(_State)
        before = START
        for place, each in enumerate(nodes):
            builder.add_node(f"n{place}", _as_node(each))
            builder.add_edge(before, f"n{place}")
            before = f"n{place}"
        return self.scope.runnable(builder.compile())

    def remember(self, text: str) -> str:
        """Write *text* into both stores, and return its key."""
        self._stores.written += 1
        number, key = self._stores.written, f"k{self._stores.written}"
        point = models.PointStruct(id=number, vector=_VECTOR, payload={"text": text})
        for write in (
            lambda: self._store.put(PLACE, key, {"text": text}),
            lambda: self._qdrant.upsert(COLLECTION, [point], wait=True),
        ):
            try:
                write()
            except MnemoscopeError:
                self.held += 1
        return key

    def read(self, key: str) -> str:
        """Return the memory of that key, as the agent recalls it for no purpose that demands."""
        found = self._store.get(PLACE, key)
        return "" if found is None else str(found.value["text"])

    def recalled(self, purpose: str | None = PURPOSE) -> list[str]:
        """Return the keys of all that is found for *purpose*, in both stores, in every way."""
        self._runs += 1
        with context(run=f"p-{id(self)}-{self._runs}", purpose=purpose):
            items = self._store.search(PLACE, limit=_MOST)
            points = [
                *self._qdrant.query_points(COLLECTION, query=_VECTOR, limit=_MOST).points,
                *self._qdrant.scroll(COLLECTION, limit=_MOST)[0],
            ]
        return [*(each.key for each in items), *(f"k{each.id}" for each in points)]


def _as_node(act: Node) -> Callable[[Any], dict[str, list[str]]]:
    def node(_state: Any) -> dict[str, list[str]]:
        act()
        return {"said": []}

    return node


@contextmanager
def an_agent(stores: Stores, folder: Path, *, hold: Trust | None = None) -> Generator[Agent]:
    """Yield an agent in a scope of its own, as another process has; all have one audit trail."""
    settings = load_settings(
        sinks="audit",
        audit_url=f"sqlite:///{folder}/audit.db",
        pii_model="none",
        audit_pseudonym_key="ab" * 32,
    )
    origin = Origin(
        tools={"crm_*": Trust.INTERNAL_TOOL}, demands={PURPOSE: Trust.INTERNAL_TOOL}, hold=hold
    )
    scope = Mnemoscope(settings, rules=[origin])
    try:
        yield Agent(stores, scope, origin)
        scope.flush(GIVE_UP_S)
    finally:
        scope.close()


def _browse(text: str) -> Any:
    @tool
    def web_search(query: str) -> str:
        """Search the web."""
        return f"{text} ({query})"

    return web_search


@tool
def crm_note(text: str) -> str:
    """Note something in the CRM, which says what was noted."""
    return text


def _sum_up(text: str) -> str:
    model = FakeListChatModel(responses=[f"In short: {text}"])
    return str(model.invoke("Sum it up.").content)


def wash(agent: Agent, text: str) -> dict[str, str]:
    """Have *text* come in by an external tool and be remembered in every way; return the keys."""
    keys: dict[str, str] = {}

    def read() -> str:
        return str(_browse(text).invoke({"query": "tea"}))

    def keep(way: str, of: Callable[[], str]) -> Node:
        return lambda: keys.__setitem__(way, agent.remember(of()))

    def echo(of: Callable[[], str]) -> Callable[[], str]:
        return lambda: str(crm_note.invoke({"text": of()}))

    def again() -> str:
        return agent.read(keys["direct"])

    agent.run(keep("direct", read))
    agent.run(read, keep("summary", lambda: _sum_up(text)))
    agent.run(read, keep("echo", echo(lambda: text)))
    agent.run(read, lambda: agent.run(keep("second agent", lambda: _sum_up(text))))
    agent.run(lambda: agent.run(read), keep("from a second agent", lambda: text))
    agent.run(keep("later", again))
    agent.run(keep("later summary", lambda: _sum_up(again())))
    agent.run(keep("later echo", echo(again)))
    return keys


def hand_on(agent: Agent, keys: dict[str, str]) -> dict[str, str]:
    """Have another agent, in another process, make of each memory one of its own."""
    further: dict[str, str] = {}
    for way, key in keys.items():
        agent.run(
            lambda key=key, way=way: further.__setitem__(
                f"{way}, another process",
                agent.remember(str(crm_note.invoke({"text": _sum_up(agent.read(key))}))),
            )
        )
    return further


def told_by_a_person(agent: Agent, text: str) -> str:
    """Have *text* remembered as the person said it, and return its key."""
    kept: list[str] = []
    agent.run(lambda: kept.append(agent.remember(text)))
    return kept[0]

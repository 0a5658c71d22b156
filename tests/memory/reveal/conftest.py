"""A scope that reveals, with the clients of its customers' agents."""

from __future__ import annotations

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.store.memory import InMemoryStore
from qdrant_client import QdrantClient, models

from mnemoscope.memory.testing import scope_for_tests
from tests.kit.patience import GIVE_UP_S

KEY = "00112233445566778899aabbccddeeff"


class Agents:
    """
    A scope with pseudonyms, a vault and `pii_reveal`, and guarded clients.

    Attributes:
        scope: The scope.
        sink: Its sink.
        bare: The clients themselves.
        store: LangGraph's store, guarded.
        qdrant: A Qdrant, guarded.
        saver: LangGraph's saver, guarded.
    """

    def __init__(self, scope, sink, bare=None):
        self.scope, self.sink = scope, sink
        if bare is None:
            size = models.VectorParams(size=2, distance=models.Distance.COSINE)
            qdrant = QdrantClient(":memory:")
            qdrant.create_collection("notes", vectors_config=size)
            bare = InMemoryStore(), qdrant, InMemorySaver()
        self.bare = bare
        self.store, self.qdrant, self.saver = map(scope.guard, bare)

    def settle(self):
        """Wait until vault and sink have everything."""
        assert self.scope.flush(GIVE_UP_S)

    def reveals(self):
        """Return the events of reveals so far."""
        self.settle()
        return [each for each in self.sink.events if each.method == "reveal"]


@pytest.fixture
def open_agents(tmp_path):
    """Return a function that opens agents of one vault; they are closed in the end."""
    scopes = []

    def opened(bare=None, *, rules=(), **settings):
        given = {
            "audit_pseudonym_key": KEY,
            "pii_operators": "*=pseudonym",
            "vault": tmp_path / "vault" / "names.db",
            "pii_reveal": "recall,resume",
            **{f"deadline_{each}_s": 0 for each in ("recall", "remember", "resume", "checkpoint")},
        }
        scopes.append(scope_for_tests(rules=rules, **given | settings))
        return Agents(*scopes[-1].__enter__(), bare)

    yield opened
    for each in reversed(scopes):
        each.__exit__(None, None, None)


@pytest.fixture
def agents(open_agents):
    """Return the agents of one scope."""
    return open_agents()

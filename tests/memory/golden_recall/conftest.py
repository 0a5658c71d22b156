"""A desk of recalls on record, and candidates to hold against them."""

from __future__ import annotations

import json
import sys
import types
import zlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest
from langgraph.store.memory import InMemoryStore

from mnemoscope.memory import Mnemoscope, context, load_settings
from tests.kit.command_line import run
from tests.kit.patience import GIVE_UP_S

CUSTOMERS = ("c-42", "c-43")
TEXTS = (
    "likes green tea in the morning",
    "plays the violin in an orchestra",
    "has a dog with three legs",
    "works at a bank near the river",
    "is allergic to nuts and to dust",
    "rides a bike to work each morning",
    "studied law and then music",
    "cooks food with much ginger",
    "sleeps badly in summer",
    "collects maps of the river",
)
QUERIES = (
    "which tea in the morning",
    "violin or music",
    "a dog or a cat",
    "near the river",
    "allergic to what",
    "to work each morning",
    "law",
    "ginger in food",
)
SIZE = 96


def embed(texts: Sequence[str]) -> list[list[float]]:
    """Return a vector of each text by its words: equal words, equal places."""
    return [_vector(text.split()) for text in texts]


def embed_by_ends(texts: Sequence[str]) -> list[list[float]]:
    """Return a vector of each text by the last letters of its words: another embedder."""
    return [_vector([word[-1:] for word in text.split()]) for text in texts]


def _vector(words: Sequence[str]) -> list[float]:
    vector = [0.01] * SIZE
    for word in words:
        vector[zlib.crc32(word.encode()) % SIZE] += 1.0
    return vector


@pytest.fixture
def trail(tmp_path, monkeypatch):
    """Name an audit trail and its key in the environment; return the settings of its scopes."""
    url, key = f"sqlite:///{tmp_path}/audit.db", "6d" * 32
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("MNEMOSCOPE_AUDIT_URL", url)
    monkeypatch.setenv("MNEMOSCOPE_AUDIT_PSEUDONYM_KEY", key)
    monkeypatch.setenv("MNEMOSCOPE_PII_MODEL", "none")
    return {
        "audit_url": url,
        "audit_pseudonym_key": key,
        "pii_model": "none",
        "deadline_recall_s": 0,
        "deadline_remember_s": 0,
    }


@pytest.fixture
def make_scope(trail) -> Iterator[Callable[..., Mnemoscope]]:
    """Return a function that makes a scope; close them at the end."""
    made: list[Mnemoscope] = []

    def make(**settings: Any) -> Mnemoscope:
        made.append(Mnemoscope(load_settings(**{"sinks": "", **trail, **settings})))
        return made[-1]

    yield make
    for each in made:
        each.close()


def store_of(scope: Mnemoscope, embedder: Any = embed, texts: Sequence[str] = TEXTS) -> Any:
    """Return a guarded store in *scope* that remembers *texts* of each customer. None: no index."""
    index: Any = embedder and {"dims": SIZE, "embed": embedder, "fields": ["text"]}
    store = scope.store(InMemoryStore(index=index or None), customer_at=1)
    for customer in CUSTOMERS:
        with context(tenant="acme", customer=customer):
            for number, text in enumerate(texts):
                store.put(("memories", customer), f"m-{number}", {"text": text})
    return store


def search_all(store: Any) -> None:
    """Have each customer ask each query."""
    for customer in CUSTOMERS:
        with context(tenant="acme", customer=customer):
            for query in QUERIES:
                store.search(("memories", customer), query=query, limit=3)


@pytest.fixture
def recorded(make_scope) -> Mnemoscope:
    """Return a scope whose trail has the recalls of a store."""
    scope = make_scope(sinks="audit")
    search_all(store_of(scope))
    assert scope.flush(GIVE_UP_S)
    return scope


@pytest.fixture
def replay(monkeypatch, capsys):
    """Return a function that replays against a candidate; it returns exit code, report, errors."""

    def replayed(candidate: Any, *options: str) -> tuple[int, Any, str]:
        application = types.SimpleNamespace(__name__="candidate_app", candidate=candidate)
        monkeypatch.setitem(sys.modules, "candidate_app", application)
        capsys.readouterr()
        code = run(["replay", "--against", "candidate_app:candidate", "--json", *options])
        said = capsys.readouterr()
        return code, json.loads(said.out) if said.out else None, said.err

    return replayed

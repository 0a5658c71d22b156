"""A shadow: a candidate is shown a share of recalls, and no answer waits for it or fails by it."""

from __future__ import annotations

import threading

import pytest
from langgraph.store.memory import InMemoryStore

from mnemoscope.memory import ConfigurationError, Mnemoscope, context, load_settings
from mnemoscope.memory.golden_recall import ShadowCounts, shadow
from mnemoscope.memory.testing import CapturingSink
from tests.kit.patience import GIVE_UP_S

from .conftest import QUERIES, SIZE, TEXTS, embed, embed_by_ends, store_of

PLACE = ("memories", "c-42")


class Candidate(InMemoryStore):
    """A store that counts its calls, and waits or fails where it is to."""

    def __init__(self, embedder=embed, texts=TEXTS, *, gate=None, fails=False):
        super().__init__(index={"dims": SIZE, "embed": embedder, "fields": ["text"]})
        for number, text in enumerate(texts):
            self.put(PLACE, f"m-{number}", {"text": text})
        self.made, self.written = [], []
        self._gate, self._fails = gate, fails

    def search(self, namespace_prefix, /, **given):
        if self._gate is not None:
            self._gate.wait(GIVE_UP_S)
        self.made.append((namespace_prefix, given))
        if self._fails:
            raise ConnectionError("which tea in the morning")
        return super().search(namespace_prefix, **given)

    async def asearch(self, namespace_prefix, /, **given):
        self.made.append((namespace_prefix, given))
        return await super().asearch(namespace_prefix, **given)

    def put(self, *args, **given):
        if hasattr(self, "written"):
            self.written.append(args)
        return super().put(*args, **given)


@pytest.fixture
def shadowed(trail):
    """Return a function that makes a scope with a candidate in the shadow of its store."""
    made = []

    def make(candidate, share=1.0, **given):
        sink = CapturingSink()
        scope = Mnemoscope(
            load_settings(**trail),
            only_sinks=[sink],
            extra_features=[shadow(candidate, store="langgraph.store", share=share, **given)],
        )
        made.append(scope)
        return scope, store_of(scope), sink

    yield make
    for each in made:
        each.close()


def ask(store, queries=QUERIES):
    """Ask as one customer, and return the keys of each answer."""
    with context(tenant="acme", customer="c-42"):
        return [[e.key for e in store.search(PLACE, query=each, limit=3)] for each in queries]


def said(scope):
    """Return what the check of the shadow says."""
    [check] = [each for each in scope.health().checks if each.name == "shadow"]
    return check.state.value, check.detail


def until(scope, text):
    """Wait until the check says *text*."""
    ended = threading.Event()
    for _ in range(int(GIVE_UP_S * 100)):
        if text in said(scope)[1]:
            return
        ended.wait(0.01)
    pytest.fail(f"it says {said(scope)}")


def test_an_equal_candidate_is_equal(shadowed):
    """Each recall that it was shown, in the same order."""
    candidate = Candidate()
    scope, store, _sink = shadowed(candidate)

    ask(store)

    until(scope, f"{len(QUERIES)} recalls compared, {len(QUERIES)} of them equal")
    assert "mean recall 1.000" in said(scope)[1]
    assert said(scope)[0] == "ok"
    assert [given["query"] for _place, given in candidate.made] == [*QUERIES]


def test_a_worse_candidate_is_seen(shadowed):
    """By what it lost of what production found."""
    scope, store, _sink = shadowed(Candidate(embed_by_ends))

    ask(store)

    until(scope, f"{len(QUERIES)} recalls compared")
    assert "mean recall 1.000" not in said(scope)[1]


def test_events_add_up_to_what_came_of_it(shadowed):
    """Each event says what came since the last one that did: sums, for Prometheus."""
    scope, store, sink = shadowed(Candidate(texts=TEXTS[2:]))

    ask(store)
    until(scope, f"{len(QUERIES)} recalls compared")
    ask(store, QUERIES[:1])
    assert scope.flush(GIVE_UP_S)

    parts = [part for each in sink.events if (part := each.part(ShadowCounts)) is not None]
    assert sum(part.compared for part in parts) >= len(QUERIES)
    assert 0 < sum(part.recall for part in parts) < sum(part.compared for part in parts)
    assert {"compared", "equal", "recall", "failed", "dropped"} == parts[0].measurements().keys()


def test_a_candidate_that_fails_fails_nobody(shadowed):
    """The answer is production's; the failure is counted, and none of our own faults."""
    bare = Candidate()
    scope, store, _sink = shadowed(Candidate(fails=True))

    answers = ask(store)

    until(scope, f"{len(QUERIES)} failed")
    assert answers == [[e.key for e in bare.search(PLACE, query=q, limit=3)] for q in QUERIES]
    assert said(scope)[0] == "warning"
    assert "tea" not in said(scope)[1]


def test_a_candidate_that_hangs_delays_nobody(shadowed):
    """All recalls are answered while it is at its first; what finds no room is not shown."""
    gate = threading.Event()
    candidate = Candidate(gate=gate)
    scope, store, _sink = shadowed(candidate)

    answers = [ask(store) for _ in range(40)]

    assert len(answers) * len(QUERIES) == 320
    assert candidate.made == []
    assert said(scope)[1].endswith("not shown")
    assert not said(scope)[1].endswith(" 0 not shown")
    gate.set()


def test_a_share_of_recalls_is_shown(shadowed):
    """As chance has it: here every fourth."""
    chances = iter([0.9, 0.9, 0.9, 0.1] * len(QUERIES))
    candidate = Candidate()
    scope, store, _sink = shadowed(candidate, share=0.25, chance=lambda: next(chances))

    ask(store)

    until(scope, f"{len(QUERIES) // 4} recalls compared")
    assert [given["query"] for _place, given in candidate.made] == [QUERIES[3], QUERIES[7]]


def test_a_candidate_is_only_read(shadowed):
    """What production writes and deletes stays production's."""
    candidate = Candidate()
    scope, store, _sink = shadowed(candidate)

    with context(tenant="acme", customer="c-42"):
        store.put(PLACE, "new", {"text": "likes coffee"})
        store.delete(PLACE, "m-0")
    ask(store)

    until(scope, f"{len(QUERIES)} recalls compared")
    assert candidate.written == []
    assert candidate.get(PLACE, "m-0") is not None


async def test_coroutines_have_a_shadow_too(shadowed):
    """Made by the candidate's own coroutine, on the shadow's thread."""
    candidate = Candidate()
    scope, store, _sink = shadowed(candidate)

    with context(tenant="acme", customer="c-42"):
        for query in QUERIES:
            await store.asearch(PLACE, query=query, limit=3)

    until(scope, f"{len(QUERIES)} recalls compared, {len(QUERIES)} of them equal")


def test_a_candidate_is_shown_redacted_text(shadowed):
    """As the store was: what redaction took out is in no shadow."""
    candidate = Candidate()
    scope, store, _sink = shadowed(candidate)

    ask(store, ["what does ada@example.com like"])

    until(scope, "1 recalls compared")
    assert "ada@" not in str(candidate.made)


def test_a_share_is_a_share():
    """Anything else is one line."""
    with pytest.raises(ConfigurationError, match="from 0 to 1"):
        shadow(Candidate(), store="langgraph.store", share=1.5)

"""Origin held against a model of its own, over random runs that read and write."""

from __future__ import annotations

from contextlib import ExitStack

from hypothesis import given, settings
from hypothesis import strategies as st
from langgraph.store.memory import InMemoryStore

from mnemoscope.memory import Origin, Trust, context
from mnemoscope.memory.testing import scope_for_tests
from tests.kit.lengths import examples
from tests.kit.origin_tools import said_by_a_person

PLACE = ("facts",)
KEYS = st.integers(0, 1).map(str)
TEXTS = st.sampled_from(["tea", "tea", "coffee"])
RUNS = st.sampled_from(["r-1", "r-2"])

acts = st.one_of(
    st.tuples(st.just("read"), st.sampled_from(Trust)),
    st.tuples(st.just("put"), KEYS, TEXTS),
    st.tuples(st.just("edit"), KEYS, TEXTS),
    st.tuples(st.just("get"), KEYS),
    st.tuples(st.just("search"), st.sampled_from([None, "payments", "chat"])),
)


class Model:
    """What the labels should be: the latest write's of a text under a key."""

    def __init__(self):
        self.read = {}
        self.labels = {}
        self.held = {}

    def least(self, runs):
        return min(self.read.get(each, Trust.PERSON) for each in runs)

    def reads(self, runs, trust):
        for each in runs:
            self.read[each] = min(self.read.get(each, Trust.PERSON), trust)

    def puts(self, runs, key, text):
        self.held[key] = text
        self.labels[key, text] = self.least(runs)

    def label(self, key):
        return self.labels.get((key, self.held[key]), Trust.EXTERNAL_TOOL)

    def finds(self, runs, keys, purpose):
        demanded = {"payments": Trust.INTERNAL_TOOL, "chat": Trust.OTHER_AGENT}.get(purpose)
        found = [each for each in keys if each in self.held]
        kept = [each for each in found if demanded is None or self.label(each) >= demanded]
        for each in kept:
            self.reads(runs, self.label(each))
        return set(kept)


@settings(max_examples=examples(120), deadline=None)
@given(st.lists(st.tuples(st.lists(RUNS, min_size=1, max_size=2), acts), min_size=12, max_size=30))
def test_labels_and_answers_are_those_of_a_model(script):
    """Of runs, alone or inside one another, that read, write, edit past the layer and recall."""
    model, inner = Model(), InMemoryStore()
    demands = {"payments": Trust.INTERNAL_TOOL, "chat": Trust.OTHER_AGENT}
    origin = Origin(demands=demands)
    with scope_for_tests(rules=[origin]) as (scope, _sink):
        store = scope.store(inner)
        for runs, (what, *about) in script:
            with ExitStack() as stack:
                for run in runs:
                    stack.enter_context(said_by_a_person(run))
                if what == "read":
                    model.reads(runs, *about)
                    with origin.reading(*about):
                        pass
                elif what == "put":
                    key, text = about
                    model.puts(runs, key, text)
                    store.put(PLACE, key, {"text": text})
                elif what == "edit":
                    key, text = about
                    model.held[key] = text
                    inner.put(PLACE, key, {"text": text})
                elif what == "get":
                    found = store.get(PLACE, *about)
                    assert ({found.key} if found else set()) == model.finds(runs, about, None)
                else:
                    (purpose,) = about
                    labels = {each: model.label(each) for each in model.held}
                    with context(purpose=purpose):
                        found = {each.key for each in store.search(PLACE)}
                    assert found == model.finds(runs, list(model.held), purpose)
                    if labels:
                        assert origin.found() == labels

"""Roles judge what is answered, as well as what is asked: held against a reading of its own."""

from __future__ import annotations

import asyncio
import random
import re
from contextlib import ExitStack

import pytest
from langgraph.store.base import GetOp, ListNamespacesOp, MatchCondition, PutOp, SearchOp
from langgraph.store.memory import InMemoryStore
from qdrant_client import QdrantClient, models

from mnemoscope.adapters.langgraph.store.adapter import METHODS as STORE_METHODS
from mnemoscope.adapters.qdrant.methods import METHODS as QDRANT_METHODS
from mnemoscope.memory import RefusedError, Role, Roles, context
from mnemoscope.memory.testing import scope_for_tests
from mnemoscope.telemetry.event.verdict_event import VerdictEvent
from tests.kit.event_parts import parts_of

NAMESPACES = [
    ("notes",),
    ("notes", "sub"),
    ("notes", "sub", "deep"),
    ("notes-of-others",),
    ("profile", "ada"),
    ("profile/ada",),
    ("profile%2Fada",),
    ("a[b]", "c"),
    ("ab", "c"),
]
PATTERNS = [
    "langgraph.store/notes",
    "langgraph.store/notes/*",
    "langgraph.store/notes/sub",
    "langgraph.store/notes*",
    "langgraph.store/profile/ada",
    "langgraph.store/profile%2Fada",
    "langgraph.store/profile*",
    "langgraph.store/a[b]/c",
    "langgraph.store/*/c",
    "langgraph.store/",
    "langgraph.store/*",
]
PREFIXES = [*[(), ("notes",)] * 4, *NAMESPACES, ("profile",), ("nobody",)]


@pytest.fixture
def make():
    """Return a factory of scopes with one role, that of the agent, and of the verdicts so far."""
    with ExitStack() as stack:

        def made(**role):
            roles = Roles({"agent": Role(**role)})
            scope, sink = stack.enter_context(scope_for_tests(rules=[roles]))
            stack.enter_context(context(agent="agent"))

            def told():
                assert scope.flush()
                return [each.reason for each in parts_of(sink.events, VerdictEvent)]

            return scope, told

        yield made


def place(namespace):
    """Return the place of a namespace: each label with what would end it written otherwise."""
    labels = (re.sub(r"[%/]", lambda found: f"%{ord(found[0]):02X}", each) for each in namespace)
    return f"langgraph.store/{'/'.join(labels)}"


def is_within(patterns, namespace):
    """Return whether a role that recalls from *patterns* may read a namespace."""
    regexes = (re.escape(each).replace(r"\*", ".*") for each in patterns)
    return any(re.fullmatch(each, place(namespace)) for each in regexes)


class Reading:
    """What a role's agent should be answered: by the bare store and the patterns alone."""

    def __init__(self, bare, patterns):
        self._bare, self._patterns = bare, patterns

    def may(self, op):
        """Return whether an operation may be asked for."""
        asked = getattr(op, "namespace", getattr(op, "namespace_prefix", ()))
        return is_within(self._patterns, asked)

    def answer(self, op):
        """Return what one operation is answered."""
        (found,) = self._bare.batch([op])
        if isinstance(op, GetOp):
            return found
        return [
            each for each in found if is_within(self._patterns, getattr(each, "namespace", each))
        ]


def drawn(dice):
    """Return an operation, drawn at random."""
    prefix = dice.choice(PREFIXES)
    kind = dice.randrange(4)
    if kind == 0:
        return GetOp(dice.choice(NAMESPACES), dice.choice(["1", "2"]))
    if kind < 3:
        return SearchOp(prefix, limit=99)
    conditions = [
        MatchCondition("prefix", dice.choice([("notes",), ("*", "sub"), ("profile",)])),
        MatchCondition("suffix", dice.choice([("sub",), ("c",), ("*", "c")])),
    ]
    chosen = tuple(dice.sample(conditions, dice.randrange(3)))
    return ListNamespacesOp(match_conditions=chosen, max_depth=dice.choice([None, 1, 2]), limit=99)


def by_verb(store, op, dice):
    """Ask for an operation by its own verb, sync or async."""
    if isinstance(op, GetOp):
        verb, args, more = "get", (op.namespace, op.key), {}
    elif isinstance(op, SearchOp):
        verb, args, more = "search", (op.namespace_prefix,), {"limit": op.limit}
    else:
        parts = {each.match_type: each.path for each in op.match_conditions}
        verb, args, more = "list_namespaces", (), {**parts, "max_depth": op.max_depth, "limit": 99}
    if dice.random() < 0.5:
        return getattr(store, verb)(*args, **more)
    return asyncio.run(getattr(store, f"a{verb}")(*args, **more))


def test_answers_are_those_of_an_independent_reading(make):
    """Every verb, alone and in batches, by prefix and wildcard: nothing more, and nothing less."""
    dice, allowed, left_out = random.Random(3), 0, 0  # noqa: S311 - the same in every run
    for _ in range(16):
        patterns = tuple(dice.sample(PATTERNS, dice.randint(1, 3)))
        bare = InMemoryStore()
        for namespace in NAMESPACES:
            for key in ("1", "2"):
                bare.put(namespace, key, {"text": f"{namespace}"})
        scope, told = make(recall=patterns)
        store, reading = scope.store(bare), Reading(bare, patterns)
        for _ in range(40):
            ops = [drawn(dice) for _ in range(dice.choice([1, 1, 1, 2, 5]))]
            if len(ops) == 1 and dice.random() < 0.7:
                (op,) = ops
                asked = op
                if isinstance(op, ListNamespacesOp):  # the verb asks for a place, by its prefix
                    prefixes = [e.path for e in op.match_conditions if e.match_type == "prefix"]
                    asked = SearchOp(prefixes[0] if prefixes else ())
                empty = None if isinstance(op, GetOp) else []
                expected = reading.answer(op) if reading.may(asked) else empty
                assert by_verb(store, op, dice) == expected, (patterns, op)
            else:
                answers = store.batch(ops)
                if all(reading.may(each) for each in ops):
                    assert answers == [reading.answer(each) for each in ops], (patterns, ops)
                    allowed += 1
                else:
                    assert [each for each in answers if each] == []
        left_out += told().count("left_out")
    assert allowed > 20
    assert left_out > 20


def test_labels_that_hold_a_slash_are_a_place_of_their_own(make):
    """``("profile/ada",)`` is not ``("profile", "ada")``."""
    bare = InMemoryStore()
    bare.put(("profile", "ada"), "1", {})
    bare.put(("profile/ada",), "1", {})
    scope, told = make(recall=("langgraph.store/profile/ada",))
    store = scope.store(bare)
    assert store.get(("profile", "ada"), "1") is not None
    assert store.get(("profile/ada",), "1") is None
    assert told() == ["out_of_role"]


def test_an_answer_that_cannot_be_judged_is_withheld(make, monkeypatch):
    """Whatever fails."""
    scope, _told = make(recall=("langgraph.store/notes",))
    store = scope.store(InMemoryStore())
    monkeypatch.setattr(InMemoryStore, "search", lambda *_given, **_more: [object()])
    assert store.search(("notes",)) == []


def test_in_shadow_nothing_is_left_out():
    """It is told."""
    bare = InMemoryStore()
    bare.put(("notes", "sub"), "1", {})
    roles = Roles({"agent": Role(recall=("langgraph.store/notes",))}, shadow=True)
    with scope_for_tests(rules=[roles]) as (scope, sink), context(agent="agent"):
        assert len(scope.store(bare).search(("notes",))) == 1
        assert scope.flush()
        assert [each.reason for each in parts_of(sink.events, VerdictEvent)] == ["left_out"]


# -- Qdrant ----------------------------------------------------------------------------------------


@pytest.fixture
def client():
    """Return a client with two collections of one point each."""
    client = QdrantClient(":memory:")
    for name in ("notes", "secret"):
        vectors = models.VectorParams(size=2, distance=models.Distance.DOT)
        client.create_collection(name, vectors_config=vectors)
        point = models.PointStruct(id=1, vector=[1.0, 0.0], payload={"of": 1, "in": name})
        client.upsert(name, [point])
    yield client
    client.close()


OTHER = models.LookupLocation(collection="secret")
INNER = models.Prefetch(query=1, lookup_from=OTHER)
NESTED = models.Prefetch(prefetch=INNER, query=[1.0, 0.0], limit=1)
JOINED = {
    "lookup": lambda qdrant: qdrant.query_points("notes", query=1, lookup_from=OTHER),
    "prefetch": lambda qdrant: qdrant.query_points("notes", prefetch=NESTED, query=[1.0, 0.0]),
    "batch": lambda qdrant: qdrant.query_batch_points(
        "notes",
        [
            models.QueryRequest(query=[1.0, 0.0]),
            models.QueryRequest(prefetch=[NESTED], query=[1.0, 0.0]),
        ],
    ),
    "groups": lambda qdrant: qdrant.query_points_groups(
        "notes", "of", query=[1.0, 0.0], with_lookup="secret"
    ),
    "groups with a model": lambda qdrant: qdrant.query_points_groups(
        "notes", "of", query=[1.0, 0.0], with_lookup=models.WithLookup(collection="secret")
    ),
}
"""Queries of one collection that read from another."""


@pytest.mark.parametrize("name", JOINED)
@pytest.mark.parametrize("places", [("qdrant/notes",), ("qdrant/notes", "qdrant/secret")])
def test_a_query_that_reads_two_collections_needs_both(make, client, name, places):
    """At any depth."""
    scope, told = make(recall=places)
    answer = JOINED[name](scope.qdrant(client))
    if len(places) == 1:
        assert "secret" not in f"{answer}"
        assert told() == ["out_of_role"]
    else:
        assert answer == JOINED[name](client)
        assert told() == []


FROM_THE_PLACE_ASKED = {
    "langgraph.store": {"get"},
    "qdrant": {name for name, row in QDRANT_METHODS.items() if row.op_class == "recall"},
}
"""Recalls that answer from the collection of the call, and from those that it joins, alone."""


def test_each_recall_says_where_it_answers_from():
    """A method of a table that is new is judged, or is named here."""
    judged = {name for name, row in STORE_METHODS.items() if row.within is not None}
    recalls = {name for name, row in STORE_METHODS.items() if row.op_class == "recall"}
    assert recalls - judged - {"batch"} == FROM_THE_PLACE_ASKED["langgraph.store"]


# -- how often -------------------------------------------------------------------------------------


PUTS = [PutOp(("notes",), f"{number}", {}) for number in range(50)]
POINT = models.PointStruct(id=1, vector=[1.0, 0.0])
UPSERT = models.UpsertOperation(upsert=models.PointsList(points=[POINT]))
DELETE = models.DeleteOperation(delete=models.PointIdsList(points=[1]))
MANY = {
    "store": lambda scope, _client: scope.store(InMemoryStore()).batch(PUTS),
    "queries": lambda scope, client: scope.qdrant(client).query_batch_points(
        "notes", [models.QueryRequest(query=[1.0, 0.0])] * 50
    ),
    "writes": lambda scope, client: scope.qdrant(client).batch_update_points(
        "notes", [UPSERT, DELETE] * 25
    ),
}


@pytest.mark.parametrize("name", MANY)
@pytest.mark.parametrize("most", [49, 50, 99, 100])
def test_a_batch_counts_as_what_is_in_it(make, client, name, most):
    """Fifty operations are fifty, whoever asks for them in one call; one that goes past is not."""
    scope, told = make(recall=("*",), remember=("*",), forget=("*",), per_minute=most)
    for _ in range(2):
        try:
            MANY[name](scope, client)
        except RefusedError:
            assert name != "queries"  # a recall finds nothing
    assert told() == ["too_often"] * (2 - most // 50)

"""
Each argument that names a payload key is redacted as the payload's own keys are.

Which do is read from the client: from the descriptions of its models' fields and its methods'
arguments, so that one of a newer client is noticed.
"""

from __future__ import annotations

import inspect
import re
import warnings
from typing import Any, get_args

import pytest
from pydantic import BaseModel
from qdrant_client import QdrantClient
from qdrant_client.http import models

from mnemoscope.adapters.qdrant.adapter import ADAPTER
from mnemoscope.adapters.qdrant.methods import METHODS
from mnemoscope.adapters.qdrant.redaction import Walker
from mnemoscope.memory import context

from .conftest import ADA

SAYS = re.compile(
    r"(payload|this) (key|field)s?\b|payload fields? with|key in the payload", re.IGNORECASE
)
"""What the client says of a model's field that holds a payload key."""

NAMED = {
    "DatetimeKeyExpression": ("datetime_key",),
    "DeletePayload": ("keys",),
    "PayloadSelectorInclude": ("include",),
    "FieldCondition": ("key",),
    "Nested": ("key",),
}
"""Those of whose fields it says nothing."""

NOT_SENT = re.compile(
    "^Document$|Config|Info|Telemetry|Output|Response|Result|Index|Record|Flags|Request"
)
"""In the names of models that are answers or settings, or that a method's arguments become."""


def holds_text(annotation: Any) -> bool:
    return annotation is str or any(map(holds_text, get_args(annotation)))


def formula_fields():
    """Return the fields of formulas: a text in one is a payload key."""
    for kind in vars(models).values():
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            for name, field in kind.model_fields.items():
                if "SumExpression" in str(field.annotation):
                    yield kind, name


def fields():
    """Return the models and the names of their fields that hold payload keys."""
    found = set(formula_fields())
    for kind in vars(models).values():
        if not (isinstance(kind, type) and issubclass(kind, BaseModel)):
            continue
        if NOT_SENT.search(kind.__name__) and kind is not models.QueryRequest:
            continue
        for name, field in kind.model_fields.items():
            says = SAYS.search(field.description or "") or name in NAMED.get(kind.__name__, ())
            if says and holds_text(field.annotation) and name not in {"filter", "using"}:
                found.add((kind, name))
    return sorted(found, key=lambda each: (each[0].__name__, each[1]))


@pytest.fixture
def keyed(bench):
    """Return what a payload's key becomes, and a walker of the same call."""
    redaction = bench.redactor.begin()
    (key,) = redaction.value({ADA: 1})
    assert key != ADA
    return key, Walker(redaction)


@pytest.mark.parametrize(
    ("kind", "name"), fields(), ids=lambda each: getattr(each, "__name__", each)
)
def test_a_models_payload_key_is_the_payloads(kind, name, keyed):
    """In filters, selectors, orders and formulas, whether one key or several."""
    key, walker = keyed
    annotation = kind.model_fields[name].annotation
    several = not any(each is str for each in (annotation, *get_args(annotation))) and (
        "List[str]" in str(annotation) or "Sequence" in str(annotation)
    )
    given = kind.model_construct(**{name: [ADA] if several else ADA})

    assert getattr(walker.walk(given), name) == ([key] if several else key)


def described():
    """Return the methods and the names of their arguments that hold payload keys."""
    names = {"field_name", "group_by", "order_by", "key", "keys", "with_payload"}
    for method in METHODS:
        for each in names & inspect.signature(getattr(QdrantClient, method)).parameters.keys():
            yield method, each


@pytest.mark.parametrize(("method", "argument"), sorted(described()))
def test_an_arguments_payload_key_is_the_payloads(method, argument, bench):
    """By every method that has such an argument: an index is of the field that is there."""
    redaction = bench.redactor.begin()
    (key,) = redaction.value({ADA: 1})
    client = bench.wrap(QdrantClient(":memory:"), ADAPTER)
    row = type(client)._mnemoscope_table[method]
    given = {argument: [ADA] if argument in {"keys", "with_payload"} else ADA}

    assert row.redact(given, redaction)[argument] in (key, [key])


KEYS = ("meta", "x", "Max", "Anna", "anna", "Berlin", "Anna Schmidt", "user_name", ADA, "10.0.0.1")


@pytest.mark.parametrize("inner", KEYS)
@pytest.mark.parametrize("outer", KEYS)
def test_a_path_is_of_the_keys_that_are_there(outer, inner, keyed):
    """Each key of a path is what it is in the payload, whatever the keys beside it are."""
    _, walker = keyed
    stored = walker.payload({outer: {inner: 1}})
    ((outer_there, below),) = stored.items()
    (inner_there,) = below

    found = walker.path(f"{as_in_path(outer)}[].{as_in_path(inner)}")

    assert found.replace('"', "") == f"{outer_there}[].{inner_there}"


def as_in_path(key):
    """Return *key* in quotes if Qdrant wants them inside of a path."""
    return key if re.fullmatch(r"[\w-]+", key) else f'"{key}"'


def test_a_text_query_names_its_field(keyed):
    """Where it would otherwise name a vector: in a request and in a prefetch of it."""
    key, walker = keyed
    query = models.TextQuery(text="tea")
    inner = models.Prefetch(query=query, using=ADA)
    request = walker.requests(models.QueryRequest(query=query, using=ADA, prefetch=[inner]))

    assert (request.using, request.prefetch[0].using) == (key, key)
    assert walker.requests(models.QueryRequest(query=[1.0], using="title")).using == "title"


def test_a_formula_reads_the_payload_that_is_there(bench):
    """A formula over a redacted key scores by its value, as one over a plain key does."""
    client = bench.wrap(QdrantClient(":memory:"), ADAPTER)
    size = models.VectorParams(size=2, distance=models.Distance.DOT)
    client.create_collection("notes", vectors_config=size)
    with warnings.catch_warnings(action="ignore"), context(customer="c-42"):
        client.create_payload_index("notes", f'"{ADA}"', models.PayloadSchemaType.FLOAT)
        points = [models.PointStruct(id=n, vector=[1.0, 0.0], payload={ADA: n}) for n in (1, 2)]
        client.upsert("notes", points)
        formula = models.SumExpression(sum=["$score", f'"{ADA}"'])
        query = models.FormulaQuery(formula=formula, defaults={f'"{ADA}"': 0.5})
        first = models.Prefetch(query=[1.0, 0.0])
        found = client.query_points("notes", query=query, prefetch=[first]).points

    assert [(each.id, each.score) for each in found] == [(2, 3.0), (1, 2.0)]

"""Every model of Qdrant's that may hold text, found by its own annotations, is redacted."""

from __future__ import annotations

import inspect
import typing
from enum import Enum
from typing import Any

import pytest
from pydantic import BaseModel
from qdrant_client import QdrantClient, models

from mnemoscope.adapters.qdrant.methods import METHODS

from .conftest import ADA

KEPT = {
    (models.Document, "model"), (models.Document, "options"),
    (models.Image, "model"), (models.Image, "options"),
    (models.InferenceObject, "model"), (models.InferenceObject, "options"),
    (models.Prefetch, "using"), (models.QueryRequest, "using"),
    (models.QueryRequest, "with_vector"), (models.WithLookup, "with_vectors"),
    (models.WithLookup, "collection"), (models.LookupLocation, "collection"),
    (models.LookupLocation, "vector"), (models.HasVectorCondition, "has_vector"),
    (models.DeleteVectors, "vector"),
    (models.ShardKeyWithFallback, "target"), (models.ShardKeyWithFallback, "fallback"),
    *((each, "shard_key") for each in (
        models.DeletePayload, models.DeleteVectors, models.FilterSelector, models.LookupLocation,
        models.PointIdsList, models.PointsBatch, models.PointsList, models.QueryRequest,
        models.SetPayload, models.UpdateVectors,
    )),
}  # fmt: skip
"""Fields whose strings are names that the store or an inference model gives meaning to."""


def strings_in(annotation: Any) -> bool:
    if inspect.isclass(annotation) and issubclass(annotation, str):
        return not issubclass(annotation, Enum)
    inner = typing.get_args(annotation)
    if typing.get_origin(annotation) is typing.Literal:
        return False
    return annotation is Any or any(map(strings_in, inner))


def models_in(annotation: Any, found: set[type[BaseModel]]) -> None:
    if inspect.isclass(annotation) and issubclass(annotation, BaseModel):
        if annotation not in found:
            found.add(annotation)
            for each in annotation.model_fields.values():
                models_in(each.annotation, found)
        return
    for each in typing.get_args(annotation):
        models_in(each, found)


def fields_with_text() -> list[tuple[type[BaseModel], str]]:
    """Return every field that may hold a string in any request about points."""
    found: set[type[BaseModel]] = set()
    for name in METHODS.keys() - {"create_collection", "recreate_collection", "update_collection"}:
        hints = typing.get_type_hints(getattr(QdrantClient, name))
        for parameter, annotation in hints.items():
            if parameter != "return":
                models_in(annotation, found)
    return sorted(
        (
            (model, name)
            for model in found
            for name, each in model.model_fields.items()
            if strings_in(each.annotation)
        ),
        key=str,
    )


@pytest.mark.parametrize(
    ("model", "name"), fields_with_text(), ids=lambda each: getattr(each, "__name__", each)
)
def test_every_field_that_can_hold_text_is_redacted(walker, model, name):
    """Each string field of each model is redacted, or is one of the names in `KEPT`."""
    walked = walker.walk(model.model_construct(**{name: ADA}))
    listed = walker.walk(model.model_construct(**{name: [ADA]}))

    kept = (model, name) in KEPT
    assert (ADA in str(getattr(walked, name))) is kept
    assert (ADA in str(getattr(listed, name))) is kept


def test_the_fields_above_are_many():
    """The search for fields with text does find the models."""
    assert len(fields_with_text()) > 60

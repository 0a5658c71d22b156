"""Arguments as text and back: the same, or not at all."""

from __future__ import annotations

import datetime as dt
import math
from collections import OrderedDict
from enum import Enum, StrEnum
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, Field

from mnemoscope.memory.journal.codec import ArgumentCodec, UnkeepableError


class Colour(Enum):
    RED = "red"


class Word(StrEnum):
    TEA = "tea"


class Part(BaseModel):
    name: str = "unnamed"
    aliased: int | None = Field(default=None, alias="except")


class Pair(NamedTuple):
    left: Any
    right: Any


VALUES = ArgumentCodec({each.__name__: each for each in (Colour, Word, Part, Pair)})

LEAVES = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.text()
    | st.binary()
    | st.dates()
    | st.datetimes()
    | st.times()
    | st.uuids()
    | st.decimals(allow_nan=False)
)
ANYTHING = st.recursive(
    LEAVES,
    lambda inner: (
        st.lists(inner)
        | st.tuples(inner, inner)
        | st.dictionaries(st.text() | st.integers() | st.just("$"), inner)
        | st.sets(st.integers() | st.text())
    ),
    max_leaves=20,
)


def types(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: types(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return (type(value), [types(each) for each in value])
    return type(value)


@given(ANYTHING)
def test_what_can_be_kept_comes_back_as_it_was(value):
    """With its types, at any depth."""
    back = VALUES.value(VALUES.text(value))

    assert back == value
    assert types(back) == types(value)


@pytest.mark.parametrize(
    "value",
    [
        Colour.RED,
        Word.TEA,
        Part(),
        Part(name="a"),
        Part(**{"except": 3}),
        Pair("a", [Part(name="b")]),
        frozenset({1}),
        dt.datetime(2026, 1, 1, tzinfo=dt.UTC),
        "\ud800 half a character",
        float("inf"),
    ],
    ids=repr,
)
def test_classes_that_the_adapter_names_come_back(value):
    """As themselves, and with no field set that was not."""
    back = VALUES.value(VALUES.text(value))

    assert back == value
    assert type(back) is type(value)
    assert getattr(back, "model_fields_set", None) == getattr(value, "model_fields_set", None)


def test_a_text_of_a_class_of_its_own_comes_back_as_text():
    """As LangChain's messages have them: what the store would have kept of it is the text."""
    accessor = type("TextAccessor", (str,), {"__str__": lambda _: "called"})
    back = VALUES.value(VALUES.text({accessor("key"): [accessor("tea")]}))

    assert back == {"key": ["tea"]}
    assert {type(each) for each in (*back, *back["key"])} == {str}


def test_a_number_that_is_none_comes_back():
    """JSON has no word for it; Python's has."""
    assert math.isnan(VALUES.value(VALUES.text(float("nan"))))


@pytest.mark.parametrize(
    "value",
    [
        np.float32(0.1),
        np.array([[1, 2], [3, 4]], dtype=np.int8),
        np.array([1e-9], dtype=np.float16),
    ],
    ids=["scalar", "matrix", "small"],
)
def test_arrays_come_back_with_their_type_and_shape(value):
    """Of numbers."""
    back = VALUES.value(VALUES.text(value))

    assert (back.dtype, back.shape) == (value.dtype, value.shape)
    assert np.array_equal(back, value)


def _holding_itself() -> list[Any]:
    held: list[Any] = []
    held.append(held)
    return held


@pytest.mark.parametrize(
    "value",
    [
        object(),
        OrderedDict(a=1),
        iter([1]),
        range(3),
        np.array(["a"]),
        type("Word", (), {"__str__": lambda _: "not the one that is meant"})(),
        {"deep": [(lambda: None,)]},
        1j,
        _holding_itself(),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_would_not_come_back_is_refused(value):
    """By the name of its type: a value never is in an exception."""
    with pytest.raises(UnkeepableError) as refused:
        VALUES.text(value)

    assert "not the one" not in str(refused.value)


@pytest.mark.parametrize(
    "text",
    [
        '{"$":"model","n":"Elsewhere","v":{}}',
        '{"$":"enum","n":"Colour","v":"green"}',
        '{"$":"model","n":"Part","v":{"name":[]}}',
        "no json",
    ],
)
def test_what_is_not_known_any_more_is_refused(text):
    """Only classes that the adapter names are ever made."""
    with pytest.raises(ValueError):  # noqa: PT011 - pydantic's, json's and ours have that in common
        VALUES.value(text)


def test_unknown_tags_are_refused():
    """A later version may have written them."""
    with pytest.raises((ValueError, KeyError)):
        VALUES.value('{"$":"later","v":1}')


def test_special_values_are_told_from_dicts_that_look_like_them():
    """A caller's dict may have any key."""
    value = {"$": "bytes", "v": "aGk="}

    assert VALUES.value(VALUES.text(value)) == value

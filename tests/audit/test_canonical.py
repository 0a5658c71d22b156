"""Canonical JSON: the examples of RFC 8785, and what it refuses."""

from __future__ import annotations

import enum
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mnemoscope.audit.canonical import canonical

texts = st.text(st.characters(codec="utf-8"))
values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53) + 1, 2**53 - 1) | texts,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
)


def naive(value):
    """Return canonical JSON by the letter of RFC 8785 section 3.2, slowly."""
    if isinstance(value, dict):
        items = sorted(value.items(), key=lambda item: item[0].encode("utf-16-be"))
        return "{" + ",".join(f"{naive(key)}:{naive(each)}" for key, each in items) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(naive, value)) + "]"
    return json.dumps(value, ensure_ascii=False)


def test_keys_are_in_the_order_of_utf_16():
    """The sorting example of RFC 8785 section 3.2.3."""
    keys = ["\u20ac", "\r", "\ufb33", "1", "\U0001f600", "\u0080", "\u00f6"]

    found = canonical({key: number for number, key in enumerate(keys)})
    assert list(json.loads(found)) == [
        "\r",
        "1",
        "\u0080",
        "\u00f6",
        "\u20ac",
        "\U0001f600",
        "\ufb33",
    ]


def test_strings_are_escaped_as_little_as_they_may():
    """The string example of RFC 8785 section 3.2.2: controls, quotes and backslashes alone."""
    text = "\u20ac$\u000f\u000aA'\u0042\u0022\u005c\\\"/"

    expected = '{"string":"\u20ac$\\u000f\\nA\'B\\"\\\\\\\\\\"/"}'
    assert canonical({"string": text}) == expected.encode()


def test_every_character_is_written_as_the_rfc_says():
    """All code points of the first two planes."""
    text = "".join(chr(c) for c in range(0x20000) if not 0xD800 <= c < 0xE000)

    assert canonical(text) == naive(text).encode()


@given(values)
def test_all_that_can_be_held_is_written_as_the_rfc_says(value):
    """Any nesting, any text, any order of keys."""
    assert canonical(value) == naive(value).encode()
    assert json.loads(canonical(value)) == value


@pytest.mark.parametrize(
    "value",
    [
        1.0,
        [0.5],
        {"a": {"b": [float("nan")]}},
        {1: "a"},
        {None: "a"},
        (1, 2),
        b"bytes",
        enum.StrEnum("Color", "RED").RED,
        type("Text", (str,), {})("a"),
        2**53,
        [-(2**53)],
        {"a": "\ud800"},
        {"\udfff": 1},
        {"a": 1, "b": {1, 2}},
    ],
    ids=repr,
)
def test_what_other_readers_would_read_differently_is_refused(value):
    """Fractions, numbers beyond 53 bits, half characters, and whatever is no JSON."""
    with pytest.raises(TypeError):
        canonical(value)

"""Packets held to a schema, with messages that name fields and never what is in them."""

from __future__ import annotations

import json
from typing import Literal

import pytest
from pydantic import BaseModel

from mnemoscope.memory.testing import assert_contract

SCHEMA = {
    "type": "object",
    "properties": {
        "verdict": {"enum": ["fraud", "clean"]},
        "signals": {"type": "array", "items": {"type": "object", "properties": {"at": {}}}},
    },
    "required": ["verdict"],
    "additionalProperties": False,
}
SECRET = "ada@example.com"


class Finding(BaseModel):
    verdict: Literal["fraud", "clean"]
    confidence: float


@pytest.mark.parametrize(
    ("packet", "schema"),
    [
        ({"verdict": "fraud", "signals": [{"at": 1}]}, SCHEMA),
        ({"verdict": "fraud", "confidence": 0.5}, Finding),
        (Finding(verdict="clean", confidence=1.0), Finding),
        ([1, 2], list[int]),
    ],
)
def test_a_packet_that_keeps_its_contract_passes(packet, schema):
    """By a JSON Schema, a model, or any type that pydantic knows."""
    assert_contract(packet, schema)


@pytest.mark.parametrize(
    ("packet", "schema", "lines"),
    [
        ({"signals": [{"at": 1}]}, SCHEMA, ['$: required is ["verdict"]']),
        ({"verdict": SECRET}, SCHEMA, ['verdict: enum is ["fraud","clean"]']),
        (
            {"verdict": "fraud", "signals": [SECRET, {}, SECRET]},
            SCHEMA,
            ['signals.0: type is "object"', 'signals.2: type is "object"'],
        ),
        ({"verdict": "fraud", SECRET: 1}, SCHEMA, ["$: additionalProperties is false"]),
        (
            {"verdict": SECRET},
            Finding,
            ["verdict: literal_error", "confidence: missing"],
        ),
        ({SECRET: {"verdict": "fraud", "confidence": SECRET}}, dict[str, Finding],
         ["?.confidence: float_parsing"]),
    ],
)  # fmt: skip
def test_each_problem_is_a_line_without_values(packet, schema, lines):
    """Fields that the schema names, and what is expected of them."""
    with pytest.raises(AssertionError) as refused:
        assert_contract(packet, schema)

    assert str(refused.value).split("\n  ") == ["the packet breaks its contract", *lines]
    assert SECRET not in str(refused.value)


def test_packets_on_record_are_held_to_a_new_schema(tmp_path):
    """All of a folder, each named by its file."""
    for name, packet in {
        "a": {"verdict": "fraud"},
        "b": {"verdict": "clean", "confidence": 1},
    }.items():
        (tmp_path / f"{name}.json").write_text(json.dumps(packet))

    assert_contract(tmp_path / "b.json", Finding)
    with pytest.raises(AssertionError, match=r"\n  a\.json: confidence: missing$"):
        assert_contract(tmp_path, Finding)


def test_a_folder_without_packets_is_no_success(tmp_path):
    """Nothing was held to anything."""
    with pytest.raises(AssertionError, match="no packets in"):
        assert_contract(tmp_path, Finding)

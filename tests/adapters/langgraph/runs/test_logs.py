"""The host's own log lines inside a graph."""

from __future__ import annotations

from typing import Any

import pytest
from langgraph.graph import START, StateGraph
from loguru import logger

from mnemoscope.memory.testing import scope_for_tests
from mnemoscope.telemetry import patch_record
from mnemoscope.telemetry.logs.trace_context import trace_ids
from tests.kit.patience import GIVE_UP_S


@pytest.fixture
def said():
    """Collect the fields of lines of a loguru that has the patcher, and leave it as it was."""
    found: list[dict[str, Any]] = []
    handler = logger.add(lambda message: found.append(dict(message.record["extra"])), level=0)
    logger.configure(patcher=patch_record)
    yield found
    logger.configure(patcher=lambda _record: None)
    logger.remove(handler)


def test_a_line_of_a_node_has_the_ids_of_its_span(said):
    """Each of the node that wrote it; a line outside of the graph has none."""

    def note(state: dict[str, Any]) -> dict[str, Any]:
        logger.bind(mine=True).info("working")
        return state

    builder = StateGraph(dict)
    builder.add_sequence([("first", note), ("second", note)])
    builder.add_edge(START, "first")
    with scope_for_tests() as (scope, sink):
        scope.runnable(builder.compile()).invoke({"a": 1})
        outside = trace_ids()
        scope.flush(GIVE_UP_S)
        nodes = [each.trace for each in sink.events if each.operation == "execute_node"]

    assert len(nodes) == 2
    assert [each["span_id"] for each in said if "mine" in each] == [each.span_hex for each in nodes]
    assert outside == {}

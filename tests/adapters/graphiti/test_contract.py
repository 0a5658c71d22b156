"""Graphs of graphiti-core, held to the contract of adapters."""

from __future__ import annotations

import pytest

from mnemoscope.memory.testing import check_adapter

pytest.importorskip("kuzu", reason="needs Kuzu, which Python 3.14 has not")
graphs = pytest.importorskip("tests.kit.graphs", reason="needs mnemoscope[graphiti]")


@pytest.mark.long
@pytest.mark.usefixtures("unhurried")
def test_a_graph_keeps_the_contract():
    """All that `check_adapter` asks of an adapter, of a graph on Kuzu."""
    check_adapter(graphs.graph_case())

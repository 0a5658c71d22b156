"""Graphs of graphiti-core, held to the contract of adapters."""

from __future__ import annotations

import pytest

from mnemoscope.memory import Trust
from mnemoscope.memory.testing import check_adapter
from tests.kit.origin_recalls import check_origin

pytest.importorskip("kuzu", reason="needs Kuzu, which Python 3.14 has not")
graphs = pytest.importorskip("tests.kit.graphs", reason="needs mnemoscope[graphiti]")


@pytest.mark.long
@pytest.mark.usefixtures("unhurried")
def test_a_graph_keeps_the_contract():
    """All that `check_adapter` asks of an adapter, of a graph on Kuzu."""
    check_adapter(graphs.graph_case())


@pytest.mark.long
@pytest.mark.usefixtures("unhurried")
def test_origin_is_asked_of_each_recall():
    """What a model took out of an episode is trusted no more than a model."""
    check_origin(graphs.graph_case(), demand=Trust.OWN_REFLECTION)

"""`VectorTable` and `AsyncVectorTable`, held to the contract of adapters."""

from __future__ import annotations

import pytest

from mnemoscope.memory.testing import check_adapter

pytest.importorskip("psycopg", reason="needs mnemoscope[postgres]")

from tests.kit.origin_recalls import check_origin
from tests.kit.vector_tables import table_case

pytestmark = [
    pytest.mark.long,
    pytest.mark.usefixtures("unhurried"),
    pytest.mark.parametrize("is_async", [False, True], ids=["sync", "async"]),
]


@pytest.fixture
def opened():
    """Return a list for connections, which are ended after the test."""
    connections = []
    yield connections
    for each in connections:
        each.pgconn.finish()


def test_a_described_table_keeps_the_contract(is_async, postgres_url, opened):
    """All that `check_adapter` asks of an adapter, of a real PostgreSQL."""
    check_adapter(table_case(postgres_url, is_async=is_async, on_open=opened.append))


def test_origin_is_asked_of_each_recall(is_async, postgres_url, opened):
    """Whatever the table has besides the text is looked at as well."""
    check_origin(table_case(postgres_url, is_async=is_async, on_open=opened.append))

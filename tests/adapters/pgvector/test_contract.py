"""`VectorTable` and `AsyncVectorTable`, held to the contract of adapters."""

from __future__ import annotations

import pytest

from mnemoscope.memory.testing import check_adapter

pytest.importorskip("psycopg", reason="needs mnemoscope[postgres]")

from tests.kit.vector_tables import table_case


@pytest.mark.long
@pytest.mark.usefixtures("unhurried")
@pytest.mark.parametrize("is_async", [False, True], ids=["sync", "async"])
def test_a_described_table_keeps_the_contract(is_async, postgres_url):
    """All that `check_adapter` asks of an adapter, of a real PostgreSQL."""
    opened = []
    try:
        check_adapter(table_case(postgres_url, is_async=is_async, on_open=opened.append))
    finally:
        for connection in opened:
            connection.pgconn.finish()

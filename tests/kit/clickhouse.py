"""A ClickHouse in this process, on a folder: the real engine, through its own client."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest


class ClickHouse:
    """
    An engine for tests. A process has one folder at a time, until all its clients are closed.

    Attributes:
        url: Where a stream finds it.
    """

    def __init__(self, folder: Path) -> None:
        import clickhouse_connect

        self.url = f"chdb://{folder}"
        self._client = clickhouse_connect.get_client(dsn=self.url)

    def ask(self, sql: str, **given: Any) -> list[Any]:
        """Return the rows of a query; *given* are its parameters."""
        return list(self._client.query(sql, given, column_formats=AS_BYTES).result_rows)

    def change(self, sql: str) -> None:
        """Run a statement, and wait for it."""
        self._client.command(sql, settings={"mutations_sync": 2, "alter_sync": 2})

    def close(self) -> None:
        """Disconnect."""
        self._client.close()


AS_BYTES = {"header": "bytes", "leaf": "bytes", "detail": "bytes"}


@pytest.fixture
def clickhouse(tmp_path: Path) -> Iterator[ClickHouse]:
    """Return an empty engine."""
    pytest.importorskip("clickhouse_connect", reason="needs mnemoscope[clickhouse]")
    pytest.importorskip("chdb", reason="needs chdb, a ClickHouse from PyPI")
    found = ClickHouse(tmp_path / "clickhouse")
    yield found
    found.close()

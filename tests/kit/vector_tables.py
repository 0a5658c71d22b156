"""Tables with vectors on a real PostgreSQL, with calls of all their methods."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import Any

import psycopg

from mnemoscope.adapters.pgvector import AsyncVectorTable, VectorTable
from mnemoscope.adapters.pgvector.adapter import ADAPTER
from mnemoscope.memory.testing import AdapterCase

CUSTOMER = "c-42"
OWNER = "user_id"
DESCRIBED = {"columns": ("note", "about", "seen"), "owner": OWNER}
COLUMNS = (
    "id text PRIMARY KEY, content text, embedding vector(3), user_id text, note text, "
    "about jsonb, seen date"
)
VECTOR = [1.0, 0.1, 0.1]


def vector_of(text: str) -> list[float]:
    """Return a vector of *text*: equal texts are equally near."""
    return [1.0, len(text) / 100, text.count("a") / 100]


def row(text: str, customer: str | None = CUSTOMER, **more: Any) -> dict[str, Any]:
    """Return a row about a customer."""
    said = {"id": str(uuid.uuid4()), "content": text, "embedding": vector_of(text)}
    return {**said, OWNER: customer, "note": text, "about": {"said": text}, **more}


def new_table(connection: Any, name: str = "memories") -> None:
    """Make the table, as somebody else's migration does."""
    connection.execute("CREATE EXTENSION IF NOT EXISTS vector")
    connection.execute(f"CREATE TABLE {name} ({COLUMNS})")  # type: ignore[call-overload,unused-ignore]


def table_case(url: str, *, is_async: bool, on_open: Callable[[Any], None]) -> AdapterCase:
    """Return the case of a table by one connection, of a new table each time."""

    def made() -> Any:
        name = f"memories_{uuid.uuid4().hex[:12]}"
        connection = psycopg.connect(url, autocommit=True)
        new_table(connection, name)
        on_open(connection)
        return VectorTable(connection, name, **DESCRIBED)

    async def amade() -> Any:
        bare = made()
        connection = await psycopg.AsyncConnection.connect(url, autocommit=True)
        on_open(connection)
        return AsyncVectorTable(connection, bare.table, **DESCRIBED)

    def theirs(text: str) -> dict[str, Any]:
        return {"where": {OWNER: CUSTOMER, "note": text, "about": {"said": text}}}

    return AdapterCase(
        adapter=ADAPTER,
        make_client=amade if is_async else made,
        calls={
            "add": lambda text: {"rows": [row(text)]},
            "search": lambda text: {"vector": VECTOR, **theirs(text)},
            "get": lambda text: {"ids": [text], "where": {OWNER: CUSTOMER}},
            "list": theirs,
            "delete": theirs,
        },
        options={},
        customer=CUSTOMER,
    )

"""A described table with a vector column: statements composed of its names, and what runs them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from functools import wraps
from typing import Any, TypeAlias, cast

from psycopg import sql
from psycopg.pq import TransactionStatus
from psycopg.rows import dict_row, scalar_row
from psycopg.types.json import Jsonb

Where: TypeAlias = Mapping[str, Any]
"""By column what a row has there: a value, None, a list of which it is one, a part of a JSON."""

_Statement: TypeAlias = tuple[sql.Composed, list[Any]]
_OPERATORS = ("<=>", "<->", "<#>", "<+>")
_TAKEN = ("rows", "ids", "where", "vector", "distance")
_LIST = list  # which is a method below
_COMMA = sql.SQL(", ")


class VectorTable:
    """
    A table of yours on a connection, or a pool, of psycopg's.

    Nothing but the names given here comes into a statement. What fails inside a transaction of
    yours is undone alone, and nothing of yours is committed.

    Args:
        connection: A pool, or a connection in autocommit mode.
        table: The table's name, behind a schema and a dot if need be.
        columns: Further columns, which are written, read, and compared with values.
        owner: The column with the customer's id, as text. None: no row says whose it is.
        id: The column of the primary key.
        text: The column of the text.
        embedding: The column of the vector, which is written and compared, and not read.
        distance: pgvector's operator: ``<=>``, ``<->``, ``<#>`` or ``<+>``.

    Raises:
        ValueError: There is no such operator, a column has a name of the methods' own, or the
            connection is in another mode.
    """

    def __init__(
        self,
        connection: Any,
        table: str,
        *,
        columns: Sequence[str] = (),
        owner: str | None = None,
        id: str = "id",  # noqa: A002 - as in the table
        text: str = "content",
        embedding: str = "embedding",
        distance: str = "<=>",
    ) -> None:
        self.connection, self.table, self.owner = connection, table, owner
        self.id, self.text, self.embedding = id, text, embedding
        self._columns = tuple(dict.fromkeys((id, text, *columns, *([owner] if owner else ()))))
        if distance not in _OPERATORS or {*_TAKEN} & {*self._columns}:
            raise ValueError(f"distance: {' '.join(_OPERATORS)}; no column: {' '.join(_TAKEN)}")
        if not getattr(connection, "autocommit", True):
            raise ValueError("connection: give one with autocommit=True, or a pool")
        self._order = sql.SQL("{} " + cast("Any", distance) + " %s").format(self._name(embedding))

    @property
    def is_in_transaction(self) -> bool:
        """Whether a transaction is open on the connection."""
        status = getattr(getattr(self.connection, "info", None), "transaction_status", None)
        return status in {TransactionStatus.INTRANS, TransactionStatus.INERROR}

    def add(self, rows: Sequence[Mapping[str, Any]]) -> Any:
        """Add rows, and return their ids. A column that one of them lacks is NULL there."""
        names = [*dict.fromkeys(name for row in rows for name in row)]
        marks = _COMMA.join([sql.SQL("%s")] * len(names))
        lists = _COMMA.join([sql.SQL("({})").format(marks)] * len(rows))
        template = "INSERT INTO {table} ({columns}) VALUES {lists} RETURNING {id}"
        query = self._compose(template, columns=_COMMA.join(map(self._name, names)), lists=lists)
        values = [self._value(name, row.get(name)) for row in rows for name in names]
        return self._run((query, values), scalar_row)

    def search(self, vector: Any, *, where: Where | None = None, limit: int = 10) -> Any:
        """Return the nearest rows as dicts, with their ``distance``, the nearest first."""
        (test, values), near = self._condition(where), self._value(self.embedding, vector)
        template = "SELECT {all}, {order} AS distance FROM {table} WHERE {test} ORDER BY {order}"
        query = self._compose(f"{template} LIMIT %s", test=test)
        return self._run((query, [near, *values, near, limit]))

    def get(self, ids: Sequence[Any], *, where: Where | None = None) -> Any:
        """Return the rows with these ids, as dicts."""
        return self.list(where={**(where or {}), self.id: [*ids]}, limit=None)

    def list(self, *, where: Where | None = None, limit: int | None = 100, offset: int = 0) -> Any:
        """Return rows as dicts, in the order of their ids."""
        test, values = self._condition(where)
        template = "SELECT {all} FROM {table} WHERE {test} ORDER BY {id} LIMIT %s OFFSET %s"
        return self._run((self._compose(template, test=test), [*values, limit, offset]))

    def delete(self, where: Where) -> Any:
        """Delete rows, and return their ids. An empty *where* is refused."""
        if not where:
            raise ValueError("where: it is empty, and all rows would be deleted")
        test, values = self._condition(where)
        query = self._compose("DELETE FROM {table} WHERE {test} RETURNING {id}", test=test)
        return self._run((query, values), scalar_row)

    def _name(self, column: str) -> sql.Identifier:
        if column not in (*self._columns, self.embedding):
            raise ValueError("a column is not in the description of the table")
        return sql.Identifier(column)

    def _compose(self, template: Any, **parts: sql.Composable) -> sql.Composed:
        table, columns = sql.Identifier(*self.table.split(".")), map(self._name, self._columns)
        names = {"table": table, "id": self._name(self.id), "all": _COMMA.join(columns)}
        return sql.SQL(template).format(**names, order=self._order, **parts)

    def _value(self, column: str, value: Any) -> Any:
        if column == self.embedding and not isinstance(value, (str, type(None))):
            return f"[{','.join(str(float(each)) for each in value)}]"
        return Jsonb(value) if isinstance(value, dict) else value

    def _condition(self, where: Where | None) -> _Statement:
        tests, given = [sql.SQL("TRUE").format()], dict(where or {})
        for name, value in given.items():
            test = "{} @> %s" if isinstance(value, dict) else "{} = %s"
            test = "{} = ANY(%s)" if isinstance(value, _LIST) else test
            tests.append(sql.SQL("{} IS NULL" if value is None else test).format(self._name(name)))
        values = [self._value(*each) for each in given.items() if each[1] is not None]
        if isinstance(owner := given.get(self.owner or ""), str):
            # The column may fold case, accents or space: its index finds them, and one is meant.
            tests.append(sql.SQL('{}::text COLLATE "C" = %s').format(self._name(self.owner or "")))
            values.append(owner)
        return sql.SQL(" AND ").join(tests), values

    def _held(self) -> Any:
        if not hasattr(self.connection, "info"):
            return self.connection.connection()
        return self.connection.transaction() if self.is_in_transaction else nullcontext()

    def _cursor(self, held: Any, rows: Any) -> Any:
        return (held if hasattr(held, "cursor") else self.connection).cursor(row_factory=rows)

    def _run(self, statement: _Statement, rows: Any = dict_row) -> Any:
        with self._held() as held, self._cursor(held, rows) as cursor:
            return cursor.execute(*statement).fetchall()


class AsyncVectorTable(VectorTable):
    """The same on an asynchronous connection, or a pool of such: each method is to be awaited."""

    async def _run(self, statement: _Statement, rows: Any = dict_row) -> Any:
        async with self._held() as held, self._cursor(held, rows) as cursor:
            return await (await cursor.execute(*statement)).fetchall()


def _awaited(method: Callable[..., Any]) -> Any:
    @wraps(method)
    async def called(self: Any, *args: Any, **kwargs: Any) -> Any:
        return await method(self, *args, **kwargs)

    return called


for _method in ("add", "search", "get", "list", "delete"):
    setattr(AsyncVectorTable, _method, _awaited(getattr(VectorTable, _method)))

"""A described table of pgvector's behind a guard."""

from __future__ import annotations

from typing import Any, cast

import psycopg
from psycopg import errors

from ...memory import api
from ...memory.subject_data.records import NotErasedError, UncertainOwnerError
from ..toolkit.listed_records import ListedRecords
from ..toolkit.own_methods import OwnMethods
from ..toolkit.owned_records import OwnedRecords, VectorRow, kept_of, record_of
from ..toolkit.postgresql import postgres_database
from ..toolkit.sync_async import resolve
from .table import VectorTable

_WRONG = (errors.UndefinedTable, errors.UndefinedColumn, errors.InFailedSqlTransaction)
_LEFT = "PostgreSQL's files have deleted rows until `VACUUM FULL` and `CHECKPOINT`; so has its log"
MISTAKES = (
    api.CallerMistake(
        what="values or columns that the table does not take, or a transaction that has failed",
        error=(ValueError, TypeError, psycopg.DataError, psycopg.IntegrityError, *_WRONG),
        where=("psycopg", VectorTable.__module__),
        how="called",
    ),
)


class TableRecords(OwnedRecords):
    """Reads and redacts calls of one table: what a row has besides its text is metadata."""

    def __init__(self, table: VectorTable) -> None:
        super().__init__(table.owner)
        self._table = table

    def row(self, given: Any) -> VectorRow:
        """Return a row of the table as a record."""
        table, apart = self._table, {self._table.embedding, "distance"}
        others = {n: x for n, x in given.items() if n not in apart | {table.id, table.text}}
        return VectorRow(given.get(table.id), given.get(table.text), others)

    def written(self, arguments: api.Arguments, /) -> list[VectorRow]:
        """See `OwnedRecords.written`."""
        return [self.row(each) for each in arguments.get("rows") or ()]

    def _redacted(self, name: str, given: Any, redaction: api.Redaction) -> Any:
        if name in {self.key, "vector", self._table.embedding} or given is None:
            return given
        if name == "where":
            return self.redact(given, redaction)
        if name in {"rows", "ids", self._table.id} and isinstance(given, (list, tuple)):
            of, items = "where" if name == "rows" else self._table.id, cast("list[Any]", given)
            return [self._redacted(of, each, redaction) for each in items]
        is_id, value = name == self._table.id and isinstance(given, str), cast("Any", given)
        return redaction.identifier(value) if is_id else redaction.value(value)

    def narrow(self, given: Any, customer: str) -> Any:
        """See `OwnedRecords.narrow`."""
        return {**dict[Any, Any](given or ()), self.key: customer}

    def confine_write(self, arguments: api.Arguments, customer: str) -> api.Arguments:
        """See `OwnedRecords.confine_write`."""
        self.owned(arguments, customer)
        rows = arguments.get("rows") or ()
        return {**arguments, "rows": [{**each, self.key: customer} for each in rows]}

    def only(self, answer: Any, customer: str) -> Any:
        """Return the rows that name *customer* as they are spelled here."""
        return kept_of(answer, lambda each: each.get(self.key) == customer)

    def answered(self, answer: Any, _arguments: api.Arguments) -> api.Summary:
        """Return the summary of rows; its scores are distances."""
        scores = tuple(each["distance"] for each in answer if "distance" in each)
        return self.summary([self.row(each) for each in answer], scores)

    def sift(self, answer: Any, _arguments: api.Arguments, keep: api.Keep) -> Any:
        """Return the rows that are kept."""
        return kept_of(answer, lambda each: keep(self.record(self.row(each))))

    def record(self, row: VectorRow, /) -> api.Record:
        """See `OwnedRecords.record`: a column that was not given is null in answers."""
        return record_of(row.own, {**row.metadata, self._table.text: row.text})


class TableData(ListedRecords):
    """The provider of one table."""

    store = "pgvector"

    def __init__(self, table: VectorTable, records: TableRecords) -> None:
        super().__init__(table.owner, public=False)
        self._table, self._records = table, records

    async def _listed(self, customer: str, offset: int) -> list[VectorRow]:
        unpadded = customer.rstrip(" ")
        if unpadded != customer and any(
            each[self._key] != unpadded for each in await self._rows(unpadded, 0, 1)
        ):
            raise UncertainOwnerError("the owner's column pads ids, and this one ends in a space")
        return [self._records.row(each) for each in await self._rows(customer, offset)]

    async def _rows(self, customer: str, offset: int, limit: int = api.PAGE_SIZE) -> list[Any]:
        theirs: Any = {self._key: customer}
        rows: list[Any] = await resolve(self._table.list(where=theirs, limit=limit, offset=offset))
        return rows

    def _remove(self, ids: list[str]) -> Any:
        if self._table.is_in_transaction:
            raise NotErasedError("the connection is in a transaction: end it, or wrap a pool")
        return self._table.delete({self._table.id: ids})

    def _clean(self, _customer: str) -> tuple[str, ...]:
        return (_LEFT,)


def _breaks_off(table: VectorTable) -> api.BreaksOff | None:
    pool = table.connection
    if type(pool).__module__.partition(".")[0] != "psycopg_pool":
        return None
    from ..toolkit.psycopg_time import ends_in_time  # noqa: PLC0415 - not without psycopg_pool

    ends = ends_in_time(pool)
    # A method may be replaced at any time, and another pool given.
    return ends and (lambda _call: table.connection is pool and _OWN.has_all(table) and ends())


_OWN = OwnMethods(VectorTable)


def _none(_arguments: api.Arguments) -> list[Any]:
    return []


def bind(table: Any, _services: api.AdapterServices, /) -> api.StoreBinding:
    """Return the binding of one described table."""
    of, name = TableRecords(table), table.table
    confined: dict[str, Any] = {**of.options(name), **of.narrows("where")}
    only = of.only if of.key else None
    find: dict[str, Any] = {**confined, "summary": of.answered, "sift": of.sift, "only": only}
    find["neutral"] = _none
    write: dict[str, Any] = {**of.writes(name), "neutral": _none}
    return api.StoreBinding(
        methods=api.method_table(
            api.remember("add", "create_memory", **write),
            api.recall("search", spare=api.fewer("limit", 10), **find),
            api.recall("get", **find),
            api.recall("list", spare=api.fewer("limit", 100), **find),
            api.forget("delete", deletes=api.Deletes.IDS, **confined),
        ),
        caller_mistakes=MISTAKES,
        subject_data=TableData(table, of),
        database=postgres_database(table.connection),
        breaks_off=_breaks_off(table),
    )


ADAPTER = api.StoreAdapter(
    store=TableData.store, client_types=(VectorTable,), bind=bind, db_system="postgresql"
)

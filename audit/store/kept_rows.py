"""
The connection of a transaction that keeps account of the rows that are summed.

Whatever changes a row of such a table passes here, in whatever module it was written, so that the
sums in the head of the log are those of the tables. A statement that cannot be accounted for is
refused: it would make the log one that does not verify.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import orjson

from ..database.database import Rows, Value, WriteConnection
from ..database.schema import columns_of, key_of
from ..record.coverage import IDENTITIES, is_summed, summed_tables
from ..record.seals import Seals, added

HEAD = "audit_log"
BROKEN = "seal.broken"
"""The event that says that the seal of the head was not that of the head."""

BROKEN_AT = "broken"
"""The name, among the sums of tables, that says that they are not to be believed any more."""


class KeptRows:
    """
    See `WriteConnection`.

    Attributes:
        is_settled: Whether the head that was last written has all that was changed.
    """

    def __init__(self, connection: WriteConnection) -> None:
        self._connection = connection
        self._seals: Seals | None = None
        self._changes: defaultdict[str, list[int]] = defaultdict(list)
        self._identities = 0
        self.queue = connection.queue
        self.version = connection.version
        self.is_settled = True
        self.stream = connection.stream
        self.evidence = connection.evidence
        self.found = connection.found
        self.clock_us = connection.clock_us
        self.make_room = connection.make_room
        self.is_replica = connection.is_replica
        self.partitions = connection.partitions
        self.drop_partitions = connection.drop_partitions
        self.wrong_definitions = connection.wrong_definitions
        self.wrong_indexes = connection.wrong_indexes
        self.wrong_values = connection.wrong_values

    def keyed(self, seals: Seals) -> None:
        """Compute sums with *seals* from here on."""
        self._seals = seals

    def execute(self, statement: str, values: Sequence[Value] = (), /) -> Rows:
        """Run *statement*."""
        change = _change(statement)
        if change is None:
            return self._connection.execute(statement, values)
        self.is_settled = False
        if change.table == HEAD:
            return self._connection.execute(statement, values)
        if change.inserted:
            self._add(change.table, [dict(zip(change.inserted, values, strict=True))])
            return self._connection.execute(statement, values)
        return self._changed(change, statement, values)

    def send(self, statement: str, values: Sequence[Value] = (), /) -> None:
        """Run *statement*, which changes nothing that is summed, and do not wait for it."""
        if _change(statement) is None:
            self._connection.send(statement, values)
        else:
            self.execute(statement, values)

    def insert(
        self, table: str, columns: tuple[str, ...], rows: Sequence[tuple[Value, ...]], /
    ) -> None:
        """Add *rows* to *table*."""
        if is_summed(table) and rows:
            self.is_settled = False
            self._add(table, [dict(zip(columns, row, strict=True)) for row in rows])
        self._connection.insert(table, columns, rows)

    def write_head(self, statement: str, values: Sequence[Value]) -> None:
        """Run a statement that writes a sealed head, with all `summed` changes in it."""
        self._connection.send(statement, values)
        self._changes.clear()
        self.is_settled = True

    def summed(self, sums: str | None) -> str:
        """
        Return what *sums* become by the changes that were made since the head was written.

        Raises:
            ValueError: They are no sums.
        """
        # The head of most batches: no customer is new, so that nothing has to be parsed.
        if sums is not None and not self._changes:
            return sums
        known: dict[str, str] = orjson.loads(sums or b"{}")
        for table, changes in self._changes.items():
            before = self._keys.unmasked(table, known[table]) if table in known else 0
            known[table] = self._keys.masked(table, added(before, *changes))
        return _text(known)

    def identities(self) -> int:
        """Return the difference made to the sum of identities since this was last asked."""
        # Taken once: the event that has it is in the same transaction.
        change, self._identities = self._identities, 0
        return change

    def check_identities(self) -> None:
        """
        Check that an event has every change of identities.

        Raises:
            ValueError: One was made that none has.
        """
        if self._identities:
            raise ValueError(
                "customers or their identifiers were changed, and no event has it: note one "
                "behind the change, in the same transaction"
            )

    def can_follow(self, sums: str | None) -> bool:
        """Return whether *sums* are sums, of whatever rows."""
        try:
            known: dict[str, str] = orjson.loads(sums or b"{}")
            known.pop(BROKEN_AT, None)
            return bool(known) and all(
                self._keys.unmasked(table, text) >= 0 for table, text in known.items()
            )
        except (ValueError, TypeError, AttributeError):
            return False

    def summed_anew(self) -> str:
        """Return the sums of the tables as they are, and forget what was changed before."""
        self._changes.clear()
        return _text(
            {
                table: self._keys.masked(table, table_sum(self._connection, self._keys, table))
                for table in summed_tables()
            }
        )

    def mistrusted(self, sums: str) -> str:
        """Return *sums*, followable or made anew, with the mark that no answer may rest on them."""
        return _text({**orjson.loads(sums), BROKEN_AT: "1"})

    @property
    def _keys(self) -> Seals:
        if self._seals is None:
            raise RuntimeError("rows were changed before the key of the log was known")
        return self._seals

    def _changed(self, change: _Change, statement: str, values: Sequence[Value]) -> Rows:
        """Run a statement that changes or removes rows, which are read before and after."""
        table, columns = change.table, columns_of(change.table)
        chosen = f"SELECT {', '.join(columns)} FROM {table}"  # noqa: S608 - names of ours
        where = f"{chosen} {change.where}"
        # A row's part of the sum can be taken out only as long as the row is known.
        before = self._connection.execute(where, values[change.before_where :]).fetchall()
        done = self._connection.execute(statement, values)
        old = [dict(zip(columns, row, strict=True)) for row in before]
        self._count(table, old, -1)
        if change.updates:
            # By the key: what an UPDATE sets may be what its WHERE asks for.
            same = f"{chosen} WHERE {' AND '.join(f'{each} = ?' for each in key_of(table))}"
            for row in old:
                key = [row[each] for each in key_of(table)]
                now: Any = self._connection.execute(same, key).fetchone()
                self._add(table, [dict(zip(columns, now, strict=True))])
        return done

    def _add(self, table: str, rows: Sequence[Mapping[str, Value]]) -> None:
        self._count(table, rows, 1)

    def _count(self, table: str, rows: Sequence[Mapping[str, Value]], sign: int) -> None:
        self._changes[table] += [sign * self._keys.row(table, row) for row in rows]
        if table in IDENTITIES:
            changes = (sign * self._keys.identity(table, row) for row in rows)
            self._identities = added(self._identities, *changes)


def _text(sums: dict[str, str]) -> str:
    return orjson.dumps(sums, option=orjson.OPT_SORT_KEYS).decode()


def table_sum(connection: Any, seals: Seals, table: str) -> int:
    """Return the sum of the rows of a table."""
    return added(*(seals.row(table, row) for row in _rows(connection, table)))


def identities_sum(connection: Any, seals: Seals) -> int:
    """Return the sum of the customers and their identifiers, as events have it."""
    tables = ((each, row) for each in IDENTITIES for row in _rows(connection, each))
    return added(*(seals.identity(table, row) for table, row in tables))


def _rows(connection: Any, table: str) -> Iterator[dict[str, Value]]:
    columns = columns_of(table, connection.version)
    rows: Iterator[Any] = connection.stream(f"SELECT {', '.join(columns)} FROM {table}")  # noqa: S608 - names of ours
    for row in rows:
        yield dict(zip(columns, row, strict=True))


class _Change(NamedTuple):
    """
    What a statement changes.

    Attributes:
        inserted: The columns of a row that it adds.
        updates: Whether it leaves the rows there.
        before_where: How many values come before those of `where`.
    """

    table: str
    inserted: tuple[str, ...] = ()
    updates: bool = False
    where: str = ""
    before_where: int = 0


@lru_cache(256)
def _change(statement: str) -> _Change | None:
    """
    Return what *statement* changes of what is summed or sealed; None: nothing.

    Raises:
        ValueError: It cannot be told.
    """
    text = " ".join(statement.split())
    found = _WRITES.match(text)
    if found is None:
        return None
    table = found[1]
    if table == HEAD:
        return _Change(table)
    if not is_summed(table):
        return None
    if inserted := _INSERT.match(text):
        columns = tuple(inserted[1].replace(" ", "").split(","))
        if inserted[2].replace(" ", "").split(",") == ["?"] * len(columns):
            return _Change(table, inserted=columns)
    elif updated := _UPDATE.match(text):
        if not {each.partition("=")[0].strip() for each in updated[1].split(",")} & {
            *key_of(table)
        }:
            return _Change(
                table, updates=True, where=updated[2] or "", before_where=updated[1].count("?")
            )
    elif deleted := _DELETE.match(text):
        return _Change(table, where=deleted[1] or "")
    raise ValueError(
        f"a statement changes {table} in a way that its sum cannot follow: write it as INSERT of "
        "one row of values, as UPDATE of columns that are not its key, or as DELETE"
    )


_WRITES = re.compile(r"(?:INSERT INTO|INSERT OR \w+ INTO|REPLACE INTO|UPDATE|DELETE FROM) (\w+)")
_INSERT = re.compile(r"INSERT INTO \w+ ?\(([^)]*)\) VALUES ?\(([^)]*)\)\Z")
_UPDATE = re.compile(r"UPDATE \w+ SET (.*?)( WHERE .*)?\Z")
_DELETE = re.compile(r"DELETE FROM \w+( WHERE .*)?\Z")

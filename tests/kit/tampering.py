"""
A small audit log with everything in it, and what an attacker with write access may do to its rows.

Triggers are gone meanwhile: they keep honest programs honest, and stop nobody who owns the file.
"""

from __future__ import annotations

import shutil
import sqlite3
import struct
import sys
from collections.abc import Generator, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from mnemoscope.audit.database import schema
from mnemoscope.audit.erasure.kept_words import KeptWords, keep_words
from mnemoscope.audit.log import AuditLog
from mnemoscope.telemetry.event.event import VERDICT, OperationClass, Redacted
from mnemoscope.telemetry.event.subject import Subject, SubjectKeys
from mnemoscope.telemetry.event.usage import Usage
from mnemoscope.telemetry.event.verdict_event import Outcome, Point, VerdictEvent

TABLES = {
    "audit_log": ("origin",),
    "audit_event": ("seq",),
    "audit_detail": ("seq",),
    "audit_memory": ("seq", "rank"),
    "audit_usage": ("seq",),
    "audit_subject": ("subject_uid",),
    "audit_subject_alias": ("alias",),
    "audit_key": ("key_id",),
    "audit_tile": ("level", "idx"),
    "audit_checkpoint": ("size", "created_us"),
    "audit_erasure": ("request",),
    "audit_head": ("place",),
}
"""All tables, and what tells their rows apart."""

MERKLE_TILE = 256
"""Events that make a tile of the tree."""


class Cell(NamedTuple):
    """One value in one row; `kind` is the table, and whether it is of an erased customer."""

    table: str
    column: str
    key: tuple[Any, ...]
    value: Any
    kind: str


VERDICTS = {2: "one rule", 3: "another rule"}
"""Operations of the log that are what rules decided."""


def build(path: Path | str, keys: SubjectKeys, event: Any, count: int) -> AuditLog:
    """Return a log of *count* operations, with every kind of row in it."""
    log = AuditLog(path, keys, clock_ns=lambda: 1_800_000_000_000_000_000)
    log.append([_event(event, keys, number) for number in range(1, count + 1) if number != 5])
    gap = {"writer": "00000000000000aa", "from_wseq": 5, "to_wseq": 5, "count": 1, "reason": "full"}
    log.append_log_event("audit.gap", gap)
    with log.tables.writing() as (connection, head):
        end = head
        for number in range(MERKLE_TILE - count):
            end = log.tables.note(connection, end, "verify.ran", {"number": number})
    log.checkpoint_now()
    log.append([_event(event, keys, count + 1)])
    eve = log.subjects.resolve("eve", "acme")
    if eve is not None:
        log.subjects.erase(eve, "acme")
    ada, bob = (log.subjects.resolve(name, "acme") for name in ("ada", "bob"))
    if ada is not None and bob is not None:
        log.subjects.link(ada, "ada@example.com", id_type="email", tenant="acme")
        log.subjects.merge(bob, ada)
    with log.tables.writing() as (connection, _head):  # of erasures that are under way
        for number in range(3):
            words = KeptWords(frozenset({f"likes tea no. {number}"}))
            keep_words(connection, log.ring, f"{number:016x}", words)
    log.checkpoint_now()
    log.close()
    return log


def _event(event: Any, keys: SubjectKeys, number: int) -> Any:
    name = ("ada", "bob", "eve", None)[number % 4]
    if number in VERDICTS:
        rule = VERDICTS[number]
        decided = VerdictEvent(
            rule=rule,
            kind="Roles",
            point=Point.MEMORY,
            outcome=Outcome.REFUSE,
            reason="no_role",
            evidence={},
            settings="{}",
            facts="{}",
        )
        return event(
            writer_seq=number, operation=VERDICT, method=rule, parts=(decided,), subject=None
        )
    return event(
        writer_seq=number,
        subject=name and Subject(name, tenant="acme", keys=keys),
        run=f"run-{number % 3}",
        collection="facts" if number % 2 else None,
        op_class=OperationClass.REMEMBER if number % 3 else OperationClass.RECALL,
        memory_ids=(f"m-{number}", "m-0") if number % 5 else (),
        scores=(0.75, 0.5) if number % 5 and not number % 3 else (),
        usage=Usage(model="gpt", input_tokens=number, cost_usd=0.25) if not number % 7 else None,
        content=Redacted({"text": f"likes tea no. {number}"}),
        feature="reply" if number % 2 else None,
    )


def copy_of(path: Path, to: Path) -> Path:
    """Return a copy of a database."""
    shutil.copyfile(path, to)
    return to


@contextmanager
def unguarded(connection: sqlite3.Connection) -> Generator[None]:
    """Have no triggers until the body is done, as nobody has who owns the file."""
    found = connection.execute("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'")
    triggers = found.fetchall()
    connection.execute("BEGIN")
    for name, _sql in triggers:
        connection.execute(f"DROP TRIGGER {name}")
    try:
        yield
    except BaseException:
        connection.rollback()
        raise
    for _name, sql in triggers:
        connection.execute(sql)
    connection.commit()


@contextmanager
def silenced(connection: sqlite3.Connection) -> Generator[None]:
    """Fire no trigger meanwhile; the schema stays as it is, so nobody has to read it anew."""
    if sys.version_info < (3, 12):
        with unguarded(connection):
            yield
        return
    connection.setconfig(sqlite3.SQLITE_DBCONFIG_ENABLE_TRIGGER, False)
    try:
        yield
    finally:
        connection.setconfig(sqlite3.SQLITE_DBCONFIG_ENABLE_TRIGGER, True)


def cells(path: Path) -> Iterator[Cell]:
    """Yield every value of every row."""
    with closing(sqlite3.connect(path)) as connection:
        for table, key in TABLES.items():
            cursor = connection.execute(f"SELECT * FROM {table}")  # noqa: S608 - names of ours
            names = [each[0] for each in cursor.description]
            for row in cursor.fetchall():
                values = dict(zip(names, row, strict=True))
                identity = tuple(values[name] for name in key)
                kind = f"erased {table}" if values.get("state") == "erased" else table
                for column, value in values.items():
                    yield Cell(table, column, identity, value, kind)


def flips(value: Any) -> Iterator[Any]:
    """Yield *value* with each of its bytes changed, one at a time."""
    if value is None:
        yield 1
    elif isinstance(value, float):
        for flipped in flips(struct.pack(">d", value)):
            yield struct.unpack(">d", flipped)[0]
    elif isinstance(value, int):
        for byte in range(max(1, (value.bit_length() + 7) // 8)):
            yield value ^ (1 << 8 * byte)
    elif isinstance(value, str):
        for place in range(len(value)):
            yield value[:place] + chr(ord(value[place]) ^ 1) + value[place + 1 :]
    else:
        for place in range(len(value)):
            yield value[:place] + bytes([value[place] ^ 1]) + value[place + 1 :]


def columns_of(table: str) -> tuple[str, ...]:
    """Return the columns of a table."""
    return schema.columns_of(table)


class Tampering:
    """Changes one thing at a time in a copy of a log, and puts it back."""

    def __init__(self, path: Path) -> None:
        self._connection = sqlite3.connect(path, isolation_level=None)
        self._connection.execute("PRAGMA synchronous = OFF")

    def close(self) -> None:
        """Let go."""
        self._connection.close()

    def set(self, cell: Cell, value: Any) -> bool:
        """Change a cell; False if the database itself refuses."""
        keys = TABLES[cell.table]
        where = " AND ".join(f"{name} = ?" for name in keys)
        statement = f"UPDATE {cell.table} SET {cell.column} = ? WHERE {where}"  # noqa: S608
        try:
            with silenced(self._connection):
                changed = self._connection.execute(statement, (value, *cell.key)).rowcount
        except (sqlite3.IntegrityError, OverflowError):
            return False
        return bool(changed)

    def put_back(self, cell: Cell, value: Any) -> None:
        """Undo `set`."""
        keys = list(cell.key)
        names = TABLES[cell.table]
        if cell.column in names:
            keys[names.index(cell.column)] = value
        assert self.set(cell._replace(key=tuple(keys)), cell.value)

    def run(self, statement: str, *values: Any) -> None:
        """Do anything."""
        with unguarded(self._connection):
            self._connection.execute(statement, values)

    def rows(self, statement: str, *values: Any) -> list[Any]:
        """Ask anything."""
        return self._connection.execute(statement, values).fetchall()

    def key_of(self, table: str, which: float) -> tuple[Any, ...]:
        """Return the key of a row: the first for 0, the last for 1."""
        keys = ", ".join(TABLES[table])
        rows = self.rows(f"SELECT {keys} FROM {table} ORDER BY {keys}")  # noqa: S608
        return tuple(rows[round(which * (len(rows) - 1))])

    def delete(self, table: str, key: tuple[Any, ...]) -> None:
        """Remove a row."""
        where = " AND ".join(f"{name} = ?" for name in TABLES[table])
        self.run(f"DELETE FROM {table} WHERE {where}", *key)  # noqa: S608

    def duplicate(self, table: str, key: tuple[Any, ...], new: tuple[Any, ...]) -> None:
        """Add a row that is like another but for its key."""
        names = TABLES[table]
        columns = [each if each not in names else "?" for each in columns_of(table)]
        order = [new[names.index(each)] for each in columns_of(table) if each in names]
        where = " AND ".join(f"{name} = ?" for name in names)
        chosen = f"SELECT {', '.join(columns)} FROM {table} WHERE {where}"  # noqa: S608
        self.run(f"INSERT INTO {table} {chosen}", *order, *key)

    def swap(self, table: str, one: tuple[Any, ...], other: tuple[Any, ...]) -> None:
        """Have two rows take each other's place."""
        names = TABLES[table]
        where = " AND ".join(f"{name} = ?" for name in names)
        to = ", ".join(f"{name} = ?" for name in names)
        aside = tuple(-1 if isinstance(each, int) else "aside" for each in one)
        for old, new in ((one, aside), (other, one), (aside, other)):
            self.run(f"UPDATE {table} SET {to} WHERE {where}", *new, *old)  # noqa: S608

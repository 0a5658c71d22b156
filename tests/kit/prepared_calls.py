"""
A program that calls every kind of wrapped client of a prepared scope, and prints what it loads.

Printed is each file that our own code imports or opens on a thread that makes calls, once a line.
It is a process of its own, since in one that has run other tests everything is loaded already.
"""

from __future__ import annotations

import asyncio
import sys
import sysconfig
import threading
from pathlib import Path
from typing import Any

from langgraph.checkpoint.base import empty_checkpoint
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.store.memory import InMemoryStore
from qdrant_client import AsyncQdrantClient, QdrantClient, models

import mnemoscope.memory
from mnemoscope.demo.embedded_mem0 import ENCODER, embedded_memory
from mnemoscope.memory import Mnemoscope, configure, context

OURS = str(Path(mnemoscope.memory.__file__).resolve().parents[1])
STANDARD, INSTALLED = sysconfig.get_path("stdlib"), sysconfig.get_path("purelib")
THREADS = ("MainThread", "mnemoscope-worker")
"""Where calls are made: what a sink loads on its own thread delays nobody."""

ADA = "Ada Lovelace (ada@example.com) lives at 12 High Street, London, and Bob said so. "
TEXTS = (ADA, ADA * 60, "What did Sarah say?", "Меня зовут Анна Иванова", "我叫王小明", "tea at 5")
THREAD = {"configurable": {"thread_id": "t-1", "checkpoint_ns": ""}}
SIZE = models.VectorParams(size=2, distance=models.Distance.COSINE)


class Loads:
    """What is loaded from `begin` to `end`."""

    def __init__(self) -> None:
        self._seen: dict[str, None] | None = None
        sys.addaudithook(self._note)

    def begin(self) -> None:
        """Note what is loaded from now on."""
        self._seen = {}

    def end(self) -> list[str]:
        """Return what was loaded."""
        seen, self._seen = self._seen or {}, None
        return list(seen)

    def _note(self, event: str, args: tuple[Any, ...]) -> None:
        if self._seen is None or event not in {"import", "open"}:
            return
        if threading.current_thread().name in THREADS and (by := _asked_by()):
            self._seen[f"{event} of {args[0]} by {by}"] = None


def _asked_by() -> str | None:
    """Return what has something loaded, if it is ours: the nearest that is no standard library."""
    frame = sys._getframe(2)
    while frame is not None and _is_standard(frame.f_code.co_filename):
        frame = frame.f_back
    if frame is None:
        return None
    file = Path(frame.f_code.co_filename).absolute()
    is_ours = file.is_relative_to(OURS) and not file.is_relative_to(INSTALLED)
    return f"{file}:{frame.f_lineno}" if is_ours else None


def _is_standard(file: str) -> bool:
    return file.startswith((STANDARD, "<frozen")) and not file.startswith(INSTALLED)


def call_all(scope: Mnemoscope, folder: Path) -> list[str]:
    """Call all kinds of clients, sync and async, and return what was loaded."""
    store, saver = scope.store(InMemoryStore()), scope.checkpointer(InMemorySaver())
    qdrant = scope.qdrant(QdrantClient(":memory:"))
    aqdrant = scope.qdrant(AsyncQdrantClient(":memory:"))
    mem0 = scope.mem0(embedded_memory(folder))
    facts = scope.observe(store="crm", operation="search_memory", neutral=list)(lambda text: [text])

    async def call_async() -> None:
        await aqdrant.create_collection("notes", vectors_config=SIZE)
        for at, text in enumerate(TEXTS):
            await store.aput(("notes", "ada"), str(at), {"text": text})
            await store.asearch(("notes",), query=text)
            await aqdrant.upsert("notes", _points(at, text))
            await aqdrant.query_points("notes", query=[0.1, 0.2])

    loads = Loads()
    ENCODER.query("what embeds loads itself with the first text")
    assert scope.prepare()
    qdrant.create_collection("notes", vectors_config=SIZE)
    loads.begin()
    with context(tenant="acme", customer="ada@example.com", agent="sales", purpose="reply"):
        for at, text in enumerate(TEXTS):
            store.put(("notes", "ada"), str(at), {"text": text})
            store.get(("notes", "ada"), str(at))
            store.search(("notes",), query=text)
            saver.put(THREAD, empty_checkpoint(), {"source": "input", "step": at}, {})
            saver.get_tuple(THREAD)
            qdrant.upsert("notes", _points(at, text))
            qdrant.query_points("notes", query=[0.1, 0.2])
            facts(text)
            mem0.add(text, user_id="ada@example.com", infer=False)
            mem0.search(text, filters={"user_id": "ada@example.com"})
        asyncio.run(call_async())
        mem0.delete_all(user_id="ada@example.com")
    return loads.end()


def _points(at: int, text: str) -> list[models.PointStruct]:
    return [models.PointStruct(id=at, vector=[0.1, 0.2], payload={"text": text})]


def main() -> None:
    """Print what calls load, for a scope with all that calls may need."""
    folder = Path.cwd()
    scope = configure(
        sinks="logs,audit,prometheus",
        log_file=folder / "events.jsonl",
        audit_url=f"sqlite:///{folder}/audit.db",
        audit_pseudonym_key="ab" * 32,
        pii_operators={"*": "pseudonym"},
        vault=folder / "vault.db",
        journal=folder / "journal",
        deadline_recall_s=60,
    )
    sys.stdout.write("\n".join(call_all(scope, folder)))
    scope.close()


if __name__ == "__main__":
    main()

"""Chroma's collections with calls of all their methods, and a Chroma server to be killed."""

from __future__ import annotations

import subprocess
import sys
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import chromadb

from mnemoscope.adapters.chroma.adapter import ADAPTER
from mnemoscope.memory.testing import AdapterCase
from tests.kit.collectors import free_ports
from tests.kit.patience import until

OWNER_KEY = "customer"
CUSTOMER = "c-42"
VECTOR = [1.0, 0.1]
MINE = {OWNER_KEY: CUSTOMER}


def written(text: str, own: str = "n-1") -> dict[str, Any]:
    """Return the arguments of a write of *text* about the customer."""
    return {
        "ids": [own],
        "embeddings": [VECTOR],
        "documents": [text],
        "metadatas": [{**MINE, "note": text}],
    }


def sought(text: str) -> dict[str, Any]:
    """Return filters of what is known of the customer."""
    return {"where": {"$and": [MINE, {"note": text}]}, "where_document": {"$contains": text}}


CALLS: dict[str, Callable[[str], dict[str, Any]]] = {
    "add": written,
    "upsert": lambda text: written(text, "n-2"),
    "update": lambda text: {"ids": "n-1", "documents": text, "metadatas": {**MINE, "note": text},
                            "embeddings": [VECTOR]},
    "query": lambda text: {"query_embeddings": [VECTOR], "n_results": 2, **sought(text)},
    "get": sought,
    "peek": lambda _: {"limit": 3},
    "count": lambda _: {},
    "modify": lambda text: {"metadata": {"note": text}},
    "delete": sought,
}  # fmt: skip


def chroma_case(make_client: Callable[[], Any]) -> AdapterCase:
    """Return the case of the collections that *make_client* makes."""
    return AdapterCase(
        adapter=ADAPTER,
        make_client=make_client,
        calls=CALLS,
        not_called={
            "search": "Chroma's cloud has it, the embedded engine does not",
            **dict.fromkeys(ADAPTER.not_guarded, "of the other colour"),
        },
        options={"owner_key": OWNER_KEY},
        customer=CUSTOMER,
    )


def new_collection(client: Any) -> Any:
    """Return a new, empty collection of *client*, or an awaitable of it."""
    return client.create_collection(f"n-{uuid.uuid4()}", embedding_function=None)


def embedded_collection() -> Any:
    """Return a new collection of an engine in memory."""
    return new_collection(chromadb.EphemeralClient())


def folder_client(folder: Path) -> Any:
    """Return a client of an engine in a new folder: Chroma keeps the engine of a path for good."""
    return chromadb.PersistentClient(folder / uuid.uuid4().hex)


class ChromaServer:
    """
    A Chroma server on a port of this machine, which can be killed and started again.

    Args:
        folder: Where it keeps everything.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (self.port,) = free_ports(1)
        self._program = Path(sys.executable).with_name("chroma")
        self._process: subprocess.Popen[bytes] | None = None
        self.start()

    def start(self) -> None:
        """Start it, and wait until it answers."""
        options = ("--path", str(self.folder), "--host", "127.0.0.1", "--port", str(self.port))
        self._process = subprocess.Popen(
            [self._program, "run", *options], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        until(self._answers)

    def _answers(self) -> bool:
        try:
            chromadb.HttpClient(host="127.0.0.1", port=self.port).heartbeat()
        except Exception:  # noqa: BLE001 - whatever it raises while it starts
            return False
        return True

    def client(self) -> Any:
        """Return a new client."""
        return chromadb.HttpClient(host="127.0.0.1", port=self.port)

    async def async_collection(self) -> Any:
        """Return a new, empty collection of an asynchronous client."""
        client = await chromadb.AsyncHttpClient(host="127.0.0.1", port=self.port)
        return await new_collection(client)

    def kill(self) -> None:
        """End it in the middle of whatever it does."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()

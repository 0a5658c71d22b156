"""An application with a store of its own, as ``serve --scope`` and other commands load it."""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path

from langgraph.store.sqlite import SqliteStore

from mnemoscope.memory import Mnemoscope, context, load_settings
from tests.kit.patience import GIVE_UP_S

FOLDER = "CONSOLE_APPLICATION"
"""The variable that says where its store is."""

ADDRESS = f"{__name__}:scope"

TEXTS = (
    "Prefers the window seat, and a table away from the door",
    "Eats no nuts since 2024",
    "Wants e-mail, no calls",
)


def store_of(folder: str | Path) -> SqliteStore:
    """Return the bare store of the application in *folder*."""
    connection = sqlite3.connect(
        Path(folder) / "store.db", check_same_thread=False, isolation_level=None, timeout=GIVE_UP_S
    )
    store = SqliteStore(connection)
    store.setup()
    return store


def scope() -> Mnemoscope:
    """Return the application's scope, its store wrapped."""
    made = Mnemoscope(load_settings(sinks="audit", pii_model="none"))
    made.store(store_of(os.environ[FOLDER]), customer_at=1)
    return made


def remember(folder: Path, **settings: object) -> None:
    """Have a customer's memories be written, recalled in a run, and another one's beside."""
    made = Mnemoscope(load_settings(**settings, sinks="audit", pii_model="none"))  # type: ignore[arg-type]
    store = made.store(store_of(folder), customer_at=1)
    for number, text in enumerate(TEXTS):
        with context(tenant="acme", customer="c-42", agent="concierge", run="thread-5"):
            store.put(("profile", "c-42"), f"m{number}", {"text": text})
    with context(tenant="acme", customer="c-42", run="thread-6", purpose="reply", feature="draft"):
        store.search(("profile", "c-42"))
    with context(tenant="acme", customer="c-43", run="thread-7"):
        store.put(("profile", "c-43"), "m0", {"text": "Asks for the quiet room"})
    made.close()

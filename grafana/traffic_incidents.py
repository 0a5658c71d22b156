"""What should never happen, happening: so that every panel and alert has something to show."""

from __future__ import annotations

import contextlib
import itertools
import time
from collections.abc import Callable, Iterator
from threading import Thread
from typing import Any

from mnemoscope.adapters.demo.trouble import How, Trouble
from mnemoscope.memory import Mnemoscope, context

HANG_S = 3.5
"""More than a recall may take."""


class Incidents:
    """
    Everything that can go wrong, once for each message.

    mem0 is down from the first one on; the CRM is a function of ours that asks another store; a
    note cannot be redacted; a search goes over all customers; now and then an archive hangs.

    Args:
        scope: What watches.
        stores: The demo's.
    """

    def __init__(self, scope: Mnemoscope, stores: Any) -> None:
        self._store = stores.store
        self._calls = itertools.count()
        observe = scope.observe
        self._contacts = observe(store="crm", operation="search_memory", neutral=list)(self._ask)
        self._archive = observe(store="archive", operation="search_memory", neutral=list)(_hang)
        self._note = observe(store="crm", operation="upsert_memory", neutral=dict)(self._fail)
        Trouble("mem0", How.DOWN, delay_s=0).begin(stores.bare["mem0"])

    def happen(self) -> None:
        """Let each incident happen."""
        for incident in self._each():
            with contextlib.suppress(Exception):  # the alert is what is wanted
                incident()

    def _each(self) -> Iterator[Callable[[], Any]]:
        yield self._contacts
        yield self._note
        yield self._unredactable
        yield self._everybody
        if next(self._calls) % 25 in {2, 4, 6}:
            yield Thread(target=self._archive, daemon=True).start  # nobody waits for it

    def _ask(self) -> list[Any]:
        return [*self._store.search(("customers", "c-1"), limit=3)]

    def _fail(self) -> dict[str, Any]:
        raise ConnectionRefusedError(111, "Connection refused")

    def _unredactable(self) -> None:
        self._store.put(("customers", "c-1"), "note", {"text": object()})

    def _everybody(self) -> None:
        with context(tenant="demo", customer="c-1"):
            self._store.search(("customers",), limit=10)


def _hang() -> list[Any]:
    time.sleep(HANG_S)
    return []

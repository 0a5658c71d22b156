"""
The keyed hashes that stand in the tables for memories, runs, collections and tenants.

A store's own key may be an e-mail address, so none is kept in clear. The key is the log's own,
made with it and wrapped with each secret in use, so that a rotation of secrets changes no hash.
"""

from __future__ import annotations

import hmac
from functools import lru_cache

from ...telemetry.event.subject import SubjectKeys
from ...telemetry.text import clean_text

REFERENCE_BYTES = 16
_HELD = 4_096


class References:
    """The keyed hashes of one log."""

    def __init__(self, log_key: bytes) -> None:
        keys = SubjectKeys(log_key)
        self._keys = {each: keys.key(f"audit/{each}") for each in ("memory", "run", "place")}
        self._tenant_key = keys.key("audit/tenant")
        self.memory = lru_cache(_HELD)(self._memory)
        self.run = lru_cache(_HELD)(self._run)
        self.place = lru_cache(_HELD)(self._place)
        self.tenant = lru_cache(_HELD)(self._tenant)

    def _memory(self, memory_id: str) -> bytes:
        return _hash(self._keys["memory"], memory_id)

    def _run(self, run: str) -> bytes:
        return _hash(self._keys["run"], run)

    def _place(self, place: str) -> bytes:
        return _hash(self._keys["place"], place)

    def _tenant(self, tenant: str) -> str:
        return _hash(self._tenant_key, tenant).hex()


def _hash(key: bytes, text: str) -> bytes:
    return hmac.digest(key, clean_text(text).encode(), "sha256")[:REFERENCE_BYTES]

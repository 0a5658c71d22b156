"""What was redacted lately: by keyed hash, so that the cache holds no raw text."""

from __future__ import annotations

import secrets
import threading
from collections import OrderedDict
from functools import lru_cache, partial
from hashlib import blake2b
from typing import NamedTuple

from ...telemetry.fork import reset_after_fork


class Cached(NamedTuple):
    """
    A result.

    Attributes:
        text: Redacted.
        counts: Replacements by entity.
        pseudonyms: Those among the replacements.
    """

    text: str
    counts: tuple[tuple[str, int], ...]
    pseudonyms: tuple[str, ...] = ()

    def __repr__(self) -> str:
        """Never the text: what nothing was found in is as it was given."""
        return f"Cached({len(self.text)} characters)"


class Cache:
    """
    Least recently used results, bounded in number and in characters.

    Args:
        entries: Most results to hold.
        chars: Most characters to hold.
    """

    def __init__(self, *, entries: int = 4_096, chars: int = 4_000_000) -> None:
        self._begun = lru_cache(maxsize=1_024)(partial(_begun, secrets.token_bytes(32)))
        self._entries, self._chars = entries, chars
        self.forked()
        reset_after_fork(self)

    def forked(self) -> None:
        """Begin empty, in a forked child too: a thread of the parent may have been inside."""
        # Re-entrant: a finaliser or signal handler may call a store from within these few lines.
        self._lock = threading.RLock()
        self._held: OrderedDict[bytes, Cached] = OrderedDict()
        self._size = 0

    def key_of(self, *parts: str) -> bytes:
        """Return a hash that only this process can compute; of the last part, nothing is kept."""
        hashed = self._begun(parts[:-1]).copy()
        hashed.update(parts[-1].encode("utf-8", "surrogatepass"))
        return hashed.digest()

    def get(self, key: bytes) -> Cached | None:
        """Return what is held under *key*."""
        with self._lock:
            if (found := self._held.get(key)) is not None:
                self._held.move_to_end(key)
            return found

    def put(self, key: bytes, result: Cached) -> None:
        """Hold *result*, at the cost of the least recently used."""
        with self._lock:
            if key in self._held or len(result.text) > self._chars:
                return
            self._held[key] = result
            self._size += len(result.text)
            while self._size > self._chars or len(self._held) > self._entries:
                _, oldest = self._held.popitem(last=False)
                self._size -= len(oldest.text)


def _begun(key: bytes, parts: tuple[str, ...]) -> blake2b:
    """Return the hash of all parts but the last, which is the rest: so only it needs no length."""
    hashed = blake2b(key=key, digest_size=16)
    for part in parts:
        encoded = part.encode("utf-8", "surrogatepass")
        hashed.update(len(encoded).to_bytes(8, "big"))
        hashed.update(encoded)
    return hashed

"""The cache of recent redactions, under keyed hashes, so that it holds no raw text as a key."""

from __future__ import annotations

import secrets
import threading
from collections import OrderedDict
from functools import lru_cache, partial
from hashlib import blake2b
from typing import Generic, NamedTuple, Protocol, TypeVar

from ....telemetry.process.fork import reset_after_fork


class RedactedText(NamedTuple):
    """
    A redacted text and what was replaced in it.

    Attributes:
        text: The redacted text.
        counts: Number of replacements by entity.
        pseudonyms: The replacements that are pseudonyms.
    """

    text: str
    counts: tuple[tuple[str, int], ...]
    pseudonyms: tuple[str, ...] = ()

    @property
    def chars(self) -> int:
        """The length of the text."""
        return len(self.text)

    def __repr__(self) -> str:
        """Show the length only: a clean text is as the caller gave it."""
        return f"RedactedText({self.chars} characters)"


class SizedResult(Protocol):
    """What is cached of a text."""

    @property
    def chars(self) -> int:
        """The characters that it takes, or as many as take the same room."""
        ...


T = TypeVar("T", bound=SizedResult)


_AT_ONCE = 2_047
"""
Bytes that are hashed at once.

From one more on, the hash gives up the interpreter's lock. Having it back from threads that redact
takes a loop's thread a hundred times as long as the hash.
"""


class RedactionCache(Generic[T]):
    """
    An LRU cache of what is known of texts, bounded in entries and in characters. Thread-safe.

    Args:
        entries: Maximum number of redactions.
        chars: Maximum number of characters.
    """

    def __init__(self, *, entries: int = 4_096, chars: int = 4_000_000) -> None:
        self._prefix_hash = lru_cache(maxsize=1_024)(partial(_hash_prefix, secrets.token_bytes(32)))
        self._entries, self._chars = entries, chars
        self.forked()
        reset_after_fork(self)

    def forked(self) -> None:
        """Start empty in a forked child: a thread of the parent may have held the lock."""
        # Re-entrant: a finalizer or signal handler may call a store from within the lock.
        self._lock = threading.RLock()
        self._held: OrderedDict[bytes, T] = OrderedDict()
        self._size = 0

    def key_of(self, *parts: str) -> bytes:
        """Return the keyed hash of *parts*. The prefix is cached, the last part is not."""
        hashed = self._prefix_hash(parts[:-1]).copy()
        encoded = parts[-1].encode("utf-8", "surrogatepass")
        if len(encoded) <= _AT_ONCE:
            hashed.update(encoded)
        else:
            for start in range(0, len(encoded), _AT_ONCE):
                hashed.update(encoded[start : start + _AT_ONCE])
        return hashed.digest()

    def get(self, key: bytes) -> T | None:
        """Return the cached value of *key*, or None."""
        with self._lock:
            if (found := self._held.get(key)) is not None:
                self._held.move_to_end(key)
            return found

    def put(self, key: bytes, result: T) -> None:
        """Add *result*, and evict the least recently used."""
        with self._lock:
            if key in self._held or result.chars > self._chars:
                return
            self._held[key] = result
            self._size += result.chars
            while self._size > self._chars or len(self._held) > self._entries:
                _, oldest = self._held.popitem(last=False)
                self._size -= oldest.chars


def _hash_prefix(key: bytes, parts: tuple[str, ...]) -> blake2b:
    """Return the hash of *parts*, each with its length; the last part follows without one."""
    hashed = blake2b(key=key, digest_size=16)
    for part in parts:
        encoded = part.encode("utf-8", "surrogatepass")
        hashed.update(len(encoded).to_bytes(8, "big"))
        hashed.update(encoded)
    return hashed

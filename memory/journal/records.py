"""The records of the journal: writes as they are kept, sealed under the key of the settings."""

from __future__ import annotations

import json
import secrets
import threading
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, NamedTuple

from ...telemetry.files.file_lock import FileLock
from ..guard.touches import UNTOLD, Touches

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

_NONCE_BYTES = 12
_NAME_BYTES = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class Write:
    """
    One write as it is kept.

    Attributes:
        id: Its own, and the one that it carries into stores that would take it twice.
        method: The client's own name for what is to be called.
        arguments: What with, redacted, as `codec.ArgumentCodec` wrote them.
        created_ns: When it was asked for, nanoseconds since 1970 UTC.
        labels: Tenant, agent, feature, run and purpose as sinks may have them.
        customer: For whom, verbatim, where ownership is checked as it is made again. Else None.
        trace_id: Of the call that asked for it.
        sampled: Whether that trace is recorded.
    """

    id: str
    method: str
    arguments: str = field(repr=False)
    created_ns: int
    labels: Mapping[str, str] = field(default_factory=dict[str, str])
    customer: str | None = field(default=None, repr=False)
    trace_id: int = 1
    span_id: int = 1
    sampled: bool = False


class Kept(NamedTuple):
    """Where a call waits in the journal."""

    seq: int
    write: Write


class Lease(NamedTuple):
    """
    The right to make the writes of a queue, among processes and in this one.

    Attributes:
        passes: Places of the writes that must not be made after the call that has it.
    """

    lock: FileLock
    busy: threading.Lock
    passes: Sequence[int] = ()


class Sealer:
    """
    Seals writes, and the names of what they touch, under one key.

    Args:
        key: 32 secret bytes.
    """

    def __init__(self, key: bytes) -> None:
        self._key = key
        self._key_id = self._digest("")

    def __repr__(self) -> str:
        """Hide the key."""
        return "Sealer(...)"

    @cached_property
    def _cipher(self) -> AESGCM:
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM  # noqa: PLC0415 - costs time

        return AESGCM(self._key)

    def sealed(self, write: Write) -> bytes:
        """Return *write*, encrypted and bound to its id."""
        nonce = secrets.token_bytes(_NONCE_BYTES)
        text = json.dumps(asdict(write), separators=(",", ":")).encode()
        return nonce + self._cipher.encrypt(nonce, text, write.id.encode())

    def opened(self, sealed: bytes, write_id: str) -> Write:
        """
        Return the write of *write_id* that was `sealed`.

        Raises:
            ValueError: It is not as it was written, or was sealed under another key.
        """
        from cryptography.exceptions import InvalidTag  # noqa: PLC0415 - costs time

        nonce, body = sealed[:_NONCE_BYTES], sealed[_NONCE_BYTES:]
        try:
            return Write(**json.loads(self._cipher.decrypt(nonce, body, write_id.encode())))
        except (InvalidTag, TypeError, ValueError):
            raise ValueError("a write in the journal is damaged, or of another key") from None

    def touched(self, touches: Touches) -> str:
        """Return *touches* as JSON, with a keyed digest in place of each name."""
        return json.dumps(
            {
                "within": touches.within and self._digest(touches.within),
                "records": sorted(map(self._digest, touches.records)),
                "owners": sorted(map(self._digest_of_value, touches.owners)),
                "partly": touches.partly,
                "everything": touches.everything,
                "unknown": touches.unknown,
                "key": self._key_id,
            }
        )

    def untouched(self, text: str) -> Touches:
        """Return what `touched` wrote, its names as digests. Under another key: nothing is told."""
        touches = read_touches(text)
        return touches if touches.key == self._key_id else UNTOLD

    def _digest_of_value(self, owner: str) -> str:
        key, _, name = owner.partition("=")
        return f"{key}={self._digest(name)}"

    def _digest(self, name: str) -> str:
        text = name.encode("utf-8", "surrogatepass")
        return blake2b(text, digest_size=_NAME_BYTES, key=self._key).hexdigest()


def read_touches(text: str) -> Touches:
    """Return what `Sealer.touched` wrote; its names are digests."""
    said: dict[str, Any] = json.loads(text)
    said.update({name: frozenset(said[name]) for name in ("records", "owners")})
    return Touches(**said)


class Apart:
    """
    Tells of most writes that a deletion does not cover them, by their text alone.

    A deletion looks at all that waits, while other processes are kept from the journal: to read
    each would take five times as long.
    """

    def __init__(self, deleted: Touches) -> None:
        self._key = f'"key": "{deleted.key}"'
        self._records = sorted(deleted.records)
        owners = (each.partition("=") for each in deleted.owners)
        self._owners = [(f'"{key}=', f'"{key}={name}"') for key, _, name in owners]
        self._is_told = not (deleted.unknown or deleted.everything)

    def __call__(self, text: str) -> bool:
        """Tell whether what `Sealer.touched` wrote is certainly not covered."""
        if not self._is_told or '"unknown": false' not in text or self._key not in text:
            return False
        if any(each in text for each in self._records):
            return False
        if self._owners:
            return any(key in text and this not in text for key, this in self._owners)
        return bool(self._records) and '"records": []' not in text

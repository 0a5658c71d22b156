"""
The signed end of the log: a note like a checkpoint, replaced as the log grows.

A checkpoint is kept, and sent to other sinks, now and then. In between, the end is signed in the
transaction that moves it: once a second, or after 256 events, whichever comes first, and sooner
where no further event is known of, since the process may end without a word. There is one
of it, so somebody without the key who cuts the log cannot put an earlier one in its place: a
checkpoint says that it is one, and this says that it is the end.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..database.database import ReadConnection, WriteConnection
from ..database.schema import HEADS, version_of
from ..proof.merkle import Frontier
from ..proof.note import Signer, checkpoint_text, parse_checkpoint
from ..record.keys import Keyring

EVENTS, SECONDS = 256, 1.0
"""The end is signed after so many events, or so long."""

QUIET_S = 0.05
"""And after so long where no further event is known of."""

_MARK = "end of the log at"
_REPLACE = (
    "INSERT INTO audit_head(place, note) VALUES (0, ?) "
    "ON CONFLICT (place) DO UPDATE SET note = excluded.note"
)


class HeadSigner:
    """
    Signs the end of a log as this process moves it. Not thread-safe.

    Args:
        clock_ns: Wall clock.
    """

    def __init__(self, ring: Keyring, clock_ns: Callable[[], int]) -> None:
        self._ring = ring
        self._clock_ns = clock_ns
        self._signer: Signer | None = None
        self._unsigned = 0
        self._signed_ns: int | None = None

    @property
    def owed(self) -> int:
        """Events to be signed although no other comes; 0 while what was stored is not known."""
        return 0 if self._signed_ns is None else self._unsigned

    def moved(self, events: int) -> None:
        """Note that the log has so many more events."""
        self._unsigned += events

    def forget(self) -> None:
        """Sign at the next occasion: what was signed may not be in the log."""
        self._signed_ns = None

    def sign(
        self, connection: WriteConnection, origin: str, size: int, frontier: bytes, within_s: float
    ) -> None:
        """
        Sign the end, if it is due.

        Args:
            connection: Of the transaction that moved it.
            origin: The log's name.
            size: Its events.
            frontier: The right edge of its tree.
            within_s: It is due so long after the last time.
        """
        now_ns, before_ns = self._clock_ns(), self._signed_ns
        if before_ns is not None and not self._is_due(now_ns - before_ns, within_s):
            return
        # A database that was put in the place of another has another name.
        if self._signer is None or self._signer.name != origin:
            self._signer = Signer(origin, self._ring.current.key("audit/sign"))
        root = Frontier.from_bytes(size, frontier).root()
        text = checkpoint_text(origin, size, root, f"{_MARK} {now_ns // 1_000}")
        note = self._signer.sign(text)
        # Of the same transaction: a signature that is committed alone could be of an end that was
        # rolled back.
        connection.send(_REPLACE, (note,))
        self._signed_ns, self._unsigned = now_ns, 0

    def _is_due(self, age_ns: int, within_s: float) -> bool:
        # A wall clock may run backwards, and must not put the signature off.
        is_late = self._unsigned >= EVENTS or not 0 <= age_ns < within_s * 1e9
        return bool(self._unsigned) and is_late


def stored_heads(connection: ReadConnection) -> list[str] | None:
    """Return the notes that are kept as the end: one. None: of a log that keeps none."""
    if connection.version < version_of(HEADS):
        return None
    found: list[Any] = connection.execute("SELECT place, note FROM audit_head").fetchall()
    return [note if place == 0 else "" for place, note in found]


def signed_us_of(note: str) -> int | None:
    """Return when the end was signed, microseconds since 1970 UTC; None: this is no such note."""
    try:
        extensions = parse_checkpoint(note).extensions
    except ValueError:
        return None
    mark, _, moment = extensions[0].rpartition(" ") if len(extensions) == 1 else ("", "", "")
    return int(moment) if mark == _MARK and moment.isascii() and moment.isdigit() else None

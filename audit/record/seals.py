"""
The keyed hashes that no row verifies without: whoever has the database alone can make none.

The head of the log is sealed as it is: with it the hash of the last event, and with that, since
each event has the hash of the one before, every event. Of each table whose rows change, the head
has a keyed sum over the rows: one that is changed, added, removed, doubled, or put back from an
older copy changes it. A sum is told with a random mask (MSet-Add-Hash, Clarke et al. 2003), so that
no hash of a single row is ever seen. All keys come from the log's own.

Who is who is in events as well, so that it is signed with them: each event after a change of the
customers and their identifiers has the difference that it made to a second sum over their rows.
"""

from __future__ import annotations

import hmac
import json
import secrets
from collections.abc import Mapping
from typing import Any

import orjson

from ...telemetry.event.subject import SubjectKeys
from ..database.database import Value
from .rows import LOG

_NONCE_BYTES = 16
_SUM_BYTES = 32
_ALL = 1 << 8 * _SUM_BYTES


class Seals:
    """The keyed hashes of one log."""

    def __init__(self, log_key: bytes) -> None:
        keys = SubjectKeys(log_key)
        self._keys = {
            each: keys.key(f"audit/{each}") for each in ("head", "row", "mask", "gone", "identity")
        }

    def head(self, values: Mapping[str, Value]) -> bytes:
        """Return the seal of a head row, which is of its columns but for the seal itself."""
        return self._hash("head", encoded("audit_log", values))

    def row(self, table: str, values: Mapping[str, Value]) -> int:
        """Return what a row adds to the sum of its table."""
        return self._number("row", encoded(table, values))

    def identity(self, table: str, values: Mapping[str, Value]) -> int:
        """Return what a customer, or an identifier of one, adds to the sum that events have."""
        return self._number("identity", encoded(table, values))

    def gone(self, seq: int) -> int:
        """Return what an event adds to the sum of those whose detail was erased."""
        return self._number("gone", b"%d" % seq)

    def masked(self, table: str, total: int) -> str:
        """Return a sum as it may be seen."""
        nonce = secrets.token_bytes(_NONCE_BYTES)
        mask = self._number("mask", encoded(table, {"nonce": nonce}))
        return (nonce + added(total, mask).to_bytes(_SUM_BYTES)).hex()

    def unmasked(self, table: str, text: str) -> int:
        """
        Return what `masked` was given.

        Raises:
            ValueError: It is not what `masked` returns.
        """
        data = bytes.fromhex(text)
        if len(data) != _NONCE_BYTES + _SUM_BYTES or data.hex() != text:
            raise ValueError("a sum is 48 bytes in hexadecimal")
        nonce, total = data[:_NONCE_BYTES], int.from_bytes(data[_NONCE_BYTES:])
        return added(total, -self._number("mask", encoded(table, {"nonce": nonce})))

    def _number(self, key: str, data: bytes) -> int:
        return int.from_bytes(self._hash(key, data))

    def _hash(self, key: str, data: bytes) -> bytes:
        return hmac.digest(self._keys[key], data, "sha256")


def added(*numbers: int) -> int:
    """Return a sum of what `Seals.row`, `Seals.identity` or `Seals.gone` returned."""
    return sum(numbers) % _ALL


def sum_text(total: int) -> str:
    """Return a sum as an event has it."""
    return f"{total % _ALL:064x}"


def identities_in(header: Mapping[str, Any]) -> int:
    """Return what an event says was changed of the sum of identities, also by others before it."""
    carried = header["data"].get("identities") if header["kind"] == LOG else None
    return sum(int(each, 16) for each in (header.get("identities"), carried) if each is not None)


def encoded(place: str, values: Mapping[str, Value]) -> bytes:
    """Return *values* as bytes that no others have. A NULL is as if it were not there."""
    known = {name: _typed(value) for name, value in values.items() if value is not None}
    try:
        return orjson.dumps([place, known], option=orjson.OPT_SORT_KEYS)
    except TypeError:  # what no program wrote: text that is no UTF-8
        return json.dumps([place, known], sort_keys=True).encode()


def _typed(value: str | float | bytes) -> Any:
    # PostgreSQL's driver may give a view of bytes.
    return value if isinstance(value, (str, int, float)) else {"blob": bytes(value).hex()}

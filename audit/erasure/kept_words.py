"""
The words that an erasure looks for, kept until it is done.

They are what was in the stores before it was removed, so a second run has them from nowhere else.
Encrypted for their request, in a row that goes with the request's last step: after that nobody can
look for them again.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field

from ..database.database import WriteConnection, blob
from ..record.keys import Keyring
from ..record.subjects import AnyConnection

TABLE = "audit_erasure"


@dataclass(frozen=True, slots=True)
class KeptWords:
    """
    What one request looks for.

    Attributes:
        rows: Beginnings of aliases, keys and ciphertexts that the trail's files must lose.
    """

    texts: frozenset[str] = field(default=frozenset(), repr=False)
    rows: frozenset[bytes] = field(default=frozenset(), repr=False)

    def union(self, other: KeptWords) -> KeptWords:
        """Return the words of both: two runs may go on at once."""
        return KeptWords(self.texts | other.texts, self.rows | other.rows)


def kept_words(connection: AnyConnection, ring: Keyring, request: str) -> KeptWords | None:
    """
    Return the words of *request*; None where none were ever kept, or the row is gone.

    Raises:
        KeyMissingError: They were encrypted with another secret, or changed.
    """
    found = connection.execute(
        f"SELECT key_id, sealed FROM {TABLE} WHERE request = ?",  # noqa: S608 - ours
        (request,),
    ).fetchone()
    if found is None:
        return None
    key_id, sealed = found
    known = json.loads(ring.unwrap(blob(sealed), key_id, _bound_to(request)))
    return KeptWords(frozenset(known["texts"]), frozenset(map(bytes.fromhex, known["rows"])))


def keep_words(connection: WriteConnection, ring: Keyring, request: str, words: KeptWords) -> None:
    """Keep *words* in the place of those that were kept for *request*."""
    known = {"texts": sorted(words.texts), "rows": sorted(each.hex() for each in words.rows)}
    # Bound to the request, so that a row that was copied to another does not open there.
    sealed = ring.wrap(json.dumps(known).encode(), _bound_to(request))
    drop_words(connection, request)
    connection.execute(
        f"INSERT INTO {TABLE}(request, key_id, sealed) VALUES (?, ?, ?)",  # noqa: S608 - ours
        (request, ring.current_id, sealed),
    )


def drop_words(connection: WriteConnection, request: str) -> None:
    """Remove the words of *request*."""
    connection.execute(f"DELETE FROM {TABLE} WHERE request = ?", (request,))  # noqa: S608 - ours


def _bound_to(request: str) -> str:
    return f"audit/erasing/words\n{request}"

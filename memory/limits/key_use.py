"""
The key of digests and pseudonyms, and the stores in which data is found again by it.

Namespaces, keys and values that are one identifier are stored as keyed digests, so a process with
another key finds nothing of what was written, and has no way to see that. A key that was made on
one machine is such a key for every other machine. Hence: the key is configuration, a store that
carries a key's id is used with that key alone, and what cannot be checked is said.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from ..errors import KeyMismatchError

ID_BYTES = 4

logger = logging.getLogger("mnemoscope")


def key_id_of(digest_key: Callable[[str], bytes]) -> str:
    """Return the name of the key that *digest_key* derives from: 8 hexadecimal digits."""
    return digest_key("key-id")[:ID_BYTES].hex()


class KeyUse:
    """
    What is known of a scope's key and of the stores that are used with it.

    Args:
        digest_key: Derives a secret for a purpose from the key.
        is_given: Whether the settings name the key. If not, it was made on this machine.

    Attributes:
        id: Names the key and tells nothing about it: 8 hexadecimal digits.
        shared: Names of the stores that other machines can use too.
        refused: Ids of the keys that stores were written under, where it is not this one, by store.
        unmarked: Names of the stores that took no mark of the key.
    """

    def __init__(self, digest_key: Callable[[str], bytes], *, is_given: bool) -> None:
        self.id = key_id_of(digest_key)
        self.is_given = is_given
        self.shared: set[str] = set()
        self.refused: dict[str, str] = {}
        self.unmarked: set[str] = set()

    def note_store(self, store: str, *, shared: bool) -> None:
        """Take note of a store that is guarded now; say so if others will not find its data."""
        if not shared or store in self.shared:
            return
        self.shared.add(store)
        if not self.is_given:
            logger.warning("%s", self.generated_sentence((store,)))

    def generated_sentence(self, stores: tuple[str, ...]) -> str:
        """Return a line about a key that was made on this machine, and shared *stores*."""
        return (
            f"the key {self.id} was made on this machine, and other machines may share "
            f"{', '.join(stores)}: what is stored under keyed digests is found with this key "
            f"alone. {HOW}"
        )

    def check(self, store: str, found: str) -> None:
        """
        Compare the id that *store* carries with this key's.

        Raises:
            KeyMismatchError: It is another key's.
        """
        if found == self.id:
            self.refused.pop(store, None)
            return
        self.refused[store] = found
        raise KeyMismatchError(store, found, self.id)


HOW = (
    "Set MNEMOSCOPE_AUDIT_PSEUDONYM_KEY or MNEMOSCOPE_AUDIT_PSEUDONYM_KEY_FILE to the same key in "
    "all processes"
)

"""
The secrets of a vault, and its customers as they are looked up with them.

A secret has two uses here: it wraps the data keys of the customers, and it gives the key by which a
customer is looked up, since the file holds keyed hashes in place of ids.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from ....telemetry.event.subject import SubjectKeys, keyed_hash
from ...limits.key_use import key_id_of


@dataclass(frozen=True, slots=True, kw_only=True)
class VaultSecret:
    """
    The part of one secret that a vault uses.

    Attributes:
        id: Names the secret and tells nothing about it, as `mnemoscope doctor` shows it.
        wrapping: Wraps the data keys of the customers.
        lookup: Customers are looked up by their hash under it.
    """

    id: str
    wrapping: bytes = field(repr=False)
    lookup: bytes = field(repr=False)

    @classmethod
    def of(cls, keys: SubjectKeys) -> VaultSecret:
        """Return the part of *keys*."""
        return cls(
            id=key_id_of(keys.key), wrapping=keys.key("vault"), lookup=keys.key("vault/subject")
        )


class VaultSecrets:
    """
    The secrets that are configured.

    Args:
        current: What is written with.
        previous: What is read with besides.

    Attributes:
        current: The part of the current one.
    """

    def __init__(self, current: SubjectKeys, previous: Sequence[SubjectKeys] = ()) -> None:
        self.current = VaultSecret.of(current)
        named = (self.current, *map(VaultSecret.of, previous))
        self._by_id = {each.id: each for each in reversed(named)}

    def __iter__(self) -> Iterator[VaultSecret]:
        return iter(self._by_id.values())

    def __contains__(self, key_id: str) -> bool:
        return key_id in self._by_id


@dataclass(frozen=True, slots=True)
class VaultCustomer:
    """
    A customer, as they are looked up in a vault.

    Attributes:
        customer: Their id.
        tenant: Their tenant. Empty: they have none. None: it was not said.
    """

    customer: str = field(repr=False)
    tenant: str | None = field(default=None, repr=False)

    def subject(self, lookup: bytes) -> str:
        """Return the hash of customer and tenant under the key *lookup*."""
        return keyed_hash(lookup, self.tenant or "", self.customer)

    def person(self, lookup: bytes) -> str:
        """Return the hash of the customer's id alone: the same in every tenant."""
        return keyed_hash(lookup, self.customer)

"""
The spellings of an id: which of them may be one person's, and how one is kept for finding it again.

Two ids that differ in case, in the form of their Unicode, or in space around them are spellings of
each other. A log finds all of them by one keyed hash, of what they have in common, without tenant.
Spelling and tenant themselves are encrypted with a key that takes the secret and the id, in any of
its spellings: whoever has the secret alone can list nobody.
"""

from __future__ import annotations

import hmac
import json
import os
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias
from unicodedata import normalize

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

DerivedKey: TypeAlias = Callable[[str], bytes]
"""Returns the key for a purpose."""

_HASH_BYTES = 16
_NONCE_BYTES = 12
_PADDED_BYTES = 64
"""What is sealed is as long as a multiple of this, so that lengths tell nobody."""

_NUMBER = re.compile(r"0|-?[1-9][0-9]{0,18}")
_LARGEST = 2**63 - 1
"""What databases have as a whole number."""

_FORMS: Final = ("NFC", "NFD", "NFKC", "NFKD")


@dataclass(frozen=True, slots=True)
class Identity:
    """
    An id of a customer, as an application spells it, and the tenant it is used in.

    Attributes:
        customer: The id. Not in the `repr`.
        tenant: Its tenant; empty where the application named none. Not in the `repr`.
    """

    customer: str = field(repr=False)
    tenant: str = field(default="", repr=False)


class Spelling(NamedTuple):
    """
    An identity as a log keeps it.

    Attributes:
        folded: The keyed hash that all its spellings have, in all tenants.
    """

    folded: str
    sealed: bytes


def id_text(given: Any) -> Any:
    """Return an id that was given as a whole number as its digits; all else as it is."""
    return str(given) if isinstance(given, int) and not isinstance(given, bool) else given


def id_forms(customer: str) -> tuple[str | int, ...]:
    """Return an id in the forms that stores may have it in: text, and a number if it is digits."""
    if _NUMBER.fullmatch(customer) and abs(int(customer)) <= _LARGEST:
        return customer, int(customer)
    return (customer,)


def folded(text: str) -> str:
    """Return what all spellings of *text* have in common."""
    return normalize("NFKC", normalize("NFKC", text).strip().casefold()).strip()


def usual_spellings(text: str) -> tuple[str, ...]:
    """Return *text* and the spellings of it that people and programs usually make."""
    same = folded(text)
    return tuple(dict.fromkeys(each for each in _spellings(text) if folded(each) == same))


def _spellings(text: str) -> Iterator[str]:
    yield text
    bare = text.strip()
    for cased in (bare, bare.lower(), bare.casefold(), bare.upper(), bare.capitalize()):
        yield cased
        yield from (normalize(form, cased) for form in _FORMS)
    yield bare.title()


def folded_hash(key: DerivedKey, customer: str) -> str:
    """Return the hash by which all spellings of *customer* are found."""
    return hmac.digest(key("audit/folded"), _folded_bytes(customer), "sha256")[:_HASH_BYTES].hex()


def seal(key: DerivedKey, identity: Identity, bound_to: str) -> Spelling:
    """
    Return *identity* as a log keeps it, in one place alone.

    Args:
        key: Derives keys: `SubjectKeys.key`.
        identity: Id and tenant.
        bound_to: The place.
    """
    nonce = os.urandom(_NONCE_BYTES)
    text = json.dumps([identity.tenant, identity.customer]).encode()
    text = text.ljust(-(-len(text) // _PADDED_BYTES) * _PADDED_BYTES)
    sealed = nonce + _aead(key, identity.customer).encrypt(nonce, text, bound_to.encode())
    return Spelling(folded_hash(key, identity.customer), sealed)


def open_sealed(key: DerivedKey, customer: str, sealed: bytes, bound_to: str) -> Identity | None:
    """
    Return the identity that `seal` was given.

    Args:
        key: The same.
        customer: The same, or another spelling.
        sealed: What it returned.
        bound_to: The same.

    Returns:
        None: one of them is not the same.
    """
    from cryptography.exceptions import InvalidTag  # noqa: PLC0415 - 20 ms

    nonce, text = sealed[:_NONCE_BYTES], sealed[_NONCE_BYTES:]
    try:
        known = json.loads(_aead(key, customer).decrypt(nonce, text, bound_to.encode()))
    except (InvalidTag, ValueError):
        return None
    tenant, spelled = known
    return Identity(spelled, tenant)


def _aead(key: DerivedKey, customer: str) -> AESGCM:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM  # noqa: PLC0415 - 20 ms

    return AESGCM(hmac.digest(key("audit/spelling"), _folded_bytes(customer), "sha256"))


def _folded_bytes(customer: str) -> bytes:
    return folded(customer).encode("utf-8", "surrogatepass")

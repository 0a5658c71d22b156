"""
The customer of an operation, whom each sink knows by a keyed hash of its own.

An unkeyed hash of an e-mail address is reversed by trying addresses (EDPB guidelines 01/2025 on
pseudonymisation), and one key for all sinks would let an outsider join them. So each sink has a
key of its own, derived by HKDF (RFC 5869).
"""

from __future__ import annotations

import base64
import hmac
import json
import os
from functools import lru_cache
from typing import TYPE_CHECKING, NoReturn, final

from .spelling import Identity, Spelling, seal

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

HASH_BYTES = 16
_HELD = 4_096
_SHA256_BYTES = 32
_NONCE_BYTES = 12
_PADDED_BYTES = 64
"""What is enclosed is as long as a multiple of this, so that lengths tell nobody."""


class SubjectKeys:
    """
    The keys behind subject hashes, derived from one secret.

    Args:
        secret: At least 16 random bytes.
    """

    __slots__ = ("_derive", "_secret", "enclosed", "opened", "pseudonym")

    def __init__(self, secret: bytes) -> None:
        if len(secret) < 16:  # noqa: PLR2004 - 128 bits, the least that RFC 5869 inputs should hold
            raise ValueError("the subject secret must be at least 16 bytes: generate one at random")
        self._secret = secret
        self._derive = lru_cache(maxsize=64)(self._hkdf)
        # Every sink asks for each event, and whoever was seen just now is seen again.
        self.pseudonym = lru_cache(maxsize=_HELD)(self._pseudonym)
        self.enclosed = lru_cache(maxsize=_HELD)(self._enclosed)
        self.opened = lru_cache(maxsize=_HELD)(self._opened)

    def __repr__(self) -> str:
        """Return a constant, never the secret."""
        return "SubjectKeys(...)"

    def key(self, purpose: str) -> bytes:
        """Derive the 32-byte key for *purpose*, for example a sink's name."""
        return self._derive(purpose)

    def run_reference(self, tenant: str | None, run: str) -> str:
        """Return the keyed hash by which a run is named where its own name is not to be."""
        return keyed_hash(self.key("runs"), tenant or "", run)

    def _pseudonym(self, sink: str, tenant: str, customer: str) -> str:
        return keyed_hash(self.key(sink), tenant, customer)

    def _enclosed(self, tenant: str, customer: str) -> bytes:
        nonce, text = os.urandom(_NONCE_BYTES), json.dumps([tenant, customer]).encode()
        text = text.ljust(-(-len(text) // _PADDED_BYTES) * _PADDED_BYTES)
        return nonce + self._aead().encrypt(nonce, text, None)

    def _opened(self, enclosed: bytes, current: SubjectKeys) -> Subject:
        from cryptography.exceptions import InvalidTag  # noqa: PLC0415 - 20 ms

        nonce, text = enclosed[:_NONCE_BYTES], enclosed[_NONCE_BYTES:]
        try:
            tenant, customer = json.loads(self._aead().decrypt(nonce, text, None))
        except InvalidTag:
            raise ValueError("a subject was enclosed with other keys") from None
        return Subject(customer, tenant=tenant, keys=current)

    def _aead(self) -> AESGCM:
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM  # noqa: PLC0415 - 20 ms

        return AESGCM(self.key("subject/enclosed"))

    def _hkdf(self, purpose: str) -> bytes:
        # RFC 5869 with SHA-256, no salt and one block, as `cryptography` has it, whose import takes
        # a tenth of the time to configure a scope.
        extracted = hmac.digest(bytes(_SHA256_BYTES), self._secret, "sha256")
        return hmac.digest(extracted, b"mnemoscope/subject/" + purpose.encode() + b"\x01", "sha256")


def keyed_hash(key: bytes, *parts: str) -> str:
    """Return the hash of *parts* under *key*: 26 base32 characters. Each part has its length."""
    encoded = [each.encode("utf-8", "surrogatepass") for each in parts]
    message = b"".join(len(part).to_bytes(4, "big") + part for part in encoded)
    digest = hmac.digest(key, message, "sha256")[:HASH_BYTES]
    return base64.b32encode(digest).decode().rstrip("=").lower()


@final
class Subject:
    """
    One customer of one tenant, whose id cannot be read from it.

    It has no readable attribute, `repr` or pickled form; the questions it answers are `hashed`
    and, encrypted, `spelling` and `enclosed`.
    """

    __slots__ = ("__customer", "__keys", "__tenant")

    def __init__(self, customer: str, *, tenant: str | None, keys: SubjectKeys) -> None:
        self.__customer = customer
        self.__tenant = tenant or ""
        self.__keys = keys

    def __repr__(self) -> str:
        """Return a constant, never the id."""
        return "Subject(...)"

    def __reduce__(self) -> NoReturn:
        """Refuse to be pickled."""
        raise TypeError("a Subject does not leave the process: ask it for hashed(sink)")

    def hashed(self, sink: str, keys: SubjectKeys | None = None) -> str:
        """
        Return the customer's pseudonym for one sink: 26 base32 characters, lower case.

        The tenant is part of it, so the same id under two tenants gives two pseudonyms. Parts are
        length-prefixed: ``("ab", "c")`` and ``("a", "bc")`` differ. With *keys*, those before the
        current ones, it is the pseudonym that they gave.
        """
        return (keys or self.__keys).pseudonym(sink, self.__tenant, self.__customer)

    def spelling(self, bound_to: str, keys: SubjectKeys | None = None) -> Spelling:
        """Return id and tenant encrypted, for whoever has the keys and knows the id; see `seal`."""
        identity = Identity(self.__customer, self.__tenant)
        return seal((keys or self.__keys).key, identity, bound_to)

    def enclosed(self) -> bytes:
        """Return id and tenant encrypted, for `SubjectKeys.opened` of a process with these keys."""
        return self.__keys.enclosed(self.__tenant, self.__customer)

"""Encryption in the vault: AES-256-GCM, bound to the row that it is for."""

from __future__ import annotations

import secrets

KEY_BYTES = 32
_NONCE_BYTES = 12
_TAG_BYTES = 16


def seal(key: bytes, plain: bytes, *bound_to: str) -> bytes:
    """Return nonce and ciphertext of *plain*, which open for *bound_to* alone."""
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM  # noqa: PLC0415 - 20 ms

    nonce = secrets.token_bytes(_NONCE_BYTES)
    return nonce + AESGCM(key).encrypt(nonce, plain, _associated_data(*bound_to))


def opened(key: bytes, sealed: object, *bound_to: str) -> bytes | None:
    """Return the plain bytes of *sealed*. None: another key, another binding, or damaged."""
    from cryptography.exceptions import InvalidTag  # noqa: PLC0415 - see above
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM  # noqa: PLC0415

    if not isinstance(sealed, bytes) or len(sealed) < _NONCE_BYTES + _TAG_BYTES:
        return None
    nonce, body = sealed[:_NONCE_BYTES], sealed[_NONCE_BYTES:]
    try:
        return AESGCM(key).decrypt(nonce, body, _associated_data(*bound_to))
    except InvalidTag:
        return None


def _associated_data(*parts: str) -> bytes:
    """Return the associated data of a ciphertext: *parts*, each with its length."""
    encoded = (each.encode() for each in ("mnemoscope/vault", *parts))
    return b"".join(len(each).to_bytes(4, "big") + each for each in encoded)

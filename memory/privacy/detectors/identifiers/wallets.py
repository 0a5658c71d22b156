"""
Crypto-currency addresses and keys, by their check sums.

An Ethereum address counts in any case of its letters: nothing else is ``0x`` with forty digits,
and the hash behind its check sum would take longer than all the rest. What has no check sum
(Solana, Sui) needs a word beside it.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator

from ..finding import Finding
from ..lazy_pattern import compile_later
from ..prefilter import TextFeatures

_TOKEN = compile_later(
    r"[A-Za-z0-9](?<![A-Za-z0-9_+/=.-].)[A-Za-z0-9_-]{24,255}+(?![A-Za-z0-9_+/=])"
)
_BASE58 = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"
_BECH32 = "qpzry9x8gf2tvdw0s3jn54khce6mua7l"
_BECH32_SHAPE = compile_later(
    r"[a-z-]{1,16}1[02-9ac-hj-np-z]{14,220}|[A-Z-]{1,16}1[02-9AC-HJ-NP-Z]{14,220}"
)
_HEX_SHAPE = compile_later(r"0x[0-9a-fA-F]{40}")
_WORDS = compile_later(
    r"(?<![^\W_])(?:wallet|solana|sol|phantom|spl|sui|aptos|crypto|address|public key|pubkey"
    r"|billetera|portefeuille|кошел[её]к\w*|adresse|dirección|indirizzo|adres)(?![^\W_])",
    re.IGNORECASE,
)
_UNCHECKED_SHAPE = compile_later(r"[1-9A-HJ-NP-Za-km-z]{43,44}|0x[0-9a-fA-F]{64}")
_BECH32_CHECKS = frozenset({1, 0x2BC830A3})
_BECH32_STEPS = (0x3B6A57B2, 0x26508E6D, 0x1EA119FA, 0x3D4233DD, 0x2A1462B3)
_PRIVATE_BYTES = frozenset({0x80, 0xB0, 0xEF, 0x9E, 0xCC})
"""First bytes of private keys in Base58Check."""

_PRIVATE_PARTS = frozenset({"nsec", "age-secret-key-"})
_LEAST_BYTES, _MOST_BYTES, _WIF_BYTES = 21, 112, 37
_CHARS_BEFORE = 60


def find_wallets(text: str, _features: TextFeatures) -> Iterator[Finding]:
    """Find crypto-currency addresses and private keys."""
    for match in _TOKEN.finditer(text):
        if found := _entity(match.group()):
            entity, why = found
            yield Finding(*match.span(), entity, 0.95, why)
        elif _UNCHECKED_SHAPE.fullmatch(match.group()) and _WORDS.search(
            text, max(0, match.start() - _CHARS_BEFORE), match.start()
        ):
            yield Finding(*match.span(), "CRYPTO", 0.8, "shape of a wallet, beside a word for it")


def _entity(token: str) -> tuple[str, str] | None:
    """Return the entity of *token* and why, or None if it is no address."""
    if "1" in token and _BECH32_SHAPE.fullmatch(token):
        return _bech32(token.lower())
    if _HEX_SHAPE.fullmatch(token):
        return "CRYPTO", "Ethereum address"
    return _base58(token)


def _base58(token: str) -> tuple[str, str] | None:
    raw = _decode(token)
    if raw is None or len(raw) > _MOST_BYTES:
        return None
    if _has_sha_checksum(raw):
        is_private = (raw[0] in _PRIVATE_BYTES and len(raw) >= _WIF_BYTES) or token[1:4] == "prv"
        return ("SECRET" if is_private else "CRYPTO"), "Base58 check sum of a wallet"
    return None


def _decode(token: str) -> bytes | None:
    number = 0
    for char in token:
        digit = _BASE58.find(char)
        if digit < 0:
            return None
        number = number * 58 + digit
    zeros = len(token) - len(token.lstrip(_BASE58[0]))
    return bytes(zeros) + number.to_bytes((number.bit_length() + 7) // 8, "big")


def _has_sha_checksum(raw: bytes) -> bool:
    if len(raw) < _LEAST_BYTES:
        return False
    digest = hashlib.sha256(hashlib.sha256(raw[:-4]).digest()).digest()
    return digest[:4] == raw[-4:]


def _bech32(token: str) -> tuple[str, str] | None:
    part, _, data = token.rpartition("1")
    values = [ord(char) >> 5 for char in part] + [0] + [ord(char) & 31 for char in part]
    rest = 1
    for value in values + [_BECH32.index(char) for char in data]:
        top = rest >> 25
        rest = (rest & 0x1FFFFFF) << 5 ^ value
        for bit, step in enumerate(_BECH32_STEPS):
            rest ^= step if top >> bit & 1 else 0
    if rest not in _BECH32_CHECKS:
        return None
    entity = "SECRET" if part in _PRIVATE_PARTS else "CRYPTO"
    return entity, "Bech32 check sum of an address or key"

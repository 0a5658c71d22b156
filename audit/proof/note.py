"""
Signed checkpoints: C2SP signed-note, and C2SP tlog-checkpoint inside it, by Ed25519.

A checkpoint says: this log, of so many events, has this root. Whoever keeps one elsewhere will see
if the log is ever rewritten. Both formats are those of Certificate Transparency's newer logs and of
the Go checksum database, so their tools read ours.
"""

from __future__ import annotations

import base64
import binascii
from hashlib import sha256
from typing import NamedTuple

from .merkle import HASH_BYTES

_ED25519 = b"\x01"
_COSIGNATURE = b"\x04"
_TIME_BYTES = 8
_HASH_BYTES = 4
_KEY_BYTES = 32
_PARTS_OF_KEY = 3
_LINES = 3


class Checkpoint(NamedTuple):
    """
    The claims of a signed checkpoint.

    Attributes:
        size: How many events it has.
        extensions: Further lines of its text.
        signers: Names in its signature lines, whether or not those are good.
    """

    origin: str
    size: int
    root: bytes
    extensions: tuple[str, ...] = ()
    signers: tuple[str, ...] = ()


class Signer:
    """
    A signer of notes.

    Args:
        name: The key's name: that of the log. No spaces, no ``+``.
        private_key: 32 bytes, the seed of an Ed25519 key.

    Raises:
        ValueError: The name or the key is not one.
    """

    def __init__(self, name: str, private_key: bytes) -> None:
        # Heavy, and not needed to read or check the trail's structure.
        from cryptography.hazmat.primitives.asymmetric.ed25519 import (  # noqa: PLC0415
            Ed25519PrivateKey,
        )

        if not _is_name(name):
            raise ValueError("the name of a signer has no spaces and no plus signs")
        self.name = name
        self._key = Ed25519PrivateKey.from_private_bytes(private_key)
        public = _ED25519 + self._key.public_key().public_bytes_raw()
        self._hash = _key_hash(name, public)
        self.verifier_key = f"{name}+{self._hash.hex()}+{base64.b64encode(public).decode()}"

    @property
    def key_id(self) -> str:
        """The key's hash, 8 hex digits, as in the verifier key."""
        return self._hash.hex()

    def sign(self, text: str) -> str:
        """
        Return the note of *text*: the text, an empty line, and one signature line.

        Raises:
            ValueError: The text does not end with a newline, or holds control characters.
        """
        if not _is_text(text):
            raise ValueError("the text of a note is lines without control characters")
        signature = base64.b64encode(self._hash + self._key.sign(text.encode())).decode()
        return f"{text}\n\N{EM DASH} {self.name} {signature}\n"


def checkpoint_text(origin: str, size: int, root: bytes, *extensions: str) -> str:
    """Return the text of a checkpoint, to be signed."""
    return "".join(f"{line}\n" for line in (origin, size, _base64(root), *extensions))


def parse_checkpoint(note: str) -> Checkpoint:
    """
    Return what a signed checkpoint claims. Does not look at its signatures: see `verified`.

    Raises:
        ValueError: It is not one. Quotes nothing of it.
    """
    text, signatures = _parts(note)
    lines = text.split("\n")[:-1]
    if len(lines) < _LINES or not all(lines):
        raise ValueError("a checkpoint has an origin, a size and a root")
    origin, size, root = lines[:_LINES]
    # One spelling of each number: another would be another text, with another signature.
    if not (size.isascii() and size.isdigit()) or (size[0] == "0" and size != "0"):
        raise ValueError("the size of a checkpoint is a decimal number")
    found = _unbase64(root)
    if len(found) != HASH_BYTES:
        raise ValueError(f"the root of a checkpoint has {HASH_BYTES} bytes")
    names = tuple(name for name, _signature in signatures)
    return Checkpoint(origin, int(size), found, tuple(lines[_LINES:]), names)


def verified(note: str, verifier_key: str) -> bool:
    """
    Return whether *note* is signed by the key, a log's or a witness's; others are passed over.

    Raises:
        ValueError: The verifier key is not one.
    """
    name, key_hash, kind, public = _parse_key(verifier_key)
    try:
        text, signatures = _parts(note)
    except ValueError:
        return False
    ours = [
        signature[_HASH_BYTES:]
        for signer, signature in signatures
        if signer == name and signature[:_HASH_BYTES] == key_hash
    ]
    # Of two signatures by one key a bad one is a forger's, whatever the other is.
    if kind == _COSIGNATURE:
        return bool(ours) and all(_is_cosigned(text, signature, public) for signature in ours)
    return bool(ours) and all(_is_signed(text, signature, public) for signature in ours)


def _is_cosigned(text: str, signature: bytes, public: bytes) -> bool:
    """Return whether a witness has signed *text*: C2SP tlog-cosignature, with its time."""
    time_s = int.from_bytes(signature[:_TIME_BYTES])
    return _is_signed(f"cosignature/v1\ntime {time_s}\n{text}", signature[_TIME_BYTES:], public)


def _is_signed(text: str, signature: bytes, public: bytes) -> bool:
    from cryptography.exceptions import InvalidSignature  # noqa: PLC0415
    from cryptography.hazmat.primitives.asymmetric.ed25519 import (  # noqa: PLC0415
        Ed25519PublicKey,
    )

    try:
        Ed25519PublicKey.from_public_bytes(public).verify(signature, text.encode())
    except InvalidSignature:
        return False
    return True


def _parts(note: str) -> tuple[str, list[tuple[str, bytes]]]:
    """Return a note's text and its signature lines: names, and key hash followed by signature."""
    # The last empty line: the text may have some of its own.
    text, separator, tail = note.rpartition("\n\n")
    text += "\n"
    if not separator or not tail.endswith("\n") or not _is_text(text):
        raise ValueError("a note is a text, an empty line, and signatures")
    return text, [_signature(line) for line in tail.split("\n")[:-1]]


def _signature(line: str) -> tuple[str, bytes]:
    dash, _, rest = line.partition(" ")
    name, _, signature = rest.partition(" ")
    blob = _unbase64(signature)
    # Of any length: keys of other kinds sign otherwise, and their lines are passed over.
    if dash != "\N{EM DASH}" or not _is_name(name) or len(blob) <= _HASH_BYTES:
        raise ValueError("a signature line is a dash, a name and a signature")
    return name, blob


def _parse_key(verifier_key: str) -> tuple[str, bytes, bytes, bytes]:
    parts = verifier_key.split("+", 2)
    if len(parts) != _PARTS_OF_KEY or not _is_name(parts[0]):
        raise ValueError("a verifier key is a name, a hash and a key, joined by plus signs")
    name, key_hash, public = parts[0], parts[1], _unbase64(parts[2])
    if public[:1] not in {_ED25519, _COSIGNATURE} or len(public) != 1 + _KEY_BYTES:
        raise ValueError("the verifier key is not of the kind Ed25519")
    # A key is copied by hand into settings and letters.
    if key_hash != _key_hash(name, public).hex():
        raise ValueError("the verifier key does not fit its hash: it was mistyped or changed")
    return name, bytes.fromhex(key_hash), public[:1], public[1:]


def _key_hash(name: str, public: bytes) -> bytes:
    return sha256(name.encode() + b"\n" + public).digest()[:_HASH_BYTES]


def _is_name(name: str) -> bool:
    return bool(name) and "+" not in name and not any(map(str.isspace, name)) and _is_line(name)


def _is_text(text: str) -> bool:
    return text.endswith("\n") and all(map(_is_line, text.split("\n")))


def _is_line(line: str) -> bool:
    # A terminal that shows a note must not be told what to show; surrogates cannot be encoded.
    return not any(letter < " " or "\ud800" <= letter <= "\udfff" for letter in line)


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def _unbase64(text: str) -> bytes:
    """Decode the one spelling that there is of each value: others would be changes unseen."""
    try:
        data = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise ValueError("a part of the note or key is not base64") from None
    if _base64(data) != text:
        raise ValueError("a part of the note or key is not base64 as it is written")
    return data

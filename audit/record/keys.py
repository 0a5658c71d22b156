"""
The secret behind the pseudonyms: from the environment, or a key file made at first use.

Without it no customer can be found in the audit trail again, so losing it is a visible error,
and making one is said once. From the secret come, by HKDF, the keys of pseudonyms, the key that
wraps other keys ("audit/kek"), and the one that signs checkpoints ("audit/sign"). It is rotated by
naming the new one among the previous keys of every process first, and making it the current one
afterwards: a process that does not know a key cannot read what was written with it.
"""

from __future__ import annotations

import base64
import binascii
import logging
import os
import secrets
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from ...telemetry.event.subject import SubjectKeys
from ...telemetry.files.permissions import permission_problem
from ..database.errors import KeyMissingError, reason_of

SECRET_BYTES = 32
NONCE_BYTES = 12
_LEAST_BYTES = 16
_WRAPPING = "audit/kek"

logger = logging.getLogger("mnemoscope.audit")


def parse_secret(text: str) -> bytes:
    """
    Return the secret in *text*: hexadecimal where all of it is, else base64 (either alphabet).

    Raises:
        ValueError: It is neither, or shorter than 16 bytes. Does not quote it.
    """
    compact = "".join(text.split())
    try:
        secret = bytes.fromhex(compact)
    except ValueError:
        secret = _from_base64(compact)
    if len(secret) < _LEAST_BYTES:
        raise ValueError(
            f"the pseudonym key is {len(secret)} bytes long, at least {_LEAST_BYTES} are needed: "
            "32 random ones are right, for example from `openssl rand -hex 32`"
        )
    return secret


def parse_previous(text: str) -> list[SubjectKeys]:
    """
    Return the keys of the secrets in *text*, which are separated by commas.

    Raises:
        ValueError: One of them is no secret. Names the variable, and quotes nothing.
    """
    try:
        return [SubjectKeys(parse_secret(each)) for each in text.split(",") if each.strip()]
    except ValueError as exc:
        raise ValueError(f"MNEMOSCOPE_AUDIT_PREVIOUS_KEYS: {exc}") from exc


def _from_base64(text: str) -> bytes:
    padded = text.translate(str.maketrans("-_", "+/")) + "=" * (-len(text) % 4)
    try:
        return base64.b64decode(padded, validate=True)
    except (binascii.Error, ValueError):
        raise ValueError("the pseudonym key is neither hexadecimal nor base64") from None


def load_secret(path: Path) -> bytes:
    """
    Return the secret in the key file at *path*, which is made with mode 0600 if it is not there.

    Processes that come at the same time get the same secret.

    Raises:
        ValueError: The file is readable for others, is not a key, or cannot be read or made.
    """
    try:
        if not path.exists():
            _generate(path)
        return _read(path)
    except OSError as exc:
        raise ValueError(
            f"the key file {path} cannot be used: {reason_of(exc)}. Check its path and "
            "permissions, or set MNEMOSCOPE_AUDIT_PSEUDONYM_KEY"
        ) from exc


def read_secret(path: Path) -> bytes:
    """
    Return the secret in the key file at *path*, whoever may read it.

    Raises:
        ValueError: The file is not there, is not a key, or cannot be read. Does not name it.
    """
    try:
        return parse_secret(path.read_text(encoding="ascii"))
    except UnicodeDecodeError:
        raise ValueError("the file does not hold a key") from None
    except OSError as exc:
        raise ValueError(f"the file cannot be read: {reason_of(exc)}") from exc


def _read(path: Path) -> bytes:
    objection = permission_problem(path)
    if objection:
        raise ValueError(f"the key file {path} {objection}")
    try:
        return parse_secret(path.read_text(encoding="ascii"))
    except ValueError as exc:
        # A UnicodeDecodeError quotes the bytes it met, so it is neither shown nor chained.
        reason = "not a key" if isinstance(exc, UnicodeDecodeError) else str(exc)
    raise ValueError(f"the key file {path} does not hold a key: {reason}. Restore it from a backup")


def _generate(path: Path) -> None:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    _write_durably(draft, secrets.token_bytes(SECRET_BYTES).hex() + "\n")
    try:
        # Linking, unlike renaming, fails where another process was faster, and shows the file
        # to others only when it is whole.
        with suppress(FileExistsError):
            path.hardlink_to(draft)
            logger.warning(
                "a pseudonym key was generated at %s: keep a copy, without it no customer can be "
                "found in the audit trail",
                path,
            )
    finally:
        draft.unlink()


def _write_durably(path: Path, text: str) -> None:
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with open(fd, "w", encoding="ascii") as file:  # noqa: PTH123 - pathlib opens no descriptors
        file.write(text)
        file.flush()
        os.fsync(fd)


def key_id_of(keys: SubjectKeys) -> str:
    """Return a name for *keys* that tells them apart and nothing about them."""
    return keys.key("audit/key-id")[:8].hex()


class Keyring:
    """The keys of the current secret, and of those before it."""

    def __init__(self, current: SubjectKeys, previous: Sequence[SubjectKeys] = ()) -> None:
        self.current = current
        self.current_id = key_id_of(current)
        self._by_id = {key_id_of(keys): keys for keys in (current, *previous)}

    def __iter__(self) -> Iterator[tuple[str, SubjectKeys]]:
        return iter(self._by_id.items())

    def __contains__(self, key_id: str) -> bool:
        return key_id in self._by_id

    def get(self, key_id: str) -> SubjectKeys | None:
        """Return the keys of a secret, if they are here."""
        return self._by_id.get(key_id)

    def wrap(self, key: bytes, bound_to: str, key_id: str | None = None) -> bytes:
        """Encrypt *key* with the current secret, or with *key_id*, for one place alone."""
        secret = self.current if key_id is None else self._by_id[key_id]
        return encrypted(secret.key(_WRAPPING), key, bound_to.encode())

    def unwrap(self, wrapped: bytes, key_id: str, bound_to: str) -> bytes:
        """
        Return what was wrapped with the secret *key_id*.

        Raises:
            KeyMissingError: That secret is not here, or the key was exchanged.
        """
        return self.unwrapping().unwrap(wrapped, key_id, bound_to)

    def unwrapping(self) -> Unwrapping:
        """Return as much of each secret as it takes to unwrap, and no more."""
        return Unwrapping({key_id: keys.key(_WRAPPING) for key_id, keys in self})


class Unwrapping:
    """
    The part of a keyring that opens wrapped keys, and can neither sign nor find a customer.

    Args:
        keys: By name of the secret.
    """

    def __init__(self, keys: Mapping[str, bytes]) -> None:
        self._keys = dict(keys)

    def __contains__(self, key_id: str) -> bool:
        return key_id in self._keys

    def unwrap(self, wrapped: bytes, key_id: str, bound_to: str) -> bytes:
        """See `Keyring.unwrap`."""
        key = self._keys.get(key_id)
        if key is None:
            raise KeyMissingError(f"the secret {key_id} is missing: {_RESTORE}")
        return decrypted(key, wrapped, bound_to.encode())


class LogKey(NamedTuple):
    """
    The key of a log.

    Attributes:
        is_sealed: Whether the rows of its tables are sealed. It is wrapped for that, so that
            nobody makes a log that is sealed look like one that never was.
    """

    key: bytes
    is_sealed: bool


def sealed_place(origin: str) -> str:
    """Return what the key of a log whose rows are sealed is wrapped for."""
    return f"{origin}\nsealed"


def log_key(secrets: Unwrapping, wrapped: bytes, key_id: str, origin: str) -> LogKey:
    """
    Return the key of a log.

    Raises:
        KeyMissingError: That secret is not here, or the key was exchanged.
    """
    try:
        return LogKey(secrets.unwrap(wrapped, key_id, sealed_place(origin)), is_sealed=True)
    except KeyMissingError:
        return LogKey(secrets.unwrap(wrapped, key_id, origin), is_sealed=False)


_RESTORE = (
    "no customer can be looked up without it. Restore the key file, or set "
    "MNEMOSCOPE_AUDIT_PSEUDONYM_KEY, or name it in MNEMOSCOPE_AUDIT_PREVIOUS_KEYS"
)


def missing(label: str) -> KeyMissingError:
    """Return the error that says that *label* was written with other secrets."""
    return KeyMissingError(f"{label} was written with another pseudonym key: {_RESTORE}")


def encrypted(key: bytes, plaintext: bytes, bound_to: bytes) -> bytes:
    """Return nonce and AES-256-GCM ciphertext."""
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM  # noqa: PLC0415 - 20 ms

    nonce = secrets.token_bytes(NONCE_BYTES)
    return nonce + AESGCM(key).encrypt(nonce, plaintext, bound_to)


def decrypted(key: bytes, sealed: bytes, bound_to: bytes) -> bytes:
    """
    Return what `encrypted` was given.

    Raises:
        KeyMissingError: It was encrypted with another key, or for another place, or changed.
    """
    from cryptography.exceptions import InvalidTag  # noqa: PLC0415 - see above
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM  # noqa: PLC0415

    try:
        return AESGCM(key).decrypt(sealed[:NONCE_BYTES], sealed[NONCE_BYTES:], bound_to)
    except (InvalidTag, ValueError, TypeError):  # it may be no ciphertext at all
        raise KeyMissingError(
            "what was encrypted does not open: it was changed, or its key is another one"
        ) from None

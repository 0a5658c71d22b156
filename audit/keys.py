"""
The secret behind the pseudonyms: from the environment, or a key file made at first use.

Without it nobody can be found in the audit trail again, so losing it must be an error that is seen,
and making one is said once.
"""

from __future__ import annotations

import base64
import binascii
import logging
import os
import secrets
import stat
from contextlib import suppress
from pathlib import Path

from ..telemetry.subject import SubjectKeys
from .errors import reason_of

SECRET_BYTES = 32
_LEAST_BYTES = 16

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


def _read(path: Path) -> bytes:
    mode = path.stat().st_mode
    if not stat.S_ISREG(mode):
        raise ValueError(f"the key file {path} is not a file")
    if mode & (stat.S_IRWXG | stat.S_IRWXO):
        raise ValueError(
            f"the key file {path} is open to other users (mode {stat.S_IMODE(mode):04o}): "
            "run `chmod 600` on it, and think about who has read it"
        )
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

"""
Signatures of webhooks, as Standard Webhooks has them: HMAC-SHA256 over id, time and body.

Made for what goes out, and checked of what comes in, by the same function.
"""

from __future__ import annotations

import base64
import binascii
import hmac
from collections.abc import Mapping
from typing import Final

TOLERANCE_S: Final = 300
"""Seconds that a timestamp may differ from now: what was sent before that is not believed."""

_PREFIX: Final = "whsec_"
_LEAST_BYTES, _MOST_BYTES = 24, 64


class SignatureError(Exception):
    """A webhook is not believed. The message says why, and quotes nothing of it."""


class StaleError(SignatureError):
    """A webhook is signed well, and was sent too long ago, or will be sent."""


def parse_secret(text: str) -> bytes:
    """
    Return the key in a secret: ``whsec_`` and the base64 of 24 to 64 bytes.

    Raises:
        ValueError: It is none. One line, which does not quote it.
    """
    try:
        key = base64.b64decode(text.removeprefix(_PREFIX), validate=True)
    except (binascii.Error, ValueError):
        key = b""
    if not (text.startswith(_PREFIX) and _LEAST_BYTES <= len(key) <= _MOST_BYTES):
        raise ValueError(
            "expected whsec_ and the base64 of 24 to 64 random bytes: "
            'echo "whsec_$(openssl rand -base64 32)"'
        )
    return key


def sign(key: bytes, message_id: str, timestamp_s: int, body: bytes) -> str:
    """Return the value of ``webhook-signature`` for a message that is sent at *timestamp_s*."""
    signed = b"%b.%d.%b" % (message_id.encode(), timestamp_s, body)
    return "v1," + base64.b64encode(hmac.digest(key, signed, "sha256")).decode()


def verify(key: bytes, headers: Mapping[str, str], body: bytes, now_s: float) -> tuple[str, int]:
    """
    Return id and timestamp of a message, in seconds since 1970, if its sender has *key*.

    Args:
        key: From `parse_secret`.
        headers: Of the request, whose names are found in lower case.
        body: As it came.
        now_s: Seconds since 1970.

    Raises:
        SignatureError: It is not signed with *key*.
        StaleError: It is, and its timestamp is not of now.
    """
    message_id, said = headers.get("webhook-id", ""), headers.get("webhook-timestamp", "")
    # Plain digits: `int` reads "1_0" and other alphabets' as well, which were not what was signed.
    if not message_id or not (said.isascii() and said.isdecimal() and len(said) < 12):  # noqa: PLR2004
        raise SignatureError("the headers of a webhook are missing")
    expected = sign(key, message_id, int(said), body).encode()
    given = headers.get("webhook-signature", "").split(" ")
    # While a secret is rotated a sender signs with both.
    if not any(hmac.compare_digest(expected, each.encode()) for each in given):
        raise SignatureError("the signature is wrong")
    if abs(now_s - int(said)) > TOLERANCE_S:
        raise StaleError("the timestamp is more than 5 minutes off")
    return message_id, int(said)

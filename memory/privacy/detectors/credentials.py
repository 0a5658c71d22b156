"""Credentials: keys, tokens and passwords."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Iterator

from .finding import Finding
from .lazy_pattern import compile_later
from .prefilter import TextFeatures
from .secret_headers import CLUES as PLACE_WORDS
from .secret_headers import find_placed_secrets, names_place
from .secret_shapes import find_shapes, has_shape
from .secret_values import is_placeholder
from .secret_words import CLUES as NAMING_WORDS
from .secret_words import find_named_secrets, says_secret

CREDENTIAL_WORDS = NAMING_WORDS | PLACE_WORDS
"""Words beside credentials in a text of ASCII letters."""

_BLOCKS = ("-BEGIN ", "- BEGIN ", "PuTTY-User-Key-File-")
_PEM = compile_later(
    r"-----?[ ]?BEGIN [A-Z0-9 ]{0,40}(?:PRIVATE KEY|PGP MESSAGE)[A-Z ]{0,12}-----?"
    r"(?:(?:[^-]|-(?!---)){0,20000}-----?[ ]?END [A-Z0-9 ]{0,60}-----?"
    r"|(?:\s{0,80}[A-Za-z0-9+/=:,.]{4,200}){0,400})"
    r"|PuTTY-User-Key-File-\d:(?:[^P]|P(?!rivate-(?:MAC"
    r"|Hash))){0,20000}(?:Private-\w{3,4}:[ ]?\w{0,128})?"
)
_JWT = compile_later(r"(?<![A-Za-z0-9])(eyJ[\w-]{8,4096})\.[\w-]{2,8192}(?:\.[\w-]{0,8192}){0,3}")
_URL_LOGIN = compile_later(
    r"(?<=://)[^\s/@:?#\"'<>]{0,128}:(?!\d{1,5}[/?#])(?P<value>[^\s\"'<>]{1,256})"
    r"(?=@[\w.\[\]:-]{1,255}(?:[/?#\s\"'<>,;)\]]|$))"
)


def has_token_prefix(text: str, features: TextFeatures) -> bool:
    """Return whether *text* may hold a token with a known shape."""
    return "eyJ" in text or any(block in text for block in _BLOCKS) or has_shape(text, features)


def find_tokens(text: str, features: TextFeatures) -> Iterator[Finding]:
    """Find keys and tokens by their shape."""
    if has_shape(text, features):
        yield from find_shapes(text, features)
    for match in _PEM.finditer(text) if any(map(text.__contains__, _BLOCKS)) else ():
        yield Finding(*match.span(), "SECRET", 1.0, "secret.private-key: private key block")
    if "eyJ" in text:
        for match in _JWT.finditer(text):
            if _is_header(match[1]):
                yield Finding(
                    *match.span(), "SECRET", 0.95, "secret.jwt: header of a JSON web token"
                )


def _is_header(encoded: str) -> bool:
    """Return whether a JSON web token may begin with *encoded*."""
    try:
        header = json.loads(base64.urlsafe_b64decode(encoded + "=" * (-len(encoded) % 4)))
    except (binascii.Error, ValueError):
        return False
    return isinstance(header, dict) and "alg" in header


def find_url_logins(text: str, _features: TextFeatures) -> Iterator[Finding]:
    """Find ``user:password`` in URLs."""
    for match in _URL_LOGIN.finditer(text):
        if not is_placeholder(match["value"]):
            yield Finding(*match.span(), "SECRET", 0.95, "secret.login: user and password in a URL")


def may_say_secret(text: str, features: TextFeatures) -> bool:
    """Return whether *text* may call something a secret."""
    return not features.words.isdisjoint(CREDENTIAL_WORDS) or says_secret(text, features)


def find_assigned_secrets(text: str, features: TextFeatures) -> Iterator[Finding]:
    """Find values that the text labels as a password, key or token."""
    if says_secret(text, features):
        yield from find_named_secrets(text, features)
    if names_place(text, features):
        yield from find_placed_secrets(text, features)

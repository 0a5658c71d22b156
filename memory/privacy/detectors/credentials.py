"""Credentials: keys, tokens, passwords, and the user names beside them."""

from __future__ import annotations

import re
from collections.abc import Iterator

from .finding import Finding
from .lazy_pattern import compile_later
from .prefilter import TextFeatures
from .word_lists import ORDINARY, read_words

TOKEN_PREFIXES = (
    "sk-", "sk_", "rk_", "pk_live", "whsec_", "AKIA", "ASIA", "ghp_", "gho_", "ghu_", "ghs_",
    "ghr_", "github_pat_", "glpat-", "xox", "AIza", "ya29.", "eyJ", "SG.", "hf_", "npm_", "pypi-",
    "dop_v1_", "lsv2_", "m0-", "hooks.slack.com", "-----BEGIN", "gsk_", "xai-", "r8_", "tvly-",
)  # fmt: skip
"""Every token with a known shape holds one of these."""

_SHORT_PREFIXES = ("xox", "eyJ", "-----BEGIN")
"""Those of them whose tokens need no sixteen letters or digits in a row."""

_TOKEN = compile_later(
    r"(?<![A-Za-z0-9])(?:"
    r"sk-[A-Za-z0-9_-]{16,200}|(?:sk|rk|pk)_(?:live|test)_[A-Za-z0-9]{10,200}"
    r"|whsec_[A-Za-z0-9+/=]{16,120}"
    r"|(?:AKIA|ASIA)[A-Z0-9]{16}|gh[pousr]_[A-Za-z0-9]{20,255}|github_pat_\w{20,255}"
    r"|glpat-[\w-]{20,64}|xox[abeoprs]-[A-Za-z0-9-]{10,255}|AIza[\w-]{30,45}|ya29\.[\w-]{20,512}"
    r"|eyJ[\w-]{8,4096}\.[\w-]{4,4096}(?:\.[\w-]{0,4096})?|SG\.[\w-]{16,64}\.[\w-]{16,64}"
    r"|hf_[A-Za-z0-9]{20,64}|npm_[A-Za-z0-9]{30,64}|pypi-[\w-]{40,255}|dop_v1_[a-f0-9]{40,80}"
    r"|lsv2_[a-z]{2}_\w{20,80}|m0-[A-Za-z0-9]{20,64}|gsk_[A-Za-z0-9]{20,80}|xai-[A-Za-z0-9]{20,120}"
    r"|r8_[A-Za-z0-9]{20,60}|tvly-[\w-]{16,60}|hooks\.slack\.com/services/[A-Za-z0-9/]{20,100}"
    r")"
)
_PEM = compile_later(
    r"-----BEGIN [A-Z0-9 ]{0,40}(?:PRIVATE KEY|PGP MESSAGE)[A-Z ]{0,12}-----"
    r"(?:[^-]|-(?!----)){0,20000}(?:-----END [A-Z0-9 ]{0,60}-----)?"
)
_URL_LOGIN = compile_later(r"(?<=://)[^\s/@:?#\"'<>]{0,128}:(?P<value>[^\s/@\"'<>]{1,256})(?=@)")

CREDENTIAL_WORDS = frozenset(read_words("credential_words"))
_ASSIGNED = compile_later(
    r"(?P<name>(?<![A-Za-z])(?:[A-Za-z]{1,20}[_-]){0,4}"
    r"(?:password|passwd|passwort|pwd|passphrase|passcode|pass[ ]phrase|contraseña|secrets?"
    r"|token|apikey"
    r"|api[ _-]?key|access[ _-]?key(?:[ _-]?id)?|secret[ _-]?key|private[ _-]?key|account[ _-]?key"
    r"|auth[ _-]?key|encryption[ _-]?key|signing[ _-]?key|credentials?))"
    r"(?P<is>[\"']?[ \t]{0,4}(?::=|=>|[:=])[ \t]{0,4}(?P<quote>[\"'`]?)|[ ](?:is|was"
    r"|to)[ ]:?[ ]?[\"'`]?)"
    r"(?P<value>[^\s\"'`,;<>]{4,512})",
    re.IGNORECASE,
)
_BEARER = compile_later(
    r"\b(?:bearer|basic)[ ]{1,2}(?P<value>[A-Za-z0-9._~+/-]{12,4096}={0,2})", re.IGNORECASE
)
_SHORT_CODE = compile_later(
    r"\b(?:pin|cvv|cvc|otp|one[- ]time (?:code|password)|security code|passcode)"
    r"(?:[ ](?:code|number))?(?:[ ]?[:=#][ ]?|[ ](?:is|was)[ ])(?P<value>\d{3,8})\b",
    re.IGNORECASE,
)
_USERNAME = compile_later(
    r"\b(?:user[ _-]?name|login|screen[ _]name|handle)[\"']?(?:[ ]{0,2}[:=][ ]{0,2}|[ ](?:is"
    r"|was)[ ])"
    r"[\"'`]?(?P<value>[A-Za-z][\w.-]{2,40}\w)(?![\w(\[])",
    re.IGNORECASE,
)
_CODE_VALUE = compile_later(
    r"[A-Za-z_][\w.]*[(\[{].*|[$%]\{?\w+\}?%?|\{+.*|<.*"
    r"|(?:os|self|settings|config|process|env|request|cls|this|args|kwargs|ctx)\..*|\*+|x{3,}"
    r"|\.{3,}|str|int|bool|none|null|string|undefined|optional\b.*|required|true|false"
    r"|https?:.*|[A-Z][A-Za-z]*(?:Error|Exception)\b.*",
    re.IGNORECASE,
)
_IDENTIFIER = compile_later(r"[A-Za-z_]+(?:[._-][A-Za-z_]+)*[.!?:]*")
_SECRET_MIN, _QUOTED_MIN = 4, 6


def has_token_prefix(text: str, features: TextFeatures) -> bool:
    """Return whether *text* may hold a token with a known shape."""
    prefixes = TOKEN_PREFIXES if features.has_long_word else _SHORT_PREFIXES
    return any(prefix in text for prefix in prefixes)


def find_tokens(text: str, _features: TextFeatures) -> Iterator[Finding]:
    """Find keys and tokens by their shape."""
    for match in _TOKEN.finditer(text):
        yield Finding(*match.span(), "SECRET", 0.95, "shape of a key or token")
    for match in _PEM.finditer(text):
        yield Finding(*match.span(), "SECRET", 1.0, "private key block")


def find_url_logins(text: str, _features: TextFeatures) -> Iterator[Finding]:
    """Find ``user:password`` in URLs."""
    for match in _URL_LOGIN.finditer(text):
        yield Finding(*match.span(), "SECRET", 0.95, "user and password in a URL")


def find_assigned_secrets(text: str, _features: TextFeatures) -> Iterator[Finding]:
    """Find values that the text labels as a password, key, token or user name."""
    for match in _ASSIGNED.finditer(text):
        if _is_secret(match):
            yield _value(match, "SECRET", 0.85, "value of a password, key or token")
    for match in _BEARER.finditer(text):
        if not _IDENTIFIER.fullmatch(match["value"]):
            yield _value(match, "SECRET", 0.9, "authorization header")
    for match in _SHORT_CODE.finditer(text):
        yield _value(match, "SECRET", 0.8, "secret code")
    for match in _USERNAME.finditer(text):
        if re.search(r"[\d_]", match["value"]) and match["value"].lower() not in ORDINARY:
            yield _value(match, "USERNAME", 0.7, "value of a user name")


def _value(match: re.Match[str], entity: str, score: float, why: str) -> Finding:
    start, end = match.span("value")
    stripped = match["value"].rstrip(".,;:)]}")
    return Finding(start, start + len(stripped) if stripped else end, entity, score, why)


def _is_secret(match: re.Match[str]) -> bool:
    value = match["value"].rstrip(".,;:)]}")
    if len(value) < _SECRET_MIN or _CODE_VALUE.fullmatch(value) or value.lower() in ORDINARY:
        return False
    if _IDENTIFIER.fullmatch(value):
        return bool(match["quote"]) and len(value) >= _QUOTED_MIN and "_" not in value
    if value.isdigit():
        return match["name"].lower().endswith(("word", "wd", "phrase", "code"))
    return any(map(str.isdigit, value)) or bool(re.search(r"[!@#$%^&*+=~|-]", value))

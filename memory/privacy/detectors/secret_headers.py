"""Secrets by the place they stand in: HTTP headers, cookies, command lines, connection strings."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator

from .finding import Finding
from .lazy_pattern import compile_later
from .prefilter import TextFeatures
from .secret_values import is_code, is_placeholder, is_random, is_words
from .word_lists import alternatives, split_words

_AUTHORIZATION = compile_later(
    r"authorization[\"'\]]{0,2}[ \t]{0,3}[:=,][ \t]{0,3}[\"'`]?"
    r"(?:(?P<scheme>bearer|basic|token|api-?key|key|ssws|jwt|oauth|bot|splunk|genie_?key|negotiate"
    r"|aws4-hmac-sha256|hmac|signature)[ \t:]{1,3})?(?P<value>[^\s\"'`,;<>]{8,4096})",
    re.IGNORECASE,
)
_BEARER = compile_later(
    r"\b(?:bearer|basic)[ ]{1,2}(?P<value>[A-Za-z0-9._~+/-]{12,4096}={0,2})", re.IGNORECASE
)
_KEY_HEADER = compile_later(
    r"-[Kk]ey[\"'\]]{0,2}[ \t]{0,3}[:,][ \t]{0,3}[\"'`]?(?P<value>[^\s\"'`,;<>]{16,4096})"
)
_COOKIES = compile_later(
    r"cookies?[\"'\]]{0,2}[ \t]{0,3}[:=,][ \t]{0,3}[\"'`]?(?P<pairs>[^\r\n\"'`]{8,4096})",
    re.IGNORECASE,
)
_PAIR = compile_later(r"(?<![^\s;:])(?P<name>[\w.%-]{1,64})=(?P<value>[^\s;,]{6,4096})")
_SESSION = compile_later(alternatives("session_words"))
_SESSION_ID = compile_later(
    r"\b(?:JSESSIONID|PHPSESSID|ASP\.NET_SessionId|connect\.sid|ASPSESSIONID\w{0,12}"
    r"|laravel_session"
    r"|_gitlab_session|wordpress_logged_in_\w{0,32})[\"']?[ ]?[=:][ ]?[\"']?"
    r"(?P<value>[^\s;,&\"'<>]{8,4096})",
    re.IGNORECASE,
)
_LOGIN_OPTION = compile_later(
    r"(?<=\s)(?:-u|-U|--user|--proxy-user|--http-user)(?:[ =]{0,3}[\"']|[ =]{1,3}|(?=\w))"
    r"(?P<value>[^\s:\"'/<]{0,128}:[\"']?[^\s\"']{3,256})"
)
_PASSWORD_OPTION = compile_later(
    r"\b(?:mysql|mysqldump|mysqladmin|mariadb|sshpass|mongo|mongosh|mongodump|redis-cli|ldapsearch"
    r"|htpasswd|docker login|az login|smbclient|7z|zip|unzip)\b[^\n|;]{0,200}?[ ]-(?:p|a"
    r"|w|P)[ ]?[\"']?"
    r"(?P<value>[^\s\"'|;-][^\s\"'|;]{3,128})"
)
_SIGNATURE = compile_later(r"[?&;]sig=(?P<value>[\w%+/=-]{20,512})")
_DATABASE_LOGIN = compile_later(r"jdbc:oracle:\w{2,5}:[^\s/@:]{1,64}/(?P<value>[^\s@]{3,128})(?=@)")
_KEYED = compile_later(
    r"(?<![^\W_])(?:keys?|auth|creds?)[\"'\]]{0,2}(?:[ \t]{0,4}[:=]{1,2}[ \t]{0,4}"
    r"|[ ](?:is[ ])?)[\"'`]?"
    r"(?P<value>[A-Za-z0-9+/_=.~-]{20,512})",
    re.IGNORECASE,
)
_OTHER_KEY = compile_later(
    r"(?i)(?:public|pub|primary|foreign|cache|partition|sort|idempotency|object|routing"
    r"|row|unique|s3"
    r"|storage|blob|file|integrity|ssh-rsa|ssh-ed25519|host|site|hash|group|index|redis"
    r"|i18n)[ _-]?$"
)
_NOT_DRAWN = compile_later(r"[0-9a-fA-F-]+|sha\d{1,3}-.*|AAAA[BCE].*|.*\.[a-z]{2,5}")
_BEFORE_CHARS = 16
_LONG_LETTERS = 24
_CLOSING = ".,;:)]}"

_FRAMEWORKS = split_words("jsessionid phpsessid sessionid sid session gitlab wordpress")
CLUES = _FRAMEWORKS | split_words("""
    apikey auth authorization basic bearer cookie cookies cred creds curl docker htpasswd httpie
    jdbc key keys ldapsearch mariadb mongo mongodump mongosh mysql mysqladmin mysqldump redis sig
    smbclient sshpass token wget zip
""")
"""Words of which a text with one of these places holds one."""


def names_place(_text: str, features: TextFeatures) -> bool:
    """Return whether a text holds a word of one of these places."""
    return not features.words.isdisjoint(CLUES)


def find_placed_secrets(text: str, features: TextFeatures) -> Iterator[Finding]:
    """Find secrets in headers, cookies, command lines and connection strings."""
    words = features.words
    if not words.isdisjoint({"authorization", "bearer", "basic"}):
        yield from _find_authorization(text)
    if "-key" in text or "-Key" in text:
        yield from _find_header_keys(text)
    if not words.isdisjoint({"key", "keys", "auth", "cred", "creds"}):
        yield from _find_keyed(text)
    if not words.isdisjoint({"cookie", "cookies"}):
        yield from _find_cookies(text)
    if "-u" in text or "-U" in text:
        yield from _plain(_LOGIN_OPTION, text, "login", "login on a command line")
    if " -" in text:
        yield from _plain(_PASSWORD_OPTION, text, "password", "password on a command line")
    if "sig" in words:
        yield from _plain(_SIGNATURE, text, "signature", "signature of a URL")
    if "jdbc" in words:
        yield from _plain(_DATABASE_LOGIN, text, "login", "login of a connection string")
    if not words.isdisjoint(_FRAMEWORKS):
        yield from _plain(_SESSION_ID, text, "cookie", "session of a known framework")


def _find_authorization(text: str) -> Iterator[Finding]:
    for match in _AUTHORIZATION.finditer(text):
        value = match["value"]
        if _is_login(value) or _is_value(value, least_letters=_LONG_LETTERS):
            yield _found(match, "authorization", "authorization header", 0.9)
    for match in _BEARER.finditer(text):
        if _is_login(match["value"]) or _is_value(match["value"], least_letters=_LONG_LETTERS):
            yield _found(match, "authorization", "word for a bearer", 0.9)


def _find_header_keys(text: str) -> Iterator[Finding]:
    for match in _KEY_HEADER.finditer(text):
        before = text[max(0, match.start() - _BEFORE_CHARS) : match.start() + 1]
        if is_random(match["value"]) and not _OTHER_KEY.search(before):
            yield _found(match, "header", "header for a key", 0.85)


def _find_keyed(text: str) -> Iterator[Finding]:
    for match in _KEYED.finditer(text):
        before = text[max(0, match.start() - _BEFORE_CHARS) : match.start()]
        value = match["value"]
        is_drawn = is_random(value) and not _NOT_DRAWN.fullmatch(value)
        if is_drawn and not _OTHER_KEY.search(before) and not is_code(value):
            yield _found(match, "key", "random value beside a word for a key", 0.75)


def _find_cookies(text: str) -> Iterator[Finding]:
    for cookies in _COOKIES.finditer(text):
        offset = cookies.start("pairs")
        for match in _PAIR.finditer(cookies["pairs"]):
            if _SESSION.search(match["name"].lower()) and _is_value(
                match["value"], least_letters=8
            ):
                start, end = match.span("value")
                why = "secret.cookie: cookie of a session"
                yield Finding(offset + start, offset + end, "SECRET", 0.85, why)


def _plain(pattern: re.Pattern[str], text: str, rule: str, evidence: str) -> Iterator[Finding]:
    for match in pattern.finditer(text):
        login, colon, password = match["value"].partition(":")
        value = password if colon else login
        if not is_placeholder(value) and not is_code(value):
            yield _found(match, rule, evidence, 0.85)


def _is_value(value: str, *, least_letters: int) -> bool:
    value = value.rstrip(_CLOSING)
    if is_placeholder(value) or is_code(value):
        return False
    return not is_words(value) or (value.isalpha() and len(value) >= least_letters)


def _is_login(value: str) -> bool:
    """Return whether *value* is base64 of a user and a password."""
    try:
        decoded = base64.b64decode(value + "=" * (-len(value) % 4), validate=True).decode()
    except (binascii.Error, UnicodeDecodeError, ValueError):
        return False
    return ":" in decoded and decoded.isprintable()


def _found(match: re.Match[str], rule: str, evidence: str, score: float) -> Finding:
    start = match.start("value")
    value = match["value"].rstrip(_CLOSING)
    return Finding(start, start + len(value), "SECRET", score, f"secret.{rule}: {evidence}")

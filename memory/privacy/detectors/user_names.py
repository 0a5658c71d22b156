"""Names that people log in with: beside the words for them in any language, and in URLs."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache

from .english_words import is_english_word
from .finding import Finding
from .lazy_pattern import compile_later
from .prefilter import TextFeatures
from .word_lists import ORDINARY, read_words, split_words

_VALUE = compile_later(
    r"(?<![A-Za-z0-9_.\-/])[A-Za-z][A-Za-z.-]{0,40}[0-9_](?:[A-Za-z0-9_.-]{0,40}[A-Za-z0-9])?"
    r"(?![A-Za-z0-9_(\[/@]|[.:-][A-Za-z0-9/])"
)
_PLAIN_VALUE = compile_later(
    r"(?<![A-Za-z0-9_.\-/])@?(?P<name>[A-Za-z](?:[A-Za-z]|[.-](?=[A-Za-z])){3,40})"
    r"(?=[\"'.]?[ ]?(?:[\n,;|)}]|\Z))"
)
"""A name without a digit counts behind a colon or an equals sign only."""

_PROFILE = compile_later(
    r"(?:(?:instagram|facebook|twitter|threads|tiktok|twitch|snapchat|vk|ok|strava|patreon|venmo)"
    r"\.(?:com|tv|ru|net)/(?:@|add/)?|(?<![\w.])x\.com/|(?<![\w.])t\.me/|linkedin\.com/in/"
    r"|reddit\.com/u(?:ser)?/|youtube\.com/@|medium\.com/@|steamcommunity\.com/id/"
    r"|bsky\.app/profile/|(?:github|gitlab)\.com/(?=[A-Za-z-]*\d))"
    r"(?P<name>[A-Za-z0-9](?:[A-Za-z0-9_-]|\.(?=[A-Za-z0-9])){2,40})(?![\w/]|\.\w)/?(?![\w])",
    re.IGNORECASE,
)
_NO_PROFILES = split_words("""
    login signup share sharer home intent explore about help settings groups pages events watch
    company hashtag search reel reels stories jobs legal terms privacy messages notifications
""")
_MARK = compile_later(r"[A-Za-z][0-9_]")
_JOINTS = " \"'`\u201c\u201d\u201e\u00ab\u300c@:=\uff1a"
_LINKS = (
    *("は", "이", "가", "은", "는", "是", "为", "為", "คือ", "הוא", "है", "هو", "is", "was"),
    *("ist", "lautet", "est", "es", "era", "é", "è", "jest", "to", "je", "är", "er", "on", "là"),
)
_JOINED_ONLY = tuple(read_words("user_name_words_joined"))
"""Words that mean other things too: a colon, an equals sign or a quote has to stand behind them."""

_SHORTEST = 4
_WINDOW_CHARS = 48
_WEAK = ("account", "accounts", "user", "profile")
_SURE_WORDS = tuple(each for each in read_words("user_name_words") if each not in _JOINED_ONLY)
_WORDS = (*_SURE_WORDS, *_JOINED_ONLY)
_NOT_USERS = ORDINARY.union(read_words("role_mailboxes"), read_words("placeholder_words"))
_SPACED = compile_later(r"[a-z\u00c0-\u052f]")
FIRST_WORDS = frozenset(re.split(r"[^\w]|_", words)[0] for words in _WORDS if words.isascii())
"""Words without one of which a text of ASCII letters names no user."""


def may_hold_user_name(text: str, features: TextFeatures) -> bool:
    """Return whether *text* may say what somebody calls themselves at a service."""
    has_mark = features.has_digit or "_" in text
    if not (has_mark or ":" in text or "=" in text or "/" in text or "\uff1a" in text):
        return False
    return not text.isascii() or not features.words.isdisjoint(CLUES)


_SITES = split_words("""
    instagram facebook twitter threads tiktok twitch snapchat vk strava patreon venmo linkedin
    reddit youtube medium steamcommunity bsky github gitlab
""") | {"x", "t"}
CLUES = FIRST_WORDS | _SITES
"""Words without one of which a text of ASCII letters names no user."""


def find_user_names(text: str, features: TextFeatures) -> Iterator[Finding]:
    """Find what follows a word for user names, and names in profiles' addresses."""
    if (features.has_digit or "_" in text) and _MARK.search(text):
        yield from _marked(text)
    if ":" in text or "=" in text:
        yield from _plain(text)
    if "/" in text and "." in text:
        for match in _PROFILE.finditer(text):
            if match["name"].lower() not in _NO_PROFILES:
                yield Finding(*match.span("name"), "USERNAME", 0.7, "the address of a profile")


def _marked(text: str) -> Iterator[Finding]:
    for match in _VALUE.finditer(text):
        before = text[max(0, match.start() - _WINDOW_CHARS) : match.start()]
        value = match.group()
        # ``account type_a``: an underscore alone is code, beside a word that means other things.
        is_weak = (
            before.lower().rstrip(_JOINTS).endswith(_WEAK) and value.replace("_", "").isalpha()
        )
        if len(value) >= _SHORTEST and _announces(before) and not (is_weak or _is_code(value)):
            yield Finding(*match.span(), "USERNAME", 0.7, "value of a user name")


def _plain(text: str) -> Iterator[Finding]:
    """Find names without a digit behind a label that means nothing else: ``username: jdoe``."""
    for label in _label().finditer(text):
        match = _PLAIN_VALUE.match(text, label.end())
        if match is None or _is_code(match["name"]):
            continue
        name = match["name"].lower()
        if not is_english_word(name) and name not in _NOT_USERS:
            yield Finding(*match.span("name"), "USERNAME", 0.6, "value of a user name")


@cache
def _label() -> re.Pattern[str]:
    words = "|".join(map(re.escape, read_words("user_name_labels")))
    return re.compile(
        rf"(?<![\w.-])(?:{words})[\"'\u201d]?[ ]?[:=\uff1a][ ]?[\"'\u201c]?", re.IGNORECASE
    )


def _announces(before: str) -> bool:
    """Return whether *before* ends with a word for user names, and what may link a name to it."""
    stripped = before.lower().rstrip(_JOINTS)
    is_joined = before[len(stripped) :].strip() != ""
    if _ends_with_word(stripped):
        return is_joined or not stripped.endswith(_JOINED_ONLY) or stripped.endswith(_SURE_WORDS)
    before = stripped
    link = next((each for each in _LINKS if before.endswith(each)), "")
    return link != "" and _ends_with_word(before.removesuffix(link).rstrip(_JOINTS))


def _ends_with_word(before: str) -> bool:
    if not before.endswith(_WORDS):
        return False
    word = max((each for each in _WORDS if before.endswith(each)), key=len)
    preceding = before[: -len(word)][-1:]
    return _SPACED.match(word) is None or not (preceding.isalnum() or preceding in {"-", "/", "."})


def _is_code(value: str) -> bool:
    """Return whether *value* rather names a thing in code: ``USER_ID``, ``user_name``."""
    lower = value.lower()
    is_word = lower in _WORDS or lower.rpartition("_")[2] in _WORDS
    return value.isupper() or is_word or lower.startswith("user_")

"""Names of people in front of their e-mail address: ``Ada Lovelace <ada@…>``, in any script."""

from __future__ import annotations

from collections.abc import Iterator

from .finding import Finding
from .lazy_pattern import compile_later
from .name_words import ORGANIZATION_WORDS
from .prefilter import TextFeatures
from .word_lists import ORDINARY, read_words

_LETTER = (
    r"(?:[^\W\d_]|[\u0300-\u036f\u0591-\u05c7\u064b-\u0652\u0900-\u0963\u0e30-\u0e4e\u200c"
    r"'\u2019.\u00b7\u30fb-])"
)
_NAMED = compile_later(
    rf"(?<![^\s\"':\uff1a,;(])(?P<name>[^\W\d_]{_LETTER}{{0,30}}"
    rf"(?:[ \u3000]{_LETTER}{{1,30}}){{0,4}})"
    r"[\"']?[ ]?<(?P<local>[^\s<>@]{1,64})@"
)
_ROLES = frozenset(read_words("role_mailboxes"))


def find_mailbox_names(text: str, _features: TextFeatures) -> Iterator[Finding]:
    """Find the names that stand before an address in angle brackets."""
    for match in _NAMED.finditer(text):
        words = match["name"].split()
        plain = [word.lower().strip(".'\u2019") for word in words]
        is_cased = words[0][0].lower() != words[0][0].upper()
        if (
            match["local"].lower() in _ROLES
            or (is_cased and (len(words) == 1 or not _is_capitalised(words)))
            or any(word in ORGANIZATION_WORDS or word in ORDINARY for word in plain)
        ):
            continue
        yield Finding(*match.span("name"), "PERSON", 0.75, "a name before an e-mail address")


def _is_capitalised(words: list[str]) -> bool:
    return words[0][0].isupper() and words[-1][0].isupper()

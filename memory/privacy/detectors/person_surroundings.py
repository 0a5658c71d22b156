"""
What a name is part of, where that is no person: a firm, an institution, a list, a value in JSON.

Lists tell by their other items: *Helvetica, Georgia, Lato and Verdana* are no people, since most of
them are no names.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache

from .lazy_pattern import compile_later
from .person_lexicon import NameKind, fold, is_known_name, read_lexicon
from .word_lists import read_words, split_words

_INSTITUTION = compile_later(
    r"[ ](?:(?:International|Regional|Memorial|National|General|Central|State|High|Public)[ ])?"
    r"(?:Airport|International|Station|Stadium|Arena|Park|Gardens?|Hospital|Clinic|University"
    r"|College|School|Academy|Institute|Foundation|Library|Museum|Theat(?:re|er)|Cent(?:re|er)"
    r"|Bridge|Tunnel|Tower|Building|Hall|Hotel|Inn|Award|Prize|Medal|Cup|Trophy|Festival"
    r"|Cathedral|Church|Observatory|Telescope|Mountains?|River|Falls|Beach|Bay|Islands?|Street"
    r"|Avenue|Road|Lane|Square|Linux|Records|Motors|Airlines|Airways|Studios|Pictures|Press"
    r"|Industries|Holdings|Group|Bank)\b"
)
_KEY = compile_later(r"[\"'](?P<key>[\w-]{2,30})[\"'][ ]?:[ ]?(?:\[[^\[\]{}]{0,90})?[\"']\Z")
_KEY_CHARS = 128
_KEY_PART = compile_later(r"[A-Z]?[a-z]+")
_ITEM = compile_later(
    r"[ ]*(?:(?:and|or)[ ])?[-*\"'`(\[ ]*(?P<item>[^\W\d_a-z][^,;\n]{0,40}?)[.)\"'`\] ]*"
)
_OPENS = compile_later(r"[ ]*(?:(?:and|or)[ ])?[\"'`(\[]*")
_CLOSES = compile_later(r"[\"'`)\].]*")
_LIST_END = compile_later(r"[\n;:!?]|[.][ ]|[ ][-\u2013\u2014][ ]")
_FEWEST_ITEMS, _MOST_ITEM_WORDS, _LIST_CHARS = 4, 4, 160
_FIRM_BEFORE = compile_later(r"([^\W\d_]+)[ ]?&[ ]?\Z")
_FIRM_AFTER = compile_later(r"[ ]?&[ ]?([^\W\d_]+)")
_FIRM_CHARS = 24


def names_institution(text: str, end: int) -> bool:
    """Return whether a word for an institution or a place follows: *Ada Lovelace Building*."""
    return _INSTITUTION.match(text, end) is not None


@cache
def _keys_for_things() -> frozenset[str]:
    return split_words(" ".join(read_words("keys_for_things")))


def is_value_for_things(text: str, start: int, end: int) -> bool:
    """Return whether a name is the whole value of a JSON key that people are not told under."""
    if text[end : end + 1] not in {'"', "'"}:
        return False
    key = _KEY.search(text, max(0, start - _KEY_CHARS), start)
    parts: list[str] = _KEY_PART.findall(key["key"]) if key else []
    return bool(parts) and parts[-1].lower() in _keys_for_things()


def is_in_firm(text: str, start: int, end: int) -> bool:
    """Return whether a lone name is joined by & to what is no other given name."""
    before = _FIRM_BEFORE.search(text, max(0, start - _FIRM_CHARS), start)
    joined = before or _FIRM_AFTER.match(text, end)
    if joined is None:
        return False
    is_given = read_lexicon("latin").names.get(fold(joined[1]), 0) & NameKind.GIVEN
    return not is_given or fold(joined[1]) == fold(text[start:end])


def is_listed_with_others(text: str, start: int, end: int) -> bool:
    """Return whether a lone name that is not the first of a list has no names beside it."""
    left = _LIST_END.split(text[max(0, start - _LIST_CHARS) : start])[-1]
    right = _LIST_END.split(text[end : end + _LIST_CHARS], maxsplit=1)[0]
    *before, opens = left.split(",")
    closes, *after = right.split(",")
    if not (before and _OPENS.fullmatch(opens) and _CLOSES.fullmatch(closes.rstrip())):
        return False
    items = [*_items(reversed(before)), *_items(after)]
    names = sum(is_known_name(item.split()[0]) for item in items)
    return len(items) + 1 >= _FEWEST_ITEMS and 3 * names <= len(items)


def _items(parts: Iterable[str]) -> Iterator[str]:
    """Yield the capitalised items of a list up to the first that is none."""
    for part in parts:
        match = _ITEM.fullmatch(part)
        if match is None or len(match["item"].split()) > _MOST_ITEM_WORDS:
            return
        yield match["item"]

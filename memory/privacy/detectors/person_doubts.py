"""
What speaks against a name of a person: that it stands where things stand.

A team, product, place or work often has the name of somebody. The words beside it tell: *project
Nora*, *the Daphne webserver*, *Julia 1.8*, *Ada, Ruby and Rust*. Words that only a person has
beside a name (a title, a greeting, a label) are stronger, and are not doubted.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import cache

from .english_words import is_english_word, known_things
from .finding import Finding
from .lazy_pattern import compile_later
from .person_cues import WORD
from .person_lexicon import NameKind, fold, read_lexicon
from .person_names import is_camel_case
from .word_lists import ALL_NAMES, read_words, split_words

NEVER_DOUBTED = frozenset(
    {
        "a title",
        "a greeting",
        "a signature",
        "a relation",
        "words that announce a name",
        "words that announce a person's name",
        "somebody who speaks",
        "somebody who is spoken to",
    }
)
"""The `why` of names that have a word for a person beside them."""

_BEYOND_LATIN = "\u0250"
_BEFORE_CHARS = 24
_WORD_BEFORE = compile_later(r"([^\W\d_]+)[ ][\"'\u201c`*]?\Z")
_WORD_AFTER = compile_later(r"(?P<owns>['\u2019]s)?[\"'\u201d`*]?[ ](?P<word>[a-z]{3,})")
_CODE_AFTER = compile_later(r"\[[A-Za-z]|::|->|\(\)|[ ]=[ ]|[ ]v?\d+\.\d")
_NEIGHBOUR_BEFORE = compile_later(
    r"([^\W\d_][\w.+#-]*(?:[ ][^\W\d_a-z][\w.+#-]*)?)"
    r"(?:,|,?[ ](?:and|or|&|vs\.?|versus)|[ ]?/)[ ]?\Z"
)
_NEIGHBOUR_AFTER = compile_later(
    r"(?:,(?:[ ](?:and|or))?|,?[ ](?:and|or|&|vs\.?|versus)|[ ]?/)[ ]?"
    r"([^\W\d_][\w+#-]*(?:[ ][^\W\d_a-z][\w+#-]*)?)"
)
_LIST_CHARS = 60
_PHRASE_WORD = compile_later(r"[^\W\d_]+(?:[.]?['\u2019-][^\W\d_]+)*|[&+]|\d+")
_LONGEST_PHRASE = 5
_LABELS = frozenset({"a label for a person", "a label for a name"})
_MOST_ENGLISH = 2
_ARTICLES = split_words("the a an this each every another which")
_PLACE_WORDS = split_words("in at near on into around outside inside across via through toward")
_SOURCE_WORDS = split_words("from for using import by")
_PERSONAL_NOUN = compile_later(
    r"[ ](?:famil(?:y|ies)|brothers|sisters|siblings|twins|couple|household|estate|novels?|case|trial"
    r"|wedding|funeral|administration)\b"
)
_BEGINS_SENTENCE = compile_later(r"(?:\A|[.!?;\n*>|#-])[\s\"'\u201c*_#>`-]*\Z")
_SAYS_WHO = compile_later(
    r"[ ](?:is|was|has|had)[ ](?:from|my|his|her|their|our|born|married|away|sick|ill|\d)\b"
    r"|,?[ ](?:who|and[ ]I|just)\b|[ ]and[ ][^\W\d_a-z]|['\u2019]s\b|[!?,]"
)
_DOES = split_words("""
    began begins writes sings sang teaches taught studies studied grew drives drove cooks cooked
    reads eats ate sleeps slept runs ran hopes hoped believes believed remembers remembered forgot
    learned learnt tries tried helped visited visits travels travelled traveled talks talked walks
    walked stays stayed waits waited turned cried laughs smiles hugged kissed retired graduated
    died
""")
_VERB = compile_later(r"[ ]([a-z]+)\b")
_AUXILIARIES = frozenset({"is", "was", "has", "had", "does", "will", "would", "did"})


@cache
def _words_beside_things() -> tuple[frozenset[str], frozenset[str], frozenset[str]]:
    """Return the words before the name of a thing, those behind it, and those behind its 's."""
    before, after, laws = map(split_words, read_words("words_beside_things"))
    return before, after | laws, laws


def doubted(text: str, found: Iterable[Finding], *, is_english: bool = True) -> Iterator[Finding]:
    """Yield *found* without the names that stand where things stand."""
    refused: dict[tuple[int, int, bool], bool] = {}
    for each in found:
        if each.entity != "PERSON" or each.why in NEVER_DOUBTED:
            yield each
            continue
        case = each.start, each.end, each.why in _LABELS
        if case not in refused:
            refused[case] = _is_doubted(text, each, is_english=is_english)
        if not refused[case]:
            yield each


def _is_doubted(text: str, found: Finding, *, is_english: bool) -> bool:
    start, end = found.start, found.end
    words = WORD.findall(text[start:end])
    if not words or any(word[0] >= _BEYOND_LATIN for word in words):
        return False
    if _is_in_known_phrase(text, start, end):
        return True
    if len(words) > 1:
        return is_english and _is_phrase(words)
    if _CODE_AFTER.match(text, end):
        return True
    if found.why in _LABELS:
        return False
    return (
        (is_english and _stands_as_thing(text, start, end))
        or _is_listed_with_things(text, start, end)
        or (not is_known_name(words[0]) and _is_identifier(text, words[0]))
    )


@cache
def not_persons() -> frozenset[str]:
    """Return works, products, teams and places that look like names, folded."""
    return frozenset(map(fold, read_words("not_persons")))


def _is_in_known_phrase(text: str, start: int, end: int) -> bool:
    """Return whether a span is part of something that is known to be no person."""
    first = max(0, start - _BEFORE_CHARS)
    words = [
        match
        for match in _PHRASE_WORD.finditer(text, first, end + _BEFORE_CHARS)
        if match.start() > first or not first
    ]
    folded = [fold(match[0]).replace("\u2019", "'") for match in words]
    own = [index for index, match in enumerate(words) if match.end() > start < end > match.start()]
    if not own:
        return False
    known = not_persons()
    return any(
        " ".join(folded[at : at + size]) in known
        for size in range(2, _LONGEST_PHRASE + 1)
        for at in range(max(0, own[-1] + 1 - size), own[0] + 1)
    )


def is_doubted_reading(text: str, start: int, end: int) -> bool:
    """
    Return whether a person that a language model reads in English *text* is rather a thing.

    A model takes any strange word for a name, so one that is in no list of names needs a place in
    its sentence where a person may stand.
    """
    words = WORD.findall(text[start:end])
    if _is_doubted(text, Finding(start, end, "PERSON", 1.0, ""), is_english=True):
        return True
    if any(map(is_known_name, words)):
        return False
    before = _WORD_BEFORE.search(text, max(0, start - _BEFORE_CHARS), start)
    word = before[1].lower() if before else ""
    if word in _PLACE_WORDS:
        return True
    if word in _ARTICLES and not _PERSONAL_NOUN.match(text, end):
        return True
    if len(words) > 1:
        return False
    if word in _SOURCE_WORDS:
        return True
    return _BEGINS_SENTENCE.search(
        text, max(0, start - _BEFORE_CHARS), start
    ) is not None and not _acts(text, end)


def _acts(text: str, end: int) -> bool:
    """Return whether what ends before *end* does what a person does."""
    if _SAYS_WHO.match(text, end):
        return True
    verb = _VERB.match(text, end)
    if verb is None or verb[1] in _AUXILIARIES:
        return False
    said = read_lexicon("latin").cues.get(verb[1], {}).get("verb_after", ())
    return "en" in said or verb[1] in _DOES


def is_known_name(word: str) -> bool:
    """Return whether *word* is in a list of names, of whatever Latin language."""
    plain = fold(word)
    return plain in ALL_NAMES or plain in read_lexicon("latin").names


def _is_sure_given(word: str) -> bool:
    kind = read_lexicon("latin").names.get(fold(word), 0)
    return bool(kind & NameKind.GIVEN) and not kind & (NameKind.WORD_TOO | NameKind.ENGLISH_WORD)


def _is_phrase(words: list[str]) -> bool:
    """Return whether several words are rather a heading or a term."""
    if "_".join(word.lower() for word in words) in known_things():
        return True
    if any(map(is_camel_case, words[:1])):
        return True
    english = [word for word in words if not is_known_name(word) and is_english_word(word.lower())]
    return len(english) >= _MOST_ENGLISH


def _stands_as_thing(text: str, start: int, end: int) -> bool:
    things_before, things_after, laws = _words_beside_things()
    before = _WORD_BEFORE.search(text, max(0, start - _BEFORE_CHARS), start)
    if before and before[1].lower() in things_before:
        return True
    after = _WORD_AFTER.match(text, end)
    return after is not None and after["word"] in (laws if after["owns"] else things_after)


def _is_listed_with_things(text: str, start: int, end: int) -> bool:
    """Return whether the next or previous item of a list is a known product or place."""
    before = _NEIGHBOUR_BEFORE.search(text, max(0, start - _LIST_CHARS), start)
    after = _NEIGHBOUR_AFTER.match(text, end, end + _LIST_CHARS)
    things = known_things()
    for item in (before, after):
        if item is None:
            continue
        words = item[1].lower().split()
        if not item[1][0].isupper():
            continue
        if "_".join(words) in things or words[0 if item is after else -1] in things:
            return True
    return False


def _is_identifier(text: str, word: str) -> bool:
    """Return whether an unknown word is written small elsewhere, as a package or command is."""
    lower = word.lower()
    alone = rf"(?<![\w@.+-]){re.escape(lower)}(?![\w@+-]|\.\w)"
    return lower != word and re.search(alone, text) is not None

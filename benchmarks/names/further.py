"""
Labelled text of further languages: ``python -m benchmarks.names.further FOLDER`` counts it.

FOLDER has checkouts of public repositories by their names, as `LICENCES` lists them. Figures are
made with what is not read of them: smaller parts, and the last third of newspapers. They are made
with a checkout of KIND too, of which nothing is learned.

Treebanks tell which words are proper nouns, and not of whom. A sentence is learned from if the
model so far is certain of each of them; that no other word is a name is known.
"""

from __future__ import annotations

import json
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, islice
from pathlib import Path

from benchmarks.names.sentences import Sentence, Spans
from benchmarks.tables import say

LICENCES = {
    "ner-wikipedia-dataset": "Japanese articles, CC BY-SA 3.0",
    "UD_Japanese-GSD": "CC BY-SA 4.0",
    "NER-datasets": "GermEval 2014 in it, CC BY 4.0",
    "ner-corpora": "French and Dutch newspapers, CC0",
    "ner-evaluation-corpus-europarl": "debates of the European Parliament, without restrictions",
    "SPACCC_MEDDOCAN": "Spanish clinical notes, the part to learn from, CC BY 4.0",
    "UD_Dutch-Alpino": "CC BY-SA 4.0",
    "UD_Dutch-LassySmall": "CC BY-SA 4.0",
    "UD_French-GSD": "CC BY-SA 4.0",
    "UD_German-GSD": "CC BY-SA 4.0",
    "UD_Italian-ParlaMint": "CC BY-SA 4.0",
    "UD_Spanish-GSD": "CC BY-SA 4.0",
}
"""The folders, and the licences of what is read of them."""

KINDS = {
    "treebank": ("web, news", "UD_Japanese-GSD (CC BY-SA 4.0)"),
    "articles": ("encyclopaedia, news", "GermEval 2014, dev (CC BY 4.0)"),
    "parliament": ("debates", "Europarl, second half (no restrictions known)"),
    "newspapers": ("newspapers of 1870 to 1940", "Europeana (CC0)"),
    "news": ("news", "KIND, Wikinews, dev (CC BY-NC 4.0)"),
}
"""What `unseen` sentences are, and where they are from."""

Likely = Callable[[str], dict[int, float]]
"""Gives the probability of a name for each word of a text, by where it begins."""

_TREES = {
    "nl": "UD_Dutch-*",
    "fr": "UD_French-*",
    "de": "UD_German-*",
    "it": "UD_Italian-*",
    "es": "UD_Spanish-*",
}
_CLOSING = re.compile(r"[.,!?;:)\]}%\u2026\u201d\u00bb]+|['\u2019]\w{1,2}")
_OPENING = frozenset("([{$\u201e\u00ab")
_LINES, _LEARNED_OF_THREE, _LEARNED_OF_PARLIAMENT = 60, 2, 400
_PARLIAMENT, _SPOKEN = "ner-evaluation-corpus-europarl", ("de", "en", "es", "it")
_PRINTED = ("fr", "nl")
_SURELY, _SURELY_NOT = 0.6, 0.04
_NOTE_LABEL = re.compile(r"\t(?:NOMBRE_SUJETO_ASISTENCIA|NOMBRE_PERSONAL_SANITARIO) (\d+) (\d+)\t")
_WORD = re.compile(r"\d+(?:-\d+)?\t")


def sentences(folder: Path) -> Iterator[Sentence]:
    """Yield all sentences whose names are labelled."""
    yield from _articles(folder / "ner-wikipedia-dataset" / "ner.json")
    yield from japanese(folder / "UD_Japanese-GSD" / "stanza" / "train.bio")
    yield from german(folder / "NER-datasets" / "GermEval2014" / "NER-de-test.tsv")
    yield from _notes(folder / "SPACCC_MEDDOCAN" / "corpus" / "train" / "brat")
    for language in _SPOKEN:
        spoken = parliament(folder / _PARLIAMENT, language)
        yield from islice(spoken, _LEARNED_OF_PARLIAMENT)
    for language in _PRINTED:
        for number, each in enumerate(newspapers(folder / "ner-corpora", language)):
            if number % 3 < _LEARNED_OF_THREE:
                yield each


def unseen(folder: Path) -> Iterator[tuple[str, Sentence]]:
    """Yield sentences that no model learns from, each with the name of its `KINDS`."""
    treebank = folder / "UD_Japanese-GSD" / "stanza"
    articles = folder / "NER-datasets" / "GermEval2014" / "NER-de-dev.tsv"
    spoken = (
        islice(parliament(folder / _PARLIAMENT, each), _LEARNED_OF_PARLIAMENT, None)
        for each in _SPOKEN
    )
    printed = (
        each
        for language in _PRINTED
        for number, each in enumerate(newspapers(folder / "ner-corpora", language))
        if number % 3 >= _LEARNED_OF_THREE
    )
    for kind, found in {
        "treebank": chain(japanese(treebank / "dev.bio"), japanese(treebank / "test.bio")),
        "articles": german(articles),
        "parliament": chain.from_iterable(spoken),
        "newspapers": printed,
        "news": _news(folder / "KIND" / "evalita-2023" / "WN_dev.tsv"),
    }.items():
        for each in found:
            yield kind, each


def _news(path: Path) -> Iterator[Sentence]:
    for number, rows in enumerate(_blocks(path)):
        yield _joined(" ", rows, "it", f"it news {number}")


def _articles(path: Path) -> Iterator[Sentence]:
    for each in json.loads(path.read_text("utf-8")):
        spans = [tuple(e["span"]) for e in each["entities"] if e["type"] == "人名"]
        yield Sentence(each["text"], sorted(spans), "ja", f"train ja articles {each['curid']}")


def japanese(path: Path) -> Iterator[Sentence]:
    """Yield the sentences of a Japanese treebank with names, which has no spaces."""
    for number, rows in enumerate(_blocks(path)):
        yield _joined("", rows, "ja", f"train ja treebank {number}")


def german(path: Path) -> Iterator[Sentence]:
    """Yield the sentences of GermEval: a number, a word, and two layers of tags a line."""
    for number, rows in enumerate(_blocks(path)):
        words = [(each[1], each[2]) for each in rows if each[0] != "#"]
        yield _joined(" ", words, "de", f"train de articles {number}")


def _notes(folder: Path) -> Iterator[Sentence]:
    for path in sorted(folder.glob("*.txt")):
        labels = path.with_suffix(".ann").read_text("utf-8")
        spans = [(int(start), int(end)) for start, end in _NOTE_LABEL.findall(labels)]
        yield Sentence(path.read_text("utf-8"), sorted(spans), "es", f"train es notes {path.stem}")


def parliament(folder: Path, language: str) -> Iterator[Sentence]:
    """Yield the sentences of debates in order; the same ones in each language."""
    for number, rows in enumerate(_blocks(folder / f"{language}-europarl.test.conll02")):
        yield _joined(" ", rows, language, f"train {language} parliament {number}")


def newspapers(folder: Path, language: str) -> Iterator[Sentence]:
    """Yield pieces of newspapers of a hundred years ago, as they were read by machines."""
    for path in sorted(folder.glob(f"enp_{language.upper()}*/*.bio")):
        for number, rows in enumerate(_blocks(path)):
            for at in range(0, len(rows), _LINES):
                piece = [each for each in rows[at : at + _LINES] if len(each) > 1]
                yield _joined(" ", piece, language, f"train {language} {path.stem} {number} {at}")


def _blocks(path: Path) -> Iterator[list[list[str]]]:
    for block in re.split(r"\n\s*\n", path.read_text("utf-8")):
        if rows := [
            re.split(r"[\t ]", line.strip()) for line in block.splitlines() if line.strip()
        ]:
            yield rows


def _joined(gap: str, rows: Iterable[Sequence[str]], language: str, key: str) -> Sentence:
    """Return the sentence of words and their tags."""
    text, spans, is_open = "", Spans(), True
    for word, *_, tag in rows:
        is_glued = not gap or is_open or _CLOSING.fullmatch(word)
        text += word if is_glued else f"{gap}{word}"
        start = len(text) - len(word)
        if tag in {"I-PER", "I-PERSON"} and spans and spans[-1][1] >= start - len(gap):
            spans[-1] = (spans[-1][0], len(text))
        elif tag in {"B-PER", "B-PERSON", "I-PER", "I-PERSON"}:
            spans.append((start, len(text)))
        is_open = word in _OPENING
    return Sentence(text, spans, language, key)


def of_trees(folder: Path, likely: Likely) -> Iterator[Sentence]:
    """Yield the sentences of treebanks whose proper nouns are certainly names of people or not."""
    for language, pattern in _TREES.items():
        for path in sorted(folder.glob(f"{pattern}/*-ud-[dt]e*.conllu")):  # dev and test
            for number, block in enumerate(path.read_text("utf-8").split("\n\n")):
                key = f"train {language} {path.stem} {number}"
                if (each := _of_tree(block, language, key, likely)) is not None:
                    yield each


def _of_tree(block: str, language: str, key: str, likely: Likely) -> Sentence | None:
    told = re.search(r"^# text = (.*)", block, re.MULTILINE)
    if told is None:
        return None
    text, at, words = told[1], 0, list[tuple[int, int, bool]]()
    rows = [line.split("\t") for line in block.splitlines() if _WORD.match(line)]
    until = 0
    for row in rows:
        first, _, last = row[0].partition("-")
        if int(first) <= until:
            continue  # a part of the word before
        until = int(last or first)
        start = text.find(row[1], at)
        if start < 0:
            return None
        at = start + len(row[1])
        is_name = row[3] == "PROPN"
        words.append((start, at, is_name))
    spans, odds = Spans(), likely(text)
    for start, end, is_proper in words:
        odd = max((p for begin, p in odds.items() if start <= begin < end), default=0.0)
        if not is_proper or odd < _SURELY_NOT:
            continue
        if odd < _SURELY:
            return None
        if spans and text[spans[-1][1] : start] == " ":
            spans[-1] = (spans[-1][0], end)
        else:
            spans.append((start, end))
    return Sentence(text, spans, language, key)


def main() -> None:
    """Print how many sentences and names there are in each language."""
    counts: Counter[tuple[str, str]] = Counter()
    for each in sentences(Path(sys.argv[1])):
        counts[each.language, "sentences"] += 1
        counts[each.language, "names"] += len(each.spans)
    for (language, what), count in sorted(counts.items()):
        say(f"{language} {count:6,} {what}")


if __name__ == "__main__":
    main()

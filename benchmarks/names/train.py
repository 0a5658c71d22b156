"""
Learn the models of names: ``benchmarks.names.train DATA TEXTS ENGLISH FURTHER``.

DATA is the folder of labelled text, TEXTS that of packages whose texts name nobody, ENGLISH that of
more labelled English (`english`), FURTHER that of further languages (`further`). Left out is what
`score` reports on (``reported``), or what `weigh` learns from (``weighed``); what is shipped has
learned from all.
"""

from __future__ import annotations

import argparse
import gzip
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from random import Random
from typing import Any

import pycrfsuite

from benchmarks.names import further
from benchmarks.names.english import sentences as more_english
from benchmarks.names.nobody import texts as of_packages
from benchmarks.names.sentences import (
    LOCALES,
    UNSPACED,
    NameMaker,
    Part,
    Sentence,
    UnspacedNameMaker,
    like_german,
    listed,
    made,
    made_of_words,
    of_corpus,
    read,
    replaced,
)
from mnemoscope.memory.privacy import names
from mnemoscope.memory.privacy.detectors.lexicon import fold
from mnemoscope.memory.privacy.names import chinese, japanese, unspaced
from mnemoscope.memory.privacy.names.features import read_sequences
from mnemoscope.memory.privacy.names.tagger import Tagger
from mnemoscope.memory.privacy.names.unspaced import Segmenter
from mnemoscope.memory.privacy.names.words import Words
from tests.privacy.corpora import languages, negatives, running_text
from tests.privacy.corpora.document import Half

Case = tuple[Sentence, float, float]
"""A sentence, the share of its names that no list has, and of its sequences without their words."""

Labelled = tuple[str, list[list[str]], list[str]]
"""The model that a sequence is for, the attributes of each item, and its label."""

_MODELS = Path(names.__file__).with_name("data")
_UNCASED = frozenset({"ar", "fa", "he", "hi"})
_LIKE_ENGLISH = frozenset({"en", "small", "world", ""})
"""Languages of made sentences that may be in English."""

_WORDS = re.compile(r"(?:w=|e=|b=|a=|bb=|begin>)|[a-zA-Z][<>][^>]+\Z")
_PARTS = ("-4=", "-3=", "+3=")
_BY_CHARACTER = {"c1": 1.0, "c2": 0.05, "max_iterations": 60, "feature.minfreq": 3}
SETTINGS = {
    "names": {"c1": 0.25, "c2": 0.2, "max_iterations": 100, "feature.minfreq": 3},
    "names_english": {"c1": 0.5, "c2": 0.1, "max_iterations": 70, "feature.minfreq": 3},
    "names_unspaced": _BY_CHARACTER,
    "names_chinese": _BY_CHARACTER,
    "names_japanese": _BY_CHARACTER,
}
"""How each model is learned."""


def main() -> None:
    """Learn all models."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path)
    parser.add_argument("texts", type=Path)
    parser.add_argument("english", type=Path)
    parser.add_argument("further", type=Path)
    parser.add_argument("--leave-out", type=Part, choices=list(Part))
    parser.add_argument("--without-packages", action="store_true", help="as what is shipped")
    parser.add_argument("--out", type=Path, default=_MODELS)
    args = parser.parse_args()
    texts = None if args.without_packages else args.texts

    def sentences() -> Sentences:
        return Sentences(args.data, texts, args.english, args.further, leave_out=args.leave_out)

    learn((each for each in sentences().of_all() if each[0] == "names"), args.out)
    all_of_it = sentences()
    all_of_it.read_trees(args.further, Tagger((args.out / "names.crf.gz").read_bytes()))
    learn(all_of_it.spaced(), args.out)
    learn(all_of_it.by_character(), args.out)
    # The group `names` installs what the segmenters need.
    learn(all_of_it.by_character("zh", chinese.load()), args.out)
    learn(all_of_it.by_character("ja", japanese.load()), args.out)


def learn(
    items: Iterable[Labelled], out: Path, settings: Mapping[str, dict[str, Any]] = SETTINGS
) -> None:
    """Write the models that sequences are for; the same files for the same sequences."""
    trainers: dict[str, Any] = {}
    for model, attributes, labels in items:
        if model not in trainers:
            # A star import of a compiled module makes it.
            trainers[model] = pycrfsuite.Trainer("lbfgs", settings[model], verbose=False)  # pyright: ignore[reportAttributeAccessIssue]
        trainers[model].append(attributes, labels)
    for model, trainer in trainers.items():
        path = out / f"{model}.crf"
        trainer.train(str(path))
        path.with_suffix(".crf.gz").write_bytes(gzip.compress(path.read_bytes(), mtime=0))
        path.unlink()


def labelled(sentence: Sentence, hidden: frozenset[str] = frozenset()) -> Iterator[Labelled]:
    """Yield the sequences of words of a sentence and their labels; *hidden* ones are in no list."""
    for sequence in read_sequences(sentence.text, Words(hidden)):
        spans = _spans_of(sentence, sequence.tokens)
        labels = [
            "O" if span is None else "I" if is_joined and span == before else "B"
            for span, before, is_joined in zip(spans, [None, *spans], sequence.joined, strict=False)
        ]
        yield sequence.model, sequence.attributes, labels


class Sentences:
    """
    All that is learned from.

    Args:
        data: The folder of labelled text.
        texts: The folder of packages whose texts name nobody. None: nothing is learned from them.
        english: The folder of more labelled English.
        folder: The folder of further languages.
        leave_out: The part of it that is left out.
    """

    def __init__(
        self,
        data: Path,
        texts: Path | None,
        english: Path,
        folder: Path,
        *,
        leave_out: Part | None,
    ) -> None:
        self._random = Random(1)  # noqa: S311 - the same in every run
        self._names = NameMaker(self._random)
        files = ("train_names.jsonl.gz", "running_text.jsonl", "presidio_synth_v2.jsonl")
        forms = ("forms_es.jsonl", "mixed_pl.jsonl")
        read_all = [each for name in (*files, *forms) for each in read(data / name)]
        known = {each.text for each in read_all}
        read_all += [each for each in further.sentences(folder) if each.text not in known]
        self._read = [each for each in read_all if each.part is not leave_out]
        self._english = [each for each in more_english(english) if each.part is not leave_out]
        self._trees: list[Sentence] = []
        nobody = of_packages(texts, self._random) if texts else ()
        self._nobody = [each for each in nobody if each.part is not leave_out]

    def read_trees(self, folder: Path, tagger: Tagger) -> None:
        """Take treebanks in, of whose proper nouns a model so far tells which are names."""

        def likely(text: str) -> dict[int, float]:
            return {
                token.start: each.probability
                for sequence in read_sequences(text, Words())
                for token, each in zip(
                    sequence.tokens, tagger.read(sequence.attributes), strict=True
                )
            }

        self._trees = list(further.of_trees(folder, likely))

    def spaced(self) -> Iterator[Labelled]:
        """Yield sequences of words, and their labels."""
        yield from self.of_all()
        for case in self._more_english():
            yield from (each for each in self._labelled(case) if each[0] != "names")

    def of_all(self) -> Iterator[Labelled]:
        """Yield those of text in all languages, without what English alone is learned from."""
        for case in self._cases():
            for model, items, labels in self._labelled(case):
                yield "names", items, labels
                if model != "names":
                    yield model, items, labels

    def _labelled(self, case: Case) -> Iterator[Labelled]:
        sentence, hidden, without = case
        for model, items, labels in labelled(sentence, self._hidden(sentence, hidden)):
            yield model, self._without_words(items, without), labels

    def by_character(
        self, language: str = "", segmenter: Segmenter | None = None
    ) -> Iterator[Labelled]:
        """Yield sequences of characters and their labels; of one *language*, which is cut."""
        cut = self._cut_sentences(language)
        sentences = self._unspaced_sentences() if segmenter is None else cut
        for sentence in sentences:
            starts = {start for start, _ in sentence.spans}
            inside = {at for span in sentence.spans for at in range(*span)}
            for sequence in unspaced.read_sequences(sentence.text, segmenter):
                labels = [
                    "O" if each.start not in inside else "B" if each.start in starts else "I"
                    for each in sequence.tokens
                ]
                yield sequence.model, sequence.attributes, labels

    def _cases(self) -> Iterator[Case]:
        for sentence in self._read:
            if sentence.language not in UNSPACED:
                is_real = sentence.key.startswith("train")
                yield from self._real(sentence) if is_real else self._document(sentence)
        for sentence in self._nobody:
            if sentence.language not in UNSPACED:
                yield sentence, 0.0, 0.2
        for sentence in self._trees:
            yield sentence, 0.05, 0.15
        yield from self._made(3)

    def _more_english(self) -> Iterator[Case]:
        """Yield running text of many kinds, and so much of the rest that it counts as before."""
        for sentence in self._english:
            yield sentence, 0.05, 0.0
        for sentence in self._read:
            if sentence.language == "en" and not sentence.key.startswith(("en-", "train")):
                yield from self._document(sentence)
                yield from self._document(sentence)
        for _ in range(2):
            yield from (each for each in self._made(1) if each[0].language in _LIKE_ENGLISH)

    def _made(self, times: int) -> Iterator[Case]:
        """Yield sentences that are made of templates, those of our own sets so many *times*."""
        for sentence in made(self._random, "templates.txt", 12):
            yield sentence, 0.3, 0.15
        for sentence in made(self._random, "things.txt", 20):
            yield sentence, 0.0, 0.2
        for sentence in made_of_words(self._random, 12):
            yield sentence, 0.0, 0.15
        for sentence in listed(self._random, 6):
            yield sentence, 0.2, 0.1
        for sentence in of_corpus(languages.documents(Half.DEVELOPMENT, per_template=3 * times)):
            if sentence.language not in UNSPACED:
                yield sentence, 0.1 if sentence.language in _UNCASED else 0.3, 0.4
        for sentence in of_corpus(running_text.documents(Half.DEVELOPMENT, per_template=3 * times)):
            yield sentence, 0.3, 0.4
        for sentence in of_corpus(negatives.documents(Half.DEVELOPMENT, per_template=5 * times)):
            yield sentence, 0.0, 0.2

    def _real(self, sentence: Sentence) -> Iterator[Case]:
        """Yield a sentence of running text, and what is made of it."""
        is_english = sentence.language == "en"
        yield sentence, 0.05, 0.15
        if is_english:
            yield sentence, 0.2, 0.0
            yield sentence, 0.0, 0.0
            yield sentence._replace(text=sentence.text.lower()), 0.0, 0.3
        copies = 0 if not sentence.spans else 10 if is_english else 1
        for _ in range(copies):
            among = LOCALES[sentence.language] if self._random.random() < 0.6 else ""
            other = self._with_names(sentence, among)
            if other.text.endswith(".") and self._random.random() < 0.2:
                other = other._replace(text=f"{other.text[:-1]}?")
            yield other, 0.25, 0.1 if is_english else 0.4
        if sentence.language in {"da", "sv"} and self._random.random() < 0.5:
            german = self._with_names(sentence, "de_DE own_de de_AT")
            yield like_german(german, self._random), 0.3, 0.9

    def _document(self, sentence: Sentence) -> Iterator[Case]:
        """Yield a document, and copies with other names."""
        yield sentence, 0.1, 0.2
        for _ in range(4 if sentence.spans else 0):
            yield self._with_names(sentence, ""), 0.3, 0.3

    def _with_names(self, sentence: Sentence, among: str) -> Sentence:
        locale = self._names.locale(among)
        return replaced(sentence, lambda name: self._names.like(name, locale))

    def _hidden(self, sentence: Sentence, share: float) -> frozenset[str]:
        """Return names of a sentence that are taken to be in no list."""
        found: set[str] = set()
        for start, end in sentence.spans:
            if self._random.random() < share:
                found.update(map(fold, sentence.text[start:end].replace(".", " ").split()))
        return frozenset(found)

    def _without_words(self, attributes: list[list[str]], share: float) -> list[list[str]]:
        """Return attributes without words, as they are in languages that nothing is learned of."""
        if self._random.random() >= share:
            return attributes
        cut = _PARTS if self._random.random() < 0.3 else ("e=",)
        return [
            [each for each in item if not _WORDS.match(each) and not each.startswith(cut)]
            for item in attributes
        ]

    def _cut_sentences(self, language: str) -> Iterator[Sentence]:
        """Yield real sentences, few that are made: they would hide how names stand in words."""
        corpus = languages.documents(Half.DEVELOPMENT, languages=[language], per_template=3)
        negative = of_corpus(negatives.documents(Half.DEVELOPMENT, per_template=3))
        maker = UnspacedNameMaker(self._random)
        for sentence in (*self._read, *of_corpus(corpus), *negative, *self._nobody):
            if sentence.language == language:
                yield sentence
                if sentence.spans and language == "ja":
                    yield replaced(sentence, lambda name: maker.like(name, language))

    def _unspaced_sentences(self) -> Iterator[Sentence]:
        maker = UnspacedNameMaker(self._random)
        corpus = languages.documents(Half.DEVELOPMENT, languages=sorted(UNSPACED), per_template=3)
        real = [each for each in self._read if each.language in UNSPACED]
        for sentences, copies in ((real, 1), (of_corpus(corpus), 3)):
            for sentence in sentences:
                yield sentence
                for _ in range(copies if sentence.spans else 0):
                    language = sentence.language
                    yield replaced(sentence, lambda name, of=language: maker.like(name, of))
        negative = of_corpus(negatives.documents(Half.DEVELOPMENT, per_template=3))
        for sentence in (*negative, *self._nobody):
            if sentence.language in UNSPACED:
                yield sentence


def _spans_of(sentence: Sentence, tokens: Iterable[Any]) -> list[tuple[int, int] | None]:
    return [
        next((span for span in sentence.spans if span[0] < each.end and each.start < span[1]), None)
        for each in tokens
    ]


if __name__ == "__main__":
    main()

"""
Learn how models weigh: ``python -m benchmarks.names.weigh DATA TEXTS ENGLISH MODELS [OUT]``.

MODELS has the models of names that `train` wrote with ``--leave-out weighed``. The language models
are those of the extra ``ner`` and GiNZA: English stands for all languages with spaces, and Japanese
for those without. They are shown what a redactor shows them.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from itertools import groupby, islice, takewhile
from operator import itemgetter
from pathlib import Path
from random import Random

import numpy as np

from benchmarks.names.english import sentences as more_english
from benchmarks.names.nobody import texts as of_packages
from benchmarks.names.sentences import Part, Sentence, read
from mnemoscope.memory.privacy import names
from mnemoscope.memory.privacy.models.language_models import LanguageModels, ReadingBudget
from mnemoscope.memory.privacy.models.name_model import ModelState, NameModel
from mnemoscope.memory.privacy.names import japanese, unspaced
from mnemoscope.memory.privacy.names.features import read_sequences
from mnemoscope.memory.privacy.names.tagger import Tagger
from mnemoscope.memory.privacy.names.weighing import LanguageReading, log_odds
from mnemoscope.memory.privacy.names.words import Sequence, Words

_FILES = ("train_names.jsonl.gz", "running_text.jsonl", "presidio_synth_v2.jsonl")
_RIDGE, _ROUNDS, _MOST_CHATS = 0.5, 30, 1_000
_SHOWN_CHARS = 65_536
_TIMES_REAL = 4
"""How often a running text counts: documents of templates have as many names, and all alike."""

_REAL = re.compile("(?:train)?[a-z]{2}-|train ")
"""Begins the keys of running text."""


Sample = tuple[float, str, bool]
"""The probability of a word, its label, and whether it is part of a name."""


def _in_english(text: str) -> Iterator[Sequence]:
    return (each for each in read_sequences(text, Words()) if each.model == "names_english")


def _cut_japanese(text: str) -> Iterable[Sequence]:
    return unspaced.read_sequences(text, japanese.load())


_PAIRS: tuple[tuple[str, str, str | None, Callable[[str], Iterable[Sequence]]], ...] = (
    ("names", "en", None, lambda text: read_sequences(text, Words())),
    ("names_english", "en", None, _in_english),
    ("names_unspaced", "ja", "ja_ginza", unspaced.read_sequences),
    ("names_japanese", "ja", "ja_ginza", _cut_japanese),
)
"""A model of names, the language that tells its weights, the language model, how text is read."""


def unseen(data: Path, texts: Path, english: Path, language: str) -> list[Sentence]:
    """Return sentences of a *language* that the model of names has not learned from."""
    labelled = [each for file in _FILES for each in read(data / file)]
    nobody = of_packages(texts, Random(1))  # noqa: S311 - the same in every run
    said = takewhile(lambda each: each.key.startswith("chat"), nobody)  # the others take minutes
    every = (*labelled, *more_english(english), *islice(said, _MOST_CHATS))
    return [each for each in every if each.language == language and each.part is Part.WEIGHED]


def readings(
    sentences: list[Sentence], name: str | None = None, language: str | None = None
) -> Iterator[LanguageReading]:
    """Yield what a language model, the best for English by default, reads in each sentence."""
    model = NameModel(name, language)
    models = LanguageModels({language: model})
    for each in sentences:
        read = list(models.read(each.text, ReadingBudget(_SHOWN_CHARS)))
        if model.state is not ModelState.READY:
            raise SystemExit(
                "no language model is installed: the extra ner and ja-ginza bring them"
            )
        yield LanguageReading(
            [found for reading in read for found in reading.findings],
            [passage for reading in read for passage in reading.shown],
        )


def main(data: Path, texts: Path, english: Path, models: Path, out: Path) -> None:
    """Write the weights of each model of names."""
    weights: dict[str, object] = {}
    for (language, model), pairs in groupby(_PAIRS, key=itemgetter(1, 2)):
        sentences = unseen(data, texts, english, language)
        read = list(zip(sentences, readings(sentences, model, language), strict=True))
        for name, *_, sequences in pairs:
            tagger = Tagger((models / f"{name}.crf.gz").read_bytes())
            samples = [
                sample
                for sentence, reading in read
                for sample in _samples(tagger, sequences(sentence.text), sentence, reading)
                for _ in range(_TIMES_REAL if _REAL.match(sentence.key) else 1)
            ]
            weights[name] = _fit(samples)
    out.write_text(json.dumps(weights, indent=1) + "\n", "utf-8")


def _samples(
    tagger: Tagger, sequences: Iterable[Sequence], sentence: Sentence, reading: LanguageReading
) -> Iterator[Sample]:
    for sequence in sequences:
        read_items = tagger.read(sequence.attributes)
        for token, each in zip(sequence.tokens, read_items, strict=True):
            label = reading.label_at(token.start, token.end)
            if label is not None:
                is_name = any(s < token.end and token.start < e for s, e in sentence.spans)
                yield each.probability, label, is_name


def _fit(samples: list[Sample]) -> dict[str, object]:
    """Return the weights of a logistic regression, by Newton's method."""
    labels = sorted({label for _, label, _ in samples})
    rows = [[1.0, log_odds(p), *(label == each for each in labels)] for p, label, _ in samples]
    x, y = np.array(rows), np.array([float(is_name) for _, _, is_name in samples])
    weights = np.zeros(x.shape[1])
    for _ in range(_ROUNDS):
        odds = 1 / (1 + np.exp(-x @ weights))
        slope = x.T @ (odds - y) + _RIDGE * weights
        curve = (x * (odds * (1 - odds))[:, None]).T @ x + _RIDGE * np.eye(len(weights))
        weights -= np.linalg.solve(curve, slope)
    bias, of_names, *by_label = (round(float(each), 3) for each in weights)
    return {"bias": bias, "names": of_names, "labels": dict(zip(labels, by_label, strict=True))}


if __name__ == "__main__":
    folder = Path(names.__file__).with_name("data")
    data, texts, english, models, *out = map(Path, sys.argv[1:])
    main(data, texts, english, models, out[0] if out else folder / "weights.json")

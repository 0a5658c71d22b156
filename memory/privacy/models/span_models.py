"""
GLiNER and transformer models for names, by the settings ``gliner:…`` and ``transformers:…``.

A name or path follows the colon. Models are loaded from this machine only and never downloaded.
Neither library is a dependency.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from importlib import import_module
from importlib.util import find_spec
from typing import Any, NamedTuple

from ..detectors.chunks import split_into_chunks
from ..detectors.finding import BY_MODEL, Finding

_CHUNK_CHARS, _OVERLAP_CHARS = 360, 60
"""Characters of a chunk. Models silently cut off longer inputs, counted in words or tokens."""

_GLINER = {
    "person": "PERSON",
    "organization": "ORGANIZATION",
    "location": "LOCATION",
    "nationality or religious or political group": "NRP",
    "date": "DATE_TIME",
}
"""GLiNER's labels, in words, and our entities."""

ENTITIES_BY_TAG = {
    "PER": "PERSON",
    "PERSON": "PERSON",
    "ORG": "ORGANIZATION",
    "ORGANIZATION": "ORGANIZATION",
    "LOC": "LOCATION",
    "GPE": "LOCATION",
    "LOCATION": "LOCATION",
    "FAC": "FAC",
    "NORP": "NRP",
    "DATE": "DATE_TIME",
    "TIME": "DATE_TIME",
    "MISC": "PRODUCT",
    "PRODUCT": "PRODUCT",
    "EVENT": "EVENT",
    "LAW": "LAW",
    "WORK_OF_ART": "WORK_OF_ART",
}
"""Tags of the usual training corpora, and our entities."""

_MIN_SCORE = 0.5
_CONTEXT_WORDS = 40


class EntitySpan(NamedTuple):
    """
    A finding of a model.

    Attributes:
        start: Offset of its first character.
        end: Offset after its last.
        label: The model's label.
        score: Confidence, in [0, 1].
    """

    start: int
    end: int
    label: str
    score: float


Predict = Callable[[str], Iterable[EntitySpan]]


class SpanModel:
    """
    A model that finds spans with labels.

    Args:
        predict: Finds spans in a piece of text.
        entities: Our entity by label. Other labels are ignored.
    """

    def __init__(self, predict: Predict, entities: Mapping[str, str]) -> None:
        self._predict = predict
        self._entities = entities

    @property
    def context_words(self) -> int:
        """Words around a possible name that the model needs to tell what it is."""
        return _CONTEXT_WORDS

    def find(self, texts: Sequence[str]) -> Iterator[list[Finding]]:
        """Find the entities in each of *texts*, which may be of any length."""
        for text in texts:
            yield list(self._find_in(text))

    def _find_in(self, text: str) -> Iterator[Finding]:
        for offset, piece in split_into_chunks(text, size=_CHUNK_CHARS, overlap=_OVERLAP_CHARS):
            for each in self._predict(piece):
                entity = self._entities.get(each.label.removeprefix("B-").removeprefix("I-"))
                if entity is not None and each.score >= _MIN_SCORE:
                    where = offset + each.start, offset + each.end
                    yield Finding(*where, entity, each.score, BY_MODEL)


def library_of(name: str) -> str | None:
    """Return the library in *name*, or None if it has none of these."""
    library, found, _ = name.partition(":")
    return library if found and library in _LOADERS else None


def is_library_installed(name: str) -> bool:
    """Return whether the library in *name* is installed, and a model is named."""
    library, _, model = name.partition(":")
    return bool(model) and find_spec(library) is not None


def load(name: str) -> SpanModel:
    """
    Load the model *name* from this machine.

    Raises:
        Exception: The library's own error; the model is missing or damaged.
    """
    library, _, model = name.partition(":")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return _LOADERS[library](model)


def _gliner(name: str) -> SpanModel:
    library: Any = import_module("gliner")
    model = library.GLiNER.from_pretrained(name, local_files_only=True)
    labels = list(_GLINER)

    def predict(text: str) -> Iterator[EntitySpan]:
        for each in model.predict_entities(text, labels, threshold=_MIN_SCORE):
            yield EntitySpan(each["start"], each["end"], each["label"], float(each["score"]))

    return SpanModel(predict, _GLINER)


def _transformers(name: str) -> SpanModel:
    library: Any = import_module("transformers")
    model = library.AutoModelForTokenClassification.from_pretrained(name, local_files_only=True)
    tokenizer = library.AutoTokenizer.from_pretrained(name, local_files_only=True)
    tag = library.pipeline(
        "token-classification", model=model, tokenizer=tokenizer, aggregation_strategy="simple"
    )

    def predict(text: str) -> Iterator[EntitySpan]:
        for each in tag(text):
            yield EntitySpan(each["start"], each["end"], each["entity_group"], float(each["score"]))

    return SpanModel(predict, ENTITIES_BY_TAG)


_LOADERS: dict[str, Callable[[str], SpanModel]] = {
    "gliner": _gliner,
    "transformers": _transformers,
}

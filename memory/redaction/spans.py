"""
GLiNER and transformer models that find names, for whoever has one on this machine.

Asked for by a setting, ``gliner:NAME_OR_PATH`` or ``transformers:NAME_OR_PATH``. Loaded from this
machine only: what has not been downloaded before is missing. Neither library is a dependency.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from importlib import import_module
from importlib.util import find_spec
from typing import Any, NamedTuple

from .finding import Finding
from .pieces import chunks

_PIECE, _OVERLAP = 360, 60
"""Characters shown at once: fewer than the words or tokens beyond which a model cuts its input off,
silently, whatever they are made of."""

_GLINER = {
    "person": "PERSON",
    "organization": "ORGANIZATION",
    "location": "LOCATION",
    "nationality or religious or political group": "NRP",
    "date": "DATE_TIME",
}
"""What GLiNER is asked for, in words, and what we call it."""

_TAGS = {
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
    "MISC": "PRODUCT",
    "PRODUCT": "PRODUCT",
    "EVENT": "EVENT",
    "LAW": "LAW",
    "WORK_OF_ART": "WORK_OF_ART",
}
"""Tags of the usual training corpora, and what we call them."""

_SURE = 0.5


class Span(NamedTuple):
    """
    What a model found in a piece of text.

    Attributes:
        start: Offset of its first character.
        end: Offset after its last.
        label: The model's own name for what it is.
        score: How sure it is, in [0, 1].
    """

    start: int
    end: int
    label: str
    score: float


Predict = Callable[[str], Iterable[Span]]


class SpanModel:
    """
    A model that says where names are.

    Args:
        predict: Finds spans in a piece of text.
        entities: What we call its labels. Others are not asked for.
    """

    def __init__(self, predict: Predict, entities: Mapping[str, str]) -> None:
        self._predict = predict
        self._entities = entities

    def find(self, text: str) -> Iterator[Finding]:
        """Find names, whatever the length of *text*."""
        for offset, piece in chunks(text, size=_PIECE, overlap=_OVERLAP):
            for each in self._predict(piece):
                entity = self._entities.get(each.label.removeprefix("B-").removeprefix("I-"))
                if entity is not None and each.score >= _SURE:
                    where = offset + each.start, offset + each.end
                    yield Finding(*where, entity, each.score, "language model")


def library_of(name: str) -> str | None:
    """Return which library *name* asks for, or None where it is none of these."""
    library, found, _ = name.partition(":")
    return library if found and library in _LOADERS else None


def is_there(name: str) -> bool:
    """Tell whether the library that *name* asks for is installed. Does not look for the model."""
    library, _, model = name.partition(":")
    return bool(model) and find_spec(library) is not None


def load(name: str) -> SpanModel:
    """
    Load the model that *name* asks for, from this machine.

    Raises:
        Exception: Whatever its library raises where it is not there.
    """
    library, _, model = name.partition(":")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return _LOADERS[library](model)


def _gliner(name: str) -> SpanModel:
    library: Any = import_module("gliner")
    model = library.GLiNER.from_pretrained(name, local_files_only=True)
    labels = list(_GLINER)

    def predict(text: str) -> Iterator[Span]:
        for each in model.predict_entities(text, labels, threshold=_SURE):
            yield Span(each["start"], each["end"], each["label"], float(each["score"]))

    return SpanModel(predict, _GLINER)


def _transformers(name: str) -> SpanModel:
    library: Any = import_module("transformers")
    model = library.AutoModelForTokenClassification.from_pretrained(name, local_files_only=True)
    tokenizer = library.AutoTokenizer.from_pretrained(name, local_files_only=True)
    tag = library.pipeline(
        "token-classification", model=model, tokenizer=tokenizer, aggregation_strategy="simple"
    )

    def predict(text: str) -> Iterator[Span]:
        for each in tag(text):
            yield Span(each["start"], each["end"], each["entity_group"], float(each["score"]))

    return SpanModel(predict, _TAGS)


_LOADERS: dict[str, Callable[[str], SpanModel]] = {
    "gliner": _gliner,
    "transformers": _transformers,
}

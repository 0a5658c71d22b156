"""A spaCy pipeline that is asked for names only: no parts that names do not need, small C calls."""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from ..detectors.finding import BY_MODEL, Finding
from ..detectors.word_lists import ORDINARY
from .span_models import ENTITIES_BY_TAG

_UNUSED_PIPES = ("parser", "tagger", "lemmatizer", "attribute_ruler", "senter", "morphologizer")
_CONTEXT_WORDS = 8
"""
Words on either side that reach a word's label: four through the layers, and the names beside it.

Of 937 names that the model finds in whole texts it finds as many in windows, with 6 words 930.
"""

_CONTEXT_WORDS_OF_TRANSFORMERS = 60
_SCORE = 0.85


class SpacyModel:
    """
    A spaCy pipeline with a named-entity recognizer.

    Attributes:
        context_words: Words around a possible name that the model needs to tell what it is.
    """

    def __init__(self, pipeline: Any) -> None:
        self._pipeline = pipeline
        has_transformer = any("transformer" in name for name in pipeline.pipe_names)
        self.context_words = _CONTEXT_WORDS_OF_TRANSFORMERS if has_transformer else _CONTEXT_WORDS

    def memory_zone(self) -> AbstractContextManager[Any]:
        """Return a context at whose end the words learned in it are freed."""
        zone: AbstractContextManager[Any] = self._pipeline.memory_zone()
        return zone

    def find(self, texts: Sequence[str]) -> Iterator[list[Finding]]:
        """Find the entities in each of *texts*, all of them in one batch."""
        for doc in self._read(texts):
            yield [
                Finding(each.start_char, each.end_char, entity, _SCORE, BY_MODEL)
                for each in doc.ents
                if (entity := ENTITIES_BY_TAG.get(each.label_)) is not None
            ]

    def _read(self, texts: Sequence[str]) -> Iterable[Any]:
        """Return the texts with their entities; spaCy itself would split the batch in four."""
        pipes = [pipe for _, pipe in self._pipeline.pipeline]
        if not all(hasattr(pipe, "set_annotations") for pipe in pipes):
            piped: Iterable[Any] = self._pipeline.pipe(texts, batch_size=len(texts))
            return piped
        docs: list[Any] = [self._pipeline.make_doc(text) for text in texts]
        for pipe in pipes:
            pipe.set_annotations(docs, pipe.predict(docs))
        return docs


def load(source: str) -> SpacyModel:
    """
    Load a spaCy package or path.

    Raises:
        Exception: The library's own error: the model is missing, damaged or for another version.
    """
    import spacy  # noqa: PLC0415 - a second, on first use only

    from .fast_network import replace_network  # noqa: PLC0415 - the same

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pipeline = spacy.load(source, exclude=_UNUSED_PIPES)
    _drop_shared_layers(pipeline)
    for name, pipe in pipeline.pipeline:
        if pipeline.get_pipe_meta(name).factory == "ner":
            replace_network(pipe, pipeline.make_doc)
    # A word that is known already is not looked at anew in each text.
    pipeline.make_doc(" ".join(ORDINARY))
    return SpacyModel(pipeline)


def language_in_meta(folder: Path) -> str | None:
    """Return the language that the ``meta.json`` in *folder* tells. None: it tells none."""
    try:
        meta = json.loads((folder / "meta.json").read_text("utf-8"))
        return str(meta["lang"])
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _drop_shared_layers(pipeline: Any) -> None:
    """Drop the layers that pipes share, if no pipe that is left listens to them: half the time."""
    for name in ("tok2vec", "transformer"):
        if name in pipeline.pipe_names and not getattr(pipeline.get_pipe(name), "listeners", ()):
            pipeline.remove_pipe(name)

"""Natasha's reader of Russian names as a spaCy pipeline. The package brings its weights along."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import spacy
from spacy.language import Language
from spacy.util import filter_spans

PACKAGE = "natasha"


_FACTORY = "mnemoscope_natasha"


def _reader(nlp: Language, name: str) -> Any:  # noqa: ARG001 - what spaCy calls a factory with
    natasha: Any = import_module(PACKAGE)
    find = natasha.NewsNERTagger(natasha.NewsEmbedding())

    def read(doc: Any) -> Any:
        spans = (
            doc.char_span(each.start, each.stop, label=each.type, alignment_mode="expand")
            for each in find(doc.text).spans
        )
        doc.ents = filter_spans(span for span in spans if span is not None)
        return doc

    return read


def pipeline() -> Any:
    """
    Return the pipeline: its entities are ``PER``, ``LOC`` and ``ORG``.

    Raises:
        ImportError: Natasha is not installed.
    """
    language: Any = Language
    language.factory(_FACTORY, func=_reader)
    nlp = spacy.blank("ru")
    nlp.add_pipe(_FACTORY)
    return nlp

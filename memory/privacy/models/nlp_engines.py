"""Presidio's NLP engines: loaded from this machine only, and asked for named entities alone."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import spacy
import yaml
from presidio_analyzer.nlp_engine import (
    NerModelConfiguration,
    NlpEngine,
    NlpEngineProvider,
    SpacyNlpEngine,
    StanzaNlpEngine,
    TransformersNlpEngine,
)

from ..detectors.finding import BY_MODEL, Finding
from . import natasha_pipeline
from .model_setting import is_configuration

_UNUSED_PIPES = (
    *("parser", "tagger", "lemmatizer", "attribute_ruler", "senter", "morphologizer"),
    *("compound_splitter", "bunsetu_recognizer"),  # of GiNZA: they need the parser
)
_CONFIGURATION: dict[str, Any] = {
    "labels_to_ignore": ["CARDINAL", "LANGUAGE", "MONEY", "ORDINAL", "PERCENT", "QUANTITY", "O"],
    "model_to_presidio_entity_mapping": {
        "PER": "PERSON",
        "PERSON": "PERSON",
        "Person": "PERSON",
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
        # Of GiNZA's, those under which names are read by mistake.
        "City": "LOCATION",
        "Country": "LOCATION",
        "Province": "LOCATION",
        "GPE_Other": "LOCATION",
        "Company": "ORGANIZATION",
        "Organization_Other": "ORGANIZATION",
        "Show_Organization": "ORGANIZATION",
        "Character": "PERSON",
        "Date": "DATE_TIME",
    },
}
"""Tags of the usual corpora, and our entities; a person's rare name is often read as the others."""

_ENTITIES = frozenset(_CONFIGURATION["model_to_presidio_entity_mapping"].values())


class EntityReader:
    """
    An NLP engine that reads one language.

    Args:
        engine: Of Presidio's, loaded.
        language: One of its languages.
    """

    def __init__(self, engine: NlpEngine, language: str) -> None:
        self._engine: Any = engine
        self._language = language

    def memory_zone(self) -> AbstractContextManager[Any]:
        """Return a context at whose end the words learned in it are freed."""
        zone: AbstractContextManager[Any] = self._engine.get_nlp(self._language).memory_zone()
        return zone

    def find(self, texts: Sequence[str]) -> Iterator[list[Finding]]:
        """Yield the entities in each of *texts*, which are read in one batch."""
        # spaCy's parsers split a batch in four.
        batches = self._engine.process_batch(texts, self._language, batch_size=4 * len(texts))
        for _text, read in batches:
            yield [
                Finding(each.start_char, each.end_char, each.label_, float(score), BY_MODEL)
                for each, score in zip(read.entities, read.scores, strict=True)
                if each.label_ in _ENTITIES  # GiNZA has two hundred
            ]


class _OfflineSpacy(SpacyNlpEngine):
    """Pipelines without the parts that names do not need."""

    def load(self) -> None:
        """Load the models; a missing one is spaCy's error."""
        self.nlp: Any = {each["lang_code"]: _pipeline(each["model_name"]) for each in self.models}


class _OfflineTransformers(TransformersNlpEngine):
    """Models from the cache of this machine."""

    def load(self) -> None:
        """Load the models that are there."""
        os.environ.setdefault("HF_HUB_OFFLINE", "1")
        super().load()

    @staticmethod
    def _download_spacy_model_if_needed(model_name: str) -> None:
        """Download nothing: what is missing is spaCy's error."""


class _OfflineStanza(StanzaNlpEngine):
    """Models from the folder of this machine."""

    def __init__(
        self,
        models: list[dict[str, str]] | None = None,
        ner_model_configuration: NerModelConfiguration | None = None,
    ) -> None:
        super().__init__(models, ner_model_configuration, download_if_missing=False)


_ENGINES = (_OfflineSpacy, _OfflineTransformers, _OfflineStanza)


def load(source: str, language: str) -> EntityReader:
    """
    Load a spaCy package or path, or the engine of a configuration file of Presidio's (YAML).

    Raises:
        Exception: The library's own error: the model is missing, damaged or for another version.
    """
    if is_configuration(source):
        configuration: dict[str, Any] = yaml.safe_load(Path(source).read_text("utf-8"))
    else:
        models = [{"lang_code": language, "model_name": source}]
        configuration = {"nlp_engine_name": "spacy", "models": models}
    configuration.setdefault("ner_model_configuration", _CONFIGURATION)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        provider = NlpEngineProvider(_ENGINES, nlp_configuration=configuration)
        return EntityReader(provider.create_engine(), language)


def _pipeline(source: str) -> Any:
    if source == natasha_pipeline.PACKAGE:
        return natasha_pipeline.pipeline()
    pipeline: Any = spacy.load(source, exclude=_UNUSED_PIPES)
    for name in ("tok2vec", "transformer"):
        # Layers that pipes share, and no pipe that is left listens to: half the time.
        if name in pipeline.pipe_names and not getattr(pipeline.get_pipe(name), "listeners", ()):
            pipeline.remove_pipe(name)
    return pipeline

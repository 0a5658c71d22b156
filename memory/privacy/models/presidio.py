"""
Presidio's analyzer with our own registry of recognizers, offline.

It finds the language model's entities. Our own patterns find the rest in microseconds. Presidio is
imported on first use.
"""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Callable, Iterator
from functools import cached_property
from typing import Any

from ..detectors.chunks import split_into_chunks
from ..detectors.finding import Finding
from ..detectors.prefilter import extract_features, may_hold_name
from ..engine.pace import Pace
from .entity_filter import OTHER_ENTITIES, filter_entities, truecase
from .name_model import NameModel
from .span_models import SpanModel

MODEL_ENTITIES = frozenset({"PERSON", "LOCATION", "ORGANIZATION", "NRP", "DATE_TIME"})
"""Entities to find with the language model, each only if it is replaced."""

_ANALYZED = sorted(MODEL_ENTITIES | OTHER_ENTITIES)
_PERSON_ONLY = frozenset({"PERSON"})
MODEL_S = 0.08
"""Processor seconds that the model may take for one text beyond its first characters."""

_ALWAYS_ANALYZED_CHARS = 4_096
_MIN_LETTER_SHARE = 0.1
_TOKEN = re.compile(r"\w+|[^\w ]")
_CHARS_OF_TOKEN = 5
"""In prose. The model's time grows with the tokens, not with the characters."""
_MAYBE_NAME = re.compile(r"(?<![\w])[^\W\d_a-z][^\W\d_]+(?:[ ][^\W\d_a-z][^\W\d_]+)*")


class Presidio:
    """
    Presidio's analyzer, built on first use.

    Args:
        model: The language model for names.
        model_chars: Maximum number of characters of one text that the model analyzes.
        clock: Processor seconds of this thread.
    """

    def __init__(
        self,
        model: NameModel,
        *,
        model_chars: int,
        clock: Callable[[], float] = time.thread_time,
    ) -> None:
        self._clock = clock
        self.model = model
        self._model_chars = model_chars

    def prepare(self) -> None:
        """Import and load everything now, so that no call waits for it."""
        _ = self._analyzer
        with self.model.pipeline():
            pass

    def find_entities(
        self, text: str, entities: frozenset[str], pace: Pace | None = None
    ) -> Iterator[Finding]:
        """
        Find *entities* with the language model.

        The model analyzes a limited number of characters, since it takes 11 ms for 1,000, and fewer
        of a text with many tokens. Beyond the limit every possible name counts as a person.
        """
        if pace is not None:
            pace.before_slow_work()
        analyzed, ends = 0, self._clock() + MODEL_S
        for start, piece in split_into_chunks(text):
            if entities == _PERSON_ONLY and not may_hold_name(piece, extract_features(piece)):
                continue
            if pace is not None:
                pace.between_pieces()
            analyzed += max(len(piece), _CHARS_OF_TOKEN * len(_TOKEN.findall(piece)))
            in_time = analyzed <= _ALWAYS_ANALYZED_CHARS or self._clock() <= ends
            within = in_time and analyzed <= self._model_chars and _has_words(piece)
            found = self._entities(piece, entities) if within else _possible_names(piece)
            for each in found:
                yield each._replace(start=start + each.start, end=start + each.end)

    def _entities(self, text: str, entities: frozenset[str]) -> list[Finding]:
        # A lone surrogate cannot be encoded for the model; "?" is as long.
        readable = truecase(text.encode("utf-8", "replace").decode())
        with self.model.pipeline() as pipeline:
            if pipeline is None:
                return []
            if isinstance(pipeline, SpanModel):
                found = list(pipeline.find(readable))
            else:
                found = self._analyzed(readable, pipeline)
        return [each for each in filter_entities(readable, found) if each.entity in entities]

    def _analyzed(self, text: str, pipeline: Any) -> list[Finding]:
        """Return what Presidio finds in *text* with a spaCy *pipeline*."""
        analyzer = self._analyzer
        engine = analyzer.nlp_engine
        engine.nlp = {"en": pipeline}
        known = engine.process_text(text, "en")
        results = analyzer.analyze(text, "en", _ANALYZED, nlp_artifacts=known)
        return [
            Finding(each.start, each.end, each.entity_type, each.score, "language model")
            for each in results
        ]

    @cached_property
    def _analyzer(self) -> Any:
        """The analyzer, with the model's recognizer alone."""
        import presidio_analyzer as library  # noqa: PLC0415 - a second, on first use only
        from presidio_analyzer import nlp_engine, predefined_recognizers  # noqa: PLC0415

        _stay_offline()
        _quiet_logger()
        names = predefined_recognizers.SpacyRecognizer(supported_entities=_ANALYZED)
        engine: Any = nlp_engine.SpacyNlpEngine(models=[{"lang_code": "en", "model_name": "none"}])
        engine.nlp = {"en": None}  # otherwise the analyzer loads, that is downloads, a model
        registry = library.RecognizerRegistry(recognizers=[names])
        return library.AnalyzerEngine(registry=registry, nlp_engine=engine)


def _has_words(text: str) -> bool:
    """Return whether *text* is language; brackets would each be a token, and slow."""
    return sum(map(str.isalpha, text)) >= len(text) * _MIN_LETTER_SHARE


def _possible_names(text: str) -> list[Finding]:
    text = truecase(text)
    matches = _MAYBE_NAME.finditer(text)
    found = [
        Finding(*match.span(), "PERSON", 0.5, "beyond what the model is shown") for match in matches
    ]
    return list(filter_entities(text, found))


def _quiet_logger() -> None:
    """Set Presidio's logger to WARNING, unless the host has set its level."""
    library = logging.getLogger("presidio-analyzer")
    if library.level == logging.NOTSET:
        library.setLevel(logging.WARNING)


def _stay_offline() -> None:
    """Keep tldextract, which Presidio's e-mail and URL recognizers use, from the network."""
    import tldextract.tldextract as library  # noqa: PLC0415

    library.TLD_EXTRACTOR = library.TLDExtract(suffix_list_urls=())

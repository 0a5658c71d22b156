"""
Presidio's analyzer over a registry of our own, offline.

It is asked for what it is best at: the language model's entities and national identity numbers
with their check digits. What our own patterns find in microseconds is not asked of it, and it is
not imported before there is something to ask.
"""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Callable, Iterator
from functools import cached_property
from typing import Any

from .clues import clues_of, needs_model
from .finding import Finding
from .model import NameModel
from .national import RECOGNIZERS, believed
from .ner import OTHER_ENTITIES, refined, truecased
from .pieces import chunks
from .spans import SpanModel

MODEL_ENTITIES = frozenset({"PERSON", "LOCATION", "ORGANIZATION", "NRP", "DATE_TIME"})
"""What a language model is asked for, each only if it is to be replaced."""

_ASKED = sorted(MODEL_ENTITIES | OTHER_ENTITIES)
_PERSONS = frozenset({"PERSON"})
MODEL_S = 0.08
"""Seconds of a processor's time that the model may take for what is not always shown."""

_ALWAYS_SHOWN = 4_096
_LEAST_LETTERS = 0.1
_TOKEN = re.compile(r"\w+|[^\w ]")
_CHARS_OF_TOKEN = 5
"""In prose. What has more of them to a character takes the model as much longer."""
_MAYBE_NAME = re.compile(r"(?<![\w])[^\W\d_a-z][^\W\d_]+(?:[ ][^\W\d_a-z][^\W\d_]+)*")


class Presidio:
    """
    Presidio's analyzer, made ready on first use.

    Args:
        model: The language model for names.
        model_chars: Characters of one text that the model is shown at most.
        clock: Tells how many seconds of a processor's time this thread has had.
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
        """Import and load everything now, so that no call has to wait for it."""
        _ = self._analyzer
        with self.model.pipeline():
            pass

    def identities(self, text: str, names: frozenset[str]) -> Iterator[Finding]:
        """Find national identity numbers with the recognizers *names*."""
        analyzer, entities = self._analyzer
        wanted = [entities[name] for name in sorted(names)]
        for start, piece in chunks(text):
            for found in analyzer.analyze(piece, "en", wanted, nlp_artifacts=_nothing_known()):
                name = found.recognition_metadata["recognizer_name"]
                if believed(name, piece, found.start, found.end, found.score):
                    span = start + found.start, start + found.end
                    yield Finding(*span, "NATIONAL_ID", found.score, f"Presidio's {name}")

    def named(self, text: str, entities: frozenset[str]) -> Iterator[Finding]:
        """
        Find what the language model takes for *entities*.

        The model is shown so many characters and no more, since it needs 11 ms for 1,000, and less
        of what takes it longer. Beyond, whatever could be a name is taken for one.
        """
        shown, ends = 0, self._clock() + MODEL_S
        for start, piece in chunks(text):
            if entities == _PERSONS and not needs_model(piece, clues_of(piece)):
                continue
            shown += max(len(piece), _CHARS_OF_TOKEN * len(_TOKEN.findall(piece)))
            in_time = shown <= _ALWAYS_SHOWN or self._clock() <= ends
            within = in_time and shown <= self._model_chars and _has_words(piece)
            found = self._entities(piece, entities) if within else _possible_names(piece)
            for each in found:
                yield each._replace(start=start + each.start, end=start + each.end)

    def _entities(self, text: str, entities: frozenset[str]) -> list[Finding]:
        # A lone surrogate cannot be encoded for the model; "?" is as long.
        readable = truecased(text.encode("utf-8", "replace").decode())
        with self.model.pipeline() as pipeline:
            if pipeline is None:
                return []
            if isinstance(pipeline, SpanModel):
                found = list(pipeline.find(readable))
            else:
                found = self._analyzed(readable, pipeline)
        return [each for each in refined(readable, found) if each.entity in entities]

    def _analyzed(self, text: str, pipeline: Any) -> list[Finding]:
        """Return what Presidio finds in *text* with a spaCy *pipeline*."""
        analyzer, _ = self._analyzer
        engine = analyzer.nlp_engine
        engine.nlp = {"en": pipeline}
        known = engine.process_text(text, "en")
        results = analyzer.analyze(text, "en", _ASKED, nlp_artifacts=known)
        return [
            Finding(each.start, each.end, each.entity_type, each.score, "language model")
            for each in results
        ]

    @cached_property
    def _analyzer(self) -> tuple[Any, dict[str, str]]:
        """Return the analyzer and which entity each national recognizer finds."""
        import presidio_analyzer as library  # noqa: PLC0415 - a second, on first use only
        from presidio_analyzer import nlp_engine, predefined_recognizers  # noqa: PLC0415

        _stay_offline()
        _hush()
        national = {
            name: getattr(predefined_recognizers, name)(supported_language="en")
            for name in RECOGNIZERS
        }
        names = predefined_recognizers.SpacyRecognizer(supported_entities=_ASKED)
        engine: Any = nlp_engine.SpacyNlpEngine(models=[{"lang_code": "en", "model_name": "none"}])
        engine.nlp = {"en": None}  # else the analyzer has it load, which is to say download
        registry = library.RecognizerRegistry(recognizers=[*national.values(), names])
        analyzer = library.AnalyzerEngine(registry=registry, nlp_engine=engine)
        return analyzer, {name: each.supported_entities[0] for name, each in national.items()}


def _has_words(text: str) -> bool:
    """False for what is no language: a model would take every bracket for a word, and long."""
    return sum(map(str.isalpha, text)) >= len(text) * _LEAST_LETTERS


def _possible_names(text: str) -> list[Finding]:
    text = truecased(text)
    matches = _MAYBE_NAME.finditer(text)
    found = [
        Finding(*match.span(), "PERSON", 0.5, "beyond what the model is shown") for match in matches
    ]
    return list(refined(text, found))


def _nothing_known() -> Any:
    from presidio_analyzer.nlp_engine import NlpArtifacts  # noqa: PLC0415

    nothing: Any = None
    return NlpArtifacts([], nothing, [], [], nothing, "en")


def _hush() -> None:
    """Leave only warnings of what Presidio logs of each text, unless the host chose otherwise."""
    library = logging.getLogger("presidio-analyzer")
    if library.level == logging.NOTSET:
        library.setLevel(logging.WARNING)


def _stay_offline() -> None:
    """Keep tldextract, which Presidio's e-mail and URL recognizers use, from fetching its list."""
    import tldextract.tldextract as library  # noqa: PLC0415

    library.TLD_EXTRACTOR = library.TLDExtract(suffix_list_urls=())

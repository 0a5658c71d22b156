"""
The user's own recognizers, registries and analyzers of Presidio, under a time limit.

One that raises, hangs or returns an invalid result fails the redaction, and with it the write:
skipping it would let through the data that it was added for.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import spacy
from presidio_analyzer import (
    AnalysisExplanation,
    AnalyzerEngine,
    EntityRecognizer,
    RecognizerRegistry,
    RecognizerResult,
)
from presidio_analyzer.nlp_engine import NlpArtifacts, SpacyNlpEngine
from presidio_analyzer.recognizer_registry import RecognizerRegistryProvider

from ...errors import ConfigurationError, RedactionError

MAX_TIMEOUTS = 4


class CustomRecognizer(EntityRecognizer):
    """
    An analyzer of the user's, as one recognizer with a time limit for each text.

    Args:
        analyzer: Asked in each of its languages, since a text may be in any.
        timeout_s: Seconds that it may take for one text.
    """

    def __init__(self, analyzer: AnalyzerEngine, *, timeout_s: float) -> None:
        super().__init__(supported_entities=analyzer.get_supported_entities())
        self._analyzer = analyzer
        self._timeout_s = timeout_s
        self._timeouts = 0

    def load(self) -> None:
        """Load nothing: the analyzer has done so."""

    def analyze(
        self,
        text: str,
        entities: list[str],  # noqa: ARG002 - the user's are all wanted
        nlp_artifacts: NlpArtifacts,  # noqa: ARG002 - the analyzer makes its own
    ) -> list[RecognizerResult]:
        """
        Return what the analyzer finds.

        Raises:
            RedactionError: It raised, took too long or returned an invalid result.
        """
        return self._within_time(lambda: list(self._results(text)))

    def _results(self, text: str) -> Iterator[RecognizerResult]:
        for language in self._analyzer.supported_languages:
            found = self._analyzer.analyze(text, language, return_decision_process=True)
            yield from (_checked(each, len(text)) for each in found)

    def _within_time(self, work: Callable[[], list[RecognizerResult]]) -> list[RecognizerResult]:
        # Not an executor: its threads are joined at exit, so a hanging one would block the exit.
        if self._timeouts >= MAX_TIMEOUTS:
            raise RedactionError(
                f"the recognizers timed out {MAX_TIMEOUTS} times and no longer run: fix or remove "
                "the one that hangs, and restart"
            )
        answer: list[list[RecognizerResult] | BaseException] = []
        thread = threading.Thread(target=_run_into, args=(work, answer), daemon=True)
        thread.start()
        thread.join(self._timeout_s)
        if not answer:
            self._timeouts += 1
            raise RedactionError(f"the recognizers took longer than {self._timeout_s:g} s")
        if isinstance(answer[0], BaseException):
            raise RedactionError(f"a recognizer raised {type(answer[0]).__qualname__}")
        return answer[0]


def to_analyzers(given: Iterable[Any]) -> list[AnalyzerEngine]:
    """
    Return analyzers of what the user gave, recognizers of his together in one.

    Args:
        given: Presidio's recognizers, registries and analyzers, and paths of YAML registries.

    Raises:
        ConfigurationError: One is none of these, or its file cannot be read.
    """
    single: list[EntityRecognizer] = []
    analyzers: list[AnalyzerEngine] = []
    for each in given:
        if isinstance(each, EntityRecognizer):
            single.append(each)
        elif isinstance(each, AnalyzerEngine):
            analyzers.append(each)
        elif isinstance(each, RecognizerRegistry):
            analyzers.append(_with_words(each))
        elif isinstance(each, (str, Path)):
            analyzers.append(_with_words(_read_registry(Path(each))))
        else:
            kind = type(each).__qualname__
            raise ConfigurationError(
                f"a {kind} is no recognizer, registry or analyzer of Presidio, and no path of one"
            )
    if single:
        languages = sorted({each.supported_language for each in single})
        analyzers.append(_with_words(RecognizerRegistry(single, supported_languages=languages)))
    return analyzers


def _read_registry(path: Path) -> RecognizerRegistry:
    # Presidio would read its own registry in place of a file that is missing.
    if not path.is_file():
        raise ConfigurationError("the registry of recognizers is no file that can be read")
    try:
        return RecognizerRegistryProvider(conf_file=path).create_recognizer_registry()
    except Exception as exc:  # noqa: BLE001 - of a parser, a validator, the file system
        raise ConfigurationError(
            f"a file is no registry of recognizers: {type(exc).__qualname__}"
        ) from None


def _with_words(registry: RecognizerRegistry) -> AnalyzerEngine:
    """Return an analyzer of *registry* that knows the words around a find, without a model."""
    languages = list(registry.supported_languages)
    return AnalyzerEngine(registry, _Words(languages), supported_languages=languages)


class _Words(SpacyNlpEngine):
    """The words of a text, for the context words of recognizers."""

    def __init__(self, languages: Iterable[str]) -> None:
        super().__init__([{"lang_code": each, "model_name": "none"} for each in languages])

    def load(self) -> None:
        """Make a tokenizer: no model is loaded."""
        words = spacy.blank("xx")
        self.nlp: Any = {each["lang_code"]: words for each in self.models}

    def _doc_to_nlp_artifact(self, doc: Any, language: str) -> NlpArtifacts:
        starts, lower = [token.idx for token in doc], [token.lower_ for token in doc]
        return NlpArtifacts([], doc, starts, lower, self, language)


def _run_into(
    work: Callable[[], list[RecognizerResult]],
    answer: list[list[RecognizerResult] | BaseException],
) -> None:
    try:
        answer.append(work())
    except BaseException as error:  # noqa: BLE001 - handed to the waiting thread
        answer.append(error)


def _checked(result: RecognizerResult, length: int) -> RecognizerResult:
    start, end = result.start, result.end
    entity: Any = result.entity_type
    if type(start) is not int or type(end) is not int or not 0 <= start < end <= length:
        raise RedactionError("a recognizer returned a span that is not in the text")
    if not isinstance(entity, str) or not entity.replace("_", "").isalnum():
        raise RedactionError("a recognizer returned an entity that is not a name")
    score = float(result.score)
    explanation = AnalysisExplanation("", score, textual_explanation=_explained(result))
    return RecognizerResult(entity.upper(), start, end, score, explanation)


def _explained(result: RecognizerResult) -> str:
    """Return how Presidio came to a *result*: the recognizer, its pattern, the word near it."""
    made: Any = result.analysis_explanation
    if made is None:
        return "a recognizer of the user's"
    said = [f"{made.recognizer}", made.pattern_name and f"pattern {made.pattern_name}"]
    said.append(made.supportive_context_word and f"near {made.supportive_context_word!r}")
    return ", ".join(filter(None, said))

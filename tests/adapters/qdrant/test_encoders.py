"""Encoders: deterministic, offline, and fastembed where it is installed."""

from __future__ import annotations

import subprocess
import sys
import threading
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest

from mnemoscope.hybrid_search import Bm25, FastEmbed, FastEmbedSparse, WordLlama
from mnemoscope.hybrid_search.encoders import _Lazy
from tests.kit.patience import GIVE_UP_S


def test_a_paraphrase_is_nearer_than_something_else():
    """The embedded model knows what a text means, without the same words."""
    dense = WordLlama()
    question = np.array(dense.query("When do I get my money back?"))
    refund, opening = np.array(
        dense.documents(["Refunds are paid within five days.", "The library opens at nine."])
    )

    assert len(question) == dense.size == 256
    assert question @ refund > question @ opening + 0.1


def test_words_count_less_the_more_often_they_come():
    """Term frequency saturates, and long texts are discounted."""
    once, often = Bm25().documents(["tea", "tea tea tea tea"])
    alone, among = Bm25().documents(["tea", "tea " + " ".join(f"w{n}" for n in range(200))])

    assert once.values[0] < often.values[0] < 4 * once.values[0]
    assert alone.values[0] > among.values[0]


def test_words_are_the_same_in_any_case_and_width():
    """Case, compatibility forms and punctuation make no difference."""
    sparse = Bm25()

    assert sparse.query("Café, TEA!") == sparse.query("cafe\u0301 tea")
    assert sparse.query("\uff54\uff45\uff41") == sparse.query("tea")


def test_a_words_dimension_is_the_same_in_every_process():
    """Python's own hash is not: an index outlives a process."""
    code = "from mnemoscope.hybrid_search.encoders import Bm25; print(Bm25().query('tea').indices)"
    other = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        env={"PYTHONHASHSEED": "7", "PATH": ""},
    )

    assert other.stdout.strip() == str(Bm25().query("tea").indices)


def test_a_text_without_words_has_no_dimensions():
    """Nothing to look for."""
    assert Bm25().query("?!").indices == []


class FakeModel:
    """What a model of fastembed looks like."""

    embedding_size = 3

    def __init__(self, model_name):
        self.model_name = model_name

    def embed(self, texts):
        yield from (np.array([len(each), 0.0, 1.0]) for each in texts)

    def query_embed(self, text):
        yield np.array([len(text), 1.0, 0.0])


class FakeSparse(FakeModel):
    def embed(self, texts):
        for each in texts:
            yield SimpleNamespace(indices=np.array([len(each)]), values=np.array([0.5]))

    def query_embed(self, text):
        yield SimpleNamespace(indices=np.array([len(text)]), values=np.array([1.0]))


@pytest.fixture
def fastembed(monkeypatch):
    """Put a stand-in where ``fastembed`` would be."""
    module = ModuleType("fastembed")
    module.TextEmbedding, module.SparseTextEmbedding = FakeModel, FakeSparse
    monkeypatch.setitem(sys.modules, "fastembed", module)


def test_a_dense_model_of_fastembed(fastembed):
    """Its arrays become lists, its query method is used for queries."""
    dense = FastEmbed("a model")

    assert dense.size == 3
    assert dense.documents(["ab", "abc"]) == [[2.0, 0.0, 1.0], [3.0, 0.0, 1.0]]
    assert dense.query("a") == [1.0, 1.0, 0.0]


def test_a_sparse_model_of_fastembed(fastembed):
    """Its embeddings become Qdrant's sparse vectors."""
    sparse = FastEmbedSparse("a model")

    assert [each.indices for each in sparse.documents(["ab", "abc"])] == [[2], [3]]
    assert sparse.query("a").values == [1.0]


def test_a_model_is_loaded_once_whichever_threads_ask():
    """And not before it is needed."""
    made = []
    once = _Lazy(lambda: made.append(1) or "model")
    threads = [threading.Thread(target=once) for _ in range(8)]
    assert made == []

    for each in threads:
        each.start()
    for each in threads:
        each.join(GIVE_UP_S)

    assert once() == "model"
    assert made == [1]


def test_the_model_leaves_logging_to_the_host(tmp_path):
    """Its library would have everything of the process from INFO up printed to stderr."""
    pytest.importorskip("wordllama", reason="needs mnemoscope[qdrant]")
    code = (
        "import logging\n"
        "from mnemoscope.hybrid_search.encoders import WordLlama\n"
        "WordLlama().query('tea')\n"
        "root = logging.getLogger()\n"
        "assert (root.handlers, root.level) == ([], logging.WARNING), root.handlers\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path, check=False
    )

    assert done.returncode == 0, done.stderr

"""
Text into vectors, dense for what it means and sparse for the words it uses.

The defaults need no network: ``wordllama`` carries its model in its wheel, and the sparse encoder
is arithmetic. ``fastembed`` is the better choice for a deployment; it fetches its models when first
used.
"""

from __future__ import annotations

import logging
import re
import threading
import unicodedata
from collections import Counter
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from hashlib import blake2b
from pathlib import Path
from typing import Any, Protocol

from qdrant_client.http import models

_WORD = re.compile(r"\w+")


class DenseEncoder(Protocol):
    """Turns meaning into a vector."""

    @property
    def size(self) -> int:
        """Dimensions of its vectors."""
        ...

    def documents(self, texts: Sequence[str], /) -> list[list[float]]:
        """Encode what is stored."""
        ...

    def query(self, text: str, /) -> list[float]:
        """Encode what is asked."""
        ...


class SparseEncoder(Protocol):
    """Turns words into a vector with one dimension for each. The store weighs them by rarity."""

    def documents(self, texts: Sequence[str], /) -> list[models.SparseVector]:
        """Encode what is stored."""
        ...

    def query(self, text: str, /) -> models.SparseVector:
        """Encode what is asked."""
        ...


class WordLlama:
    """
    The dense model in the wheel of ``wordllama``: 256 dimensions, 0.1 ms a text, no network.

    Loads when first used.
    """

    def __init__(self) -> None:
        self._model = _Once(_wordllama)

    @property
    def size(self) -> int:
        """Dimensions of its vectors."""
        return 256

    def documents(self, texts: Sequence[str], /) -> list[list[float]]:
        """Encode what is stored."""
        vectors: list[list[float]] = self._model().embed(list(texts), norm=True).tolist()
        return vectors

    def query(self, text: str, /) -> list[float]:
        """Encode what is asked."""
        return self.documents([text])[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class Bm25:
    """
    The term-frequency half of BM25; ``Modifier.IDF`` makes the store do the other.

    Words are Unicode words in lower case, hashed to 32 bits: stable over processes and versions,
    and nothing has to be learnt first.

    Attributes:
        k: How soon more of the same word stops counting.
        b: How much longer texts are discounted, in [0, 1].
        average_words: Words of a typical text.
    """

    k: float = 1.2
    b: float = 0.75
    average_words: float = 64.0

    def documents(self, texts: Sequence[str], /) -> list[models.SparseVector]:
        """Encode what is stored."""
        return [self._document(text) for text in texts]

    def query(self, text: str, /) -> models.SparseVector:
        """Encode what is asked: each word once."""
        words = {_dimension(word): 1.0 for word in _words(text)}
        return _sparse(words)

    def _document(self, text: str) -> models.SparseVector:
        counts = Counter(map(_dimension, _words(text)))
        length = counts.total() / self.average_words
        discount = self.k * (1 - self.b + self.b * length)
        return _sparse({word: n * (self.k + 1) / (n + discount) for word, n in counts.items()})


class FastEmbed:
    """
    A dense model of ``fastembed``. Fetched when first used.

    Args:
        model: Its name.
    """

    def __init__(self, model: str = "BAAI/bge-small-en-v1.5") -> None:
        self._model = _Once(lambda: _fastembed("TextEmbedding", model))

    @property
    def size(self) -> int:
        """Dimensions of its vectors."""
        return int(self._model().embedding_size)

    def documents(self, texts: Sequence[str], /) -> list[list[float]]:
        """Encode what is stored."""
        return [each.tolist() for each in self._model().embed(list(texts))]

    def query(self, text: str, /) -> list[float]:
        """Encode what is asked."""
        vector: list[float] = next(iter(self._model().query_embed(text))).tolist()
        return vector


class FastEmbedSparse:
    """
    A sparse model of ``fastembed``. Fetched when first used.

    Args:
        model: Its name.
    """

    def __init__(self, model: str = "Qdrant/bm25") -> None:
        self._model = _Once(lambda: _fastembed("SparseTextEmbedding", model))

    def documents(self, texts: Sequence[str], /) -> list[models.SparseVector]:
        """Encode what is stored."""
        return [_from_fastembed(each) for each in self._model().embed(list(texts))]

    def query(self, text: str, /) -> models.SparseVector:
        """Encode what is asked."""
        return _from_fastembed(next(iter(self._model().query_embed(text))))


class _Once:
    """Makes something when first asked for it, once, whichever threads ask."""

    def __init__(self, make: Callable[[], Any]) -> None:
        self._make = make
        self._lock = threading.Lock()
        self._made: Any = None

    def __call__(self) -> Any:
        if self._made is None:
            with self._lock:
                if self._made is None:
                    self._made = self._make()
        return self._made


def _wordllama() -> Any:
    with _own_log_setup():
        import wordllama  # type: ignore[import-untyped]  # noqa: PLC0415 - numpy and a tokenizer

    # Without cache_dir it looks outside its own wheel, and then for the network.
    folder = Path(wordllama.__file__).parent
    return wordllama.WordLlama.load(cache_dir=folder, disable_download=True)


@contextmanager
def _own_log_setup() -> Generator[None]:
    """Leave logging to the host: wordllama has all that is logged from INFO up go to stderr."""
    # `logging.basicConfig` does nothing where the root logger has a handler.
    root, handler = logging.getLogger(), logging.NullHandler()
    root.addHandler(handler)
    try:
        yield
    finally:
        root.removeHandler(handler)


def _fastembed(kind: str, model: str) -> Any:
    import fastembed  # type: ignore[import-not-found]  # noqa: PLC0415 - optional, and heavy

    return getattr(fastembed, kind)(model_name=model)


def _from_fastembed(embedding: Any) -> models.SparseVector:
    return models.SparseVector(indices=embedding.indices.tolist(), values=embedding.values.tolist())


def _words(text: str) -> list[str]:
    return _WORD.findall(unicodedata.normalize("NFKC", text).casefold())


@lru_cache(maxsize=65_536)
def _dimension(word: str) -> int:
    return int.from_bytes(blake2b(word.encode("utf-8", "surrogatepass"), digest_size=4).digest())


def _sparse(weights: dict[int, float]) -> models.SparseVector:
    return models.SparseVector(indices=list(weights), values=list(weights.values()))

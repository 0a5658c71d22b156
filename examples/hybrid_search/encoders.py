"""
Encoders of text: dense vectors of its meaning, sparse vectors of its words.

The defaults need no network: ``wordllama`` has its model in its wheel, and the sparse encoder needs
none. ``fastembed`` finds more in a deployment; it downloads its models when first used.
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
    """Encodes the meaning of a text as a vector."""

    @property
    def size(self) -> int:
        """Number of dimensions of a vector."""
        ...

    def documents(self, texts: Sequence[str], /) -> list[list[float]]:
        """Encode texts to store."""
        ...

    def query(self, text: str, /) -> list[float]:
        """Encode a query."""
        ...


class SparseEncoder(Protocol):
    """Encodes a text with a dimension for each word; the store weighs words by rarity."""

    def documents(self, texts: Sequence[str], /) -> list[models.SparseVector]:
        """Encode texts to store."""
        ...

    def query(self, text: str, /) -> models.SparseVector:
        """Encode a query."""
        ...


class WordLlama:
    """
    The dense model in the wheel of ``wordllama``: 256 dimensions, 0.1 ms a text, no network.

    The model is loaded when first used.
    """

    def __init__(self) -> None:
        self._model = _Lazy(_wordllama)

    @property
    def size(self) -> int:
        """Number of dimensions of a vector."""
        return 256

    def documents(self, texts: Sequence[str], /) -> list[list[float]]:
        """Encode texts to store."""
        vectors: list[list[float]] = self._model().embed(list(texts), norm=True).tolist()
        return vectors

    def query(self, text: str, /) -> list[float]:
        """Encode a query."""
        return self.documents([text])[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class Bm25:
    """
    The term frequencies of BM25; ``Modifier.IDF`` has the store add the document frequencies.

    Words are Unicode words in lower case, hashed to 32 bits: stable over processes and versions,
    without a vocabulary.

    Attributes:
        k: Saturation: the larger, the more a repeated word counts.
        b: Discount of long texts, in [0, 1].
        average_words: Number of words in a typical text.
    """

    k: float = 1.2
    b: float = 0.75
    average_words: float = 64.0

    def documents(self, texts: Sequence[str], /) -> list[models.SparseVector]:
        """Encode texts to store."""
        return [self._document(text) for text in texts]

    def query(self, text: str, /) -> models.SparseVector:
        """Encode a query, each word once."""
        words = {_dimension(word): 1.0 for word in _words(text)}
        return _sparse(words)

    def _document(self, text: str) -> models.SparseVector:
        counts = Counter(map(_dimension, _words(text)))
        length = counts.total() / self.average_words
        discount = self.k * (1 - self.b + self.b * length)
        return _sparse({word: n * (self.k + 1) / (n + discount) for word, n in counts.items()})


class FastEmbed:
    """
    A dense model of ``fastembed``, downloaded when first used.

    Args:
        model: The model's name.
    """

    def __init__(self, model: str = "BAAI/bge-small-en-v1.5") -> None:
        self._model = _Lazy(lambda: _fastembed("TextEmbedding", model))

    @property
    def size(self) -> int:
        """Number of dimensions of a vector."""
        return int(self._model().embedding_size)

    def documents(self, texts: Sequence[str], /) -> list[list[float]]:
        """Encode texts to store."""
        return [each.tolist() for each in self._model().embed(list(texts))]

    def query(self, text: str, /) -> list[float]:
        """Encode a query."""
        vector: list[float] = next(iter(self._model().query_embed(text))).tolist()
        return vector


class FastEmbedSparse:
    """
    A sparse model of ``fastembed``, downloaded when first used.

    Args:
        model: The model's name.
    """

    def __init__(self, model: str = "Qdrant/bm25") -> None:
        self._model = _Lazy(lambda: _fastembed("SparseTextEmbedding", model))

    def documents(self, texts: Sequence[str], /) -> list[models.SparseVector]:
        """Encode texts to store."""
        return [_from_fastembed(each) for each in self._model().embed(list(texts))]

    def query(self, text: str, /) -> models.SparseVector:
        """Encode a query."""
        return _from_fastembed(next(iter(self._model().query_embed(text))))


class _Lazy:
    """Creates an object on the first call, once for all threads."""

    def __init__(self, create: Callable[[], Any]) -> None:
        self._create = create
        self._lock = threading.Lock()
        self._value: Any = None

    def __call__(self) -> Any:
        if self._value is None:
            with self._lock:
                if self._value is None:
                    self._value = self._create()
        return self._value


def _wordllama() -> Any:
    with _logging_unchanged():
        import wordllama  # type: ignore[import-untyped]  # noqa: PLC0415 - numpy and a tokenizer

    # Without cache_dir it looks outside its own wheel, then on the network.
    folder = Path(wordllama.__file__).parent
    return wordllama.WordLlama.load(cache_dir=folder, disable_download=True)


@contextmanager
def _logging_unchanged() -> Generator[None]:
    """Keep wordllama's import from sending everything from INFO up to stderr."""
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

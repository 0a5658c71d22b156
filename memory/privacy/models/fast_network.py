"""
The network before spaCy's recognizer of names, in a third of the time: the same sums, fewer calls.

spaCy's own multiplies with a library that is slow on new processors, and calls forty layers for a
sentence. This one has the weights of a loaded pipeline, and is taken only where it tells the same.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any, NoReturn

import numpy as np
from numpy.lib.stride_tricks import as_strided
from numpy.typing import NDArray

Floats = NDArray[np.float32]

_ROWS = 32
_MOST_PRODUCTS = 500_000
"""Of one multiplication: from 524,288 on OpenBLAS uses threads, which cost more than they save."""

_TOLERANCE = 1e-3
_EPSILON = np.float32(1e-8)
_PROBES = (
    "Siobhan Okonkwo-Brandt met 3 people from Delft on 24 May, didn't she?",
    "she likes tea",
    " ".join("Yesterday Marisol wrote that nobody in Xqzvw had paid the $40 yet." for _ in "12345"),
)


class FastNetwork:
    """
    The layers from words to one vector a word, of a recognizer that spaCy trained.

    Args:
        layers: spaCy's own.

    Raises:
        ValueError: They are of another kind.
    """

    def __init__(self, layers: Any) -> None:
        named: dict[str, list[Any]] = {}
        for each in layers.walk(order="dfs_pre"):
            named.setdefault(each.name, []).append(each)
        self._ops = layers.ops
        self._columns = _only(named, "extract_features").attrs["columns"]
        self._tables = [
            (each.get_param("E"), each.attrs["seed"]) for each in named.get("hashembed", ())
        ]
        self._projections = [
            _sliced(each.get_param("W")[:, None]) for each in named.get("static_vectors", ())
        ]
        maxouts, norms = named.get("maxout", ()), named.get("layernorm", ())
        self._mix, *self._reads = [
            _Maxout(maxout, norm) for maxout, norm in zip(maxouts, norms, strict=True)
        ]
        self._pad = max(each.attrs.get("pad", 0) for each in layers.walk())
        last = _only(named, "linear")
        self._last = _sliced(last.get_param("W")[:, None]), last.get_param("b")

    def read(self, docs: Sequence[Any]) -> Floats:
        """Return a row for each word of *docs*."""
        docs = [doc for doc in docs if len(doc)]
        mixed = self._mix.apply(self._embed(docs))
        # As spaCy does: zeros between two texts, and a zero at either end.
        lengths = [len(doc) for doc in docs]
        gaps = np.repeat(np.arange(1, len(docs) + 1), lengths) * self._pad
        at = np.arange(len(mixed)) + gaps
        rows, width = len(mixed) + self._pad * (len(docs) + 1), mixed.shape[1]
        padded = np.zeros((rows + 2, width), np.float32)
        inner = padded[1:-1]
        inner[at] = mixed
        step = padded.strides[0]
        for layer in self._reads:
            neighbours = as_strided(padded, (rows, 3 * width), (step, padded.itemsize))
            inner += layer.apply(np.ascontiguousarray(neighbours))
        weights, bias = self._last
        answer: Floats = _multiply(inner[at], weights)[:, 0] + bias
        return answer

    def _embed(self, docs: Sequence[Any]) -> Floats:
        """Return what the network knows of each word by itself."""
        ids = np.concatenate([doc.to_array(self._columns) for doc in docs])
        parts = [
            self._ops.gather_add(table, self._ops.hash(column, seed) % len(table))
            for column, (table, seed) in zip(np.ascontiguousarray(ids.T), self._tables, strict=True)
        ]
        for projection in self._projections:
            vectors = docs[0].vocab.vectors
            row_of = vectors.key2row.get
            keys = (key for doc in docs for key in doc.to_array(vectors.attr).tolist())
            rows = np.array([row_of(key, -1) for key in keys])
            known = vectors.data[rows]
            known[rows < 0] = 0
            parts.append(_multiply(known, projection)[:, 0])
        return np.concatenate(parts, axis=1)


class _Maxout:
    """The best of several sums for each output, then normalized."""

    def __init__(self, maxout: Any, norm: Any) -> None:
        self._weights = _sliced(maxout.get_param("W"))
        self._biases = np.ascontiguousarray(maxout.get_param("b").T)
        self._scale, self._shift = norm.get_param("G"), norm.get_param("b")

    def apply(self, rows: Floats) -> Floats:
        """Return the outputs for each of *rows*."""
        sums = _multiply(rows, self._weights)
        sums += self._biases
        best: Floats = np.maximum.reduce(sums, axis=1)
        best -= best.mean(axis=1, keepdims=True)
        variance = np.einsum("ij,ij->i", best, best) / np.float32(best.shape[1]) + _EPSILON
        best *= (1 / np.sqrt(variance))[:, None]
        best *= self._scale
        best += self._shift
        return best


def replace_network(recognizer: Any, read: Callable[[str], Any]) -> bool:
    """
    Have *recognizer* use a `FastNetwork` if that tells the same of the docs that *read* makes.

    Returns:
        Whether it does. If not, it is as it was.
    """
    layers = recognizer.model.layers[0]
    docs = [read(text) for text in _PROBES]
    try:
        network = FastNetwork(layers)
        for some in (docs, docs[:1]):
            if not np.allclose(network.read(some), layers.predict(some), atol=_TOLERANCE):
                return False
    except (AttributeError, KeyError, ValueError):
        return False

    def forward(_model: Any, docs: Sequence[Any], **_is_train: bool) -> tuple[Floats, object]:
        return network.read(docs), _refuse_training

    thinc: Any = import_module("thinc.api")
    return bool(recognizer.model.replace_node(layers, thinc.Model("fast_network", forward)))


def _refuse_training(_: Any) -> NoReturn:
    raise NotImplementedError("this network only predicts")


def _only(named: dict[str, list[Any]], name: str) -> Any:
    (found,) = named[name]
    return found


def _sliced(weights: Floats) -> Floats:
    """Return *weights*, by output, piece and input, as what `_multiply` takes."""
    outputs, pieces, inputs = weights.shape
    widths = (each for each in range(outputs, 1, -1) if outputs % each == 0)
    width = next((each for each in widths if each * inputs * _ROWS <= _MOST_PRODUCTS), 1)
    slices = weights.reshape(outputs // width, width, pieces, inputs)
    return np.ascontiguousarray(slices.transpose(2, 0, 3, 1))


def _multiply(rows: Floats, slices: Floats) -> Floats:
    """Return the products of *rows* and *slices* of weights, by row, piece and output."""
    count, inputs = rows.shape
    blocks = -(-count // _ROWS)
    height = -(-count // blocks)
    if blocks * height > count:
        rows = np.concatenate([rows, np.zeros((blocks * height - count, inputs), np.float32)])
    products = np.matmul(rows.reshape(blocks, 1, 1, height, inputs), slices)
    by_row: Floats = products.transpose(0, 3, 1, 2, 4).reshape(blocks * height, len(slices), -1)
    return by_row[:count]

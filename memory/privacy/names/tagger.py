"""
The model as it is asked: the probability that each item of a sequence is part of a name.

A model is a file that `make train-names` learns from labelled text. It is read once a process, by
`prepare` or by the first text that needs it.
"""

from __future__ import annotations

import gzip
from functools import cache
from importlib import import_module
from importlib.resources import files
from typing import TYPE_CHECKING, Any, NamedTuple

from ....telemetry.process.fork_lock import ForkLock

if TYPE_CHECKING:
    from collections.abc import Sequence

INSIDE, OUTSIDE = "I", "O"
_UNLIKELY = 0.01


class ItemReading(NamedTuple):
    """
    What a model reads in one item.

    Attributes:
        probability: That it is part of a name, in [0, 1].
        continues: It goes on with the name of the item before it, and begins none.
        is_weighed: What a language model reads in it is weighed in.
    """

    probability: float
    continues: bool
    is_weighed: bool = False


class Tagger:
    """
    A conditional random field. Thread-safe: the library's object is not, so one thread at a time.

    Args:
        model: The model, as `pycrfsuite.Trainer` writes it, compressed: that makes it a half.
    """

    def __init__(self, model: bytes) -> None:
        self._lock = ForkLock()
        self._model = gzip.decompress(model)  # the library keeps no copy of it
        library: Any = import_module("pycrfsuite")
        self._crf = library.Tagger()
        self._crf.open_inmemory(self._model)

    def read(self, attributes: Sequence[Sequence[str]]) -> list[ItemReading]:
        """Return the reading of each item."""
        with self._lock:
            self._crf.set(attributes)
            return [self._read_item(place) for place in range(len(attributes))]

    def _read_item(self, place: int) -> ItemReading:
        probability = 1.0 - self._crf.marginal(OUTSIDE, place)
        if probability < _UNLIKELY:
            return ItemReading(probability, continues=False)
        inside = self._crf.marginal(INSIDE, place)
        return ItemReading(probability, inside > probability - inside)


@cache
def load(name: str) -> Tagger:
    """Return the tagger of the model ``data/<name>.crf.gz``."""
    return Tagger(files(__package__ or __name__).joinpath("data", f"{name}.crf.gz").read_bytes())

"""The faults that memory has, as values."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import KW_ONLY, dataclass
from typing import Final, Literal, NamedTuple, TypeAlias, get_args

from ...telemetry.event.event import OperationClass
from ..errors import ConfigurationError

READS: Final = frozenset({OperationClass.RECALL, OperationClass.RESUME})
"""The classes of operations that answer with what is stored."""

ToxicType: TypeAlias = Literal[
    "down", "slow", "hang", "duplicate", "late_failure", "empty", "partial", "garbage", "stale",
    "reorder",
]  # fmt: skip

Failure: TypeAlias = type[Exception]


@dataclass(frozen=True, slots=True)
class Toxic:
    """
    One fault of a store, in Toxiproxy's terms.

    | type | stream | what happens |
    |---|---|---|
    | ``down`` | upstream | the store is not called, and `failure` is raised |
    | ``slow`` | upstream | the store is called after `latency_s`, give or take `jitter_s` |
    | ``hang`` | upstream | no answer for `timeout_s`, then `failure`; the store is not called |
    | ``duplicate`` | both | a write is made twice, each record of a read is there twice |
    | ``late_failure`` | downstream | the store has done its work, and `failure` is raised |
    | ``empty`` | downstream | a read finds nothing |
    | ``partial`` | downstream | every other record of a read is missing |
    | ``garbage`` | downstream | words are random letters; ids, types and lengths stay |
    | ``stale`` | downstream | a read repeats its first answer, without what was written since |
    | ``reorder`` | downstream | the records of a read are in another order |

    Attributes:
        type: One of these.
        toxicity: Probability that it strikes a call, from 0 to 1.
        methods: Names of the methods that it strikes. Empty: all that the guard knows.
        latency_s: Seconds of ``slow``.
        jitter_s: The most seconds that ``slow`` differs from that.
        timeout_s: Seconds of ``hang``. None: until the toxic is removed.
        failure: The exception type of ``down``, ``hang`` and ``late_failure``.

    Raises:
        ConfigurationError: There is no such type, or the toxicity is no probability.
    """

    type: ToxicType
    toxicity: float = 1.0
    _: KW_ONLY
    methods: Collection[str] = ()
    latency_s: float = 1.0
    jitter_s: float = 0.0
    timeout_s: float | None = None
    failure: Failure = ConnectionError

    def __post_init__(self) -> None:
        """Refuse what could never strike."""
        if self.type not in get_args(ToxicType):
            known = ", ".join(get_args(ToxicType))
            raise ConfigurationError(f"no toxic is of type {self.type!r}: expected one of {known}")
        if not 0 <= self.toxicity <= 1:
            raise ConfigurationError("toxicity is a probability: expected a number from 0 to 1")

    def is_of(self, method: str) -> bool:
        """Return whether the toxic may strike calls of *method*."""
        return not self.methods or method in self.methods


class Strike(NamedTuple):
    """A toxic that changed what a call of *method* met."""

    method: str
    type: ToxicType

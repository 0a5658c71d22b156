"""
Where the time of the turns went: to the model, to each store, or to neither.

Stores are called side by side: LangGraph writes checkpoints while nodes run. Their times cannot be
added up, so each moment of a turn counts once, for what the turn waited for.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Final, NamedTuple

from mnemoscope.audit.record.rows import AuditRow

PARTS: Final = ("model", "mem0", "qdrant", "langgraph.store", "langgraph.checkpoint")
"""What a turn may wait for. Where several are at work, the first counts."""

REST: Final = "the rest"
"""The graph, mnemoscope and the demo itself."""


class TurnTime(NamedTuple):
    """
    How long the turns took, and what for.

    Attributes:
        total_s: All turns together.
        parts: Seconds for each of `PARTS` and for `REST`, longest first.
    """

    total_s: float
    parts: dict[str, float]


def turn_time(rows: Iterable[AuditRow], turns: Sequence[tuple[int, int]]) -> TurnTime:
    """Return where the time of *turns* went, each from and until microseconds since 1970 UTC."""
    changes = sorted([*_changes(rows), *_borders(turns)])
    active: Counter[str] = Counter()
    spent_us: Counter[str] = Counter()
    for (at_us, name, change), (next_us, *_rest) in pairwise(changes):
        active[name] += change
        if active[_TURN]:
            part = next((each for each in PARTS if active[each]), REST)
            spent_us[part] += next_us - at_us
    return TurnTime(
        spent_us.total() / 1e6, {name: micros / 1e6 for name, micros in spent_us.most_common()}
    )


_TURN = "turn"


def _changes(rows: Iterable[AuditRow]) -> Iterator[tuple[int, str, int]]:
    for row in rows:
        part = "model" if row.operation == "chat" else row.store
        if part in PARTS:
            yield row.occurred_us, part, 1
            yield row.occurred_us + row.duration_us, part, -1


def _borders(turns: Sequence[tuple[int, int]]) -> Iterator[tuple[int, str, int]]:
    for since_us, until_us in turns:
        yield since_us, _TURN, 1
        yield until_us, _TURN, -1

"""Metrics of a ranked list of memory ids, as the field of information retrieval defines them."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple


def recall_at(k: int, relevant: Collection[str], found: Sequence[str]) -> float:
    """
    Return the share of *relevant* ids among the first *k* of *found*, from 0 to 1.

    Raises:
        ValueError: Nothing is relevant: a share of nothing is no number.
    """
    if not relevant:
        raise ValueError("recall needs one relevant id at least")
    return len({*relevant}.intersection(found[:k])) / len({*relevant})


def reciprocal_rank(relevant: Collection[str], found: Sequence[str]) -> float:
    """Return 1 over the place of the first relevant id in *found*; 0 if it has none."""
    wanted = {*relevant}
    return next((1 / place for place, each in enumerate(found, 1) if each in wanted), 0.0)


class RankChange(NamedTuple):
    """
    The difference between two ranked lists.

    Attributes:
        lost: Ids in the first list alone.
        gained: Ids in the second one alone.
        moved: Ids in both that stand in another order among those in both.
    """

    lost: int
    gained: int
    moved: int


def rank_change(before: Sequence[str], after: Sequence[str]) -> RankChange:
    """Return what became of the ids of *before* in *after*, each id counted once."""
    first, second = dict.fromkeys(before), dict.fromkeys(after)
    stayed = [each for each in first if each in second]
    now = [each for each in second if each in first]
    moved = sum(one != other for one, other in zip(stayed, now, strict=True))
    return RankChange(len(first) - len(stayed), len(second) - len(stayed), moved)

"""Metrics of ranked lists, held against `ir_measures`."""

import ir_measures
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ir_measures import RR, R

from mnemoscope.memory.golden_recall import (
    FunctionCandidate,
    GoldenCase,
    RankChange,
    compare,
    rank_change,
    recall_at,
    reciprocal_rank,
)
from tests.kit.lengths import examples

IDS = st.lists(st.integers(0, 30).map(str), unique=True, max_size=20)


@settings(max_examples=examples(300), deadline=None)
@given(relevant=IDS.filter(bool), found=IDS, k=st.integers(1, 25))
def test_metrics_are_those_of_the_oracle(relevant, found, k):
    """Whatever is relevant and found: recall at k and reciprocal rank, to the last digit."""
    qrels = [ir_measures.Qrel("q", each, 1) for each in relevant]
    run = [ir_measures.ScoredDoc("q", each, -place) for place, each in enumerate(found)]
    # It leaves out a query without an answer, which has found nothing.
    expected = ir_measures.calc_aggregate([R @ k, RR], qrels, run) if run else {R @ k: 0.0, RR: 0.0}

    assert recall_at(k, relevant, found) == pytest.approx(expected[R @ k], abs=1e-12)
    assert reciprocal_rank(relevant, found) == pytest.approx(expected[RR], abs=1e-12)


def test_recall_of_nothing_is_no_number():
    """Where nothing is relevant neither 0 nor 1 would be true."""
    with pytest.raises(ValueError, match="one relevant id"):
        recall_at(10, [], ["a"])


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ("abc", "abc", RankChange(0, 0, 0)),
        ("abc", "acb", RankChange(0, 0, 2)),
        ("abc", "bc", RankChange(1, 0, 0)),
        ("abc", "xabc", RankChange(0, 1, 0)),
        ("abc", "", RankChange(3, 0, 0)),
        ("", "", RankChange(0, 0, 0)),
        ("aab", "ab", RankChange(0, 0, 0)),
    ],
)
def test_rank_changes_are_counted_among_what_stayed(before, after, expected):
    """A loss above shifts all that is below it, and moves nothing."""
    assert rank_change(before, after) == expected


def test_a_recall_that_found_nothing_is_in_no_mean():
    """Neither as a loss nor as a hit; a report of such recalls alone knows no figure."""
    common = {"store": "s", "method": "search", "content": {"query": "tea"}}
    empty = GoldenCase(id="0", found=(), **common)
    half = GoldenCase(id="1", found=("a", "b"), **common)
    candidate = FunctionCandidate(lambda _query, _most: ["b", "c"])

    both, alone = compare([empty, half], candidate, 2), compare([empty], candidate, 2)

    assert both.recall == (1.0, 0.5)
    assert both.mean_reciprocal_rank == (1.0, 0.0)
    assert alone.recall == alone.mean_reciprocal_rank == (None, None)

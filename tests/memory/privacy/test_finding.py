"""Spans: joined where they overlap, cut where something was replaced before, trimmed."""

from mnemoscope.memory.privacy.detectors.chunks import split_into_chunks
from mnemoscope.memory.privacy.detectors.finding import (
    Finding,
    exclude_spans,
    merge_findings,
    trim_finding,
)


def found(start, end, entity="PERSON", score=0.5):
    return Finding(start, end, entity, score, "why")


def test_overlapping_spans_become_their_union():
    """Nothing that either of them covers is left in view; the surer names it."""
    (union,) = merge_findings([found(3, 9, "EMAIL_ADDRESS", 0.9), found(0, 5)])

    assert (union.start, union.end, union.entity) == (0, 9, "EMAIL_ADDRESS")


def test_the_more_specific_kind_names_a_union_of_equals():
    """A secret that is in an address is a secret."""
    (union,) = merge_findings([found(0, 5, "PERSON"), found(2, 9, "SECRET")])

    assert union.entity == "SECRET"


def test_neighbours_stay_apart():
    """Spans that only touch are two."""
    assert len(merge_findings([found(0, 5), found(5, 9)])) == 2


def test_what_was_replaced_before_is_cut_out():
    """The parts beside a placeholder are still found."""
    parts = [(each.start, each.end) for each in exclude_spans([found(0, 20)], [(5, 8), (12, 20)])]

    assert parts == [(0, 5), (8, 12)]


def test_white_space_is_trimmed_and_nothing_else_is_no_finding():
    """A span starts and ends with what it is about."""
    assert trim_finding(found(0, 7), "  Ada  ") == found(2, 5)
    assert trim_finding(found(0, 3), " - x") is None


def test_pieces_cover_a_text_and_overlap():
    """Each border of a piece lies inside the next, so that what crosses it is seen whole."""
    text = "".join(f"word{number} " for number in range(3_000))
    pieces = list(split_into_chunks(text))
    ends = [start + len(piece) for start, piece in pieces]

    assert pieces[0][0] == 0
    assert ends[-1] == len(text)
    assert all(start < end - 50 for (start, _), end in zip(pieces[1:], ends[:-1], strict=True))
    assert all(text.startswith(piece, start) for start, piece in pieces)

"""Drafts: frozen objects that are filled slot by slot."""

from __future__ import annotations

from dataclasses import FrozenInstanceError, dataclass

import pytest

from mnemoscope.telemetry.thawed import draft_of


@dataclass(frozen=True, slots=True)
class Point:
    """Something frozen."""

    x: int
    y: int = 0


def drafted(x, y):
    """Return a point that was a draft."""
    draft = draft_of(Point)()
    draft.x, draft.y = x, y
    draft.__class__ = Point
    return draft


def test_a_draft_becomes_what_the_constructor_makes():
    """Equal to it, of its class, and with its hash."""
    assert drafted(1, 2) == Point(1, 2)
    assert hash(drafted(1, 2)) == hash(Point(1, 2))


def test_what_was_a_draft_is_frozen():
    """As all others of its class."""
    point = drafted(1, 2)

    with pytest.raises(FrozenInstanceError):
        point.x = 3


def test_a_draft_has_no_defaults():
    """Whoever forgets a slot is told by the first who reads it."""
    draft = draft_of(Point)()
    draft.x = 1
    draft.__class__ = Point

    with pytest.raises(AttributeError):
        _ = draft.y


def test_a_draft_has_no_slots_of_its_own():
    """A misspelt one is an error."""
    draft = draft_of(Point)()

    with pytest.raises(AttributeError):
        draft.z = 1

"""The README's picture of the demo: of this demo, whole at first sight, and cut to its point."""

from __future__ import annotations

from xml.etree import ElementTree as ET

import picture
from rich.text import Text

SCREEN = """
 mnemoscope demo
What Ines asked ──
 asked     Is there tea?
 answered  Yes.

 asked     What do you remember?
 answered  You like tea.

1  Which store? ──
  mem0  72

 → mem0.
2  Which feature? ──
  reply-draft  36
 → reply-draft caused
 75%.
3  What, and since when? ──
  17:58:26  mem0
 → 25 memories.
Number of events ──
  ─────────────────
  events  1,296
"""


def test_it_is_not_old():
    """``make picture`` draws it anew, after each change of the demo."""
    assert f"made from {picture.digest()} " in picture.PICTURE.read_text(encoding="utf-8")


def test_it_shows_the_last_answer_and_what_each_question_comes_to():
    """Tables are left out, and dots stand for them."""
    shown = [line.plain.strip() for line in picture.cut([*map(Text, SCREEN.splitlines())])]

    assert [line for line in shown if line] == [
        "mnemoscope demo",
        "asked     What do you remember?",
        "answered  You like tea.",
        "1  Which store? ──",
        "⋮",
        "→ mem0.",
        "2  Which feature? ──",
        "⋮",
        "→ reply-draft caused",
        "75%.",
        "3  What, and since when? ──",
        "⋮",
        "→ 25 memories.",
    ]


def test_all_of_it_is_there_at_first_sight():
    """Nothing moves, and nothing appears later: a reader sees it before anything has played."""
    drawn = picture.picture([*map(Text, SCREEN.splitlines())])

    ET.fromstring(drawn)  # noqa: S314 - our own
    assert "animation" not in drawn
    assert "opacity:0" not in drawn
    assert "fonts" not in drawn

"""The README's recording of the demo: it is of this demo, and plays everywhere."""

from __future__ import annotations

import io
from xml.etree import ElementTree as ET

import picture
from rich.console import Console


def test_it_is_not_old():
    """``make picture`` records it anew, after each change of the demo."""
    assert f"made from {picture.digest()} " in picture.PICTURE.read_text(encoding="utf-8")


def test_lines_appear_one_after_another():
    """And all of them are there for who cannot play it: nothing is hidden but by the animation."""
    console = Console(record=True, width=40, file=io.StringIO(), force_terminal=True)
    console.print("first\nsecond")

    drawn = picture.recording(console)

    ET.fromstring(drawn)  # noqa: S314 - our own
    assert "animation-delay:0.00s" in drawn
    assert f"animation-delay:{picture.LINE_S:.2f}s" in drawn
    assert "prefers-reduced-motion" in drawn
    assert drawn.count("opacity:0") == 1

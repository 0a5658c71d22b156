"""The walk of one text, from a redaction to the detectors: few stations, easy to follow."""

from __future__ import annotations

import sys
from types import FrameType
from typing import Any

from mnemoscope.memory.privacy import recognizers

MOST_STATIONS = 15
TEXT = "My name is Rosalind Quimby, mail rq@quimby.example, call +49 171 3456789"


def stations(frame: FrameType | None) -> list[str]:
    """Return the functions on the stack down to the redaction's, the innermost last."""
    found: list[str] = []
    while frame is not None:
        found.append(frame.f_code.co_qualname)
        frame = None if found[-1] == "Redaction.text" else frame.f_back
    return found[::-1]


def test_a_text_passes_few_stations_before_a_detector_has_it(redactor):
    """Each function on the way from the call's redaction to a detector, that one included."""
    detectors = {each.detector.find.__code__ for each in recognizers()}
    redaction = redactor.begin(tenant="acme")
    walks: list[list[str]] = []

    def note(frame: FrameType, event: str, _argument: Any) -> None:
        if event == "call" and frame.f_code in detectors:
            walks.append(stations(frame))

    sys.setprofile(note)
    try:
        redacted = redaction.text(TEXT)
    finally:
        sys.setprofile(None)

    assert redacted.startswith("My name is <PERSON>, mail <EMAIL_ADDRESS>")
    assert len({walk[-1] for walk in walks}) > 3
    assert {walk[0] for walk in walks} == {"Redaction.text"}
    assert [walk for walk in walks if len(walk) > MOST_STATIONS] == []

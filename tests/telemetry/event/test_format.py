"""Amounts, as people write them."""

from __future__ import annotations

import pytest

from mnemoscope.telemetry.event.format import in_unit, usd


@pytest.mark.parametrize(
    ("amount", "text"),
    [
        (0, "$0"),
        (1_234.5, "$1,234.50"),
        (4.2, "$4.20"),
        (0.5, "$0.500"),
        (0.0042, "$0.00420"),
        (1e-12, "$0.000000000"),
    ],
)
def test_amounts_are_written_as_people_do(amount, text):
    """Cents from a dollar on, three digits below, and never an exponent."""
    assert usd(amount) == text


def test_tokens_are_tokens():
    """Whole, with thousands apart."""
    assert in_unit(1_234_567, "tokens") == "1,234,567 tokens"
    assert in_unit(2.5, "usd") == "$2.50"

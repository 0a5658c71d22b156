"""Formatting of amounts of money and of tokens."""

from __future__ import annotations

import math


def usd(amount: float) -> str:
    """Return *amount* dollars: cents from a dollar on, three digits below."""
    return f"${amount:,.{decimals(amount)}f}" if amount else "$0"


def decimals(amount: float) -> int:
    """Return how many decimals show cents, or three digits of an amount below a dollar."""
    if not 0 < amount < 1:
        return 2
    return min(9, 2 - math.floor(math.log10(amount)))


def in_unit(amount: float, unit: str) -> str:
    """Return *amount* of ``usd`` or of ``tokens``."""
    return usd(amount) if unit == "usd" else f"{amount:,.0f} tokens"

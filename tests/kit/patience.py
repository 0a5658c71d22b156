"""How long tests wait for what is to come: until it has come, however slow the machine is."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from types import MappingProxyType

import pytest

GIVE_UP_S = 300.0
"""Seconds after which a test calls something hung: half of the time limit of a test."""

UNHURRIED: Mapping[str, str] = MappingProxyType(
    {
        f"MNEMOSCOPE_DEADLINE_{each}_S": str(GIVE_UP_S)
        for each in ("RECALL", "REMEMBER", "FORGET", "RESUME", "CHECKPOINT")
    }
)
"""Variables of a process whose stores may be slow; a deadline that it sets in code still holds."""


def until(is_so: Callable[[], bool]) -> bool:
    """Wait until something is so, and return whether it is."""
    hung_at = time.monotonic() + GIVE_UP_S
    while not (so := is_so()) and time.monotonic() < hung_at:
        time.sleep(0.002)
    return so


@pytest.fixture
def eventually() -> Callable[[Callable[[], bool]], bool]:
    """Return `until`."""
    return until

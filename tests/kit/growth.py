"""How much longer work takes for ten times the input: a ratio, which no machine's speed changes."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable

_ATTEMPTS = 5
_LEAST_S = 0.002
"""What is shorter than this is noise."""

_LONGER = 40.0
"""Ten times as long is in proportion, a hundred times is squared; this is between them."""


def grows_in_proportion(work: Callable[[str], object], text: str) -> bool:
    """
    Return whether *work* on all of *text* takes less than forty times as long as on a tenth of it.

    Where the machine is busy a measurement can only be too long, of either: whoever is once in
    proportion is believed.
    """
    short = text[: len(text) // 10]
    work(short)  # what is loaded with the first text
    fastest_s = float("inf")
    was_on = gc.isenabled()
    gc.disable()  # it looks at all that other tests have left
    try:
        for _ in range(_ATTEMPTS):
            fastest_s = min(fastest_s, _seconds(work, short))
            if _seconds(work, text) < _LONGER * max(fastest_s, _LEAST_S):
                return True
    finally:
        if was_on:
            gc.enable()
    return False


def _seconds(work: Callable[[str], object], text: str) -> float:
    begun = time.thread_time()
    work(text)
    return time.thread_time() - begun

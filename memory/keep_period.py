"""How long what is written in a context is kept: ``context(retention="90d")``."""

from __future__ import annotations

import re
from typing import Final

from .errors import ConfigurationError
from .layers import Layers

HOUR_S, DAY_S = 3_600, 86_400
_UNITS_S: Final = {"h": HOUR_S, "d": DAY_S, "w": 7 * DAY_S, "y": 365 * DAY_S}
_PERIOD: Final = re.compile(r"([1-9]\d{0,5}) ?([hdwy])")
FOREVER: Final = "forever"

FOREVER_S: Final = 10_000 * 365 * DAY_S
"""Stands for ever where a number is sealed."""

keep_periods: Final[Layers[int | None]] = Layers("retention", None)
"""Seconds for which the code that runs now says that what it writes is kept. None: it does not."""


def kept_seconds(text: str) -> int:
    """
    Return the seconds of a context's period.

    Raises:
        ConfigurationError: It is none.
    """
    try:
        seconds = parse_period(text)
    except ValueError as exc:
        raise ConfigurationError(f"retention: {exc}") from None
    return FOREVER_S if seconds is None else seconds


def parse_period(text: object) -> int | None:
    """
    Return a period such as ``30d`` in seconds: hours, days, weeks or years of 365 days.

    None is ``forever``.

    Raises:
        ValueError: It is none. Says so without quoting it.
    """
    if text == FOREVER:
        return None
    found = _PERIOD.fullmatch(text) if isinstance(text, str) else None
    if found is None:
        raise ValueError("a period is a whole number with h, d, w or y, as 30d, or forever")
    return int(found[1]) * _UNITS_S[found[2]]

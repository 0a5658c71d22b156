"""Parse times as commands take them: an age or an ISO 8601 time."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

from ...memory.errors import ConfigurationError

_UNITS_S = {"s": 1, "m": 60, "h": 3_600, "d": 86_400, "w": 604_800}
_DAY = re.compile(r"\d{4}-?(?:\d{2}-?\d{2}|W\d{2}-?\d|\d{3})", re.ASCII)
_AGE = re.compile(r"(\d{1,9})([smhdw])", re.ASCII)


_DAY_US = 86_400_000_000
_DAYS_AGO = {"today": 0, "yesterday": 1}


def is_day(text: str) -> bool:
    """Tell whether *text* is a day without a time."""
    return text.strip() in _DAYS_AGO or _DAY.fullmatch(text.strip()) is not None


def time_us(text: str, option: str, now_us: int, *, at_end: bool = False) -> int:
    """
    Return the time in *text*, microseconds since 1970 UTC: an age (``24h``) or an ISO 8601 time.

    A time without a zone is in UTC. A day alone, ``today`` or ``yesterday`` is its first moment.

    Args:
        text: The age or time.
        option: Its name in errors.
        now_us: What an age is counted from.
        at_end: A day alone is the first moment behind it instead, or now, if that is sooner.

    Raises:
        ConfigurationError: It is neither. Names *option*.
    """
    if age := _AGE.fullmatch(text.strip()):
        return now_us - int(age[1]) * _UNITS_S[age[2]] * 1_000_000
    if at_end and is_day(text):
        # Today is not over: nothing after now has happened.
        return min(time_us(text, option, now_us) + _DAY_US, now_us)
    if (days := _DAYS_AGO.get(text.strip())) is not None:
        return now_us // _DAY_US * _DAY_US - days * _DAY_US
    try:
        time = datetime.fromisoformat(text.strip())
    except ValueError:
        raise ConfigurationError(
            f"{option} takes an age such as 90s, 30m, 24h, 7d, an ISO 8601 time such as "
            "2026-03-01 or 2026-03-01T14:30, today or yesterday"
        ) from None
    # In UTC, as all that commands print: a local time has two meanings on one night a year.
    aware = time if time.tzinfo else time.replace(tzinfo=UTC)
    return (aware - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)

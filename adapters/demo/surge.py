"""A surge: one feature uses three times the tokens, as after a change that nobody looked at."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from ...audit.log import AuditLog
from ...audit.movement import PARTS, sentence
from ...audit.spending import Period, spending
from ...memory.context import current

SURGING: Final[Mapping[str, str]] = {"draft": "reply-draft", "outline": "reply-outline"}
"""What can surge, by the short name of its feature."""

FACTOR: Final = 3


class Surge:
    """
    A surge of one feature, from `begin` on.

    Args:
        name: A key of `SURGING`.

    Attributes:
        feature: Which feature it is.
        made_us: When this was made, microseconds since 1970 UTC.
        began_us: When it began. None: it has not.
    """

    def __init__(self, name: str) -> None:
        self.feature = SURGING[name]
        self.made_us = time.time_ns() // 1_000
        self.began_us: int | None = None

    def begin(self) -> None:
        """Begin now."""
        self.began_us = time.time_ns() // 1_000

    def factor(self) -> int:
        """Return how many times its usual tokens a model call that is made here and now uses."""
        surges = self.began_us is not None and current().feature == self.feature
        return FACTOR if surges else 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Noticed:
    """
    What the audit trail says of a surge.

    Attributes:
        feature: Which feature was made to surge.
        began_us: When, microseconds since 1970 UTC.
        said: Which feature moved most since then, in one sentence.
    """

    feature: str
    began_us: int
    said: str


def noticed(log: AuditLog, surge: Surge | None) -> Noticed | None:
    """Ask the trail what moved since a surge began, beside all that was before it."""
    if surge is None or surge.began_us is None:
        return None
    began_us = surge.began_us
    # The period before is as long: it must reach back to the beginning.
    length_us = max(time.time_ns() // 1_000 - began_us, began_us - surge.made_us) + 1
    period = Period(since_us=began_us, until_us=began_us + length_us)
    with log.reading() as snapshot:
        found = spending(snapshot, PARTS, period)
    return Noticed(feature=surge.feature, began_us=began_us, said=sentence(found))

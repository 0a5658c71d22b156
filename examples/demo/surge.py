"""A surge: one feature uses three times the tokens it used, as after an unnoticed change."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

from mnemoscope.audit.log import AuditLog
from mnemoscope.audit.queries.spending import Period, spending
from mnemoscope.audit.queries.top_mover import PARTS, sentence
from mnemoscope.memory.context import current

SURGING: Final[Mapping[str, str]] = {"draft": "reply-draft", "outline": "reply-outline"}
"""Features that can surge, by the name that ``--surge`` takes."""

FACTOR: Final = 3


class Tokens(NamedTuple):
    """
    The tokens of one model call.

    Attributes:
        prompt: Read, with those from the cache.
        cached: Of these, from the cache.
        said: Written as the answer.
        reasoned: Written before it.
    """

    prompt: int
    cached: int
    said: int
    reasoned: int


class Surge:
    """
    A surge of one feature, from `begin` on: each call uses three times the mean of those before.

    Not three times its own: conversations grow, and then more than the surge would be told.

    Args:
        name: A key of `SURGING`.

    Attributes:
        feature: The feature that surges.
        created_us: Creation of this object, microseconds since 1970 UTC.
        began_us: Start of the surge. None: not started.
    """

    def __init__(self, name: str) -> None:
        self.feature = SURGING[name]
        self.created_us = time.time_ns() // 1_000
        self.began_us: int | None = None
        self._before: list[Tokens] = []

    def begin(self) -> None:
        """Start the surge."""
        self.began_us = time.time_ns() // 1_000

    def tokens(self, counted: Tokens) -> Tokens:
        """Return what a model call in the current context uses, in place of what was *counted*."""
        if current().feature != self.feature:
            return counted
        if self.began_us is None:
            self._before.append(counted)
        if self.began_us is None or not self._before:
            return counted
        calls = len(self._before)
        return Tokens(
            *(round(FACTOR * sum(kind) / calls) for kind in zip(*self._before, strict=True))
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class SurgeReport:
    """
    A surge as the audit trail shows it.

    Attributes:
        feature: The feature that was made to surge.
        began_us: Start of the surge, microseconds since 1970 UTC.
        answer: The feature whose spend changed most since then, in one sentence.
    """

    feature: str
    began_us: int
    answer: str


def surge_report(log: AuditLog, surge: Surge | None) -> SurgeReport | None:
    """Compare the spend since *surge* began with the spend before it."""
    if surge is None or surge.began_us is None:
        return None
    began_us = surge.began_us
    # The period before is of equal length, and must reach back to the first call.
    length_us = max(time.time_ns() // 1_000 - began_us, began_us - surge.created_us) + 1
    period = Period(since_us=began_us, until_us=began_us + length_us)
    with log.reading() as snapshot:
        found = spending(snapshot, PARTS, period)
    return SurgeReport(feature=surge.feature, began_us=began_us, answer=sentence(found))

"""``mnemoscope spend``: what model calls cost, asked of the audit trail."""

from __future__ import annotations

import time
from dataclasses import dataclass

from ...audit.movement import PARTS, Movement, moved_most, sentence
from ...audit.spending import DIMENSIONS, Dimension, Period, Spending, spending
from ...memory.errors import ConfigurationError
from ...memory.front_door import open_audit
from .moment import moment_us


@dataclass(frozen=True, slots=True, kw_only=True)
class SpendOptions:
    """
    What ``mnemoscope spend`` is asked.

    Attributes:
        since: Where the period begins: an age (``24h``) or an ISO 8601 time.
        until: Where it ends. None: now.
        by: Names of dimensions, with commas between.
        tenant: Whose spend. None: everybody's.
        json: Print JSON.
        csv: Print CSV.
        audit_url: The trail. None: the configured one.
    """

    since: str = "24h"
    until: str | None = None
    by: str = "feature"
    tenant: str | None = None
    json: bool = False
    csv: bool = False
    audit_url: str | None = None

    def __post_init__(self) -> None:
        if self.json and self.csv:
            raise ConfigurationError("--json or --csv, not both")

    @property
    def dimensions(self) -> tuple[Dimension, ...]:
        """
        What lines tell apart.

        Raises:
            ConfigurationError: There is no such dimension.
        """
        asked = [part.strip() for part in self.by.split(",")]
        known: dict[str, Dimension] = {each: each for each in DIMENSIONS}
        if len(set(asked)) != len(asked) or not known.keys() >= set(asked):
            raise ConfigurationError(f"--by takes some of {','.join(DIMENSIONS)}")
        return tuple(known[name] for name in asked)


@dataclass(frozen=True, slots=True, kw_only=True)
class Bill:
    """
    What was spent, and what moved.

    Attributes:
        found: Line by line, as it was asked for.
        parts: By feature, node and model, which is what the answer is made of.
    """

    found: Spending
    parts: Spending

    @property
    def moved(self) -> Movement | None:
        """The feature that moved most, if one did."""
        return moved_most(self.parts)

    @property
    def said(self) -> str:
        """The answer, in one sentence."""
        return sentence(self.parts)


def bill(options: SpendOptions, now_us: int | None = None) -> Bill:
    """
    Ask the audit trail.

    Raises:
        ConfigurationError: An option makes no sense.
        AuditError: The trail cannot be read.
    """
    by = options.dimensions
    period = period_of(options, time.time_ns() // 1_000 if now_us is None else now_us)
    given = {"audit_url": options.audit_url} if options.audit_url else {}
    trail = open_audit(**given)
    if options.audit_url is None and trail.path is not None and not trail.path.exists():
        # Where it is configured to be, it is made with the first event. A path that was given, and
        # leads nowhere, is a mistake.
        nothing = Spending(by=by, period=period, lines=())
        return Bill(found=nothing, parts=nothing)
    with trail.reading() as snapshot:
        return Bill(
            found=spending(snapshot, by, period, tenant=options.tenant),
            parts=spending(snapshot, PARTS, period, tenant=options.tenant),
        )


def period_of(options: SpendOptions, now_us: int) -> Period:
    """
    Return the period that is asked for.

    Raises:
        ConfigurationError: It has no length, or a time cannot be read.
    """
    since_us = moment_us(options.since, "--since", now_us)
    until_us = now_us if options.until is None else moment_us(options.until, "--until", now_us)
    if since_us >= until_us:
        raise ConfigurationError("--since must be before --until, and in the past")
    if 2 * since_us < until_us:
        raise ConfigurationError("--since is too long ago: there is no period before")
    return Period(since_us=since_us, until_us=until_us)

"""
The spend on model calls by feature, node, model, customer or tenant, beside the period before.

Rows come from `audit_usage`, one for each model call; one that a budget refused was not made. Who
is behind a call is known by the opaque reference that the trail has for them. All SQL is here, in
words that SQLite and PostgreSQL share.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, Self, TypeAlias

import orjson

from ...telemetry.event.event import Status
from ...telemetry.event.usage import Usage
from ..record.lived_time import SKEW_US
from ..store.snapshot import Snapshot, first_at

Dimension: TypeAlias = Literal["feature", "node", "model", "customer", "tenant"]

DIMENSIONS: Final[dict[Dimension, str]] = {
    "feature": "e.feature",
    "node": "u.node",
    "model": "u.model",
    # The nobody of a tenant is a subject too, so that no detail is in clear.
    "customer": "CASE WHEN s.kind = 'customer' THEN coalesce(s.merged_into, s.subject_uid) END",
    "tenant": "NULL",  # no column tells it, but the sealed header
}

_FIGURES: Final = (
    "1",
    "u.input_tokens",
    "u.output_tokens",
    "u.cached_tokens",
    "u.cache_write_tokens",
    "u.reasoning_tokens",
    "coalesce(u.cost_usd, 0.0)",
    "CASE WHEN u.cost_usd IS NULL THEN 1 ELSE 0 END",
    "CASE WHEN u.cost_usd IS NULL THEN u.input_tokens + u.output_tokens ELSE 0 END",
)
_CALLS: Final = """
    SELECT {names}, CASE WHEN e.occurred_us >= ? THEN 1 ELSE 0 END, {figures}
    FROM audit_usage u
    JOIN audit_event e ON e.seq = u.seq
    LEFT JOIN audit_detail d ON d.seq = e.seq
    LEFT JOIN audit_subject s ON s.subject_uid = d.subject_uid
    WHERE u.seq >= ? AND e.occurred_us >= ? AND e.occurred_us < ? AND e.status <> 'rejected'
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Period:
    """
    A period, and the one of equal length before it. Microseconds since 1970 UTC.

    Attributes:
        since_us: When it begins, and the one before ends.
        until_us: When it ends; not in it.
    """

    since_us: int
    until_us: int

    @property
    def before_us(self) -> int:
        """The start of the period before."""
        return 2 * self.since_us - self.until_us


@dataclass(frozen=True, slots=True)
class Spent:
    """
    The usage of some model calls.

    Attributes:
        input_tokens: All input, cached included.
        output_tokens: All output, reasoning included.
        reasoning_tokens: Output the models kept to themselves.
        cost_usd: Of the calls whose cost is known.
        unpriced_calls: Calls whose cost is not known.
    """

    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    cache_write_tokens: int = 0
    reasoning_tokens: int = 0
    cost_usd: float = 0.0
    unpriced_calls: int = 0
    unpriced_tokens: int = 0

    @classmethod
    def of_call(cls, used: Usage | None, status: Status) -> Self:
        """Return what one model call used; nothing if it was refused or is none."""
        if used is None or status is Status.REJECTED:
            return cls()
        is_unpriced = used.cost_usd is None
        return cls(
            calls=1,
            input_tokens=used.input_tokens,
            output_tokens=used.output_tokens,
            cached_tokens=used.cached_tokens,
            cache_write_tokens=used.cache_write_tokens,
            reasoning_tokens=used.reasoning_tokens,
            cost_usd=used.cost_usd or 0.0,
            unpriced_calls=int(is_unpriced),
            unpriced_tokens=(used.input_tokens + used.output_tokens) * is_unpriced,
        )

    @property
    def tokens(self) -> int:
        """Input and output."""
        return self.input_tokens + self.output_tokens

    def __add__(self, other: Spent) -> Spent:
        return Spent(*map(sum, zip(_figures(self), _figures(other), strict=True)))


def _figures(spent: Spent) -> tuple[Any, ...]:
    return tuple(getattr(spent, name) for name in Spent.__slots__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """
    One feature, node, model, customer or tenant, or what several of these have in common.

    Attributes:
        names: One for each dimension; None where it is not known.
    """

    names: tuple[str | None, ...]
    now: Spent
    before: Spent

    @property
    def change_usd(self) -> float:
        """The change in cost since the period before."""
        return self.now.cost_usd - self.before.cost_usd


@dataclass(frozen=True, slots=True, kw_only=True)
class PeriodSpend:
    """
    The usage of model calls in a period, line by line, dearest first.

    Attributes:
        lines: At least one call each, in the period or in the one before.
    """

    by: tuple[Dimension, ...]
    period: Period
    lines: tuple[Line, ...]

    @property
    def now(self) -> Spent:
        """All that was used in the period."""
        return sum((line.now for line in self.lines), Spent())

    @property
    def before(self) -> Spent:
        """All that was used in the period before."""
        return sum((line.before for line in self.lines), Spent())


def spending(
    snapshot: Snapshot,
    by: Sequence[Dimension],
    period: Period,
    *beside: Snapshot,
    tenant: str | None = None,
) -> PeriodSpend:
    """
    Return what model calls used in *period* and in the one before.

    Args:
        snapshot: What is read.
        by: What lines tell apart.
        period: When the calls were made.
        beside: Further logs, as shards are. A customer who moved is known in each by another name.
        tenant: Whose calls; empty: those for none. None: everybody's.

    Raises:
        AuditError: The trail cannot be read, or not with the keys at hand where a tenant is given
            for: tenants are keyed hashes.
    """
    found: dict[tuple[str | None, ...], list[Spent]] = {}
    # Tenants are in the sealed headers alone, which have to be read one by one.
    is_by_column = tenant is None and "tenant" not in by
    read = _grouped if is_by_column else _of
    for row in (row for each in (snapshot, *beside) for row in read(each, by, period, tenant)):
        names, later, used = tuple(row[: len(by)]), int(row[len(by)]), _spent(row[len(by) + 1 :])
        periods = found.setdefault(names, [Spent(), Spent()])
        # One query for both periods, since the second is found where the first is.
        periods[later] += used
    lines = [Line(names=names, now=now, before=before) for names, (before, now) in found.items()]
    return PeriodSpend(by=tuple(by), period=period, lines=tuple(sorted(lines, key=_rank)))


def _grouped(
    snapshot: Snapshot, by: Sequence[Dimension], period: Period, _tenant: str | None
) -> Iterable[Sequence[Any]]:
    names = ", ".join(DIMENSIONS[each] for each in by)
    sums = ", ".join(f"sum({each})" for each in _FIGURES)
    # Grouped by place: PostgreSQL takes two equal expressions with values in them for different
    # ones.
    places = ", ".join(str(place) for place in range(1, len(by) + 2))
    statement = f"{_CALLS.format(names=names, figures=sums)} GROUP BY {places}"
    found: list[Any] = snapshot.execute(statement, _values(snapshot, period)).fetchall()
    return found


def _of(
    snapshot: Snapshot, by: Sequence[Dimension], period: Period, tenant: str | None
) -> Iterator[Sequence[Any]]:
    """Yield the calls of *tenant*, or everybody's: call by call, by their sealed headers."""
    names = ", ".join(DIMENSIONS[each] for each in by)
    statement = _CALLS.format(names=names, figures=", ".join((*_FIGURES, "e.header")))
    reference = snapshot.references.tenant(tenant) if tenant and snapshot.size else None
    place = by.index("tenant") if "tenant" in by else None
    for *row, header in snapshot.stream(statement, _values(snapshot, period)):
        # Its keyed hash, as in the sealed header.
        found = orjson.loads(bytes(header))["tenant"]
        if tenant is not None and found != reference:
            continue
        if place is not None:
            row[place] = found
        yield row


def _values(snapshot: Snapshot, period: Period) -> tuple[int, ...]:
    first = first_at(snapshot, period.before_us - SKEW_US)
    return period.since_us, first, period.before_us, period.until_us


def _spent(figures: Sequence[Any]) -> Spent:
    # PostgreSQL adds integers up to decimals.
    calls, given, said, read, written, reasoned, cost_usd, unpriced_calls, unpriced = figures
    return Spent(
        calls=int(calls),
        input_tokens=int(given),
        output_tokens=int(said),
        cached_tokens=int(read),
        cache_write_tokens=int(written),
        reasoning_tokens=int(reasoned),
        cost_usd=float(cost_usd),
        unpriced_calls=int(unpriced_calls),
        unpriced_tokens=int(unpriced),
    )


def _rank(line: Line) -> tuple[float, int, float, tuple[str, ...]]:
    names = tuple(name or "" for name in line.names)
    return -line.now.cost_usd, -line.now.tokens, -line.before.cost_usd, names

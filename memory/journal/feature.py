"""The journal as a feature of a scope: its steps, its health and its metrics."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from ...telemetry.prometheus.live import Sample, latest
from ..features import Feature
from ..health.model import Check, State, failed
from .inspection import problem
from .journal import Journal, JournalStats, look
from .maker import JournalSteps

_FULL = 0.9
"""Share of the journal's size from which it is worth a warning."""

# All processes and scopes that share a journal tell the same of it: it must not be added up.
_JOURNAL_WAITING = latest(
    "mnemoscope_journal_waiting", "Writes that wait in the journal for their store to be back"
)
_JOURNAL_PARKED = latest(
    "mnemoscope_journal_parked", "Writes that were set aside: the store will not take them as is"
)
_JOURNAL_OLDEST_SECONDS = latest(
    "mnemoscope_journal_oldest_seconds", "How long the oldest of those that wait has waited"
)
_JOURNAL_BYTES = latest("mnemoscope_journal_bytes", "Used size of the journal's file")
_JOURNAL_LIMIT_BYTES = latest(
    "mnemoscope_journal_limit_bytes", "Size beyond which the journal takes nothing more"
)
_JOURNAL_OPEN = latest(
    "mnemoscope_journal_open", "1 if the journal can be read, 0 if it could not be opened"
)


def journal_feature(journal: Journal, wall_ns: Callable[[], int]) -> Feature:
    """Return the step, the check and the samples of *journal*."""
    steps = JournalSteps(journal)

    def check() -> Check:
        if objection := problem(journal.path):
            return unusable_journal(f"{journal.path} {objection}")
        return journal_check(journal.stats(), wall_ns())

    return Feature(
        steps=(steps,),
        checks={"journal": check},
        samples=lambda: _samples(journal.stats(), steps.stores(), wall_ns()),
        # From outside: what cannot be read is raised, and not taken for nothing.
        waiting={"journal": lambda: _waiting(look(journal.path, journal.max_bytes))},
    )


def _waiting(stats: JournalStats) -> Iterator[str]:
    for store, writes in sorted(stats.waiting.items()):
        yield f"{writes:,} writes for {store} wait in the journal: they may be anybody's"
    for store, writes in sorted(stats.parked.items()):
        yield (
            f"{writes:,} writes for {store} were set aside in the journal, and may be anybody's: "
            "look with mnemoscope journal list"
        )


def journal_check(stats: JournalStats, now_ns: int) -> Check:
    """Check the writes waiting in the journal."""
    if stats.path is None:
        return unusable_journal("its file could not be opened")
    troubles = list(_troubles(stats, now_ns))
    said = troubles or ["nothing waits"]
    size = f"{stats.size_bytes:,} of {stats.max_bytes:,} bytes in {stats.path}"
    state = State.WARNING if troubles else State.OK
    return Check(name="journal", state=state, detail="; ".join((*said, size)))


def unusable_journal(said: str) -> Check:
    """Return the failed check of a journal; *said* is why."""
    return failed("journal", f"{said}; meanwhile writes may be lost and deletions refused")


def _troubles(stats: JournalStats, now_ns: int) -> Iterator[str]:
    if waiting := _counted(stats.waiting):
        age_s = max(0.0, (now_ns - (stats.oldest_ns or now_ns)) / 1e9)
        yield f"writes wait: {waiting}, the oldest for {age_s:,.0f} s"
    if parked := _counted(stats.parked):
        yield (
            f"writes were set aside: {parked}; look with mnemoscope journal list --parked, then "
            "journal retry or journal drop"
        )
    if stats.size_bytes >= _FULL * stats.max_bytes:
        yield "it is almost full"


def _counted(writes: Mapping[str, int]) -> str:
    return ", ".join(f"{count:,} for {store}" for store, count in sorted(writes.items()) if count)


def _samples(stats: JournalStats, keeping: set[str], now_ns: int) -> Iterator[Sample]:
    for metric, counts in ((_JOURNAL_WAITING, stats.waiting), (_JOURNAL_PARKED, stats.parked)):
        for store in sorted({*counts, *keeping}):
            yield metric.sample(counts.get(store, 0), store=store)
    yield _JOURNAL_OLDEST_SECONDS.sample(
        0.0 if stats.oldest_ns is None else max(0.0, (now_ns - stats.oldest_ns) / 1e9)
    )
    yield _JOURNAL_BYTES.sample(stats.size_bytes)
    yield _JOURNAL_LIMIT_BYTES.sample(stats.max_bytes)
    yield _JOURNAL_OPEN.sample(float(stats.path is not None))

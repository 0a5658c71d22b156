"""Recalls made again by a candidate, and how far its answers are from those on record."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from math import ceil
from statistics import fmean
from typing import NamedTuple, Protocol

from .case import GoldenCase
from .ranking import RankChange, rank_change, recall_at, reciprocal_rank


class CandidateAnswer(NamedTuple):
    """
    The answer of a candidate.

    Attributes:
        ids: The memories, the best first, as events have them.
        latency_s: Seconds that it took.
    """

    ids: tuple[str, ...]
    latency_s: float


class NotRepeatableError(Exception):
    """A recall cannot be made again by this candidate. The message says why, of a few kinds."""


class CandidateFailedError(Exception):
    """The candidate raised, or gave a neutral result. The message is the name of an error."""


class Candidate(Protocol):
    """Makes recalls again. Is only read."""

    def answer(self, case: GoldenCase, most: int, /) -> CandidateAnswer:
        """
        Make the recall of *case* again, for *most* memories at least where it can be said.

        Raises:
            NotRepeatableError: It cannot be made by this candidate.
            CandidateFailedError: It was made, and not answered.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayedRecall:
    """
    One recall that was made again.

    Attributes:
        case: As it is on record.
        answer: The candidate's; without ids where it failed.
        error: The name of an error. None: it answered.
        before: Recall at k of the answer on record. None: nothing is relevant.
        recall: Recall at k of the candidate; 0 where it failed. None: nothing is relevant.
        reciprocal_rank_before: Of the answer on record.
        reciprocal_rank: Of the candidate.
        change: From the answer on record to the candidate's.
    """

    case: GoldenCase
    answer: CandidateAnswer
    error: str | None
    before: float | None
    recall: float | None
    reciprocal_rank_before: float
    reciprocal_rank: float
    change: RankChange

    @property
    def is_new_empty(self) -> bool:
        """Whether something was found on record, and nothing by the candidate, which answered."""
        return self.error is None and bool(self.case.found) and not self.answer.ids


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayReport:
    """
    All recalls of a replay.

    Attributes:
        k: As many memories of each answer count.
        outcomes: Those that were made again, failed ones too.
        left_out: Those that were not, by why.
    """

    k: int
    outcomes: Sequence[ReplayedRecall]
    left_out: Counter[str] = field(default_factory=Counter[str])

    @property
    def judged(self) -> Sequence[ReplayedRecall]:
        """The outcomes with something relevant, over which means are taken."""
        return [each for each in self.outcomes if each.recall is not None]

    @property
    def recall(self) -> float | None:
        """Mean recall at k of the candidate. None: no outcome has something relevant."""
        return _mean(each.recall for each in self.judged)

    @property
    def recall_before(self) -> float | None:
        """Mean recall at k of the answers on record."""
        return _mean(each.before for each in self.judged)

    @property
    def mean_reciprocal_rank(self) -> float | None:
        """Mean reciprocal rank of the candidate."""
        return _mean(each.reciprocal_rank for each in self.judged)

    @property
    def mean_reciprocal_rank_before(self) -> float | None:
        """Mean reciprocal rank of the answers on record."""
        return _mean(each.reciprocal_rank_before for each in self.judged)

    @property
    def errors(self) -> Counter[str]:
        """The recalls that the candidate did not answer, by the name of an error."""
        return Counter(each.error for each in self.outcomes if each.error is not None)

    @property
    def findings(self) -> dict[str, int]:
        """The recalls whose answer differs, by how: empty where each is as it was."""
        # A failure is no empty answer: it would count as lost memories that may all be there.
        answered = [each for each in self.outcomes if each.error is None]
        found = {
            "failed": len(self.outcomes) - len(answered),
            "empty now": sum(each.is_new_empty for each in answered),
            "lost memories": sum(each.change.lost > 0 for each in answered),
            "found others": sum(each.change.gained > 0 for each in answered),
            "another order": sum(each.change.moved > 0 for each in answered),
        }
        return {name: count for name, count in found.items() if count}

    @property
    def empties(self) -> tuple[int, int]:
        """Recalls that found nothing: on record, and by the candidate, which answered."""
        answered = [each for each in self.outcomes if each.error is None]
        return (
            sum(not each.case.found for each in self.outcomes),
            sum(not each.answer.ids for each in answered),
        )

    @property
    def cost_usd(self) -> float | None:
        """Cost on record of the model calls inside of these recalls. None: none is on record."""
        known = [each.case.cost_usd for each in self.outcomes if each.case.cost_usd is not None]
        return sum(known) if known else None

    def latencies_s(self, share: float) -> tuple[float, float] | None:
        """Return the quantile at *share* on record and of the candidate. None: none answered."""
        answered = [each for each in self.outcomes if each.error is None]
        if not answered:
            return None
        before = _quantile([each.case.latency_s for each in answered], share)
        return before, _quantile([each.answer.latency_s for each in answered], share)

    def worst(self, most: int) -> list[ReplayedRecall]:
        """Return the *most* outcomes that lost most recall, and differ, the worst first."""
        # One that failed has no answer to differ by, and is worse than any that has.
        differ = [each for each in self.outcomes if each.error is not None or any(each.change)]
        return sorted(differ, key=_badness)[:most]


def compare(
    cases: Iterable[GoldenCase],
    candidate: Candidate,
    k: int,
    tell: Callable[[int], object] = lambda _done: None,
) -> ReplayReport:
    """
    Make each recall again, one after the other, and compare the answers.

    Args:
        cases: On record.
        candidate: Makes them.
        k: As many memories of each answer count.
        tell: Called with 1 after each case.
    """
    outcomes: list[ReplayedRecall] = []
    left_out: Counter[str] = Counter()
    for case in cases:
        try:
            outcomes.append(_made_again(case, candidate, k))
        except NotRepeatableError as exc:
            left_out[str(exc)] += 1
        tell(1)
    return ReplayReport(k=k, outcomes=outcomes, left_out=left_out)


def _made_again(case: GoldenCase, candidate: Candidate, k: int) -> ReplayedRecall:
    # Of a recall that found fewer no more is asked: what it would have found next is not on record.
    most = k if case.relevant is not None else min(k, len(case.found)) or k
    error = None
    try:
        answer = candidate.answer(case, most)
    except CandidateFailedError as exc:
        # Recall 0: left out, a candidate would be the better the more it fails.
        answer, error = CandidateAnswer((), 0.0), str(exc)
    found, relevant = answer.ids[:k], case.measure(k)
    # Of an answer on record, whose memories are all relevant, the first one: any other is a change.
    first = relevant if case.relevant is not None else relevant[:1]
    return ReplayedRecall(
        case=case,
        answer=answer,
        error=error,
        before=recall_at(k, relevant, case.found) if relevant else None,
        recall=recall_at(k, relevant, found) if relevant else None,
        reciprocal_rank_before=reciprocal_rank(first, case.found[:k]),
        reciprocal_rank=reciprocal_rank(first, found),
        change=rank_change(case.found[:k], found),
    )


def _badness(outcome: ReplayedRecall) -> tuple[float, int, int, str]:
    # Ids last, so that two runs list equally bad recalls in one order.
    lost = (outcome.recall or 0.0) - (outcome.before or 0.0)
    return (lost, -outcome.change.lost, -outcome.change.moved, outcome.case.id)


def _mean(values: Iterable[float | None]) -> float | None:
    known = [each for each in values if each is not None]
    return fmean(known) if known else None


def _quantile(values: Sequence[float], share: float) -> float:
    """Return the quantile by nearest rank."""
    return sorted(values)[max(0, ceil(share * len(values)) - 1)]

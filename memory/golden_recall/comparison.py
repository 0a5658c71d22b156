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


class Compared(NamedTuple):
    """A figure of the answers on record, and of the candidate. None: it is not known."""

    on_record: float | None
    candidate: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayedRecall:
    """
    One recall that was made again.

    Attributes:
        case: As it is on record.
        answer: The candidate's; without ids where it failed.
        error: The name of an error. None: it answered.
        recall: At k; 0 for a candidate that failed. None: nothing is relevant.
        reciprocal_rank: Likewise.
        change: From the answer on record to the candidate's.
    """

    case: GoldenCase
    answer: CandidateAnswer
    error: str | None
    recall: Compared
    reciprocal_rank: Compared
    change: RankChange


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
    def recall(self) -> Compared:
        """Mean recall at k, over the outcomes with something relevant."""
        return _means(each.recall for each in self.outcomes)

    @property
    def mean_reciprocal_rank(self) -> Compared:
        """Mean reciprocal rank, over the same."""
        return _means(each.reciprocal_rank for each in self.outcomes)

    @property
    def answered(self) -> Sequence[ReplayedRecall]:
        """The outcomes that the candidate answered."""
        return [each for each in self.outcomes if each.error is None]

    @property
    def errors(self) -> Counter[str]:
        """The recalls that the candidate did not answer, by the name of an error."""
        return Counter(each.error for each in self.outcomes if each.error is not None)

    @property
    def findings(self) -> dict[str, int]:
        """The recalls whose answer differs, by how: empty where each is as it was."""
        # A failure is no empty answer: it would count as lost memories that may all be there.
        answered = self.answered
        found = {
            "failed": len(self.outcomes) - len(answered),
            "empty now": sum(bool(each.case.found) and not each.answer.ids for each in answered),
            "lost memories": sum(each.change.lost > 0 for each in answered),
            "found others": sum(each.change.gained > 0 for each in answered),
            "another order": sum(each.change.moved > 0 for each in answered),
        }
        return {name: count for name, count in found.items() if count}

    @property
    def empties(self) -> Compared:
        """The recalls that found nothing: of the candidate's, those that it answered."""
        on_record = sum(not each.case.found for each in self.outcomes)
        return Compared(on_record, sum(not each.answer.ids for each in self.answered))

    @property
    def cost_usd(self) -> Compared:
        """Cost of the model calls inside of these recalls: none but those on record is known."""
        known = [each.case.cost_usd for each in self.outcomes if each.case.cost_usd is not None]
        return Compared(sum(known) if known else None, None)

    def latency_s(self, share: float) -> Compared:
        """Return the quantile at *share*, by nearest rank, of the recalls that were answered."""
        pairs = [(each.case.latency_s, each.answer.latency_s) for each in self.answered]
        place = max(0, ceil(share * len(pairs)) - 1)
        return Compared(*[sorted(each)[place] for each in zip(*pairs, strict=True)] or _UNKNOWN)

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
    before, found, relevant = case.found[:k], answer.ids[:k], case.measure(k)
    # Of an answer on record, whose memories are all relevant, the first one: any other is a change.
    first = relevant if case.relevant is not None else relevant[:1]
    return ReplayedRecall(
        case=case,
        answer=answer,
        error=error,
        recall=_both(lambda ids: recall_at(k, relevant, ids), relevant, before, found),
        reciprocal_rank=_both(lambda ids: reciprocal_rank(first, ids), first, before, found),
        change=rank_change(before, found),
    )


_UNKNOWN = Compared(None, None)


def _both(
    metric: Callable[[Sequence[str]], float], relevant: Sequence[str], *answers: Sequence[str]
) -> Compared:
    return Compared(*map(metric, answers)) if relevant else _UNKNOWN


def _badness(outcome: ReplayedRecall) -> tuple[float, int, int, str]:
    # Ids last, so that two runs list equally bad recalls in one order.
    lost = (outcome.recall.candidate or 0.0) - (outcome.recall.on_record or 0.0)
    return (lost, -outcome.change.lost, -outcome.change.moved, outcome.case.id)


def _means(values: Iterable[Compared]) -> Compared:
    known = [each for each in values if each != _UNKNOWN]
    return Compared(*map(fmean, zip(*known, strict=True))) if known else _UNKNOWN

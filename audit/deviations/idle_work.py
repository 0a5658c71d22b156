"""Work of runs that costs without earning, as far as sealed headers tell."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Any

from ...telemetry.event.kinds import OperationClass, Status
from .figures import SealedFigures

_MOST_QUESTIONS = 200
_ANSWERED = frozenset({Status.OK, Status.PARTIAL, Status.EMPTY})

SECONDS, SAME_ANSWERS, SAME_S, TOGETHER_S = "seconds", "same answers", "same s", "together s"
COST_USD, FAILED_USD, AGAIN_USD, DISCARDED_USD = "usd", "failed usd", "again usd", "discarded usd"


class Idle:
    """
    The work of one run that may have earned nothing, added up by agent.

    Attributes:
        sums: By agent, operation or "" for all, and what is summed.
        outcome: The outcome that was posted for the run; empty: none was.
    """

    __slots__ = ("_chain", "_seen", "outcome", "sums")

    def __init__(self) -> None:
        self.sums: dict[tuple[str, str, str], float] = defaultdict(float)
        self.outcome = ""
        self._seen: set[Any] = set()
        self._chain: dict[str, tuple[int, int]] = {}

    def add(self, agent: str, event: SealedFigures, place: Any) -> None:
        """Add *event* of *agent*, at *place* as the trail refers to it."""
        seconds = event.duration_us / 1e6
        self.sums[agent, event.operation, SECONDS] += seconds
        if event.op_class is OperationClass.RECALL:
            # The same method, place, size of query, number of results and best score to the last
            # digit: the answer changed nothing that the run did not have.
            asked = (event.operation, event.method, place, event.size_bytes)
            if self._is_again((*asked, event.hits, event.top_score)) and event.hits is not None:
                self.sums[agent, "", SAME_ANSWERS] += 1
                self.sums[agent, "", SAME_S] += seconds
            self._follow(agent, event)
            return
        # What is recalled after a model has spoken may depend on what it said.
        self._chain.pop(agent, None)
        if event.usage is not None:
            self._spend(agent, event)

    def ended(self) -> Iterator[tuple[tuple[str, str, str], float]]:
        """Yield the sums of the run, its cost once more where it was discarded."""
        yield from self.sums.items()
        if self.outcome == "discarded":
            for (agent, _operation, what), amount in self.sums.items():
                if what == COST_USD:
                    yield (agent, "", DISCARDED_USD), amount

    def _follow(self, agent: str, event: SealedFigures) -> None:
        """Add what recalls in a row, with no model call or write between them, waited in turn."""
        ended_us, longest_us = self._chain.get(agent, (0, 0))
        if event.occurred_at < ended_us:
            longest_us = 0  # at once already
        self.sums[agent, "", TOGETHER_S] += min(longest_us, event.duration_us) / 1e6
        ended_us = max(ended_us, event.occurred_at + event.duration_us)
        self._chain[agent] = ended_us, max(longest_us, event.duration_us)

    def _spend(self, agent: str, event: SealedFigures) -> None:
        usage = event.usage
        if usage is None or usage.cost_usd is None:
            return
        cost_usd = float(usage.cost_usd)
        self.sums[agent, "", COST_USD] += cost_usd
        # The tokens of a prompt are as good as its hash, which no header has: lengths seldom agree.
        said = (usage.node, usage.input_tokens, usage.output_tokens)
        if event.status not in _ANSWERED:
            self.sums[agent, "", FAILED_USD] += cost_usd
        elif self._is_again(said):
            self.sums[agent, "", AGAIN_USD] += cost_usd

    def _is_again(self, what: Any) -> bool:
        if what in self._seen:
            return True
        if len(self._seen) < _MOST_QUESTIONS:
            self._seen.add(what)
        return False

"""A candidate that is a function of the application's own: any search, over any store."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from ..guard.call import error_name
from .case import GoldenCase
from .comparison import CandidateAnswer, CandidateFailedError, NotRepeatableError
from .replayed import replay_context


class FunctionCandidate:
    """
    Makes recalls by a function of a query.

    Args:
        search: Takes the redacted query and how many memories are wanted, and returns their ids,
            the best first, as the store of the record has them.
        customers: Ids of customers by their number in the trail. The context of a call has the one
            that it is for, where it is known.
        clock: Monotonic seconds.
    """

    def __init__(
        self,
        search: Callable[[str, int], Iterable[Any]],
        customers: Mapping[str, str] | None = None,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self._search = search
        self._customers = customers or {}
        self._clock = clock

    def close(self) -> None:
        """Do nothing: a function holds nothing."""

    def answer(self, case: GoldenCase, most: int) -> CandidateAnswer:
        """Call the function: see `Candidate`."""
        query = case.query
        if query is None:
            raise NotRepeatableError("no text of the query is on record")
        began = self._clock()
        try:
            with replay_context(case, self._customers.get(case.owner or "")):
                ids = tuple(str(each) for each in self._search(query, most))
        except Exception as exc:  # noqa: BLE001 - whatever it raises is a finding, by its name
            raise CandidateFailedError(error_name(exc)) from None
        return CandidateAnswer(ids, self._clock() - began)

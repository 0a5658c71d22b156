"""Recalls on record, made again by a guarded client: a candidate that is only read."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from contextvars import copy_context
from typing import Any

from ...memory.api import Event, Method, OperationClass
from ...memory.golden_recall import (
    CandidateAnswer,
    CandidateFailedError,
    GoldenCase,
    NotRepeatableError,
    call_by_name,
    past_recall,
    replay_context,
)
from ...memory.guard.call import error_name, last_event
from ...memory.guard.operation import Arguments
from ...memory.subject_data.runner import SubjectDataRunner
from .proxy import guard_of, operation_of


class GuardedCandidate:
    """
    Makes recalls by the methods of guarded clients, as their adapters' tables describe them.

    A method that does not recall is never called. Close it: coroutines belong to one event loop.

    Args:
        clients: Guarded. Of two of one store the first is used.
        customers: Ids of customers by their number in the trail.
        changes: Arguments in place of those on record.
    """

    def __init__(
        self, clients: list[Any], customers: Mapping[str, str], changes: Mapping[str, Any]
    ) -> None:
        self._clients = {
            # The first of two is put last, and stays.
            guard.store: each
            for each in reversed(clients)
            if (guard := guard_of(each)) is not None
        }
        self._customers = customers
        self._changes = changes
        self._runner = SubjectDataRunner()

    def close(self) -> None:
        """End the event loop."""
        self._runner.__exit__()

    def answer(self, case: GoldenCase, most: int) -> CandidateAnswer:
        """Call the client's method: see `Candidate`."""
        customer, client = self._customer(case), self._clients.get(case.store)
        if client is None:
            raise NotRepeatableError("the candidate has no such store")
        repeat = _method_of(client, case.method).repeat
        arguments = repeat and repeat(past_recall(case, customer, most))
        if not arguments:
            raise NotRepeatableError("too little of the call is on record")
        given = {**arguments, **self._changes}
        # In a copy: the last event of whoever compares stays theirs.
        try:
            event = copy_context().run(self._event_of, client, case, customer, given)
        except Exception as exc:  # noqa: BLE001 - whatever it raises is a finding, by its name
            raise CandidateFailedError(error_name(exc)) from None
        return _answer_in(event)

    def _customer(self, case: GoldenCase) -> str | None:
        if case.owner is None:
            return None
        if case.owner not in self._customers:
            raise NotRepeatableError("the candidate does not know the customer")
        return self._customers[case.owner]

    def _event_of(
        self, client: Any, case: GoldenCase, customer: str | None, arguments: Arguments
    ) -> Event | None:
        """Make the call, and return its event: as the trail has the one on record."""
        # Of the event, not of the answer: ids and scores as those on record were read and redacted,
        # and a neutral result told from an empty one.
        last_event.set(None)
        with replay_context(case, customer):
            answer = call_by_name(getattr(client, case.method), arguments)
            if not inspect.iscoroutine(answer):
                return last_event.get()
            # A task sets what it sets in a context of its own, where the event is looked for.
            within = copy_context()
            self._runner.run(answer, within)
            return within.get(last_event)


def _method_of(client: Any, name: str) -> Method:
    try:
        method = operation_of(client, name, {}).method
    except KeyError:
        raise NotRepeatableError("the candidate has no such method") from None
    if method.op_class is not OperationClass.RECALL:
        raise NotRepeatableError("the method does not recall, and a candidate is only read")
    return method


def _answer_in(event: Event | None) -> CandidateAnswer:
    """
    Return the answer that an event tells of.

    Raises:
        CandidateFailedError: The store did not answer: a neutral result is no answer.
    """
    if event is None:
        raise CandidateFailedError("unreported")
    if event.neutral or not event.status.is_normal:
        raise CandidateFailedError(event.error or event.status.value)
    return CandidateAnswer(event.memory_ids, event.duration_s)

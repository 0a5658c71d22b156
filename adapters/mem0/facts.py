"""
Facts that one ``add`` with inference makes: stored all of them, or told.

mem0 stores what its model has found all at once and, where that fails, one fact after another. What
fails then it logs, and reports the others as all there is; and a process that is killed among them
leaves a part, which says nothing of the rest. So every fact of several carries the number of them,
in its metadata beside the id of the write, and an answer is counted.

What it cannot embed, one by one after a batch that failed, it leaves out as well, and only logs:
such an ``add`` is ``partial``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Generator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Final
from uuid import uuid4

from mem0 import exceptions  # type: ignore[import-untyped]  # it ships no types

from ...memory.api import AsyncInvoke, Faults, Invoke, Status
from ...memory.guard.call import Call
from ...memory.guard.operation import Arguments
from ..toolkit.stand_in import StandIn, is_marked
from ..toolkit.type_guards import is_dict, is_list
from .journal import MARK, AddDeduplication

FACTS: Final = "mnemoscope_facts"
"""Metadata key of one fact of several: which of the attempts to store them, and how many."""

_COUNTED: Final = "facts"


@dataclass(slots=True)
class _Attempt:
    """
    What became of the facts that an ``add`` has found.

    Attributes:
        facts: Facts that were to be stored. 0: none, or only one.
        is_stored: They were handed to the vector store: what is embedded then is no fact.
        lost: Facts that could not be embedded, and that mem0 has left out.
    """

    facts: int = 0
    is_stored: bool = False
    lost: int = 0


_attempt: ContextVar[_Attempt | None] = ContextVar("mnemoscope_mem0_attempt", default=None)


class CountFacts:
    """
    An `Around` that counts the facts of an ``add`` and what became of them.

    Args:
        client: A ``Memory`` or ``AsyncMemory``.
        faults: Where a vector store that cannot be watched is noted.
    """

    def __init__(self, client: Any, faults: Faults) -> None:
        self._client = client
        self._faults = faults

    def wrap(self, call: Call, invoke: Invoke) -> Invoke:
        """Return *invoke*, whose answer has all facts that were found."""
        if call.method.name != "add":
            return invoke

        def called(given: Arguments) -> Any:
            with self._counting() as attempt:
                return _all(call, attempt, invoke(given))

        return called

    def awrap(self, call: Call, invoke: AsyncInvoke) -> AsyncInvoke:
        """Return *invoke* of an asynchronous client: as `wrap`."""
        if call.method.name != "add":
            return invoke

        async def awaited(given: Arguments) -> Any:
            with self._counting() as attempt:
                return _all(call, attempt, await invoke(given))

        return awaited

    @contextmanager
    def _counting(self) -> Generator[_Attempt]:
        try:
            _watch(getattr(self._client, "vector_store", None))
        except Exception as exc:  # noqa: BLE001 - then its facts are not counted
            self._faults.note("mem0.facts", exc)
        attempt = _Attempt()
        token = _attempt.set(attempt)
        try:
            yield attempt
        finally:
            _attempt.reset(token)


def note_lost_fact() -> None:
    """Count a text that could not be embedded, if it is a fact of an ``add`` that is under way."""
    attempt = _attempt.get()
    if attempt is not None and not attempt.is_stored:
        attempt.lost += 1


def _all(call: Call, attempt: _Attempt, answer: Any) -> Any:
    stored = _rows(answer)
    # mem0 inserts them at once, then one by one after a failure, and only logs those that failed.
    if len(stored) < attempt.facts:
        raise exceptions.VectorStoreError(
            f"{len(stored)} of {attempt.facts} facts were stored: mem0 logs why the others were not"
        )
    if attempt.lost:
        call.status = Status.PARTIAL  # mem0 logs it, and answers as if it were all
    return answer


def _watch(vector_store: Any) -> None:
    """Have the facts that are handed to *vector_store* numbered, once."""
    insert: Callable[..., Any] | None = getattr(vector_store, "insert", None)
    if insert is None or is_marked(insert, _COUNTED):
        return

    def counted(*args: Any, **kwargs: Any) -> Any:
        attempt, payloads = _attempt.get(), kwargs.get("payloads")
        if attempt is not None:
            attempt.is_stored = True
        if attempt is not None and is_list(payloads) and len(payloads) > 1:
            attempt.facts = len(payloads)
            _number(payloads)
        return insert(*args, **kwargs)

    vector_store.insert = StandIn(insert, counted, _COUNTED)


def _number(payloads: list[Any]) -> None:
    """Number *payloads* in place: mem0 hands over the same ones when it does it one by one."""
    of = f"{uuid4().hex}/{len(payloads)}"
    for each in payloads:
        if is_dict(each) and MARK in each:
            each[FACTS] = of


class AddFactsDeduplication(AddDeduplication):
    """
    Recognition of an ``add`` of which mem0 has all facts.

    Where it has a part, all of it is added again: mem0 stores no text twice, and shows its model
    what it has. An attempt that found less than an earlier one found the rest of it.
    """

    def left(self, method: str, arguments: Arguments, answer: object) -> Arguments | None:
        """Return *arguments* without what is there already, if any is left."""
        left = super().left(method, arguments, answer)
        # A write whose facts are there in part is made again: a fact twice is better than one that
        # is missing.
        return left if left is not None or _has_all(_rows(answer)) else arguments


def _has_all(rows: list[Any]) -> bool:
    """Tell whether any attempt is there with all of its facts. A fact alone has no number."""
    attempts = Counter(_attempt_of(each) for each in rows)
    return any(of is None or there >= _number_in(of) for of, there in attempts.items())


def _attempt_of(row: Any) -> str | None:
    metadata = row.get("metadata") if is_dict(row) else None
    of = metadata.get(FACTS) if is_dict(metadata) else None
    return of if isinstance(of, str) else None


def _number_in(of: str) -> int:
    number = of.partition("/")[2]
    return int(number) if number.isdecimal() else 0


def _rows(answer: Any) -> list[Any]:
    found = answer.get("results") if is_dict(answer) else answer
    return found if is_list(found) else []

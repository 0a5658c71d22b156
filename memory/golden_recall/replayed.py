"""The context of recalls that are made again, by which the audit trail tells them from others."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, Final

from ..context import Scope, context
from ..guard.operation import Arguments, PastRecall
from .case import GoldenCase

REPLAY: Final = "mnemoscope.replay"
"""The purpose of recalls that are made again: they are no recalls on record of their own."""

_CUSTOMER = re.compile(r"<SUBJECT_ID(?:_[0-9a-f]{16})?>")


def replay_context(case: GoldenCase, customer: str | None) -> AbstractContextManager[Scope]:
    """Return the context in which *case* is made again for *customer*."""
    return context(tenant=case.tenant, customer=customer, purpose=REPLAY)


def past_recall(case: GoldenCase, customer: str | None, most: int) -> PastRecall:
    """Return what an adapter makes the arguments of *case* from."""
    # The label of a namespace that is the customer's id is on record as a stand-in of the id.
    place = case.collection
    if place is not None and customer is not None:
        place = _CUSTOMER.sub(lambda _found: customer, place)
    return PastRecall(case.content, place, customer, most)


def call_by_name(target: Callable[..., Any], arguments: Arguments) -> Any:
    """Call *target* with *arguments* by the names of its parameters, of whatever kind those are."""
    # Stores name their parameters in the table, and take some by position alone.
    others = dict(arguments)
    by_position = [
        others.pop(name)
        for name, each in inspect.signature(target).parameters.items()
        if each.kind is inspect.Parameter.POSITIONAL_ONLY and name in others
    ]
    return target(*by_position, **others)

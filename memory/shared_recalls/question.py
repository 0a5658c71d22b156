"""The question of a recall, as a key: equal for calls that may have one answer."""

from __future__ import annotations

import os
from collections.abc import Hashable, Mapping
from dataclasses import replace
from typing import Any

from ...telemetry.event.trace import Tracing
from ...telemetry.text import is_a
from ..guard.call import Call

_SCALARS = (str, int, float, bool, bytes, type(None))
_DEPTH = 12


def question_of(call: Call, tracing: Tracing) -> Hashable | None:
    """
    Return what *call* asks, of whom, for whom and in which run. None: nobody may share its answer.

    Tenant, customer, agent, purpose and run are part of it; the feature, which names a branch, is
    not. A call of no run shares with none, and neither does one inside of another call.
    """
    if call.outer is not None or call.method.inline:
        return None
    run = call.scope.run or (tracing.enclosing_thread and tracing.enclosing_thread())
    if not run:
        return None
    try:
        asked = _frozen(call.arguments, _DEPTH)
    except TypeError:
        return None
    # A forked child has nobody to end what its parent was at.
    return os.getpid(), call.method.name, replace(call.scope, run=run, feature=None), asked


def _frozen(value: Any, depth: int) -> Hashable:
    """Return *value* such that it equals no other. Raises TypeError: that cannot be told."""
    kind: Any = value.__class__
    if is_a(value, *_SCALARS):
        return kind, value
    if depth and is_a(value, list, tuple):
        return kind, tuple([_frozen(each, depth - 1) for each in value])
    if depth and is_a(value, Mapping):
        return kind, frozenset((name, _frozen(of, depth - 1)) for name, of in value.items())
    if depth and hasattr(kind, "model_fields"):  # of pydantic
        return kind, _frozen(value.__dict__, depth - 1)
    raise TypeError

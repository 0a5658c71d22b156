"""Calls made inside another guarded call, and the state inherited from the outer one."""

from __future__ import annotations

from contextlib import suppress

from ..privacy.engine.redaction import KeptIds
from .call import Call, Plan
from .operation import Record


def nest(call: Call, outer: Call) -> None:
    """
    Mark *call* as made from inside *outer*.

    It does not take over that anything is redacted: what *outer* carried is, but *call* may carry
    something else, of the embedder's or the model's, or of whoever else runs inside a store.
    """
    call.scope = call.scope.with_defaults(outer.scope)
    call.nested, call.outer, call.sheltered = True, outer, outer.method.shields
    call.covered = _is_part(call, outer)
    if not call.covered:
        return
    if outer.method.as_stored is not None:
        # The context has the customer as the caller spells them, and the store below as this one.
        call.scope = outer.scope.with_defaults(call.scope)
    if (ids := _ids_of(outer)) is not None:
        call.ids = ids
        call.plan = _with_learning(call.plan)


def _is_part(call: Call, outer: Call) -> bool:
    """
    Tell whether *call* is work of the store of *outer*, for which *outer* was judged.

    Judged by where it goes: an embedder, a model or a subclass that runs inside a store may ask for
    something that nobody has allowed. Another scope has rules of its own.
    """
    if outer.plan.home is not call.plan.home:
        return False
    try:
        own = outer.plan.below().get(call.plan.guard)
        if own is None:
            return False
        collection = call.method.collection(call.arguments)
    except Exception:  # noqa: BLE001 - what cannot be told is judged
        return False
    return collection is None or collection in own


def _ids_of(outer: Call) -> KeptIds | None:
    """Return what *outer* hands on as it is, the same for all that is called inside it."""
    if outer.ids is None and outer.method.ids:
        ids = KeptIds(outer.method.ids)
        ids.learn(outer.arguments)
        outer.ids = ids
    return outer.ids


def _with_learning(plan: Plan) -> Plan:
    """Return *plan* with a look at what the store answers, before all else looks at it."""
    if plan.after[:1] == (_learn,):
        return plan
    return Plan(
        plan.limits,
        plan.before,
        (_learn, *plan.after),
        plan.abefore,
        (_learn, *plan.aafter),
        plan.home,
    )


def _learn(call: Call) -> None:
    """Learn the ids of memories that a recall found: mem0 writes them back with what it changes."""
    ids, sift = call.ids, call.method.sift
    if ids is None or sift is None or call.error is not None or call.result is None:
        return

    def look(record: Record) -> bool:
        ids.learn(dict(record.parts))
        return True

    with suppress(Exception):  # an answer of another shape: what is not learned is redacted
        sift(call.result, call.arguments, look)

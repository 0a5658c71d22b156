"""How a guard is put together: one class, and the order of its steps in one place."""

from __future__ import annotations

import pytest

from mnemoscope.memory.api import Faces, Operation, OperationClass
from mnemoscope.memory.guard.steps.audit_gate import AwaitAudit, RequireAudit


class Noting:
    """A step that notes when its faces run."""

    def __init__(self, name, notes):
        self.name, self.notes = name, notes

    def faces(self, _method):
        return Faces(
            before=lambda _call: self.notes.append(f"before {self.name}"),
            after=lambda _call: self.notes.append(f"after {self.name}"),
        )


class Trail:
    """An audit trail that takes everything."""

    name = "audit"

    def accepts(self):
        return True


def test_the_order_of_the_steps(make_bench):
    """From the outermost to the innermost; the adapter's own stand before the breaker."""
    bench, classes = make_bench(), frozenset({OperationClass.RECALL})
    bench.audit_gate = (
        RequireAudit(classes, Trail()),
        AwaitAudit(classes, Trail(), drain=bench.drain, faults=bench.faults),
    )
    guard = bench.guard("crm", steps=[Noting("own", [])])

    assert [type(step).__name__ for step in guard.steps] == [
        "AwaitAudit",
        "Report",
        "Tenancy",
        "RequireAudit",
        "Redact",
        "WaitForLateWrites",
        "CountLostWrites",
        "Noting",
        "Admit",
        "Classify",
    ]


@pytest.mark.parametrize("is_async", [False, True], ids=["sync", "async"])
async def test_steps_run_inwards_before_the_store_and_outwards_after_it(
    make_bench, search, is_async
):
    """Each once, whatever the call's end."""
    notes = []
    guard = make_bench().guard("crm", steps=[Noting("outer", notes), Noting("inner", notes)])

    async def ask(_given):
        notes.append("store")
        return []

    if is_async:
        await guard.acall(search, ask)
    else:
        guard.call(search, lambda _given: notes.append("store") or [])

    assert notes == ["before outer", "before inner", "store", "after inner", "after outer"]


@pytest.mark.parametrize("is_async", [False, True], ids=["sync", "async"])
async def test_a_step_that_refuses_keeps_the_rest_from_being_asked(make_bench, forget, is_async):
    """Neither the steps behind it nor the store; all of them see the outcome."""
    notes, refusing = [], Noting("refusing", [])

    def refuse(_call):
        raise PermissionError

    refusing.faces = lambda _method: Faces(before=refuse)
    guard = make_bench().guard("crm", steps=[refusing, Noting("behind", notes)])

    async def ask(_given):
        notes.append("store")

    async def call():
        if is_async:
            return await guard.acall(forget, ask)
        return guard.call(forget, lambda _given: notes.append("store"))

    with pytest.raises(PermissionError):
        await call()

    assert notes == ["after behind"]


def test_a_step_is_asked_once_for_each_method(make_bench, make_operation):
    """Not in every call: a call runs tuples that are made before."""
    asked = []

    class Asked:
        def faces(self, method):
            asked.append(method.name)
            return Faces()

    guard = make_bench().guard("crm", steps=[Asked()])
    first, second = make_operation(name="search"), make_operation(name="get")
    for operation in (first, second, first, Operation(second.method, {"query": "milk"})):
        guard.call(operation, lambda _given: [])

    assert asked == ["search", "get"]

"""
The step that names a call's customer and, where that is enforced, confines the call.

Naming the owner describes the call and fails open; confining a call and narrowing its result, under
``tenancy="enforce"``, fail closed: what may be somebody else's is neither asked for nor handed out.
A row that says nothing of whose memories a call touches is no permission: in a customer's context
such a call is refused.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace

from ....telemetry.event.event import OperationClass, Status
from ....telemetry.event.part import EventPart
from ....telemetry.event.spelling import id_text
from ....telemetry.process.faults import Faults
from ...context import EMPTY_SCOPE, Scope
from ...errors import ScopeError
from ..call import Call, error_name, outer_call
from ..operation import Method, no_customer
from ..step import NOTHING, Face, Faces

logger = logging.getLogger("mnemoscope")

_READS = frozenset({OperationClass.RECALL, OperationClass.RESUME})
_WRITES = frozenset({OperationClass.REMEMBER, OperationClass.CHECKPOINT})
_CHANGES = frozenset({OperationClass.REMEMBER, OperationClass.FORGET})
_NOBODYS = Scope()
"""Empty, and not the scope of a call outside any context, which is counted as forgotten."""

_NOT_CONFINED = "could not be confined to its customer's memories"
_NOT_NARROWED = "gave an answer that could not be narrowed to its customer's memories"

_OF_NOBODY = frozenset({"create_memory_store", "update_memory_store"})
"""Operations that remember nothing: one that names nobody has forgotten nobody."""


class Tenancy:
    """
    Fills in the customer of each call and, where that is enforced, confines the call to them.

    Args:
        enforced: Refuse operations without the scope their store needs.
        faults: Where failing functions of the adapter are noted.
    """

    def __init__(self, store: str, *, enforced: bool, faults: Faults) -> None:
        self._store = store
        self._warned = False
        self._enforced = enforced
        self._faults = faults

    def faces(self, method: Method) -> Faces:
        """Return the faces that *method* needs."""
        found = self._faces(method)
        if method.as_stored is None:
            return found
        # First: what the client will call its customer is who is confined, told and ruled on.
        names_alone = found.before in {None, self.name_owner}  # one function less for each call
        return found._replace(
            before=self._by_stored_id(self._named if names_alone else found.before)
        )

    def _faces(self, method: Method) -> Faces:
        if method.public:
            is_write = method.op_class in _WRITES and not method.unconfined
            return Faces(before=self._refuse_owner if is_write else self._name_nobody)
        if method.operation in _OF_NOBODY:
            return Faces(before=self._set_up)
        if not self._enforced:
            if method.scope is no_customer:
                return NOTHING
            is_told = method.op_class in _CHANGES and method.whose is None
            return Faces(before=self._name_changed if is_told else self.name_owner)
        return Faces(before=self._confine, after=self._narrow if method.only else None)

    def name_owner(self, call: Call) -> None:
        """
        Fill the call's scope with the customer whom its arguments name.

        Raises:
            ScopeError: They name everybody.
        """
        self._named(call)

    def _name_changed(self, call: Call) -> None:
        """Fill the scope of a change: it is of whom it names, whoever the context is for."""
        own = call.scope.customer
        named = self._named(call).customer
        if named and own and id_text(named) != own:
            others = tuple(each for each in call.scope.known if each != named)
            call.scope = replace(call.scope, customer=named, known=(*others, own))

    def _refuse_owner(self, call: Call) -> None:
        """Refuse what is written for a customer, or say so once where tenancy is not enforced."""
        named = self._named(call)
        if call.scope.customer is None and not named.known:
            self._say_nobodys(call)
            return
        said = (
            f"{self._store}.{call.method.name} writes for a customer into what was wrapped as "
            "public, as nobody's personal data: write outside any customer's context and without "
            "an owner, or leave it out of public="
        )
        if self._enforced:
            raise ScopeError(said)
        if not self._warned:
            self._warned = True
            logger.warning("%s", said)

    def _name_nobody(self, call: Call) -> None:
        """Fill the scope of a call for what is public: that it is empty is no oversight."""
        self._named(call)
        if call.scope.customer is None:
            self._say_nobodys(call)

    def _set_up(self, call: Call) -> None:
        """Confine a call that sets up a store; in no context it is nobody's."""
        if self._enforced:
            self._confine(call)
        if call.scope is EMPTY_SCOPE:
            call.scope = _NOBODYS

    @staticmethod
    def _say_nobodys(call: Call) -> None:
        """Have the event say so: a trail tells it from what is somebody's and names them not."""
        call.scope = _NOBODYS if call.scope is EMPTY_SCOPE else call.scope
        call.additions += (_nobodys_data,)

    def _named(self, call: Call) -> Scope:
        """Fill the call's scope with what its arguments name, and return that."""
        named = EMPTY_SCOPE
        try:
            named = call.method.scope(call.arguments)
            if named is not EMPTY_SCOPE:
                own = call.scope
                call.scope = named if own is EMPTY_SCOPE else own.with_defaults(named)
        except ScopeError:
            raise
        except Exception as exc:  # noqa: BLE001 - describing a call fails open
            self._faults.note("guard.scope", exc)
            if self._enforced:
                raise self._refusal(call, "could not be asked whom it names", exc) from None
        return named

    def _confine(self, call: Call) -> None:
        """Refuse a call without an owner; narrow the arguments to what belongs to its customer."""
        named = self._named(call)
        method, customer = call.method, call.scope.customer
        if method.needs_owner and customer is None:
            raise ScopeError(
                f"{self._store}.{method.name} names no customer and tenancy is enforced: "
                "pass the id or use context(customer=...)"
            )
        for part in ("customer", "tenant"):
            if (theirs := getattr(named, part)) and id_text(theirs) != id_text(
                getattr(call.scope, part)
            ):
                raise ScopeError(
                    f"{self._store}.{method.name} names another {part} than its context, and "
                    "tenancy is enforced"
                )
        if customer is None:
            return
        if method.confine is None:
            if not (named.customer or self._is_narrow(call)):
                raise ScopeError(
                    f"{self._store}.{method.name} cannot be confined to one customer, and tenancy "
                    "is enforced: name the customer in its arguments, call it outside any "
                    "customer's context, or tell its adapter how to confine it"
                )
            return
        try:
            call.arguments = method.confine(call.arguments, customer)
        except ScopeError:
            raise
        except Exception as exc:  # noqa: BLE001 - unlike describing, this fails closed
            self._faults.note("guard.confine", exc)
            raise self._refusal(call, _NOT_CONFINED, exc) from None

    @staticmethod
    def _is_narrow(call: Call) -> bool:
        """Tell whether a call that names nobody stays with its customer, or touches nobody's."""
        method = call.method
        if method.unconfined or (method.only is not None and method.op_class in _READS):
            return True
        outer = outer_call() if call.covered else None
        return outer is not None and outer.method.hands_customer_on

    def _narrow(self, call: Call) -> None:
        """Remove other customers' data from the result, or withhold all of it."""
        only, customer = call.method.only, call.scope.customer
        if only is None or customer is None or call.error is not None:
            return
        try:
            call.result = only(call.result, customer)
        except Exception as exc:  # noqa: BLE001 - unlike describing, this fails closed
            self._faults.note("guard.only", exc)
            call.error = self._refusal(call, _NOT_NARROWED, exc)
            call.status = Status.ERROR

    def _refusal(self, call: Call, what: str, exc: Exception) -> ScopeError:
        return ScopeError(
            f"{self._store}.{call.method.name} {what}, so it is refused ({error_name(exc)})"
        )

    def _by_stored_id(self, before: Callable[[Call], object] | None) -> Face:
        """Return *before* of a method whose client has a spelling of its own of each customer."""

        def spelled(call: Call) -> None:
            customer, as_stored = call.scope.customer, call.method.as_stored
            if customer and as_stored is not None and (stored := as_stored(customer)) != customer:
                if self._enforced:
                    raise ScopeError(
                        f"{self._store}.{call.method.name}: its context names a customer whom the "
                        "store would keep under another id, and tenancy is enforced: name them as "
                        "the store does, without space around the id"
                    )
                call.scope = replace(call.scope, customer=stored or customer)
            if before is not None:
                before(call)

        return spelled


def _nobodys_data(_store: str, _call: Call) -> EventPart:
    from ....telemetry.event.memory_store import NobodysData  # noqa: PLC0415 - most have none

    return NobodysData()

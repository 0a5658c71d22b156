"""
Whose memory a call is about: naming its owner and, under ``tenancy="enforce"``, keeping to it.

Naming is description and fails open; confining and narrowing fail closed: what may be somebody
else's is neither asked for nor handed out.
"""

from __future__ import annotations

from typing import Any

from .call import Call, error_name
from .context import NOBODY
from .errors import ScopeError
from .runtime import Runtime


class Tenancy:
    """
    The rules of one store.

    Args:
        store: Its name.
        runtime: Policy and faults.
    """

    def __init__(self, store: str, runtime: Runtime) -> None:
        self._store = store
        self._runtime = runtime

    def name_owner(self, call: Call) -> None:
        """
        Fill the call's scope with whom its arguments name.

        Raises:
            ScopeError: They name everybody, or nobody although tenancy is enforced.
        """
        try:
            named = call.method.scope(call.arguments)
            if named is not NOBODY:
                call.scope = call.scope.filled(named)
        except ScopeError:
            raise
        except Exception as exc:  # noqa: BLE001 - describing a call fails open
            self._runtime.faults.note("guard.scope", exc)
        if self._enforced and self._lacks_owner(call):
            raise ScopeError(
                f"{self._store}.{call.method.name} names no customer and tenancy is enforced: "
                "pass the id or use context(customer=...)"
            )

    def confine(self, call: Call) -> None:
        """
        Narrow the call's arguments to what belongs to its customer.

        Raises:
            ScopeError: They name somebody else, or cannot be narrowed.
        """
        confine, customer = call.method.confine, call.scope.customer
        if confine is None or customer is None or not self._enforced:
            return
        try:
            call.arguments = confine(call.arguments, customer)
        except ScopeError:
            raise
        except Exception as exc:  # noqa: BLE001 - unlike describing, this fails closed
            self._runtime.faults.note("guard.confine", exc)
            raise self._refusal(call, "could not be confined", exc) from None

    def narrow(self, call: Call, result: Any) -> Any:
        """
        Return *result* without what is somebody else's.

        Raises:
            ScopeError: That could not be done, so it is withheld.
        """
        only, customer = call.method.only, call.scope.customer
        if only is None or customer is None or not self._enforced:
            return result
        try:
            return only(result, customer)
        except Exception as exc:  # noqa: BLE001 - unlike describing, this fails closed
            self._runtime.faults.note("guard.only", exc)
            raise self._refusal(call, "gave an answer that could not be narrowed", exc) from None

    @property
    def _enforced(self) -> bool:
        return self._runtime.policy.enforce_tenancy

    def _lacks_owner(self, call: Call) -> bool:
        return call.method.needs_owner and not call.nested and call.scope.customer is None

    def _refusal(self, call: Call, what: str, exc: Exception) -> ScopeError:
        return ScopeError(
            f"{self._store}.{call.method.name} {what} to its customer's memories, so it is refused "
            f"({error_name(exc)})"
        )

"""The step of a guard that fails closed: content that cannot be redacted goes nowhere."""

from __future__ import annotations

from ..telemetry.event import Status
from .call import Call, error_name
from .errors import RedactionError
from .redaction.session import Redaction
from .runtime import Runtime


class Confidentiality:
    """
    Redacts what a call carries, or refuses the call.

    Args:
        store: The guard's store.
        runtime: Holds the redactor.
    """

    def __init__(self, store: str, runtime: Runtime) -> None:
        self._store = store
        self._runtime = runtime

    def begin(self, call: Call) -> bool:
        """Open the call's redaction, whose labels the event needs. False: it is refused."""
        try:
            call.redaction = self._begun(call)
        except Exception as exc:  # noqa: BLE001 - closed on confidentiality
            self._refuse(call, exc)
            return False
        return True

    def apply(self, call: Call) -> bool:
        """Open it, and replace the call's arguments by redacted ones. False: it is refused."""
        try:
            call.redaction = self._begun(call)
            # If private, the outer call's event tells of the content; the scope ids are verbatim.
            if not call.private:
                call.arguments = call.method.redact(call.arguments, call.redaction)
                call.private = call.method.shields
                call.redacted = True
        except Exception as exc:  # noqa: BLE001 - whatever it was, the content is not redacted
            self._refuse(call, exc)
            return False
        return True

    def _begun(self, call: Call) -> Redaction:
        scope, runtime = call.scope, self._runtime
        return runtime.redactor.begin(
            tenant=scope.tenant,
            known=scope.known if scope.customer is None else scope.identifiers,
            keeper=None if runtime.vault is None else runtime.pocket(scope),
        )

    def _refuse(self, call: Call, exc: Exception) -> None:
        self._runtime.faults.note("guard.redact", exc)
        call.status = Status.REFUSED
        call.refusal = RedactionError(
            f"{self._store}.{call.method.name}: the content could not be redacted, so the "
            f"store was not asked ({error_name(exc)})"
        )

"""The step that redacts a call's arguments, or refuses the call."""

from __future__ import annotations

from ....telemetry.process.faults import Faults
from ...errors import RedactionError
from ...privacy.scoped_redactor import ScopedRedactor
from ..call import Call, error_name
from ..operation import Method
from ..step import Faces


class Redact:
    """
    Redacts what a call carries, or refuses the call.

    Args:
        store: The guard's store.
        redactor: Begins the redaction of each call.
        faults: Where failing redactions are noted.
    """

    def __init__(self, store: str, redactor: ScopedRedactor, *, faults: Faults) -> None:
        self._store = store
        self._redactor = redactor
        self._faults = faults

    def faces(self, _method: Method) -> Faces:
        """Return the face before the store: for every method."""
        return Faces(before=self._redact)

    def open(self, call: Call) -> None:
        """
        Open the call's redaction, whose labels the event needs.

        Raises:
            RedactionError: It cannot be opened.
        """
        try:
            call.redaction = self._redactor.begin(call.scope)
        except Exception as exc:  # noqa: BLE001 - closed on confidentiality
            raise self._refusal(call, exc) from None

    def _redact(self, call: Call) -> None:
        try:
            call.redaction = self._redactor.begin(call.scope)
            # If private, the outer call's event has the content; the scope ids are verbatim.
            if not call.private:
                call.arguments = call.method.redact(call.arguments, call.redaction)
                call.private = call.method.shields
                call.redacted = True
        except Exception as exc:  # noqa: BLE001 - whatever it was, the content is not redacted
            raise self._refusal(call, exc) from None

    def _refusal(self, call: Call, exc: Exception) -> RedactionError:
        self._faults.note("guard.redact", exc)
        kind = exc.kind if isinstance(exc, RedactionError) else None
        return RedactionError(
            f"{self._store}.{call.method.name}: the content could not be redacted, so the "
            f"store was not asked ({f'it holds a {kind}' if kind else error_name(exc)})",
            kind=kind,
        )

"""What sinks may know of a scope, for events that no guard reports."""

from __future__ import annotations

from ..telemetry.subject import Subject
from .context import Scope
from .redaction.content import FAILED
from .runtime import Runtime

_KEPT = 256
UNTOLD = Scope(tenant=FAILED, agent=FAILED, feature=FAILED, run=FAILED, purpose=FAILED)
"""What is told of a scope that cannot be redacted now."""


class Labels:
    """
    Redacts scopes, each once.

    Args:
        runtime: Redactor, keys, faults.
    """

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._kept: dict[Scope, Scope] = {}

    def told(self, scope: Scope) -> Scope:
        """Return *scope* as sinks may have it: without the customer, who is a `Subject`."""
        found = self._kept.get(scope)
        if found is None:
            found = self._redacted(scope)
            if len(self._kept) < _KEPT and found is not UNTOLD:
                self._kept[scope] = found
        return found

    def _redacted(self, scope: Scope) -> Scope:
        runtime = self._runtime
        try:
            label = runtime.redactor.begin(tenant=scope.tenant, known=scope.identifiers).label
            return Scope(
                tenant=scope.tenant and label(scope.tenant),
                agent=scope.agent and label(scope.agent),
                feature=scope.feature and label(scope.feature),
                run=scope.run and label(scope.run),
                purpose=scope.purpose and label(scope.purpose),
            )
        except Exception as exc:  # noqa: BLE001 - closed on confidentiality
            runtime.faults.note("labels.redact", exc)
            return UNTOLD

    def subject(self, scope: Scope) -> Subject | None:
        """Return the customer of *scope* as a reference that only sinks can ask."""
        if scope.customer is None:
            return None
        return Subject(scope.customer, tenant=scope.tenant, keys=self._runtime.keys)

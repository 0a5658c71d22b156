"""Redacted labels of a scope, for events of model calls and graph runs."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from ...telemetry.event.subject import Subject, SubjectKeys
from ...telemetry.event.usage import Usage
from ...telemetry.process.faults import Faults
from ..context import Scope
from ..privacy.engine.content import FAILED
from ..privacy.engine.redaction import Redaction
from ..scoped_redactor import ScopedRedactor

_MOST_CACHED = 256
FAILED_SCOPE = Scope(tenant=FAILED, agent=FAILED, feature=FAILED, run=FAILED, purpose=FAILED)
"""Stands in for a scope that cannot be redacted now."""


class Labels:
    """
    Redacts the labels of scopes, and caches the results.

    Args:
        redactor: Redacts the names in them.
        faults: Where failing redactions are noted.
    """

    def __init__(self, redactor: ScopedRedactor, keys: SubjectKeys, faults: Faults) -> None:
        self._redactor = redactor
        self._keys = keys
        self._faults = faults
        self._cached: dict[Scope, Scope] = {}

    def redacted(self, scope: Scope) -> Scope:
        """Return *scope* as sinks may have it: without the customer, who is a `Subject`."""
        found = self._cached.get(scope)
        if found is None:
            found = self._redact(scope)
            if len(self._cached) < _MOST_CACHED and found is not FAILED_SCOPE:
                self._cached[scope] = found
        return found

    def _redact(self, scope: Scope) -> Scope:
        try:
            label = self._redactor.begin_labels(scope).label
            return Scope(
                tenant=scope.tenant and label(scope.tenant),
                agent=scope.agent and label(scope.agent),
                feature=scope.feature and label(scope.feature),
                run=scope.run and label(scope.run),
                purpose=scope.purpose and label(scope.purpose),
            )
        except Exception as exc:  # noqa: BLE001 - closed on confidentiality
            self._faults.note("labels.redact", exc)
            return FAILED_SCOPE

    def namer(self, scope: Scope) -> Callable[[str], str]:
        """Return a function that redacts names for sinks: of runs, nodes, tools and models."""
        redaction: Redaction | None = None

        def name(text: str) -> str:
            nonlocal redaction
            try:
                if redaction is None:
                    redaction = self._redactor.begin_labels(scope)
                return redaction.label(text)
            except Exception as exc:  # noqa: BLE001 - closed on confidentiality
                self._faults.note("labels.redact", exc)
                return FAILED

        return name

    def redaction(self, scope: Scope) -> Redaction:
        """Return the redaction of what sinks may have of a run that is made for *scope*."""
        return self._redactor.begin_labels(scope)

    def subject(self, scope: Scope) -> Subject | None:
        """Return the customer of *scope* as a reference that only sinks can resolve."""
        if scope.customer is None:
            return None
        return Subject(scope.customer, tenant=scope.tenant, keys=self._keys)


def with_names(usage: Usage, name: Callable[[str], str]) -> Usage:
    """Return *usage* with the names in it as *name* makes them: of its model, node and so on."""
    model, namespace = name(usage.model), tuple(map(name, usage.namespace))
    provider, node = usage.provider and name(usage.provider), usage.node and name(usage.node)
    requested = usage.requested_model and name(usage.requested_model)
    if (model, provider, node, namespace, requested) == (
        usage.model,
        usage.provider,
        usage.node,
        usage.namespace,
        usage.requested_model,
    ):
        return usage
    return msgspec.structs.replace(
        usage,
        model=model,
        provider=provider,
        node=node,
        namespace=namespace,
        requested_model=requested,
    )

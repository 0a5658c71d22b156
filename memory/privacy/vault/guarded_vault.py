"""
The vault behind a guard: reading and erasing are operations with deadline, breaker and event.

Revealing is a recall: it fails open, to a text that keeps its pseudonyms. Erasing is a forget: it
fails closed. So the audit trail records what was revealed to whom.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ....telemetry.event.event import Deletes, OperationClass
from ...context import context, current
from ...errors import ScopeError
from ...guard.factory import GuardFactory
from ...guard.operation import Arguments, Method, Operation, Summary
from ..engine.operators import PSEUDONYM
from ..engine.redaction import Redaction
from .vault import Vault

_FLUSH_S = 1.0
"""Seconds that a reveal waits for queued pseudonyms."""


def _redact_pseudonyms(arguments: Arguments, redaction: Redaction) -> Arguments:
    # Text in the shape of a pseudonym may be anything.
    return {"pseudonyms": redaction.value(arguments["pseudonyms"])}


def _summarize_reveal(result: Mapping[str, str | None], _arguments: Arguments) -> Summary:
    return Summary(hits=sum(each is not None for each in result.values()))


def _summarize_forget(result: int, _arguments: Arguments) -> Summary:
    return Summary(hits=result)


def _content_of(arguments: Arguments) -> Any:
    return dict(arguments)


def _reveal_nothing(_arguments: Arguments) -> dict[str, str | None]:
    return {}


_REVEAL = Method(
    name="reveal",
    operation="search_memory",
    op_class=OperationClass.RECALL,
    neutral=_reveal_nothing,
    redact=_redact_pseudonyms,
    summary=_summarize_reveal,
    content=_content_of,
    needs_owner=True,
)
_FORGET = Method(
    name="forget",
    operation="delete_memory",
    op_class=OperationClass.FORGET,
    deletes=Deletes.SCOPE,
    summary=_summarize_forget,
    needs_owner=True,
)


class GuardedVault:
    """
    The vault of a scope, behind a guard.

    Args:
        vault: The vault.
        guards: Makes its guard.
    """

    def __init__(self, vault: Vault, guards: GuardFactory) -> None:
        self._vault = vault
        self._faults = guards.faults
        self._enforced_tenancy = guards.policy.enforce_tenancy
        self._guard = guards.guard("vault")

    def reveal(self, text: str, *, customer: str | None = None, tenant: str | None = None) -> str:
        """Return *text* with *customer*'s own pseudonyms resolved; see `Mnemoscope.reveal`."""
        owner = self._owner(customer)
        wanted = list(dict.fromkeys(PSEUDONYM.findall(text)))
        if not wanted:
            return text
        with context(customer=owner, tenant=tenant) as scope:
            subject = self._vault.subject_of(owner, scope.tenant)
            operation = Operation(_REVEAL, {"pseudonyms": wanted})
            found = self._guard.call(operation, lambda _given: self._originals(subject, wanted))
        return PSEUDONYM.sub(lambda match: found.get(match[0]) or match[0], text)

    def forget(self, customer: str | None = None, tenant: str | None = None) -> int:
        """
        Erase the originals of *customer*'s pseudonyms, and the key they are encrypted with.

        Args:
            customer: The customer. None: that of the context.
            tenant: The customer's tenant. None: that of the context.

        Returns:
            The number of pseudonyms.

        Raises:
            ScopeError: There is no customer, or tenancy is enforced and the context has another.
            OSError, sqlite3.Error, DeadlineExceededError, StoreUnavailableError: They are still
                there.
        """
        owner = self._owner(customer)
        with context(customer=owner, tenant=tenant) as scope:
            subject = self._vault.subject_of(owner, scope.tenant)
            erased: int = self._guard.call(
                Operation(_FORGET, {}), lambda _given: self._vault.forget(subject)
            )
        return erased

    def _originals(self, subject: str, pseudonyms: list[str]) -> Mapping[str, str | None]:
        self._vault.flush(_FLUSH_S)
        found = self._vault.originals(subject, pseudonyms)
        for original in found.values():
            if original is None:
                self._faults.count("vault.damaged")
        return found

    def _owner(self, customer: str | None) -> str:
        inside = current().customer
        owner = inside if customer is None else customer
        if not owner:
            raise ScopeError(
                "no customer for the vault: pass customer=... or use context(customer=...)"
            )
        if self._enforced_tenancy and inside not in {None, owner}:
            raise ScopeError("tenancy is enforced, and the context has another customer")
        return owner

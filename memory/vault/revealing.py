"""
The vault behind the chokepoint: who reads it, and who erases, is an operation like any other.

Revealing is a recall: it fails open, to a text that keeps its pseudonyms. Erasing is a forget: it
fails closed. Both have deadline, breaker and event, so that the audit trail says what was shown to
whom.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from typing import Any

from ...telemetry.event import OperationClass
from ..context import context, current
from ..errors import ScopeError
from ..guard import Guard
from ..operation import Arguments, Method, Operation, Summary
from ..redaction.operators import PSEUDONYM
from ..redaction.session import Redaction
from ..runtime import Runtime
from .vault import Vault

_FLUSH_S = 1.0
"""Seconds that a reveal waits for pseudonyms that are still on their way to the vault."""


def _redacted(arguments: Arguments, redaction: Redaction) -> Arguments:
    # What has the shape of a pseudonym in a text may be anything.
    return {"pseudonyms": redaction.value(arguments["pseudonyms"])}


def _revealed(result: Mapping[str, str | None], _arguments: Arguments) -> Summary:
    return Summary(hits=sum(each is not None for each in result.values()))


def _erased(result: int, _arguments: Arguments) -> Summary:
    return Summary(hits=result)


def _told(arguments: Arguments) -> Any:
    return dict(arguments)


def _none_known(_arguments: Arguments) -> dict[str, str | None]:
    return {}


_REVEAL = Method(
    name="reveal",
    operation="search_memory",
    op_class=OperationClass.RECALL,
    neutral=_none_known,
    redact=_redacted,
    summary=_revealed,
    content=_told,
    needs_owner=True,
)
_FORGET = Method(
    name="forget",
    operation="delete_memory",
    op_class=OperationClass.FORGET,
    summary=_erased,
    needs_owner=True,
)


def _failed(exc: BaseException) -> bool:
    from cryptography.exceptions import InvalidTag  # noqa: PLC0415 - loaded long before it is raised

    return isinstance(exc, (OSError, sqlite3.Error, InvalidTag))


class GuardedVault:
    """
    The vault, as a scope hands it out.

    Args:
        runtime: What the guards of the scope share.
        vault: The vault.
    """

    def __init__(self, runtime: Runtime, vault: Vault) -> None:
        self._runtime = runtime
        self._vault = vault
        self._guard = Guard("vault", runtime, failed=_failed)

    def reveal(self, text: str, *, customer: str | None = None, tenant: str | None = None) -> str:
        """Return *text* with *customer*'s own pseudonyms resolved; see `Mnemoscope.reveal`."""
        whose = self._owner(customer)
        wanted = list(dict.fromkeys(PSEUDONYM.findall(text)))
        if not wanted:
            return text
        with context(customer=whose, tenant=tenant) as scope:
            subject = self._vault.subject_of(whose, scope.tenant)
            operation = Operation(_REVEAL, {"pseudonyms": wanted})
            found = self._guard.call(operation, lambda _given: self._originals(subject, wanted))
        return PSEUDONYM.sub(lambda match: found.get(match[0]) or match[0], text)

    def forget(self, customer: str | None = None, tenant: str | None = None) -> int:
        """
        Erase what *customer*'s pseudonyms stand for, and the key it is encrypted with.

        Args:
            customer: Whose. None: the customer of the context.
            tenant: Whose customer. None: the tenant of the context.

        Returns:
            How many pseudonyms it was.

        Raises:
            ScopeError: There is no customer, or tenancy is enforced and the context has another.
            OSError, sqlite3.Error, DeadlineExceededError, StoreUnavailableError: It is still there.
        """
        whose = self._owner(customer)
        with context(customer=whose, tenant=tenant) as scope:
            subject = self._vault.subject_of(whose, scope.tenant)
            erased: int = self._guard.call(
                Operation(_FORGET, {}), lambda _given: self._vault.forget(subject)
            )
        return erased

    def _originals(self, subject: str, pseudonyms: list[str]) -> Mapping[str, str | None]:
        self._vault.flush(_FLUSH_S)
        found = self._vault.originals(subject, pseudonyms)
        for original in found.values():
            if original is None:
                self._runtime.faults.count("vault.damaged")
        return found

    def _owner(self, customer: str | None) -> str:
        inside = current().customer
        whose = inside if customer is None else customer
        if not whose:
            raise ScopeError("whose pseudonyms? Pass customer= or use context(customer=...)")
        if self._runtime.policy.enforce_tenancy and inside not in {None, whose}:
            raise ScopeError("tenancy is enforced, and the context has another customer")
        return whose

"""
The vault behind a guard: reading and erasing are operations with deadline, breaker and event.

Revealing is a recall: it fails open, to a text that keeps its pseudonyms. Erasing is a forget: it
fails closed. So the audit trail records what was revealed to whom.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from typing import Any

from ..telemetry.event.event import Deletes, OperationClass
from ..telemetry.event.sink_pseudonyms import PSEUDONYM
from .context import context, current
from .errors import ScopeError
from .guard.operation import Arguments, Method, Operation, Summary
from .guard_factory import GuardFactory
from .health.model import Check, State, failed
from .privacy.engine.redaction import Redaction
from .privacy.vault.vault import Vault
from .privacy.vault.vault_file import Rotation, VaultFile, told_as_ours
from .privacy.vault.vault_keys import VaultCustomer

_FLUSH_S = 1.0
"""Seconds that a reveal waits for queued pseudonyms."""


def _redact_pseudonyms(arguments: Arguments, redaction: Redaction) -> Arguments:
    # Text in the shape of a pseudonym may be anything.
    return {"pseudonyms": redaction.value(arguments["pseudonyms"])}


def _summarize_reveal(result: Mapping[str, str], _arguments: Arguments) -> Summary:
    return Summary(hits=len(result))


def _summarize_forget(result: int, _arguments: Arguments) -> Summary:
    return Summary(hits=result)


def _content_of(arguments: Arguments) -> Any:
    return dict(arguments)


def _reveal_nothing(_arguments: Arguments) -> dict[str, str]:
    return {}


_OF_ONE = "the vault is asked for the pseudonyms of its context's customer alone"

_REVEAL = Method(
    name="reveal",
    operation="search_memory",
    op_class=OperationClass.RECALL,
    neutral=_reveal_nothing,
    redact=_redact_pseudonyms,
    summary=_summarize_reveal,
    content=_content_of,
    needs_owner=True,
    unconfined=_OF_ONE,
)
_FORGET = Method(
    name="forget",
    operation="delete_memory",
    op_class=OperationClass.FORGET,
    deletes=Deletes.SCOPE,
    summary=_summarize_forget,
    needs_owner=True,
    unconfined=_OF_ONE,
)


class GuardedVault:
    """The vault of a scope, behind a guard."""

    def __init__(self, vault: Vault, guards: GuardFactory) -> None:
        self._vault = vault
        self._enforced_tenancy = guards.policy.enforce_tenancy
        self._guard = guards.guard("vault")

    def reveal(self, text: str, *, customer: str | None = None, tenant: str | None = None) -> str:
        """Return *text* with *customer*'s own pseudonyms resolved; see `Mnemoscope.reveal`."""
        owner = self._owner(customer)
        wanted = list(dict.fromkeys(PSEUDONYM.findall(text)))
        if not wanted:
            return text
        with context(customer=owner, tenant=tenant) as scope:
            whose = VaultCustomer(owner, scope.tenant)
            operation = Operation(_REVEAL, {"pseudonyms": wanted})
            found = self._guard.call(operation, lambda _given: self._originals(whose, wanted))
        return PSEUDONYM.sub(lambda match: found.get(match[0]) or match[0], text)

    def forget(
        self,
        customer: str | None = None,
        tenant: str | None = None,
        *,
        all_tenants: bool = False,
    ) -> int:
        """
        Erase the originals of *customer*'s pseudonyms, and the key they are encrypted with.

        Args:
            customer: The customer. None: that of the context.
            tenant: The customer's tenant. None: that of the context. Empty: they have none.
            all_tenants: Erase the customers of this id in all tenants.

        Returns:
            The number of pseudonyms. It holds for every key that the vault was ever written with.

        Raises:
            ScopeError: There is no customer; or no tenant, and the vault has this customer in
                several; or tenancy is enforced and the context has another. Nothing was erased.
            UncertainErasureError: What can be found is erased. There may be more: under a key that
                is not configured, or in another file than this, which is missing or was never used.
            VaultError: The file cannot be read or written. They may still be there.
            DeadlineExceededError, StoreUnavailableError: They may still be there.
        """
        owner = self._owner(customer)
        if all_tenants and (tenant is not None or (self._enforced_tenancy and current().tenant)):
            raise ScopeError("all_tenants=True leaves no room for a tenant: name one, or all")
        ours = told_as_ours(self._vault.file.path)
        with context(customer=owner, tenant=tenant) as scope, ours:
            named = scope.tenant if tenant is None else tenant
            whose = VaultCustomer(owner, None if all_tenants else named)
            erased: int = self._guard.call(
                Operation(_FORGET, {}),
                lambda _given: self._vault.forget(whose, all_tenants=all_tenants),
            )
        return erased

    def rotate(self, *, drop_unreadable: bool = False) -> Rotation:
        """
        Encrypt the key of every customer with the current secret, so that others can be dropped.

        It can be run again at any time, for example after it was interrupted.

        Args:
            drop_unreadable: Erase the customers whose key no configured secret opens.

        Raises:
            VaultError: The file cannot be read or written. What was done stays done.
        """
        return self._vault.rotate(drop_unreadable=drop_unreadable)

    def _originals(self, customer: VaultCustomer, pseudonyms: list[str]) -> Mapping[str, str]:
        self._vault.flush(_FLUSH_S)
        return self._vault.originals(customer, pseudonyms)

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


def vault_check(file: VaultFile) -> Check:
    """Check the vault's file, and that its keys are configured."""
    try:
        found = file.state()
    except (OSError, sqlite3.Error) as exc:
        return failed("vault", f"{file.path} cannot be read ({type(exc).__qualname__})")
    said = f"{found.customers:,} customers in {file.path}"
    if not found.locked:
        return Check(name="vault", state=State.OK, detail=said)
    ids = ", ".join(each or "not noted" for each in sorted(found.locked))
    detail = (
        f"{said}, of whom {sum(found.locked.values()):,} under keys that are not configured "
        f"({ids}): name them in MNEMOSCOPE_AUDIT_PREVIOUS_KEYS, and run `mnemoscope vault rotate`"
    )
    return Check(name="vault", state=State.WARNING, detail=detail)

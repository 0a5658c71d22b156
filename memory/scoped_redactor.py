"""The redactor as a scope's calls use it: each redaction knows its tenant and customer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from msgspec.structs import replace

from .context import EMPTY_SCOPE, Scope
from .privacy.engine.redaction import UNLIMITED, CallBound, Extent, Redaction, within

if TYPE_CHECKING:
    from .privacy.engine.redaction import TextRedactor
    from .privacy.engine.redactor import Redactor
    from .privacy.vault.vault import CustomerVault, Vault


class CustomerTexts(Protocol):
    """How the texts of one customer are redacted, where that is not as those of all are."""

    def redactor(
        self, inner: TextRedactor, scope: Scope, vault: CustomerVault | None, /
    ) -> TextRedactor:
        """Return *inner* as it redacts the texts of the customer of *scope*."""
        ...


class ScopedRedactor:
    """
    Begins redactions for the customer of a call.

    Args:
        redactor: Finds and replaces personal data.
        vault: Keeps what pseudonyms stand for. None: nothing does.
        bound: The bound of the text in one call.
        texts: How a customer's texts are redacted, where there is a vault. None: as all are.

    Attributes:
        redactor: As given, as is `bound`.
    """

    def __init__(
        self,
        redactor: Redactor,
        vault: Vault | None = None,
        bound: CallBound | None = None,
        texts: CustomerTexts | None = None,
    ) -> None:
        self.redactor = redactor
        self.bound = bound or CallBound()
        self._vault = vault
        self._texts = texts

    def begin(self, scope: Scope, extent: Extent = UNLIMITED) -> Redaction:
        """Return the redaction of what a call for *scope* carries; pseudonyms go to the vault."""
        customer, tenant, known, vault = scope.customer, scope.tenant, scope.known, None
        if customer:
            known = (*known, customer)  # as `Scope.identifiers`
        if customer is not None and self._vault is not None:
            vault = self._vault.for_customer(customer, tenant)
            if self._texts is not None:
                own = self._texts.redactor(self.redactor.texts, scope, vault)
                begun = self.redactor.begin(tenant=tenant, known=known, vault=vault, extent=extent)
                return replace(begun, _redactor=own)
        return self.redactor.begin(tenant=tenant, known=known, vault=vault, extent=extent)

    def begin_labels(self, scope: Scope) -> Redaction:
        """Return the redaction of names that stand beside a call: nothing goes to the vault."""
        begun = self.redactor.begin(tenant=scope.tenant, known=scope.identifiers)
        if self._texts is None:
            return begun
        return replace(begun, _redactor=self._texts.redactor(self.redactor.texts, scope, None))

    def name(self, given: str) -> str:
        """Return a name that a user gave a store, redacted for sinks if it is more than letters."""
        if given.replace(".", "").replace("_", "").isalpha():
            return given
        return self.begin_labels(EMPTY_SCOPE).label(given)

    def begin_span(self, known: Sequence[str]) -> Redaction:
        """
        Return the redaction of a span of anybody's, of whoever and for whatever tenant.

        Args:
            known: Identifiers of the people that it is about.
        """
        bound = CallBound(self.bound.most_characters, cuts=True)
        return self.redactor.begin(known=known, extent=within(bound))

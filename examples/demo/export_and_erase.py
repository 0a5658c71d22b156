"""The end of the demo: export the second customer's data and erase it, as the options say."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mnemoscope.adapters.customer_requests.erase import as_document, erase
from mnemoscope.adapters.customer_requests.export import (
    bundle_path,
    export_from_scope,
    new_request,
)
from mnemoscope.adapters.customer_requests.requested_person import person_in_scope
from mnemoscope.audit import UnknownSubjectError
from mnemoscope.audit.bundle.notice import Notice
from mnemoscope.audit.store.person_lookup import CustomerQuery
from mnemoscope.memory.scope import Mnemoscope

from .conversation import Dialogue
from .options import DemoOptions

if TYPE_CHECKING:
    from mnemoscope.audit.bundle.writing import Bundle
    from mnemoscope.audit.erasure.report import Erasure

TENANT = "demo"


@dataclass(frozen=True, slots=True, kw_only=True)
class CustomerRequests:
    """
    The outcome of a customer's requests.

    Attributes:
        name: The speaker's name in the conversation. No sink knows it.
        bundle: The export. None: not requested.
        erasure: The erasure. None: not requested.
        remaining: Operations that the trail still has under the customer's id.
    """

    name: str
    bundle: Bundle | None
    erasure: Erasure | None
    remaining: int

    @property
    def complete(self) -> bool:
        """True if no erasure was requested, or nothing of the customer remains."""
        return self.erasure is None or (self.erasure.complete and not self.remaining)

    def as_document(self) -> dict[str, Any]:
        """Return the outcome for ``--json``."""
        bundle = self.bundle
        exported = bundle and {"events": bundle.events, "memories": bundle.memories}
        erased = self.erasure and as_document(self.erasure)
        return {"exported": exported, "erased": erased, "operations_left": self.remaining}


NOTICE = Notice(
    controller={"name": "The hotel by the lake", "contact": "privacy@hotel.example", "dpo": "none"},
    art15={
        "legal_bases": "Art. 6(1)(b), your booking",
        "sources": "what you wrote to us",
        "complaint_authority": "the data protection authority of your country",
        "automated_decisions": "none",
        "transfers": "none",
    },
)
"""What only a controller knows; without it, an export says that it is incomplete."""


def export_and_erase(
    options: DemoOptions, conversation: Dialogue, *, scope: Mnemoscope
) -> CustomerRequests | None:
    """
    Export the second customer, and erase them; None if *options* ask for neither.

    The export is kept: in the folder of ``--out``, else in the working directory.
    """
    if not (options.export or options.erase):
        return None
    name = conversation.speakers[1]
    customer = conversation.customers[name]
    scope.flush(timeout_s=15)
    person = person_in_scope(scope, CustomerQuery(customer=customer, tenant=TENANT))
    bundle = erasure = None
    if options.export:
        request = new_request(notice=NOTICE)
        path = options.out / "export.zip" if options.out else bundle_path(None, request)
        bundle = export_from_scope(scope, person, request=request, path=path)
    if options.erase:
        erasure = erase(scope, person)
    remaining = _remaining(scope, customer)
    return CustomerRequests(name=name, bundle=bundle, erasure=erasure, remaining=remaining)


def _remaining(scope: Mnemoscope, customer: str) -> int:
    try:
        return sum(1 for _ in scope.audit.history(customer, TENANT))
    except UnknownSubjectError:
        return 0

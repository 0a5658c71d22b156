"""
The end of the demo: the second customer asks for all that is held, and to be forgotten.

Both go the way of the command line, through the scope that the agent worked with.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console

from ...memory.front_door import Mnemoscope
from ..command_line.erasure import as_document as erasure_document
from ..command_line.erasure import erase
from ..command_line.exporting import ExportOptions, export
from .conversation import Conversation
from .options import DemoOptions

if TYPE_CHECKING:
    from ...audit.bundle.writing import Bundle
    from ...audit.erasure import Erasure

TENANT = "demo"


@dataclass(frozen=True, slots=True, kw_only=True)
class Parting:
    """
    What became of a customer who left.

    Attributes:
        name: Who, in the conversation's words. No sink knows it.
        bundle: What was handed to them. None: they did not ask.
        erasure: How they were forgotten. None: likewise.
        remaining: Operations that the trail still has in their name.
    """

    name: str
    bundle: Bundle | None
    erasure: Erasure | None
    remaining: int

    @property
    def as_asked(self) -> bool:
        """Whether it was done."""
        return self.erasure is None or (self.erasure.complete and not self.remaining)

    def as_document(self) -> dict[str, Any]:
        """Return it for ``--json``."""
        bundle = self.bundle
        exported = bundle and {"events": bundle.events, "memories": bundle.memories}
        erased = self.erasure and erasure_document(self.erasure)
        return {"exported": exported, "erased": erased, "operations_left": self.remaining}


def part(
    options: DemoOptions, conversation: Conversation, *, scope: Mnemoscope, folder: Path
) -> Parting | None:
    """Export and erase the second customer, as far as *options* say; in *folder*."""
    if not (options.export or options.erase):
        return None
    name = conversation.speakers[1]
    customer = conversation.customers[name]
    scope.flush(timeout_s=15)
    bundle = _exported(scope, customer, folder / "export.zip") if options.export else None
    erasure = erase(scope, customer, TENANT, _silently) if options.erase else None
    remaining = sum(1 for _ in scope.audit.history(customer, TENANT))
    return Parting(name=name, bundle=bundle, erasure=erasure, remaining=remaining)


def _exported(scope: Mnemoscope, customer: str, path: Path) -> Bundle:
    asked = ExportOptions(customer=customer, tenant=TENANT, out=path, scope=scope)
    return export(asked, Console(quiet=True))


def _silently(_step: str) -> None:
    return

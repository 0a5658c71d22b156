"""The journal's own places in a call."""

from __future__ import annotations

from ..guard.call import Slot
from .records import Kept, Lease

KEPT: Slot[Kept | None] = Slot("mnemoscope.journal.kept", None)
"""Where a write waits in the journal, if it does."""

TURN: Slot[Lease | None] = Slot("mnemoscope.journal.turn", None)
"""The right to make the queue's writes, while a write goes before those that wait."""

ORDER_NS: Slot[int | None] = Slot("mnemoscope.journal.order_ns", None)
"""The place of a call among all calls of the machine."""

WRITE_ID: Slot[str | None] = Slot("mnemoscope.journal.write_id", None)
"""Id of a write, in stores that would take it twice."""

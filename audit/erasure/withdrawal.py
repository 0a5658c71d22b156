"""
The withdrawal of memories: ``mnemoscope audit blast-radius --withdraw``.

Each is deleted by its store and looked for again. What was asked and what came of it is recorded
beside the deletions themselves, in numbers: the memories go by the events that first wrote them.
"""

from __future__ import annotations

import secrets
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from ...memory.subject_data.records import LoggedMemory, MemoryStores, RemovalOutcome
from ..queries.blast_radius import ReachedMemory

if TYPE_CHECKING:
    from ..log import AuditLog

REQUESTED = "memory.withdraw.requested"
COMPLETED, INCOMPLETE = "memory.withdraw.completed", "memory.withdraw.incomplete"

_UNTOLD = "?"
"""What the trail has in place of a character that cannot be in a line."""

_OTHER_ID = (
    "the store has none of this id, but its own may have a control character where this one has a "
    "question mark: look there"
)
_HELD = 1_000
"""Customers whose subjects are looked up once."""

_DONE = frozenset({RemovalOutcome.DELETED, RemovalOutcome.GONE})


class Withdrawn(NamedTuple):
    """
    The outcome for one memory.

    Attributes:
        why: What is in the way, in one line; empty where nothing is.
    """

    memory: ReachedMemory
    outcome: RemovalOutcome
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Withdrawal:
    """
    The result of a withdrawal.

    Attributes:
        request: Its number, as in the log.
        memories: The outcome of each.
        unsettled: What was still under way, a line each.
        seq: Number of the event that says so.
    """

    request: str
    memories: tuple[Withdrawn, ...]
    unsettled: tuple[str, ...]
    seq: int = -1

    @property
    def complete(self) -> bool:
        """Whether every memory to withdraw is gone."""
        return not self.unsettled and all(each.outcome in _DONE for each in self.memories)

    def counts(self) -> dict[str, dict[str, int]]:
        """Return how many memories of each store came to which end."""
        found: dict[str, Counter[str]] = {}
        for each in self.memories:
            found.setdefault(each.memory.address.store, Counter())[each.outcome.value] += 1
        return {
            store: {each.value: counted[each.value] for each in RemovalOutcome}
            for store, counted in sorted(found.items())
        }


def withdraw(
    log: AuditLog,
    stores: MemoryStores,
    memories: Sequence[ReachedMemory],
    tell: Callable[[str], None] = lambda _step: None,
) -> Withdrawal:
    """
    Take *memories* out of *stores*; *tell* is called with the name of each step as it begins.

    It can be done again: what is gone is not found.

    Raises:
        AuditError: The trail cannot be read or written.
    """
    request = secrets.token_hex(8)
    # By their first events: an id may be a person's name, and this event is never erased.
    written = [each.writes[0].seq for each in memories if each.writes]
    log.append_log_event(
        REQUESTED, {"request": request, "memories": len(memories), "written": written}
    )
    tell("settling what is under way")
    unsettled = [*stores.settle()]
    outcomes: list[Withdrawn] = []

    # Each look-up reads the trail, and memories of one customer come in hundreds.
    @lru_cache(_HELD)
    def uids_of(customer: str, tenant: str | None) -> frozenset[str]:
        """Return the subjects of a customer, merged ones included."""
        with log.reading() as snapshot:
            return frozenset(snapshot.family(snapshot.uids(customer, tenant)))

    for number, each in enumerate(memories, 1):
        tell(f"taking out memory {number:,} of {len(memories):,}")
        outcomes.append(Withdrawn(each, *_taken_out(stores, _logged(uids_of, each))))
    # Deletions may wait in the journal, too, and are done only when they are replayed.
    unsettled += stores.settle()
    found = Withdrawal(
        request=request,
        memories=tuple(outcomes),
        unsettled=tuple(dict.fromkeys(unsettled)),
    )
    data: dict[str, Any] = {
        "request": request,
        "stores": found.counts(),
        "unsettled": len(found.unsettled),
    }
    seq = log.append_log_event(COMPLETED if found.complete else INCOMPLETE, data)
    return Withdrawal(request=request, memories=found.memories, unsettled=found.unsettled, seq=seq)


def _taken_out(stores: MemoryStores, memory: LoggedMemory) -> tuple[RemovalOutcome, str]:
    outcome, why = stores.take_out(memory)
    # Not found, for sure, under an id that it perhaps never had.
    if outcome is RemovalOutcome.GONE and _UNTOLD in memory.memory_id:
        return RemovalOutcome.FAILED, _OTHER_ID
    return outcome, why


_UidsOf: TypeAlias = Callable[[str, str | None], frozenset[str]]


def _logged(uids_of: _UidsOf, memory: ReachedMemory) -> LoggedMemory:
    store, collection, memory_id, _owner = memory.address
    tenant = memory.writes[0].tenant if memory.writes else None
    return LoggedMemory(
        store=store,
        collection=collection,
        memory_id=memory_id,
        tenant=tenant,
        is_customer=lambda customer: memory.customer in uids_of(customer, tenant),
    )

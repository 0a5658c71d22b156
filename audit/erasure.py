"""What is asked of a store that is to forget somebody, and what is said of it afterwards."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from .sentinels import Sentinels, traces
from .stores import Store as Held
from .stores import Thing

COMPLETE, PARTIAL, FAILED, NOT_CONFIGURED = "complete", "partial", "failed", "not_configured"

_TRACES = (
    "{} texts that were theirs are still in its files: another customer's memory may say the "
    "same, or somebody else has the file open"
)
_A_THREAD = "thread"
"""Its state quotes documents, which are in other people's threads too: no words to look for."""


class Outcome(Protocol):
    """What a store says of forgetting."""

    @property
    def removed(self) -> int:
        """How much is gone."""
        ...

    @property
    def retained(self) -> int:
        """How much was found and kept."""
        ...

    @property
    def messages(self) -> tuple[str, ...]:
        """What a person should know."""
        ...


class Store(Held, Protocol):
    """One store, and what it holds about one person, who can be forgotten there."""

    def forget(self) -> Outcome:
        """Remove it; raise what the store raises."""
        ...

    def files(self) -> tuple[Path, ...]:
        """Return where it is kept on this machine."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreErasure:
    """
    What became of a person in one store.

    Attributes:
        name: The store.
        status: complete; partial: something is left; failed: it raised; not_configured: nothing
            in it says whose is what.
        removed: How much is gone.
        retained: How much the store kept, and said so.
        remaining: How much it still answered afterwards.
        traces: How many of the words that were there its files still have.
        messages: What a person should know.
    """

    name: str
    status: str
    removed: int = 0
    retained: int = 0
    remaining: int = 0
    traces: int = 0
    messages: tuple[str, ...] = ()

    @property
    def holds_on(self) -> bool:
        """Whether something that can be asked for is still there."""
        return self.status == FAILED or bool(self.retained or self.remaining)

    def counts(self) -> dict[str, int | str]:
        """Return it for the proof: numbers and a status, about nobody."""
        names = ("status", "removed", "retained", "remaining", "traces")
        return {name: getattr(self, name) for name in names}


@dataclass(frozen=True, slots=True, kw_only=True)
class Erasure:
    """
    How an erasure went.

    Attributes:
        request: Its number, as in the log.
        resumed: It was begun before, and broken off.
        stores: What became of the person in each.
        pseudonyms: How many the vault forgot. None: there is no vault.
        details: How many of the trail were shredded. None: they are there still, for what a store
            that failed will need.
        sentinels: How many words were looked for.
        traces: How many were found where no store is: logs, journal, the trail itself.
        unsettled: What was still under way, a line each.
        seq: Number of the event that proves it.
    """

    request: str
    resumed: bool
    stores: tuple[StoreErasure, ...]
    pseudonyms: int | None
    details: int | None
    sentinels: int
    traces: Mapping[str, int] = field(default_factory=dict[str, int])
    unsettled: tuple[str, ...] = ()
    seq: int = -1

    @property
    def complete(self) -> bool:
        """Whether nothing is left, as far as can be known here."""
        fine = all(each.status in {COMPLETE, NOT_CONFIGURED} for each in self.stores)
        return (
            fine and self.details is not None and not (self.unsettled or any(self.traces.values()))
        )

    def proof(self) -> dict[str, Any]:
        """Return what the log keeps of it: numbers, and names of stores. Nothing about anybody."""
        return {
            "request": self.request,
            "complete": self.complete,
            "stores": {each.name: each.counts() for each in self.stores},
            "pseudonyms": self.pseudonyms,
            "details": self.details,
            "sentinels": self.sentinels,
            "traces": dict(self.traces),
            "unsettled": len(self.unsettled),
        }


def erased_from(store: Store, sentinels: Sentinels) -> StoreErasure:
    """Have *store* forget, ask it again, and search its files for words of what it held."""
    if store.unasked is not None:
        return StoreErasure(name=store.name, status=NOT_CONFIGURED, messages=(store.unasked,))
    removed = 0
    try:
        for thing in store.held():
            _offer(sentinels, thing)
        outcome = store.forget()
        removed = outcome.removed
        remaining = sum(1 for _ in store.held())
        left = traces(sentinels.needles(), store.files())
    except Exception as exc:  # noqa: BLE001 - whatever a store raises, it is named, and the next asked
        message = f"it raised {type(exc).__name__}: what it holds may still be there"
        return StoreErasure(name=store.name, status=FAILED, removed=removed, messages=(message,))
    something = outcome.retained or remaining or left
    return StoreErasure(
        name=store.name,
        status=PARTIAL if something else COMPLETE,
        removed=removed,
        retained=outcome.retained,
        remaining=remaining,
        traces=left,
        messages=(*outcome.messages, *_of_traces(left)),
    )


def _offer(sentinels: Sentinels, thing: Thing) -> None:
    sentinels.offer(thing.id)
    if thing.kind != _A_THREAD:
        sentinels.offer(thing.content)


def _of_traces(left: int) -> Sequence[str]:
    if not left:
        return ()
    return (_TRACES.format(left),)

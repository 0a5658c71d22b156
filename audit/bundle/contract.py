"""What a bundle is made from: who asks for what, what the log holds, what the stores answer."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, NamedTuple

from ..merkle import Hashes


class Kind(StrEnum):
    """
    Which right is answered.

    Attributes:
        ACCESS: GDPR Art. 15: everything, consultations included.
        PORTABILITY: Art. 20: what the agent was given to remember, to take elsewhere.
    """

    ACCESS = "access"
    PORTABILITY = "portability"


class StoreStatus(StrEnum):
    """How much of a store is in the bundle."""

    COMPLETE = "complete"
    PARTIAL = "partial"
    FAILED = "failed"
    NOT_ASKED = "not_configured"


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreReport:
    """
    What became of one store.

    Attributes:
        name: Tells it from the others.
        store: Its name in events.
        status: How much of it is in the bundle.
        n_memories: How many things are told of it: by itself, or by the log where it did not tell.
        error: Why not all: the type of an exception, or one line.
        asked_us: When, microseconds since 1970 UTC.
    """

    name: str
    store: str
    status: StoreStatus = StoreStatus.NOT_ASKED
    n_memories: int = 0
    error: str | None = None
    asked_us: int | None = None

    def but(self, status: StoreStatus, n_memories: int, error: str | None = None) -> StoreReport:
        """Return it with what came of it."""
        return replace(self, status=status, n_memories=n_memories, error=error)


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """
    Who asks for what.

    Attributes:
        request_id: Names the bundle.
        kind: Which right is answered.
        generated_us: Now, microseconds since 1970 UTC.
        version: Of this library.
        notice: What only the operator knows: ``controller`` (name, contact, dpo) and ``art15``
            (purposes, categories, retention, rights, complaint_authority, sources,
            automated_decisions, transfers).
        sinks: Where else events were sent, without content and under keyed hashes.
    """

    request_id: str
    kind: Kind = Kind.ACCESS
    generated_us: int
    version: str
    notice: Mapping[str, Any] = field(default_factory=dict[str, Any])
    sinks: tuple[str, ...] = ()


class Sealed(NamedTuple):
    """
    One event of the log.

    Attributes:
        seq: Its place there.
        header: What is sealed, to the byte.
        detail: What it commits to, to the byte; None where there is none, or no longer.
        salt: What the commitment is checked with.
    """

    seq: int
    header: bytes = b""
    detail: bytes | None = None
    salt: bytes | None = None


class Loss(NamedTuple):
    """A gap that the log declares: so many events of one writer never arrived."""

    writer: str
    first: int
    last: int
    n_events: int
    reason: str
    declared_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """
    The log at one moment, for proofs.

    Attributes:
        origin: The log's name.
        verifier_key: What its signatures are checked with.
        checkpoint: A signed one; every event in the bundle is under it.
        size: Its number of events.
        root: Their Merkle root.
        hashes: The tree.
        sign: Signs a text with the log's key: returns a note.
        losses: What the log declares as lost.
    """

    origin: str
    verifier_key: str
    checkpoint: str
    size: int
    root: bytes
    hashes: Hashes
    sign: Callable[[str], str]
    losses: tuple[Loss, ...] = ()

"""The inputs of a bundle: the request, the log's evidence, the reports of the stores."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, NamedTuple

from ..proof.merkle import Hashes


class RequestType(StrEnum):
    """
    The right that a request exercises.

    Attributes:
        ACCESS: GDPR Art. 15: everything, consultations included.
        PORTABILITY: Art. 20: what the agent was given to remember, to take elsewhere.
    """

    ACCESS = "access"
    PORTABILITY = "portability"


class StoreStatus(StrEnum):
    """The share of a store's data that is in the bundle."""

    COMPLETE = "complete"
    PARTIAL = "partial"
    FAILED = "failed"
    NOT_ASKED = "not_configured"


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreReport:
    """
    The result of reading one store.

    Attributes:
        name: Tells it from the others.
        store: Its name in events.
        title: The kind of thing it keeps, for the person to read. None: unknown.
        status: How much of it is in the bundle.
        n_memories: Records of it in the bundle: its own, or the log's where it was not read.
        error: Why it is not complete: the type of an exception, or one line.
        asked_us: When it was read, microseconds since 1970 UTC.
    """

    name: str
    store: str
    title: str | None = None
    status: StoreStatus = StoreStatus.NOT_ASKED
    n_memories: int = 0
    error: str | None = None
    asked_us: int | None = None

    def but(self, status: StoreStatus, n_memories: int, error: str | None = None) -> StoreReport:
        """Return the report with its result."""
        return replace(self, status=status, n_memories=n_memories, error=error)


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """
    A customer's request for their data.

    Attributes:
        request_id: Names the bundle.
        kind: The right that it exercises.
        generated_us: Now, microseconds since 1970 UTC.
        version: Of this library.
        notice: The operator's own statements: ``controller`` (name, contact, dpo) and ``art15``
            (purposes, categories, retention, rights, complaint_authority, sources,
            automated_decisions, transfers).
        sinks: Where else events were sent, without content and under keyed hashes.
    """

    request_id: str
    kind: RequestType = RequestType.ACCESS
    generated_us: int
    version: str
    notice: Mapping[str, Any] = field(default_factory=dict[str, Any])
    sinks: tuple[str, ...] = ()


class SealedEvent(NamedTuple):
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


class DeclaredLoss(NamedTuple):
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
    losses: tuple[DeclaredLoss, ...] = ()

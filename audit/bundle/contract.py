"""The inputs of a bundle: the request, the log's evidence, the reports of the stores."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

from ..proof.merkle import TreeHashes
from .delivered import DeliveryRanges
from .notice import Notice


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
        title: The kind of thing it keeps, for the person to read. None: unknown.
        status: How much of it is in the bundle.
        n_memories: Memories of it in the bundle: its own, or the log's where it was not read.
        n_beside: Records that it keeps beside them: earlier versions, messages.
        n_shared: Those without content, which are another customer's, too.
        error: Why it is not complete: the type of an exception, or one line.
        asked_us: When it was read, microseconds since 1970 UTC.
    """

    name: str
    store: str
    title: str | None = None
    status: StoreStatus = StoreStatus.NOT_ASKED
    n_memories: int = 0
    n_beside: int = 0
    n_shared: int = 0
    error: str | None = None
    asked_us: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """
    A customer's request for their data.

    Attributes:
        generated_us: Now, microseconds since 1970 UTC.
    """

    request_id: str
    kind: RequestType = RequestType.ACCESS
    generated_us: int
    version: str
    notice: Notice = field(default_factory=Notice)


class MatchedIdentifier(NamedTuple):
    """An identifier by which data was found. A *tenant* of None: recorded without one."""

    id: str
    tenant: str | None = None


class BundleSubject(NamedTuple):
    """
    The person whom a bundle is about.

    Attributes:
        ref: Their pseudonym in bundles: a keyed hash, the same in each of this log.
    """

    ref: str | None = None
    identifiers: tuple[MatchedIdentifier, ...] = ()


class Anchor(NamedTuple):
    """A checkpoint of the log that was kept before: so many events, signed then, sent there."""

    size: int
    root: bytes
    signed_us: int
    sent_to: tuple[str, ...]


class SealedEvent(NamedTuple):
    """
    One event of the log.

    Attributes:
        header: What is sealed, to the byte.
        detail: What it commits to, to the byte; None where there is none, or no longer.
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
        verifier_key: What its signatures are checked with.
        checkpoint: A signed one; every event in the bundle is under it.
        sign: Signs a text with the log's key: returns a note.
        signed_us: When the checkpoint was signed, microseconds since 1970 UTC.
        anchors: The newest checkpoints before it.
        retention_days: After which events are removed. 0: never.
        retention_reason: Why that is less than six months, if it is.
        deliveries: What writers noted of who received events.
        waiting: Where events wait that are not in it, and how many: a line each.
        n_of_documents: Events that name nobody, on what was recalled for the customer and no write
            names them for. They are not in the bundle.
    """

    origin: str
    verifier_key: str
    checkpoint: str
    size: int
    root: bytes
    hashes: TreeHashes
    sign: Callable[[str], str]
    losses: tuple[DeclaredLoss, ...] = ()
    signed_us: int = 0
    anchors: tuple[Anchor, ...] = ()
    retention_days: int = 0
    retention_reason: str = ""
    deliveries: DeliveryRanges = field(default_factory=DeliveryRanges)
    waiting: tuple[str, ...] = ()
    n_of_documents: int = 0

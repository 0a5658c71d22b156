"""The result of a verification."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from ...telemetry.text import clean_text, one_line
from ..record.coverage import NOT_COVERED

_MOST_FINDINGS = 100
WRITERS = ("stopped", "writing", "idle", "unknown", "silent")
"""The states that a writer may be in, as far as the log tells."""


class FindingKind(StrEnum):
    """
    The meaning of a finding.

    Attributes:
        TAMPERED: Something is not as it was recorded.
        LOSS: Events never arrived, and the log says so.
        UNVERIFIABLE: It cannot be checked: a key is missing, events are on their way.
    """

    TAMPERED = "tampered"
    LOSS = "loss"
    UNVERIFIABLE = "unverifiable"


@dataclass(slots=True)
class Verification:
    """
    The result of a verification.

    Attributes:
        since: The first event that was checked.
        events: How many were checked; how many of them are *valid*.
        checkpoints: How many were checked, those from elsewhere included; how many hold.
        details: How many were opened and compared; how many agree.
        erased: How many details are gone, as the log says.
        gaps: How many gaps are declared, and how many events are *lost* in them.
        under_way: Events that processes which are gone did not record, in calls that were not over.
        root: Merkle root of the whole log, in hexadecimal.
        waiting: Records in the spool of this machine, which will be in the log.
        signed: Events that a signature vouches for: a checkpoint's, or that of the log's end.
        writers: How many said that they *stopped*; are *writing*, or *idle*; are gone, and how they
            ended is *unknown*; fell *silent*.
        removals: What was removed, as the log says: when, by which process, and how much.
        covered_less: What of an older version's events is not covered as today's is.
        not_covered: What nothing that was checked vouches for.
        stamped: Time stamps of checkpoints from elsewhere, a line each.
        is_empty: Whether it is a shard of which it is signed that it has had no event.
        findings: What does not hold, by kind: the first of them, in words without personal data.
    """

    size: int = 0
    since: int = 0
    events: int = 0
    valid_events: int = 0
    checkpoints: int = 0
    valid_checkpoints: int = 0
    details: int = 0
    valid_details: int = 0
    erased: int = 0
    gaps: int = 0
    lost: int = 0
    under_way: int = 0
    root: str = ""
    origin: str = ""
    waiting: int = 0
    signed: int = 0
    writers: dict[str, int] = field(default_factory=lambda: dict.fromkeys(WRITERS, 0))
    removals: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    covered_less: list[str] = field(default_factory=list[str])
    not_covered: tuple[str, ...] = NOT_COVERED
    is_empty: bool = False
    stamped: list[str] = field(default_factory=list[str])
    findings: dict[FindingKind, list[str]] = field(
        default_factory=lambda: {each: [] for each in FindingKind}
    )
    counts: dict[FindingKind, int] = field(default_factory=lambda: dict.fromkeys(FindingKind, 0))

    def find(self, kind: FindingKind, what: str) -> None:
        """Add a finding."""
        self.counts[kind] += 1
        # Of a table that was emptied there is a finding for each of its rows.
        if len(self.findings[kind]) < _MOST_FINDINGS:
            # A name in it may be anybody's: it forges no line, and moves no terminal.
            self.findings[kind].append(one_line(clean_text(what)))

    def tampered(self, what: str) -> None:
        """Add a finding of something that is not as it was recorded."""
        self.find(FindingKind.TAMPERED, what)

    @property
    def state(self) -> str:
        """``ok``, ``empty`` of a shard without events, or the gravest kind of what was found."""
        grave = (
            each
            for each in (FindingKind.TAMPERED, FindingKind.UNVERIFIABLE, FindingKind.LOSS)
            if self.counts[each]
        )
        return next(grave, "empty" if self.is_empty else "ok")

    def verdict(self) -> str:
        """Return one line for a person."""
        parts = [
            f"{self.valid_checkpoints:,}/{self.checkpoints:,} checkpoints valid",
            f"{self.valid_events:,}/{self.events:,} events valid",
        ]
        if self.size > self.signed:
            parts.append(f"{self.size - self.signed:,} not signed yet")
        if self.details:
            parts.append(f"{self.valid_details:,}/{self.details:,} details valid")
        if self.erased:
            parts.append(f"{self.erased:,} details erased")
        if self.gaps:
            parts.append(f"{self.gaps:,} declared gaps ({self.lost:,} events)")
        if self.under_way:
            parts.append(f"under way at the end of a process: {self.under_way:,}")
        at_work = self.writers["writing"] + self.writers["idle"]
        broken_off = self.writers["unknown"] + self.writers["silent"]
        if self.waiting:
            parts.append(f"in the spool: {self.waiting:,}")
        if at_work:
            parts.append(f"processes at work: {at_work:,}")
        if broken_off:
            parts.append(f"broken off: {broken_off:,}")
        return ", ".join(parts)

    def as_document(self) -> dict[str, Any]:
        """Return the report as JSON types."""
        return {
            "state": self.state,
            "origin": self.origin,
            "size": self.size,
            "root": self.root,
            "signed": self.signed,
            "since": self.since,
            "events": {"checked": self.events, "valid": self.valid_events},
            "checkpoints": {"checked": self.checkpoints, "valid": self.valid_checkpoints},
            "details": {
                "checked": self.details,
                "valid": self.valid_details,
                "erased": self.erased,
            },
            "gaps": {"declared": self.gaps, "events": self.lost, "under_way": self.under_way},
            "waiting": self.waiting,
            "writers": self.writers,
            "removals": self.removals,
            "stamped": self.stamped,
            "not_covered": [*self.covered_less, *self.not_covered],
            "findings": {
                kind.value: {"count": self.counts[kind], "first": self.findings[kind]}
                for kind in FindingKind
            },
        }

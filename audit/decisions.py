"""
Decisions of humans on what rules held, as the trail has them.

A decision is a verdict event of the rule ``approvals``. Of those on one approval that was not used
up, the first counts; to skip is none. A held write that has passed uses its approval up.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import orjson

from ..telemetry.event.event import Event
from ..telemetry.event.verdict_event import Choice
from ..telemetry.process.fork_lock import ForkLock
from .database.database import blob
from .log import AuditLog
from .store.snapshot import Snapshot
from .store.tree import SealedEvents

_DECIDED = """
    SELECT seq, header FROM audit_event
    WHERE operation = 'verdict' AND method = 'approvals' AND seq >= ? ORDER BY seq
"""


class ApprovalState(NamedTuple):
    """
    How an approval stands.

    Attributes:
        decision: What was decided. Empty: nothing yet, or it was used up.
        used: How many times the write has passed by an approval.
    """

    decision: str = ""
    used: int = 0

    def after(self, choice: str) -> ApprovalState:
        """Return how it stands after *choice*."""
        if choice == Choice.USED:
            return ApprovalState("", self.used + 1)
        if choice == Choice.SKIP or self.decision:
            return self
        return ApprovalState(choice, self.used)


def sealed_verdict(header: bytes) -> dict[str, Any]:
    """Return what a header says of a verdict, its evidence read."""
    verdict: dict[str, Any] = orjson.loads(blob(header))["verdict"]
    return {**verdict, "evidence": orjson.loads(verdict["evidence"])}


class Held(NamedTuple):
    """
    What a rule has left to a human.

    Attributes:
        point: Where: ``memory`` for a write, ``node`` for a draft of a graph.
        passed: Whether the rule had let it pass, were humans not asked.
        evidence: What the rule found: scores and codes.
        seq: The latest verdict on it.
        since_us: Held for the first time, or again once it was used up; since 1970 UTC.
        asks: How often it was held since.
    """

    approval: str
    gate: str
    reason: str
    point: str
    passed: bool
    evidence: dict[str, Any]
    seq: int
    since_us: int
    asks: int
    standing: ApprovalState

    @property
    def waits(self) -> bool:
        """Whether a human has yet to decide."""
        return self.asks > 0 and not self.standing.decision


_VERDICTS = """
    SELECT seq, method, occurred_us, header FROM audit_event
    WHERE operation = 'verdict' AND seq >= ? ORDER BY seq
"""


def held(
    snapshot: Snapshot, found: dict[str, Held] | None = None, first_seq: int = 0
) -> dict[str, Held]:
    """
    Return what was left to humans, by approval, oldest first.

    Args:
        snapshot: What is read.
        found: What was found before *first_seq*, to go on with.
        first_seq: The first event that is read.

    Raises:
        TamperedError: One of them is not what was sealed.
    """
    found = {} if found is None else found
    sealed = SealedEvents(snapshot)
    for seq, gate, occurred_us, header in snapshot.stream(_VERDICTS, (first_seq,)):
        sealed.check(seq, blob(header))
        verdict = sealed_verdict(header)
        evidence = verdict["evidence"]
        approval = evidence.get("approval")
        if approval is None:
            continue
        before = found.get(approval)
        if gate != "approvals" and verdict["outcome"] == "hold":
            asks = before.asks + 1 if before else 1
            found[approval] = Held(
                approval,
                gate,
                verdict["reason"],
                verdict["point"],
                bool(evidence.get("passed")),
                evidence,
                seq,
                before.since_us if before and before.asks else occurred_us,
                asks,
                before.standing if before else ApprovalState(),
            )
        elif gate == "approvals" and before is not None:
            standing = before.standing.after(evidence["choice"])
            is_used = standing.used > before.standing.used
            found[approval] = before._replace(standing=standing, asks=0 if is_used else before.asks)
    return found


def gates(snapshot: Snapshot) -> list[str]:
    """Return the names of what is a gate: of rules that say what they would have let pass."""
    statement = (
        "SELECT DISTINCT method FROM audit_event "  # noqa: S608 - figures of ours
        f"WHERE operation = 'verdict' AND {snapshot.connection.evidence('gate')} = method"
    )
    found: list[Any] = snapshot.execute(statement).fetchall()
    return sorted(str(name) for (name,) in found)


_AGREEMENT = """
    WITH said AS (
      SELECT seq, {mode} AS mode, {change} AS change, {choice} AS choice,
        CAST({passed} AS INTEGER) AS passed
      FROM audit_event
      WHERE operation = 'verdict' AND method = 'approvals' AND {gate} = ?),
    bounds AS (
      SELECT
        coalesce((SELECT max(seq) FROM said WHERE change = 'reset'), -1) AS reset_seq,
        coalesce((SELECT max(seq) FROM said WHERE mode = 'shadow'), -1) AS shadow_seq,
        coalesce((SELECT mode FROM said WHERE mode IS NOT NULL ORDER BY seq DESC LIMIT 1),
          'shadow') AS mode,
        (SELECT count(*) FROM said WHERE mode IS NOT NULL) AS changes),
    decided AS (
      SELECT seq, row_number() OVER (ORDER BY seq DESC) AS place,
        (choice = 'approve') = (passed = 1) AS agrees,
        choice = 'reject' AND passed = 1 AS is_rejected_pass
      FROM said WHERE choice IN ('approve', 'edit', 'reject'))
    SELECT b.mode, b.changes,
      (SELECT count(*) FROM decided d WHERE d.seq > b.shadow_seq AND d.place <= ?),
      (SELECT count(*) FROM decided d
        WHERE d.seq > b.shadow_seq AND d.place <= ? AND d.agrees),
      (SELECT count(*) FROM decided d WHERE d.seq > b.reset_seq AND d.is_rejected_pass)
    FROM bounds b
"""


def agreement(snapshot: Snapshot, gate: str, window: int) -> dict[str, str | int]:
    """
    Return what humans have decided on the verdicts of *gate*.

    Returns:
        Its ``mode``, after so many ``changes``. The number ``decided`` of the latest *window*
        decisions since it was last put in shadow, and ``agreed`` of them. And the
        ``rejected_passes`` since the last reset.
    """
    names = ("mode", "change", "choice", "passed", "gate")
    statement = _AGREEMENT.format(**{name: snapshot.connection.evidence(name) for name in names})
    found: Any = snapshot.execute(statement, (gate, window, window)).fetchone()
    mode, *figures = found
    named = zip(("changes", "decided", "agreed", "rejected_passes"), map(int, figures), strict=True)
    return {"mode": str(mode), **dict(named)}


class GateFigures(NamedTuple):
    """
    How a rule that holds stands, for metrics.

    Attributes:
        share: Of the decisions that count, those that agree with it. None: there are none, or it
            never says what it would let pass.
        is_auto: Whether it goes on by itself.
        waiting: What waits for a decision.
    """

    gate: str
    share: float | None
    is_auto: bool
    waiting: int


class AuditedDecisions:
    """
    The decisions in one log, and the modes of gates, read once each. Thread-safe.

    Args:
        clock: Monotonic seconds.
    """

    def __init__(self, log: AuditLog, clock: Callable[[], float] = time.monotonic) -> None:
        self._log, self._clock = log, clock
        self._guard = ForkLock()
        self._standing: dict[str, ApprovalState] = {}
        self._modes: dict[str, str] = {}
        self._read_to, self._read_at = 0, float("-inf")
        self._figures: tuple[GateFigures, ...] = ()
        self._figures_at = float("-inf")
        self._held: dict[str, Held] = {}
        self._held_to = 0

    def standing(self, approval: str, most_age_s: float = 0.0) -> ApprovalState:
        """
        Return how an approval stands.

        Args:
            approval: Its id.
            most_age_s: Seconds for which what was read last is good enough.

        Raises:
            AuditError: The log cannot be read.
        """
        with self._guard:
            self._read(most_age_s)
            return self._standing.get(approval, ApprovalState())

    def mode(self, gate: str, most_age_s: float = 0.0) -> str | None:
        """Return the mode that a gate was put in last, as `standing` does. None: in none yet."""
        with self._guard:
            self._read(most_age_s)
            return self._modes.get(gate)

    def _read(self, most_age_s: float) -> None:
        if self._clock() - self._read_at < most_age_s:
            return
        if self._log.tables.exists():
            with self._log.reading() as snapshot:
                sealed = SealedEvents(snapshot)
                for seq, header in snapshot.stream(_DECIDED, (self._read_to,)):
                    sealed.check(seq, blob(header))
                    self._take(sealed_verdict(header)["evidence"])
                    self._read_to = seq + 1
        self._read_at = self._clock()

    def _take(self, known: dict[str, Any]) -> None:
        if "mode" in known:
            self._modes[known["gate"]] = known["mode"]
        else:
            approval = known["approval"]
            before = self._standing.get(approval, ApprovalState())
            self._standing[approval] = before.after(known["choice"])

    def agreement(self, gate: str, window: int) -> dict[str, str | int]:
        """
        Return what humans have decided on the verdicts of *gate*; see `agreement`.

        Raises:
            AuditError: The log cannot be read.
        """
        with self._log.reading() as snapshot:
            return agreement(snapshot, gate, window)

    def figures(self, window: int, most_age_s: float) -> tuple[GateFigures, ...]:
        """
        Return how the rules that hold stand, of which some may have left nothing to humans.

        Args:
            window: Latest decisions that count.
            most_age_s: Seconds for which what was read last is good enough.

        Raises:
            AuditError: The log cannot be read.
        """
        with self._guard:
            if self._clock() - self._figures_at >= most_age_s and self._log.tables.exists():
                self._figures_at = self._clock()  # of failures too: a scrape waits for none twice
                with self._log.reading() as snapshot:
                    self._figures = tuple(self._read_figures(snapshot, window))
            return self._figures

    def _read_figures(self, snapshot: Snapshot, window: int) -> Iterator[GateFigures]:
        held(snapshot, self._held, self._held_to)
        self._held_to = snapshot.size
        waiting = Counter(each.gate for each in self._held.values() if each.waits)
        of_gates = gates(snapshot)
        for gate in sorted({*of_gates, *(each.gate for each in self._held.values())}):
            found: dict[str, Any] = agreement(snapshot, gate, window)
            counts = gate in of_gates and found["decided"]
            share = found["agreed"] / found["decided"] if counts else None
            yield GateFigures(gate, share, found["mode"] == "auto", waiting[gate])

    def record(self, event: Event) -> bool:
        """
        Record a decision at once, and return whether it was the first of its id.

        Raises:
            AuditError: It was not recorded.
        """
        recorded = self._log.append([event]) == 1
        with self._guard:
            self._read_at = float("-inf")
        return recorded

"""
Decisions of humans on what rules held, as the trail has them.

A decision is a verdict event of the rule ``approvals``. Of those on one approval that was not used
up, the first counts; to skip is none. A held write that has passed uses its approval up.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any, NamedTuple

import orjson

from ..telemetry.event.event import Event
from ..telemetry.event.verdict_event import Choice
from ..telemetry.process.fork_lock import ForkLock
from ..telemetry.text import is_a
from .database.database import blob
from .database.errors import AuditError, DatabaseMissingError
from .log import AuditLog
from .record.rows import row_from
from .store.snapshot import Snapshot, found_by_seqs
from .store.tree import SealedEvents

_OF_WRITER = "SELECT seq FROM audit_event WHERE writer_id = ? ORDER BY writer_seq"


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

    @property
    def is_draft(self) -> bool:
        """Whether a run goes on with it as it is. A rule may ask of a run, too."""
        return self.point != "memory" and "gate" in self.evidence

    @property
    def version(self) -> str:
        """What the gate judged by. Empty: it is no gate, or that was not recorded yet."""
        return str(self.evidence.get("version") or "")

    @property
    def is_blind(self) -> bool:
        """Whether a human is to decide before the verdict is shown."""
        return bool(self.evidence.get("is_blind"))

    def shown(self) -> Held:
        """Return it as whoever decides may see it: of a blind one no verdict, until then."""
        if not self.is_blind or self.standing.decision:
            return self
        known = {name: self.evidence.get(name) for name in ("gate", "version", "is_blind")}
        return self._replace(reason="blind", passed=False, evidence=known)

    def shown_content(self, content: Any) -> Any:
        """Return what was held, likewise: of a blind draft nothing that the gate found in it."""
        if not self.is_blind or self.standing.decision or not is_a(content, dict):
            return content
        return {name: of for name, of in content.items() if name != "findings"}


_VERDICTS = """
    SELECT seq, method, occurred_us, header FROM audit_event
    WHERE operation = 'verdict' AND seq >= ?{} ORDER BY seq
"""


def sealed_verdicts(
    snapshot: Snapshot, first_seq: int, rule: str | None = None
) -> Iterator[tuple[int, str, int, dict[str, Any]]]:
    """
    Yield the verdicts from *first_seq* on: number, rule, µs since 1970 UTC, and what was decided.

    Raises:
        TamperedError: One of them is not what was sealed.
    """
    chosen, values = ("", ()) if rule is None else (" AND method = ?", (rule,))
    sealed = SealedEvents(snapshot)
    for seq, its, at_us, header in snapshot.stream(_VERDICTS.format(chosen), (first_seq, *values)):
        sealed.check(seq, blob(header))
        yield seq, its, at_us, sealed_verdict(header)


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
    for seq, gate, occurred_us, verdict in sealed_verdicts(snapshot, first_seq):
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


class GateVersion(NamedTuple):
    """
    A gate as it judged at a time.

    Attributes:
        version: What it judged by. Empty: from before versions were recorded; nothing counts.
        source: The name and version of its judges' prompts, as the caller has it.
    """

    gate: str
    version: str
    source: str


def gates(snapshot: Snapshot) -> list[GateVersion]:
    """Return what is a gate: rules that say what they would have let pass; the latest is last."""
    gate, version, source = map(snapshot.connection.evidence, ("gate", "version", "source"))
    statement = (
        f"SELECT method, {version}, max({source}), max(seq) "  # noqa: S608 - figures of ours
        f"FROM audit_event WHERE operation = 'verdict' AND {gate} = method "
        "GROUP BY 1, 2 ORDER BY 4"
    )
    found: list[Any] = snapshot.execute(statement).fetchall()
    return [
        GateVersion(str(name), str(version or ""), str(source or ""))
        for name, version, source, _seq in found
    ]


_AGREEMENT = """
    WITH said AS (
      SELECT seq, {mode} AS mode, {change} AS change, {choice} AS choice,
        CAST({passed} AS INTEGER) AS passed, CAST({is_blind} AS INTEGER) AS is_blind,
        CAST({stage} AS INTEGER) AS stage
      FROM audit_event
      WHERE operation = 'verdict' AND method = 'approvals' AND {gate} = ? AND {version} = ?),
    bounds AS (
      SELECT
        coalesce(max(seq) FILTER (WHERE change = 'reset'), -1) AS reset_seq,
        coalesce(max(seq) FILTER (WHERE mode = 'shadow'), -1) AS shadow_seq,
        coalesce(max(seq) FILTER (WHERE mode IS NOT NULL), -1) AS changed_seq,
        count(mode) AS changes
      FROM said),
    decided AS (
      SELECT seq, row_number() OVER (ORDER BY seq DESC) <= ? AS is_late,
        (choice = 'approve') = (passed = 1) AS agrees, is_blind = 1 AS is_blind,
        choice = 'reject' AND passed = 1 AS is_rejected_pass
      FROM said WHERE choice IN ('approve', 'edit', 'reject')),
    counted AS (
      SELECT d.*, is_late AND seq > shadow_seq AS counts, is_late AND seq > changed_seq AS is_own,
        is_rejected_pass AND seq > reset_seq AS blocks
      FROM decided d CROSS JOIN bounds)
    SELECT (SELECT mode FROM said WHERE seq = changed_seq),
      (SELECT stage FROM said WHERE seq = changed_seq), changes,
      (SELECT count(*) FROM counted WHERE counts),
      (SELECT count(*) FROM counted WHERE counts AND agrees),
      (SELECT count(*) FROM counted WHERE is_own),
      (SELECT count(*) FROM counted WHERE is_own AND agrees),
      (SELECT count(*) FROM counted WHERE counts AND is_blind),
      (SELECT count(*) FROM counted WHERE counts AND is_blind AND agrees),
      (SELECT count(*) FROM counted WHERE blocks)
    FROM bounds
"""
_COUNTS = (
    *("stage", "changes", "decided", "agreed", "stage_decided", "stage_agreed"),
    *("blind_decided", "blind_agreed", "rejected_passes"),
)


def agreement(snapshot: Snapshot, gate: str, version: str, window: int) -> dict[str, str | int]:
    """
    Return what humans have decided on the verdicts of *version* of *gate*.

    Returns:
        Its ``mode`` and ``stage``, after so many ``changes``. The number ``decided`` of the latest
        *window* decisions since it was last put in shadow, and ``agreed`` of them; as
        ``stage_decided`` and ``stage_agreed`` those since the latest change; as ``blind_decided``
        and ``blind_agreed`` the blind ones. And the ``rejected_passes`` since the last reset.
    """
    named = ("mode", "change", "choice", "passed", "is_blind", "stage", "gate", "version")
    statement = _AGREEMENT.format(**{name: snapshot.connection.evidence(name) for name in named})
    found: Any = snapshot.execute(statement, (gate, version, window)).fetchone()
    mode, *figures = found
    counts = zip(_COUNTS, (int(each or 0) for each in figures), strict=True)
    return {"mode": str(mode or "shadow"), **dict(counts)}


class GateFigures(NamedTuple):
    """
    How a rule that holds stands, for metrics.

    Attributes:
        share: Of the decisions that count on its latest version, those that agree with it. None:
            there are none, or it never says what it would let pass.
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
        self._log, self._clock = log.verdicts, clock
        self._guard = ForkLock()
        self._standing: dict[str, ApprovalState] = {}
        self._stages: dict[tuple[str, str], int] = {}
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

    def stage(self, gate: str, version: str, most_age_s: float = 0.0) -> int:
        """Return the stage that *version* of a gate was put in last, read as `standing` does."""
        with self._guard:
            self._read(most_age_s)
            return self._stages.get((gate, version), 0)

    def _read(self, most_age_s: float) -> None:
        if self._clock() - self._read_at < most_age_s:
            return
        with suppress(DatabaseMissingError), self._log.reading() as snapshot:
            for seq, _rule, _at_us, verdict in sealed_verdicts(
                snapshot, self._read_to, "approvals"
            ):
                self._take(verdict["evidence"])
                self._read_to = seq + 1
        self._read_at = self._clock()

    def _take(self, known: dict[str, Any]) -> None:
        if "mode" in known:
            # Of before there were versions: it is no version's, and none inherits it.
            key = known["gate"], known.get("version", "")
            self._stages[key] = known.get("stage", 0)
        else:
            approval = known["approval"]
            before = self._standing.get(approval, ApprovalState())
            self._standing[approval] = before.after(known["choice"])

    def agreement(self, gate: str, version: str, window: int) -> dict[str, str | int]:
        """
        Return what humans have decided on the verdicts of *gate*; see `agreement`.

        Raises:
            AuditError: The log cannot be read.
        """
        with self._log.reading() as snapshot:
            return agreement(snapshot, gate, version, window)

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
            if (
                self._clock() - self._figures_at >= most_age_s
                and self._log.tables.database.exists()
            ):
                self._figures_at = self._clock()  # of failures too: a scrape waits for none twice
                with self._log.reading() as snapshot:
                    self._figures = tuple(self._read_figures(snapshot, window))
            return self._figures

    def _read_figures(self, snapshot: Snapshot, window: int) -> Iterator[GateFigures]:
        held(snapshot, self._held, self._held_to)
        self._held_to = snapshot.size
        waiting = Counter(each.gate for each in self._held.values() if each.waits)
        latest = {each.gate: each.version for each in gates(snapshot)}
        for gate in sorted({*latest, *(each.gate for each in self._held.values())}):
            found: dict[str, Any] = agreement(snapshot, gate, latest.get(gate, ""), window)
            counts = latest.get(gate) and found["decided"]
            share = found["agreed"] / found["decided"] if counts else None
            yield GateFigures(gate, share, found["mode"] == "auto", waiting[gate])

    def edited(self, writer_id: str) -> tuple[str, str] | None:
        """
        Return the text that was held and what a human has made of it; None: they made nothing.

        Args:
            writer_id: Of the decision's event.

        Raises:
            AuditError: The log cannot be read, or the text was erased.
            TamperedError: One of the two events is not what was sealed.
        """
        with self._log.reading() as snapshot:
            seqs = [seq for (seq,) in snapshot.execute(_OF_WRITER, (writer_id,)).fetchall()]
            rows = {each.seq: row_from(each) for each in found_by_seqs(snapshot, seqs)}
        decided, edit = (*(rows.get(seq) for seq in seqs), None, None)[:2]
        if not decided or not edit or "has_text" not in sealed_verdict(decided.header)["evidence"]:
            return None
        if edit.content is None:  # what was held is not to go on in its place
            raise AuditError("the text of an edit was erased with its customer")
        content: Any = orjson.loads(edit.content)
        return content["was"], content["text"]

    def record(self, event: Event, edited: Event | None = None, uid: str = "") -> bool:
        """
        Record a decision at once, and return whether it was the first of its id.

        Args:
            event: The decision.
            edited: The text that a human has made of what was held.
            uid: Whose it is.

        Raises:
            AuditError: It was not recorded.
        """
        if edited is None:
            recorded = self._log.append([event]) == 1
        else:  # one of them alone: another decision is the first
            recorded = self._log.append_about(uid, edited, event) == 2  # noqa: PLR2004
        with self._guard:
            self._read_at = float("-inf")
        return recorded

"""The inbox of the page *Waiting*: what rules have left to humans, and the runs that they ended."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from ...audit.decisions import Held, held
from ...audit.log import AuditLog
from ...audit.queries.text_extraction import text_of
from ...audit.record.rows import AuditRow, row_from
from ...audit.stopped_runs import StoppedRun, stopped_runs
from ...audit.store.snapshot import Snapshot, found_by_seqs
from ..deciding import content_of, one_text
from ..toolkit.type_guards import is_dict, is_list

MOST_CARDS: Final = 200
"""Cards that are shown at most: those that wait the longest."""

STOPS_US: Final = 7 * 86_400_000_000
"""Microseconds for which the end of a run is shown, if nobody acknowledges it."""

_PLAIN = frozenset({"approval", "gate", "version", "is_blind"})
"""Evidence that is no verdict."""

Named = Sequence[tuple[str, str]]
"""Names and texts, for a list of definitions."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    """
    One thing that waits.

    Attributes:
        title: What it is.
        seq: The verdict's number in the trail.
        content: What is decided on, redacted, as stored. Empty: erased, or there is none.
        evidence: What speaks for it and against it.
        verdict: What the rule says. Empty: the human decides before it is shown.
        text: The one text of it that can be edited. Empty: there is none, or there are several.
    """

    approval: str
    title: str
    rule: str
    seq: int
    since_us: int
    asks: int
    run: str
    content: str = field(repr=False)
    evidence: Named = field(repr=False)
    verdict: Named = field(repr=False)
    is_blind: bool = False
    is_stop: bool = False
    text: str = field(default="", repr=False)


class Inbox:
    """
    What waits in one trail, read on from where it was read last. Thread-safe.

    Args:
        log: The trail.
        tenant: The one tenant of which it is shown. None: all.
    """

    def __init__(self, log: AuditLog, tenant: str | None) -> None:
        self._log, self._tenant = log.verdicts, tenant
        self._guard = threading.Lock()
        self._held: dict[str, Held] = {}
        self._stops: dict[str, StoppedRun] = {}
        self._read_to = 0

    def cards(self, approval: str | None = None) -> list[Card]:
        """
        Return what waits, what waits longest first; of one id alone, if it is given.

        Raises:
            AuditError: The trail cannot be read.
        """
        with self._log.begun() as snapshot:
            if snapshot is None:
                return []
            waits = self._waiting(snapshot)
            if approval is not None:
                waits = [each for each in waits if each.approval == approval]
            # Whose it is shows the row alone: of one tenant, all rows are looked at.
            waits = waits[: MOST_CARDS if self._tenant is None else None]
            rows = {
                each.seq: row_from(each)
                for each in found_by_seqs(snapshot, [each.seq for each in waits])
            }
        pairs = [(each, rows[each.seq]) for each in waits if each.seq in rows]
        return [_card(each, row) for each, row in pairs if self._is_shown(row)][:MOST_CARDS]

    def _is_shown(self, row: AuditRow) -> bool:
        # Of an erased one nobody can say whose it was: then it is not shown to one tenant.
        return self._tenant is None or (row.detail is not None and row.tenant == self._tenant)

    def _waiting(self, snapshot: Snapshot) -> list[Held | StoppedRun]:
        with self._guard:
            if snapshot.size < self._read_to:  # another log is at this address now
                self._held, self._stops, self._read_to = {}, {}, 0
            held(snapshot, self._held, self._read_to)
            stopped_runs(snapshot, self._stops, self._read_to)
            self._read_to = snapshot.size
            oldest_us = self._log.now_us() - STOPS_US
            stops = [each for each in self._stops.values() if each.occurred_us >= oldest_us]
            return [*(each for each in self._held.values() if each.waits), *stops]


def _card(waiting: Held | StoppedRun, row: AuditRow) -> Card:
    run = row.run or ""
    if isinstance(waiting, StoppedRun):
        return Card(
            approval=waiting.approval,
            title="A stopped run",
            rule=waiting.rule,
            seq=waiting.seq,
            since_us=waiting.occurred_us,
            asks=1,
            run=run,
            content="",
            evidence=[("reason", waiting.reason), *_named(waiting.evidence)],
            verdict=[*_named(waiting.facts)],
            is_stop=True,
        )
    known = content_of(waiting, row)
    content, evidence = text_of(row.content) or row.content or "", list[tuple[str, str]]()
    if is_dict(known) and "draft" in known:
        content = str(known["draft"])
        for part in ("evidence", "findings"):
            evidence += _named(known.get(part) or {})
    verdict = {"reason": waiting.reason, "would pass": "yes" if waiting.passed else "no"}
    verdict |= {name: of for name, of in waiting.evidence.items() if name not in _PLAIN}
    title = "A draft" if waiting.is_draft else "A memory write"
    if not waiting.is_draft and waiting.point != "memory":
        # A rule would end a run, and asks first: its figures are what is decided on.
        title, evidence, verdict = "A run", [*_named(verdict)], {}
    return Card(
        approval=waiting.approval,
        title=title,
        rule=waiting.gate,
        seq=waiting.seq,
        since_us=waiting.since_us,
        asks=waiting.asks,
        run=run,
        content=content,
        evidence=evidence,
        verdict=[] if waiting.is_blind else [*_named(verdict)],
        is_blind=waiting.is_blind,
        text=one_text(known, row),
    )


def _named(known: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for name, value in known.items():
        if value not in (None, "", [], {}):
            yield name, _said(value)


def _said(value: Any) -> str:
    """Return a JSON value for people: a list by lines, an object by its names."""
    if is_dict(value):
        return ", ".join(f"{name}: {_said(of)}" for name, of in value.items())
    if is_list(value):
        return "\n".join(map(_said, value))
    return f"{value:.3g}" if isinstance(value, float) else f"{value}"

"""
The history by conversation, for the first page: what was done in each, the newest ones in detail.

Bounded: the latest conversations are in memory, the totals of the others in a temporary database,
for when they go on.
"""

from __future__ import annotations

import json
import sqlite3
from collections import Counter, deque
from typing import Any

from .summary import MODEL

CONVERSATIONS_SHOWN = 40
ENTRIES_SHOWN = 25
"""Of one conversation, the newest."""

_MOST_NAMES = 5
_SCHEMA = "CREATE TABLE totals(name TEXT PRIMARY KEY, known TEXT NOT NULL) WITHOUT ROWID"
_KEEP = "INSERT OR REPLACE INTO totals VALUES (?, ?)"
_QUIET = frozenset({"checkpoint", "resume", MODEL})
"""Classes that are counted, and listed only where one of them went wrong."""


class Conversation:
    """
    What was done in one conversation, or on one day outside of any.

    Attributes:
        is_named: Whether the events say that they belong together.
        first: Moment of the first event, and `last` of the last.
        agents: Events by agent, the first few.
        entries: The newest events that are told one by one, with how many *times* in a row.
        n_entries: How many of these there were.
    """

    def __init__(self, *, is_named: bool) -> None:
        self.is_named = is_named
        self.first = self.last = ""
        self.counts: Counter[str] = Counter()
        self.agents: Counter[str] = Counter()
        self.purposes: Counter[str] = Counter()
        self.models: Counter[str] = Counter()
        self.entries: deque[dict[str, Any]] = deque(maxlen=ENTRIES_SHOWN)
        self.n_entries = 0

    def add(self, document: dict[str, Any]) -> None:
        """Add one event, as events.jsonl has it."""
        moment = document["occurred_at"]
        # Events come by their number. Of several processes one that happened earlier may be
        # recorded later.
        self.first = min(self.first or moment, moment)
        self.last = max(self.last, moment)
        self.counts[document["class"]] += 1
        _count(self.agents, document["agent"])
        _count(self.purposes, document["purpose"])
        if document["usage"]:
            _count(self.models, document["usage"]["model"])
        # A graph saves its state at every step: told one by one they would hide what was looked up.
        if document["class"] in _QUIET and document["status"] in {"ok", "empty"}:
            return
        last = self.entries[-1] if self.entries else None
        if last is not None and _is_again(last, document):
            last["times"] += 1
            return
        self.n_entries += 1
        self.entries.append({**document, "times": 1})

    def totals(self) -> str:
        """Return all but the entries, as JSON."""
        names = [dict(each) for each in (self.counts, self.agents, self.purposes, self.models)]
        return json.dumps([self.first, self.last, self.n_entries, *names])

    def resume(self, totals: str) -> None:
        """Go on from *totals*."""
        self.first, self.last, self.n_entries, *names = json.loads(totals)
        for each, known in zip(
            (self.counts, self.agents, self.purposes, self.models), names, strict=True
        ):
            each.update(known)


class Conversations:
    """
    The conversations in the events that were added, oldest first.

    Attributes:
        left_out: How many events are not told: inside others, or of a graph's machinery.
    """

    def __init__(self, database: sqlite3.Connection) -> None:
        database.execute(_SCHEMA)
        self.left_out = 0
        self._open: dict[str, Conversation] = {}
        self._database = database

    def add(self, document: dict[str, Any]) -> None:
        """Add one event, as events.jsonl has it."""
        # What one store asks of another is told as the first one's; a model call without usage
        # has no figures to tell.
        if document["nested"] or (document["class"] == MODEL and not document["usage"]):
            self.left_out += 1
            return
        run = document["run"]
        name = f"run {run}" if run else f"day {document['occurred_at'][:10]}"
        conversation = self._open.pop(name, None) or self._opened(name, is_named=bool(run))
        self._open[name] = conversation  # at the end: the latest
        conversation.add(document)
        if len(self._open) > CONVERSATIONS_SHOWN:
            oldest = next(iter(self._open))
            self._database.execute(_KEEP, (oldest, self._open.pop(oldest).totals()))

    def _opened(self, name: str, *, is_named: bool) -> Conversation:
        conversation = Conversation(is_named=is_named)
        found = self._database.execute(
            "SELECT known FROM totals WHERE name = ?", (name,)
        ).fetchone()
        if found is not None:
            conversation.resume(found[0])
            self._database.execute("DELETE FROM totals WHERE name = ?", (name,))
        return conversation

    @property
    def n_hidden(self) -> int:
        """How many earlier ones are not shown."""
        return int(self._database.execute("SELECT count(*) FROM totals").fetchone()[0])

    def latest(self) -> list[Conversation]:
        """Return the latest conversations, the newest first."""
        return list(reversed(self._open.values()))


def _count(names: Counter[str], name: str | None) -> None:
    if name and (name in names or len(names) < _MOST_NAMES):
        names[name] += 1


_SAME = ("class", "store", "status", "agent", "purpose", "journal", "content", "hits", "memories")


def _is_again(last: dict[str, Any], document: dict[str, Any]) -> bool:
    return all(last[each] == document[each] for each in _SAME)

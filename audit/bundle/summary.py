"""
The totals of a history: counts for the first page, recipients, withheld events.

It is fed one event at a time and keeps no event; names are counted up to a bound, and what is
beyond it together.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from .statements import RECALLS

MODEL = "model"
_MOST_NAMES = 1_000
_MOST_RANGES = 10_000
OTHERS = "(others)"


class EventPeriod:
    """The first and last moment of some events, and their number."""

    __slots__ = ("count", "first", "last")

    def __init__(self) -> None:
        self.count = 0
        self.first: str | None = None
        self.last: str | None = None

    def add(self, moment: str) -> None:
        """Count one more. Moments are ISO 8601 of one form, which sort as text."""
        self.count += 1
        if self.first is None or moment < self.first:
            self.first = moment
        if self.last is None or moment > self.last:
            self.last = moment

    def as_document(self) -> dict[str, Any]:
        """Return it as JSON has it."""
        return {"from": self.first, "to": self.last, "n_events": self.count}


class Summary:
    """
    Counts over the events that were added.

    Attributes:
        all: All events.
        by_class: Events by what they did to memory.
        stores: Periods by store.
        agents: Periods by agent.
        models: Periods by model provider and model.
        purposes: Events by purpose, in the operator's words.
        redactions: Entities that were removed before anything was stored, by type.
        erased: Ranges of events whose detail was erased.
        withheld: Events whose detail would show other people's data; and their number.
    """

    def __init__(self) -> None:
        self.all = EventPeriod()
        self.by_class: Counter[str] = Counter()
        self.stores: dict[str, EventPeriod] = {}
        self.agents: dict[str, EventPeriod] = {}
        self.models: dict[tuple[str, str], EventPeriod] = {}
        self.purposes: Counter[str] = Counter()
        self.redactions: Counter[str] = Counter()
        self.degraded = 0
        self.erased: list[list[int]] = []
        self.n_erased = 0
        self.withheld: list[int] = []
        self.n_withheld = 0

    def add(self, document: dict[str, Any]) -> None:
        """Count one event, as events.jsonl has it."""
        moment = document["occurred_at"]
        self.all.add(moment)
        self.by_class[document["class"]] += 1
        self.degraded += bool(document["neutral"])
        if document["class"] != MODEL:
            _period(self.stores, document["store"]).add(moment)
        _period(self.agents, document["agent"] or "").add(moment)
        self.purposes[_bounded(self.purposes, document["purpose"] or "")] += 1
        redactions: dict[str, int] = document["redactions"] or {}
        for entity, count in redactions.items():
            self.redactions[_bounded(self.redactions, entity)] += count
        usage = document["usage"]
        if usage:
            name = (usage["provider"] or "", usage["model"])
            _period(self.models, name, (OTHERS, OTHERS)).add(moment)
        self._add_withheld(document["seq"], document["withheld"])

    def _add_withheld(self, seq: int, reason: str | None) -> None:
        if reason == "erased":
            self.n_erased += 1
            if self.erased and self.erased[-1][1] == seq - 1:
                self.erased[-1][1] = seq
            elif len(self.erased) < _MOST_RANGES:
                self.erased.append([seq, seq])
        elif reason is not None:
            self.n_withheld += 1
            if len(self.withheld) < _MOST_RANGES:
                self.withheld.append(seq)

    @property
    def accesses(self) -> int:
        """The number of events that read memories."""
        return sum(self.by_class[each] for each in RECALLS)

    def recipients(self, sinks: tuple[str, ...]) -> dict[str, Any]:
        """Return recipients.json: who received data about the customer, when, and what of it."""
        return {
            "agents": [
                {"name": name or None, **each.as_document()} for name, each in self.agents.items()
            ],
            "stores": [
                {"name": name, "received": "redacted content, ids", **each.as_document()}
                for name, each in self.stores.items()
            ],
            "model_providers": [
                {
                    "provider": provider or None,
                    "model": model,
                    "received": "what the agent put into its prompts",
                    **each.as_document(),
                }
                for (provider, model), each in self.models.items()
            ],
            "sinks": [
                {
                    "name": name,
                    "received": "keyed hash of the customer, no content",
                    **self.all.as_document(),
                }
                for name in sinks
            ],
        }

    def withholdings(self) -> dict[str, Any]:
        """Return redactions.json: what was removed or is not shown, and why."""
        return {
            "before_storing": {
                "reason": "personal data is replaced before it is stored or logged",
                "n_by_entity": dict(sorted(self.redactions.items())),
            },
            "third_party": {
                "reason": "results that belong to somebody else are not shown (GDPR Art. 15(4))",
                "n_events": self.n_withheld,
                "seqs": self.withheld,
            },
            "erased": {
                "reason": "the detail was erased, or its time to be kept is over",
                "n_events": self.n_erased,
                "seq_ranges": self.erased,
            },
        }


def _period(periods: dict[Any, EventPeriod], name: Any, others: Any = OTHERS) -> EventPeriod:
    found = periods.get(name)
    return found or periods.setdefault(_bounded(periods, name, others), EventPeriod())


def _bounded(names: Any, name: Any, others: Any = OTHERS) -> Any:
    return name if name in names or len(names) < _MOST_NAMES else others

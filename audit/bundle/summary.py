"""
The totals of a history: counts for the first page, recipients, withheld events.

It is fed one event at a time and keeps no event; names are counted up to a bound, and what is
beyond it together.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from ..queries.runs import SITE
from .delivered import Receipts, Recipient
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
        """Return the period as JSON types."""
        return {"from": self.first, "to": self.last, "n_events": self.count}


class ModelUse(EventPeriod):
    """The calls of one model."""

    __slots__ = ("input_tokens", "output_tokens")

    def __init__(self) -> None:
        super().__init__()
        self.input_tokens = self.output_tokens = 0

    def add_usage(self, usage: dict[str, Any]) -> None:
        """Count what one call consumed."""
        self.input_tokens += usage["input_tokens"] or 0
        self.output_tokens += usage["output_tokens"] or 0


class EventSummary:
    """
    Counts over the events that were added.

    Attributes:
        all: All events.
        by_class: Events by what they did to memory, but for those inside another.
        models: Calls by model provider and model.
        sinks: Periods by what has acknowledged the events.
        perhaps: The same for what has acknowledged some of them.
        cannot_tell: Events of which it is not known who received them.
        purposes: Events by purpose, in the operator's words.
        sources: Writes by the kind of source; empty: it cannot be told.
        redactions: Entities that were removed before anything was stored, by type.
        erased: Ranges of events whose detail was erased.
        withheld: Events whose detail would show other people's data; and their number.
    """

    def __init__(self) -> None:
        self.all = EventPeriod()
        self.by_class: Counter[str] = Counter()
        self.stores: dict[str, EventPeriod] = {}
        self.agents: dict[str, EventPeriod] = {}
        self.models: dict[tuple[str, str], ModelUse] = {}
        self.sinks: dict[Recipient, EventPeriod] = {}
        self.perhaps: dict[Recipient, EventPeriod] = {}
        self.cannot_tell = EventPeriod()
        self.purposes: Counter[str] = Counter()
        self.sources: Counter[str] = Counter()
        self.redactions: Counter[str] = Counter()
        self.erased: list[list[int]] = []
        self.n_erased = 0
        self.withheld: list[int] = []
        self.n_withheld = 0

    def add(self, document: dict[str, Any], receipts: Receipts) -> None:
        """Count one event, as events.jsonl has it."""
        moment = document["occurred_at"]
        self.all.add(moment)
        # One call of a store may make several of another, and is one thing that was done.
        self.by_class[document["class"]] += not document["nested"]
        if document["class"] != MODEL:
            _period(self.stores, document["store"]).add(moment)
        _period(self.agents, document["agent"] or "").add(moment)
        self.purposes[_bounded(self.purposes, document["purpose"] or "")] += 1
        if document["class"] == "remember" and not document["nested"]:
            source: dict[str, Any] = document["source"] or {}
            self.sources[source.get("kind") or ""] += 1
        redactions: dict[str, int] = document["redactions"] or {}
        for entity, count in redactions.items():
            self.redactions[_bounded(self.redactions, entity)] += count
        usage = document["usage"]
        if usage:
            name = _bounded(self.models, (usage["provider"] or "", usage["model"]), (OTHERS,) * 2)
            called = self.models.setdefault(name, ModelUse())
            called.add(moment)
            called.add_usage(usage)
        self._add_receipts(moment, receipts)
        self._add_withheld(document["seq"], document["withheld"])

    def _add_receipts(self, moment: str, receipts: Receipts) -> None:
        for each in receipts.certain:
            self.sinks.setdefault(each, EventPeriod()).add(moment)
        for each in receipts.possible:
            self.perhaps.setdefault(each, EventPeriod()).add(moment)
        if not receipts.is_known:
            self.cannot_tell.add(moment)

    def _add_withheld(self, seq: int, reason: str | None) -> None:
        if reason == "erased":
            self.n_erased += 1
            if self.erased and self.erased[-1][1] == seq - 1:
                self.erased[-1][1] = seq
            # Bounded: after an erasure every second event of a log may be one.
            elif len(self.erased) < _MOST_RANGES:
                self.erased.append([seq, seq])
        elif reason is not None:
            self.n_withheld += 1
            if len(self.withheld) < _MOST_RANGES:
                self.withheld.append(seq)

    @property
    def accesses(self) -> int:
        """The number of times that memories were looked up."""
        return sum(self.by_class[each] for each in RECALLS)

    def recipients(self) -> dict[str, Any]:
        """Return recipients.json: who received data about the customer, when, and what of it."""
        return {
            "agents": [
                {"name": name or None, **each.as_document()} for name, each in self.agents.items()
            ],
            "stores": [
                {"name": name, "received": _received(name), **each.as_document()}
                for name, each in self.stores.items()
            ],
            "model_providers": [
                {
                    "provider": provider or None,
                    "model": model,
                    "received": "what the agent put into its prompts",
                    "input_tokens": each.input_tokens,
                    "output_tokens": each.output_tokens,
                    **each.as_document(),
                }
                for (provider, model), each in self.models.items()
            ],
            "sinks": [_sink(each, period) for each, period in self.sinks.items()],
            "possible_sinks": [_sink(each, period) for each, period in self.perhaps.items()],
            "cannot_tell": {
                "reason": "the process that recorded these events has not noted who received them: "
                "it still runs, ended abruptly, or is of an older version",
                **self.cannot_tell.as_document(),
            },
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


def _received(store: str) -> str:
    return "what its pages showed" if store == SITE else "redacted content, ids"


def _sink(recipient: Recipient, period: EventPeriod) -> dict[str, Any]:
    return {
        "name": recipient.sink,
        "kind": recipient.kind,
        "content": recipient.content,
        "subject": recipient.subject,
        "part": recipient.part,
        **period.as_document(),
    }


def _period(periods: dict[Any, EventPeriod], name: Any, others: Any = OTHERS) -> EventPeriod:
    found = periods.get(name)
    return found or periods.setdefault(_bounded(periods, name, others), EventPeriod())


def _bounded(names: Any, name: Any, others: Any = OTHERS) -> Any:
    return name if name in names or len(names) < _MOST_NAMES else others

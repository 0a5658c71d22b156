"""The data of the first page and the manifest, and the format of its times and texts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from html import escape
from typing import Any, NamedTuple

from .contract import BundleSubject, Evidence, Request, RequestType, StoreReport, StoreStatus
from .conversations import Conversations
from .latest import Latest
from .summary import EventSummary


class BundleTotals(NamedTuple):
    """
    The totals that the command's screen, the page and the manifest all show.

    Attributes:
        accesses: Times that memories were looked up.
        written: Times that something was given to remember.
        deleted: Times that something was deleted.
        memories: Memories that agents can recall now, as far as is known.
        beside: Records that stores keep beside them: earlier versions, messages.
        withheld: Events whose detail would show other people's data.
        erased: Events whose detail is erased.
    """

    events: int
    accesses: int
    written: int
    deleted: int
    memories: int
    beside: int
    withheld: int
    erased: int


@dataclass(kw_only=True)
class BundleFacts:
    """
    The data of the first page and the manifest.

    Attributes:
        conversations: What was done, the newest part.
    """

    request: Request
    subject: BundleSubject
    evidence: Evidence
    summary: EventSummary
    conversations: Conversations
    latest: Latest
    stores: Sequence[StoreReport]

    @property
    def is_access(self) -> bool:
        """True for a request of access, False for one of portability."""
        return self.request.kind is RequestType.ACCESS

    @property
    def lacking(self) -> list[StoreReport]:
        """The stores that were not read completely."""
        return [each for each in self.stores if each.status is not StoreStatus.COMPLETE]

    @property
    def holds_nothing(self) -> bool:
        """Whether neither the log nor a store that was read has data about the customer."""
        return not (self.counts.events or self.counts.memories or self.counts.beside)

    @cached_property
    def counts(self) -> BundleTotals:
        """The totals."""
        summary = self.summary
        return BundleTotals(
            events=summary.all.count,
            accesses=summary.accesses,
            written=summary.by_class["remember"],
            deleted=summary.by_class["forget"],
            memories=sum(each.n_memories for each in self.stores),
            beside=sum(each.n_beside for each in self.stores),
            withheld=summary.n_withheld,
            erased=summary.n_erased,
        )

    @cached_property
    def not_stated(self) -> tuple[str, ...]:
        """What the operator has to state and has not, as ``controller.name``."""
        if not self.is_access or self.holds_nothing:
            return ()
        has_sources = not (self.summary.sources[""] or self.latest.n_unexplained)
        return tuple(
            self.request.notice.missing(
                has_purposes=not self.summary.purposes[""], has_sources=has_sources
            )
        )

    @cached_property
    def incomplete(self) -> list[str]:
        """What is missing, a line each."""
        lines = [
            f"store {each.name}: {_why(each)}" + (f" ({each.error})" if each.error else "")
            for each in self.lacking
        ]
        lines += self.evidence.waiting
        if self.not_stated:
            lines.append(f"the operator has not stated {', '.join(self.not_stated)}")
        return lines

    @property
    def categories(self) -> list[str]:
        """The kinds of data that the events and stores show."""
        by_class = self.summary.by_class
        found = {
            "what you said to agents and what was remembered of it": by_class["remember"]
            or self.counts.memories,
            "what agents looked up about you": by_class["recall"],
            "the state of your conversations": by_class["checkpoint"] or by_class["resume"],
            "use of language models": by_class["model"],
        }
        return [name for name, count in found.items() if count]

    @property
    def retention(self) -> str:
        """How long events are kept, by the settings of the log."""
        days = self.evidence.retention_days
        kept = f"{days:,} days after they were recorded" if days else "until they are erased"
        if reason := self.evidence.retention_reason:
            kept += f" ({reason})"
        return f"events: {kept}; memories: until they are deleted or erased"

    def named(self, name: str) -> str:
        """Return a store's name as HTML: the kind of thing it keeps, where the store said."""
        titles = (each.title for each in self.stores if name in {each.name, each.store})
        title = next((each for each in titles if each), None)
        shown = f"<code>{escape(name)}</code>"
        return f"{escape(title)} ({shown})" if title else shown


_SHARED = "has records that are somebody else's, too, whose content is not shown (GDPR Art. 15(4))"
_WHY = {
    StoreStatus.PARTIAL: "failed before it had told everything",
    StoreStatus.FAILED: "could not be read",
    StoreStatus.NOT_ASKED: "was not asked",
}


def why(report: StoreReport) -> str:
    """Return why a store is not complete, for the customer; the manifest has the error."""
    if report.status is StoreStatus.NOT_ASKED and report.error:
        return "cannot tell which of its records are yours"
    return _why(report)


def _why(report: StoreReport) -> str:
    return _SHARED if report.n_shared else _WHY[report.status]


def day_of(moment: str | None) -> str:
    """Return the day of a time in ISO 8601, as a person writes it."""
    # A store gives its own times, in whatever form: what is no ISO 8601 is shown as it is.
    found = _parsed(moment)
    return moment or "" if found is None else f"{found.day} {found:%B %Y}"


def short_day_of(moment: str | None) -> str:
    """Return the day in few letters, without its year."""
    found = _parsed(moment)
    return moment or "" if found is None else f"{found.day} {found:%b}"


def time_of(moment: str | None) -> str:
    """Return the time of day."""
    found = _parsed(moment)
    return moment or "" if found is None else f"{found:%H:%M}"


def when(moment: str | None) -> str:
    """Return day and time as HTML; other texts as they are, escaped."""
    found = _parsed(moment)
    if found is None:
        return escape(moment or "")
    shown = f"{found.day} {found:%B %Y}, {found:%H:%M}"
    return f'<time datetime="{escape(moment or "")}">{shown}</time>'


def period(first: str | None, last: str | None) -> str:
    """Return a period in few words, as HTML: its days, and the times where it is one day."""
    if day_of(first) != day_of(last):
        return f"{escape(day_of(first))} to {escape(day_of(last))}"
    if time_of(first) == time_of(last):
        return when(first)
    return f"{when(first)} to {escape(time_of(last))}"


def _parsed(moment: str | None) -> datetime | None:
    try:
        return datetime.fromisoformat(moment or "")
    except ValueError:
        return None


def joined(names: Sequence[str]) -> str:
    """Return names as a sentence lists them."""
    *most, last = names
    return f"{', '.join(most)} and {last}" if most else last


def text(value: Any) -> str:
    """Return *value* escaped, lists and mappings in words; a dash where there is none."""
    if value is None or value == "":
        return "&ndash;"
    kind = value.__class__
    if kind is list:
        return ", ".join(map(text, value))
    if kind is dict:
        return "; ".join(f"{escape(str(name))}: {text(each)}" for name, each in value.items())
    return escape(str(value))

"""The parts of the first page that tell what is remembered, what was done, and who looked."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator
from html import escape
from itertools import groupby
from typing import Any

from .contract import StoreReport, StoreStatus
from .facts import Facts, day_of, table, text, time_of, when
from .latest import readable
from .sentences import KINDS, counted, sentence

_SEEN, _SHORT = 3, 90
"""How many entries are shown of what was seen, and how many letters of each."""

_STATUSES = {
    StoreStatus.COMPLETE: "answered in full",
    StoreStatus.PARTIAL: "answered in part",
    StoreStatus.FAILED: "did not answer",
    StoreStatus.NOT_ASKED: "was not asked",
}


def remembered(facts: Facts) -> str:
    """Return what each store holds now."""
    intro = "<p>What the agents can recall about you at this moment, store by store.</p>"
    if not facts.stores:
        intro = "<p>Nothing: no store is known to hold anything about you.</p>"
    parts = "".join(_store(each, facts) for each in facts.stores)
    return f"<h2 id=remembered>What is remembered now</h2>{intro}{parts}"


def _store(report: StoreReport, facts: Facts) -> str:
    latest = facts.latest
    found, shown = latest.found.get(report.name, 0), latest.memories.get(report.name, [])
    head = f"<h3><code>{escape(report.name)}</code> {_STATUSES[report.status]}"
    error = f" ({escape(report.error)})" if report.error else ""
    lines = [f"{head}{error}: {counted(found, 'entry', 'entries')}</h3>"]
    if report.status is not StoreStatus.COMPLETE:
        lines.append(
            "<p class=soft>What is listed is what the log of the agents last knew to be there.</p>"
        )
    if shown:
        rows = (_memory(each) for each in shown)
        lines.append(table(["What", "Where", "Since", "Last changed"], rows))
    lines += _more(found - len(shown), latest.beside.get(report.name, 0))
    return "".join(lines)


def _memory(thing: dict[str, Any]) -> list[str]:
    content = readable(thing["content"])
    shown = f"<td class=text>{text(content)}</td>"
    place = text(thing["collection"] or thing["kind"])
    return [shown, place, when(thing["created"]), when(thing["updated"])]


def _more(hidden: int, beside: int) -> Iterator[str]:
    if hidden:
        yield f"<p class=soft>{hidden:,} more are in <code>memories.jsonl</code>.</p>"
    if beside:
        records = counted(beside, "record", "records")
        yield (
            f"<p class=soft>Beside these the store keeps {records} of earlier versions or "
            "messages, which are in <code>memories.jsonl</code>.</p>"
        )


def accesses(facts: Facts) -> str:
    """Return who looked, when and why."""
    shown = facts.latest.accesses
    intro = (
        f"<p>Each time an agent looked up what is remembered about you: {facts.summary.accesses:,} "
        "in all. “Seen” are the entries that it was shown, the best match first.</p>"
    )
    if not shown:
        return "<h2 id=accesses>Who looked, when and why</h2><p>Nobody did.</p>"
    rows = (_access(each, facts.latest.texts) for each in reversed(shown))
    listed = table(["When (UTC)", "Why", "Who", "Where", "Seen"], rows)
    note = _newest(len(shown), facts.summary.accesses, "accesses.csv")
    return f"<h2 id=accesses>Who looked, when and why</h2>{intro}{note}{listed}"


def _access(document: dict[str, Any], texts: dict[str, str]) -> list[str]:
    moment = f"<td class=time>{when(document['occurred_at'])}</td>"
    agent = text(document["agent"])
    if document["feature"]:
        agent += f"<br><span class=soft>{escape(document['feature'])}</span>"
    return [
        moment,
        text(document["purpose"]),
        agent,
        text(document["store"]),
        _seen(document, texts),
    ]


def _seen(document: dict[str, Any], texts: dict[str, str]) -> str:
    if document["withheld"] == "third_party":
        return "<span class=soft>not shown: see below</span>"
    memories = document["memories"]
    if not memories:
        return (
            "<span class=soft>nothing</span>" if not document["hits"] else f"{document['hits']:,}"
        )
    seen = "".join(
        f"<li value={each['rank']}>{_short(each, texts)}</li>" for each in memories[:_SEEN]
    )
    hidden = len(memories) - _SEEN
    return f"<ol class=seen>{seen}</ol>" + (f"and {hidden:,} more" if hidden > 0 else "")


def _short(memory: dict[str, Any], texts: dict[str, str]) -> str:
    memory_id = str(memory["memory_id"])
    known = texts.get(memory_id)
    shown = textwrap.shorten(known or memory_id, _SHORT, placeholder="…")
    return escape(shown) if known else f"<code>{escape(shown)}</code>"


def timeline(facts: Facts) -> str:
    """Return what was done, the newest first, by day."""
    shown = facts.latest.events
    if not shown:
        return "<h2 id=timeline>What was done, and when</h2><p>Nothing is recorded.</p>"
    intro = "<p>Everything the agents did with what is remembered about you. Times are in UTC.</p>"
    note = _newest(len(shown), facts.summary.all.count, "events.jsonl")
    days = groupby(reversed(shown), key=lambda each: day_of(each["occurred_at"]))
    listed = "".join(_day(day, documents) for day, documents in days)
    return f"<h2 id=timeline>What was done, and when</h2>{intro}{note}{_FILTER}{listed}"


_OPTIONS = "".join(f"<option value={kind}>{name}</option>" for kind, name in KINDS.items())
_FILTER = (
    "<div class=filter id=filter hidden><input type=search placeholder='Filter by any word' "
    "aria-label='Filter by any word'><select aria-label='Filter by kind'>"
    f"<option value=''>Everything</option>{_OPTIONS}</select><output class=soft></output></div>"
)


def _day(day: str, documents: Iterable[dict[str, Any]]) -> str:
    items = "".join(_event(each) for each in documents)
    return (
        f"<section class=of-day><h3 class=day>{escape(day)}</h3><ol class=timeline>{items}</ol>"
        "</section>\n"
    )


def _event(document: dict[str, Any]) -> str:
    kind, said = sentence(document)
    content = readable(document["content"])
    quote = f"<blockquote>{escape(content)}</blockquote>" if content else ""
    return (
        f"<li data-kind={kind}><span class='time soft'>{escape(time_of(document['occurred_at']))}"
        f"</span><span class='badge {kind}'>{KINDS[kind]}</span><div>{escape(said)}{quote}"
        f"<div class=soft>{_circumstances(document)}</div></div></li>\n"
    )


def _circumstances(document: dict[str, Any]) -> str:
    usage: dict[str, Any] = document["usage"] or {}
    known: list[tuple[str, Any]] = [
        ("why", document["purpose"]),
        ("in", document["store"] if not usage else None),
        ("model", usage.get("model")),
        ("feature", document["feature"]),
        ("conversation", document["run"]),
        ("record", document["seq"]),
    ]
    return " · ".join(f"{name}: {escape(str(value))}" for name, value in known if value is not None)


def _newest(shown: int, total: int, file: str) -> str:
    if shown >= total:
        return ""
    return (
        f"<p class=verdict>This page shows the newest {shown:,} of {total:,}. "
        f"All of them are in <code>{file}</code>.</p>"
    )

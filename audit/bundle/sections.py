"""The sections of the first page on memories, accesses and events."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator
from html import escape
from itertools import groupby
from typing import Any

from .contract import StoreReport, StoreStatus
from .facts import Facts, day_of, table, text, time_of, when
from .reading import marked, readable
from .sentences import KINDS, counted, sentence
from .statements import utc

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
    lines = [
        f"<h3>{facts.named(report.name)}: {counted(found, 'entry', 'entries')}</h3>",
        f"<p class=soft>{_state(report)}</p>",
    ]
    if shown:
        lines.append(table(["What", "Since", "Last changed"], map(_memory, shown)))
    lines += _more(found - len(shown), latest.beside.get(report.name, 0))
    return "".join(lines)


def _state(report: StoreReport) -> str:
    error = f" ({escape(report.error)})" if report.error else ""
    if report.status is StoreStatus.COMPLETE:
        return f"The store {_STATUSES[report.status]}, {when(utc(report.asked_us or 0))}."
    last = (
        "What the log of the agents last knew to be there is listed." if report.n_memories else ""
    )
    return f"The store {_STATUSES[report.status]}{error}. {last}"


def _memory(record: dict[str, Any]) -> list[str]:
    place = f"<div class=soft>{marked(record['collection'])}</div>" if record["collection"] else ""
    content = marked(readable(record["content"])) or text(record["id"])
    since, changed = when(record["created"]), when(record["updated"])
    last = "" if changed in {"", since} else changed
    return [f"<td class=text>{content}{place}</td>", _moment(since), _moment(last)]


def _moment(html: str) -> str:
    return f"<td class=time>{html or '<span class=soft>unchanged</span>'}</td>"


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
    latest = facts.latest
    if not latest.accesses:
        return "<h2 id=accesses>Who looked, when and why</h2><p>Nobody did.</p>"
    intro = (
        f"<p>Each time an agent looked up what is remembered about you: {latest.n_accesses:,} in "
        "all, the latest first. “Seen” is what it was shown, in its present wording, the best "
        "match first.</p>"
    )
    rows = (_access(each, latest.texts) for each in reversed(latest.accesses))
    listed = table(["When", "Why", "Who", "Seen"], rows)
    note = _newest(len(latest.accesses), latest.n_accesses, "accesses.csv")
    return f"<h2 id=accesses>Who looked, when and why</h2>{intro}{note}{listed}"


def _access(document: dict[str, Any], texts: dict[str, str]) -> list[str]:
    moment = f"<td class=time>{when(document['occurred_at'])}</td>"
    agent = f"{text(document['agent'])}<div class=soft>{escape(document['store'])}</div>"
    return [moment, text(document["purpose"]), agent, _seen(document, texts)]


def _seen(document: dict[str, Any], texts: dict[str, str]) -> str:
    if document["withheld"] is not None:
        return "<span class=soft>not shown: see below</span>"
    if document["class"] == "resume":
        return "the conversation so far"
    memories = document["memories"]
    if not memories:
        return f"{counted(document['hits'], 'entry', 'entries')}" if document["hits"] else "nothing"
    shown = memories[:_SEEN]
    seen = "".join(f"<li value={each['rank']}>{_short(each, texts)}</li>" for each in shown)
    hidden = len(memories) - _SEEN
    return f"<ol class=seen>{seen}</ol>" + (f"and {hidden:,} more" if hidden > 0 else "")


def _short(memory: dict[str, Any], texts: dict[str, str]) -> str:
    memory_id = str(memory["memory_id"])
    known = texts.get(memory_id)
    shown = textwrap.shorten(known or memory_id, _SHORT, placeholder="…")
    return marked(shown) if known else f"<code>{escape(shown)}</code>"


def timeline(facts: Facts) -> str:
    """Return what was done, the newest first, by day."""
    latest = facts.latest
    if not latest.events:
        return "<h2 id=timeline>What was done, and when</h2><p>Nothing is recorded.</p>"
    left_out = (
        f" {counted(latest.left_out, 'step', 'steps')} inside these, or that touched no memory, "
        "are left out here; they are in <code>events.jsonl</code>."
        if latest.left_out
        else ""
    )
    intro = f"<p>What the agents did with what is remembered about you.{left_out}</p>"
    note = _newest(len(latest.events), latest.n_events, "events.jsonl")
    days = groupby(reversed(latest.events), key=lambda each: day_of(each["occurred_at"]))
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
    is_state = document["class"] == "checkpoint"
    content = "" if is_state else marked(readable(document["content"]))
    quote = f"<blockquote>{content}</blockquote>" if content else ""
    return (
        f"<li data-kind={kind}><span class='time soft'>{escape(time_of(document['occurred_at']))}"
        f"</span><span class='badge {kind}'>{KINDS[kind]}</span><div>{escape(said)}{quote}"
        f"<div class=soft>{_circumstances(document)}</div></div></li>\n"
    )


def _circumstances(document: dict[str, Any]) -> str:
    usage: dict[str, Any] = document["usage"] or {}
    known: list[tuple[str, Any]] = [
        ("why", document["purpose"]),
        ("in", None if usage else document["store"]),
        ("model", usage.get("model")),
        ("part", document["feature"]),
        ("event", document["seq"]),
    ]
    return " · ".join(f"{name}: {escape(str(value))}" for name, value in known if value is not None)


def _newest(shown: int, total: int, file: str) -> str:
    if shown >= total:
        return ""
    return (
        f"<p class=verdict>This page shows the newest {shown:,} of {total:,}. All of them are in "
        f"<code>{file}</code>.</p>"
    )

"""The sections of the first page on memories and their use."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from html import escape
from typing import Any

from .contract import StoreReport, StoreStatus
from .conversations import Conversation
from .facts import BundleFacts, day_of, joined, period, short_day_of, time_of, when, why
from .provenance import THREAD
from .reading import dialogue, marked, readable
from .sentences import KINDS, counted, often, sentence, story, totals
from .statements import utc

_SEEN, _SHORT, _LONG = 3, 160, 1_200
"""Entries that are shown of what was seen, and letters of each; letters of a memory or a quote."""

_MEMORIES_OPEN, _CONVERSATIONS_OPEN = 12, 3
"""What is not folded: of each store, and of all conversations."""


def remembered(facts: BundleFacts) -> str:
    """Return what each store holds now."""
    intro = f"<p>What the agents can recall about you at this moment.{_legend(facts)}</p>"
    if not facts.stores:
        intro = "<p>Nothing: no store is known to hold anything about you.</p>"
    parts = "".join(_store(each, facts) for each in facts.stores)
    return f"<h2 id=remembered>What is remembered about you now</h2>{intro}{parts}"


def _legend(facts: BundleFacts) -> str:
    if not facts.summary.redactions:
        return ""
    shown = marked("<EMAIL_ADDRESS>")
    return f" Words like {shown} stand for personal details that were replaced before."


def _store(report: StoreReport, facts: BundleFacts) -> str:
    shown = facts.latest.memories.get(report.name, [])
    parts = [
        f"<h3>{facts.named(report.name)}: {_held(report)}</h3>",
        f"<p class=soft>{_state(report)}</p>",
        *_listed(shown),
        *_more(report.n_memories - len(shown), report.n_beside),
    ]
    return "".join(parts)


def _listed(shown: list[dict[str, Any]]) -> Iterator[str]:
    """Yield the first ones, and the others folded."""
    listed = [*map(_memory, shown)]
    first, others = listed[:_MEMORIES_OPEN], listed[_MEMORIES_OPEN:]
    if first:
        yield f"<ul class=memories>{''.join(first)}</ul>"
    if others:
        folded = counted(len(others), "more entry", "more entries")
        yield (
            f"<details><summary>{folded}</summary><ul class=memories>{''.join(others)}</ul>"
            "</details>"
        )


def _held(report: StoreReport) -> str:
    if report.n_memories:
        return counted(report.n_memories, "entry", "entries")
    return "nothing" if report.status is StoreStatus.COMPLETE else "not known"


def _state(report: StoreReport) -> str:
    if report.status is StoreStatus.COMPLETE:
        return f"The store answered in full, {when(utc(report.asked_us or 0))}."
    last = " What the log last knew to be there is listed." if report.n_memories else ""
    return f"The store {escape(why(report))}.{last}"


def _memory(record: dict[str, Any]) -> str:
    tale = marked(story(record))
    if record["kind"] == THREAD:
        shown, more = _cut(dialogue(record["content"]), "memories.jsonl")
        said = f"<div class=text>{shown}</div><div class=soft>{more}</div>"
        return f"<li><details><summary>{tale}</summary>{said}</details></li>\n"
    shown, more = _cut(readable(record["content"]), "memories.jsonl")
    return f"<li><div class=text>{shown}</div><div class=soft>{tale}{more}</div></li>\n"


def _cut(text: str, file: str) -> tuple[str, str]:
    """Return *text* as HTML, not too long, and where the rest of it is."""
    if len(text) <= _LONG:
        return marked(text) or "<span class=soft>no text</span>", ""
    return marked(f"{text[:_LONG]}…"), f" It goes on in <code>{file}</code>."


def _more(hidden: int, beside: int) -> Iterator[str]:
    if hidden > 0:
        yield f"<p class=soft>{hidden:,} more are in <code>memories.jsonl</code>.</p>"
    if beside:
        records = counted(beside, "record", "records")
        yield (
            f"<p class=soft>Beside these the store keeps {records} of earlier versions or "
            "messages, which are in <code>memories.jsonl</code>.</p>"
        )


_OPTIONS = "".join(f"<option value={kind}>{name}</option>" for kind, name in KINDS.items())
_FILTER = (
    "<div class=filter id=filter hidden><input type=search placeholder='Filter by any word' "
    "aria-label='Filter by any word'><select aria-label='Filter by kind'>"
    f"<option value=''>Everything</option>{_OPTIONS}</select><button type=button>Open all</button>"
    "<output class=soft></output></div>"
)


def used(facts: BundleFacts) -> str:
    """Return what was done with the memories, by conversation, the newest first."""
    conversations = facts.conversations
    heading = "<h2 id=used>When it was used, for what, by which agent</h2>"
    latest = conversations.latest()
    if not latest:
        return f"{heading}<p>Nothing is recorded.</p>"
    counts = facts.counts
    resumed = facts.summary.by_class["resume"]
    of_these = f" ({often(resumed)} to pick up a conversation)" if resumed else ""
    intro = (
        f"<p>{counted(counts.events, 'event is', 'events are')} recorded about you: agents looked "
        f"up something to answer you {often(counts.accesses)}{of_these}, were given something to "
        f"remember {often(counts.written)} and deleted something {often(counts.deleted)}. The "
        "newest conversation is the first; choose one to see what was done in it."
        f"{_documents(facts.evidence.n_of_documents)}</p>"
    )
    listed = "".join(
        _conversation(each, facts, is_open=number < _CONVERSATIONS_OPEN)
        for number, each in enumerate(latest)
    )
    return f"{heading}{intro}{_note(facts)}{_FILTER}{listed}"


def _documents(n_events: int) -> str:
    if not n_events:
        return ""
    were = counted(n_events, "event names", "events name")
    return (
        " Some of what was looked up may be about nobody, a page of help for example: it was used "
        f"to answer you, and was not written for you by what is recorded. {were} nobody, only such "
        "entries, and so what was written there is not part of this answer."
    )


def _note(facts: BundleFacts) -> str:
    hidden, left_out = facts.conversations.n_hidden, facts.conversations.left_out
    notes: list[str] = []
    if hidden:
        shown = counted(hidden, "earlier conversation is", "earlier conversations are")
        notes.append(f"{shown} not on this page.")
    if left_out:
        steps = counted(left_out, "step is", "steps are")
        notes.append(f"{steps} left out that were part of another, or touched no memory.")
    if not notes:
        return ""
    return f"<p class=soft>{' '.join(notes)} All events are in <code>events.jsonl</code>.</p>"


def _conversation(conversation: Conversation, facts: BundleFacts, *, is_open: bool) -> str:
    kind = "Conversation" if conversation.is_named else "Outside of conversations"
    hidden = conversation.n_entries - len(conversation.entries)
    more = f"<p class=soft>{hidden:,} earlier ones are not on this page.</p>" if hidden else ""
    is_long = day_of(conversation.first) != day_of(conversation.last)
    entries = "".join(_entry(each, facts, with_day=is_long) for each in conversation.entries)
    listed = f"<ol class=timeline>{entries}</ol>" if entries else ""
    summary = (
        f"<h3>{kind}, {period(conversation.first, conversation.last)}</h3>"
        f"<span class=told>{_participants(conversation)}{escape(totals(conversation.counts))}"
        f"{_models(conversation)}</span>"
    )
    if not listed:
        return f"<section class=conversation>{summary}</section>\n"
    shown = " open" if is_open else ""
    return (
        f"<details class=conversation{shown}><summary>{summary}</summary>{more}{listed}</details>\n"
    )


def _participants(conversation: Conversation) -> str:
    agents = [f"“{each}”" for each in conversation.agents]
    purposes = list(conversation.purposes)
    who = f"Agent{'s' if len(agents) > 1 else ''}: {joined(agents)}. " if agents else ""
    why_ = f"Purpose: {joined(purposes)}. " if purposes else "No purpose was given. "
    return marked(who + why_)


def _models(conversation: Conversation) -> str:
    models = [escape(each) for each in conversation.models]
    return f" Model{'s' if len(models) > 1 else ''}: {joined(models)}." if models else ""


def _entry(document: dict[str, Any], facts: BundleFacts, *, with_day: bool) -> str:
    kind, said = sentence(document)
    moment = document["occurred_at"]
    time = f"{short_day_of(moment)} {time_of(moment)}" if with_day else time_of(moment)
    quote = _quote(readable(_quoted(document)), is_asked=kind == "read")
    store = facts.named(document["store"])
    place = "" if kind == "model" else f"<div class=soft>Store: {store}</div>"
    return (
        f"<li data-kind={kind}><span class='time soft'>{escape(time)}"
        f"</span><span class='badge {kind}'>{KINDS[kind]}</span><div class=what>{marked(said)}"
        f"{quote}{_seen(document, facts.latest.texts)}{place}</div></li>\n"
    )


def _quote(content: str, *, is_asked: bool) -> str:
    if not content:
        return ""
    heading = "<div class=seen>It asked for:</div>" if is_asked else ""
    shown, more = _cut(content, "events.jsonl")
    rest = f"<div class=soft>{more}</div>" if more else ""
    return f"{heading}<blockquote>{shown}</blockquote>{rest}"


_ADDRESSES = frozenset({"key", "namespace", "collection", "collection_name", "channels"})
"""Fields that say where to look, and nothing to a person."""


def _quoted(document: dict[str, Any]) -> Any:
    """Return the content of an event without what only says where."""
    content = document["content"]
    # Of a write a field named key or channels may be what was said.
    if content.__class__ is dict and document["class"] != "remember":
        return {name: each for name, each in content.items() if name not in _ADDRESSES}
    return None if document["class"] == "checkpoint" else content


def _seen(document: dict[str, Any], texts: dict[str, str]) -> str:
    """Return what an agent was shown, in its present wording."""
    if document["withheld"] == "third_party":
        return "<div class=soft>What was found is somebody else's, and is not shown.</div>"
    if document["class"] != "recall" or not document["memories"]:
        return ""
    # One memory may be hit by several parts of a query; it is shown once.
    ids = Counter(str(each["memory_id"]) for each in document["memories"])
    known = [texts[each] for each in ids if each in texts]
    shown = "".join(f"<li>{marked(_shortened(each))}</li>" for each in known[:_SEEN])
    further = len(ids) - min(len(known), _SEEN)
    also = "" if not further else _further(further, known)
    return f"<div class=seen>It was shown:<ul>{shown}{also}</ul></div>"


def _shortened(text: str) -> str:
    words = " ".join(text.split())
    if len(words) <= _SHORT:
        return words
    cut = words[: _SHORT + 1]
    return f"{cut.rpartition(' ')[0] or cut[:_SHORT]}…"


def _further(count: int, known: list[str]) -> str:
    if len(known) > _SEEN:
        return f"<li class=soft>and {counted(count, 'other entry', 'other entries')}</li>"
    shown = counted(count, "entry", "entries")
    return f"<li class=soft>{shown} whose text is not on this page</li>"

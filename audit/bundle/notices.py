"""The sections of the first page on recipients, withheld data, rights and verification."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from html import escape
from typing import Any

from ..queries.runs import SITE
from .delivered import Recipient
from .facts import BundleFacts, joined, period, text, when
from .notice import ART_15, CONTROLLER
from .sentences import counted, often
from .statements import utc
from .summary import EventPeriod

_LOSSES_SHOWN = 20


def recipients(facts: BundleFacts) -> str:
    """Return the page's part on the recipients of the customer's data."""
    items = [*_stores(facts), *_providers(facts), *_sinks(facts)]
    unknown = _unknown(facts)
    listed = f"<ul class=cards>{''.join(items)}</ul>" if items else ""
    nobody = "" if items or unknown else "<p>Nobody.</p>"
    stated = facts.request.notice.art15.get("recipients")
    added = f"<p>The operator states: {text(stated)}</p>" if stated else ""
    return (
        "<h2 id=recipients>Who received data about you</h2><p>This was recorded as it happened: it "
        f"is not what was planned.</p>{listed}{nobody}{unknown}{added}"
    )


def _stores(facts: BundleFacts) -> Iterator[str]:
    for name, each in facts.summary.stores.items():
        what = "Memory store. What was said or remembered, with personal details replaced."
        if name == SITE:
            what = "People of the operator, who looked at what is held about you."
        yield _card(facts.named(name), what, each)


def _providers(facts: BundleFacts) -> Iterator[str]:
    for name, each in facts.summary.models.items():
        sent = f"{each.input_tokens:,} tokens (pieces of words), and {each.output_tokens:,} back."
        what = f"Language model. What the agent put into its questions: {sent}"
        provider, model = map(escape, name)
        yield _card(f"{model} ({provider})" if provider else model, what, each)


def _sinks(facts: BundleFacts) -> Iterator[str]:
    for recipient, each in facts.summary.sinks.items():
        yield _card(_sink(recipient), _received(recipient), each)
    for recipient, each in facts.summary.perhaps.items():
        what = f"{_received(recipient)} Some of these events; which of them is not known."
        yield _card(_sink(recipient), what, each)


def _sink(recipient: Recipient) -> str:
    kind = f" ({escape(recipient.kind)})" if recipient.kind else ""
    return f"{escape(_SINKS.get(recipient.sink, recipient.sink))}{kind}"


_SINKS = {
    "otlp": "Monitoring by OpenTelemetry",
    "prometheus": "Prometheus",
    "logs": "Log",
    "langsmith": "LangSmith",
    "webhooks": "Messages to whoever is in charge",
}


def _received(recipient: Recipient) -> str:
    if recipient.content is None:
        return "Monitoring. What it passes on is not recorded."
    if not recipient.is_about_people:
        return "Sums and durations, in which nobody is named and nothing is quoted."
    whom = "under a pseudonym for you" if recipient.subject == "keyed hash" else "without your name"
    what = f"that something happened, when, and how long it took, {whom}."
    said = (
        f"What was said, with personal details replaced, and {what}"
        if recipient.content
        else f"{what.capitalize()} Nothing of what was said."
    )
    return f"{said}{_PARTS.get(recipient.part or '', '')}"


_PARTS = {
    "abnormal": " Only where something went wrong.",
    "sampled": " Perhaps only of some of these events, as a sample.",
}


def _card(shown: str, what: str, each: EventPeriod) -> str:
    times = counted(each.count, "event", "events")
    when_ = period(each.first, each.last)
    return f"<li><b>{shown}</b><div>{escape(what)}</div><div class=soft>{times}, {when_}</div></li>"


def _unknown(facts: BundleFacts) -> str:
    unknown = facts.summary.cannot_tell
    if not unknown.count:
        return ""
    return (
        f"<p class='verdict lacking'><b>Cannot tell</b> for "
        f"{counted(unknown.count, 'event', 'events')} ({period(unknown.first, unknown.last)}) "
        "whether monitoring or logs received them: the program that recorded them has not noted "
        "it. It still runs, ended abruptly, or is of an older version.</p>"
    )


def withheld(facts: BundleFacts) -> str:
    """Return what is not in the bundle, and why."""
    redacted = _redacted(facts.summary.redactions)
    items = [*redacted, *_deleted(facts), *_hidden(facts), *_lost(facts)]
    listed = "".join(f"<li>{item}</li>" for item in items)
    body = f"<ul>{listed}</ul>" if items else "<p>Nothing.</p>"
    return f"<h2 id=withheld>What was removed or is not shown, and why</h2>{body}"


def _redacted(redactions: Counter[str]) -> list[str]:
    if not redactions:
        return []
    common = redactions.most_common(12)
    kinds = ", ".join(f"{escape(_entity(name))} ({count:,})" for name, count in common)
    item = (
        f"Before anything was stored, personal details were replaced by their kind: {kinds}. What "
        "was replaced is not kept here."
    )
    return [item]


def _entity(name: str) -> str:
    return name.replace("_", " ").lower()


def _deleted(facts: BundleFacts) -> list[str]:
    count = facts.counts.deleted
    # A portability bundle has no deletions in its events, so it cannot show them.
    if not (count and facts.is_access):
        return []
    item = (
        f"{often(count).capitalize()}, agents deleted something that was remembered. When, by "
        "which agent and for what is told above, under “Deleted”, or else in "
        "<code>events.jsonl</code>."
    )
    return [item]


def _hidden(facts: BundleFacts) -> list[str]:
    items: list[str] = []
    if facts.summary.n_withheld:
        items.append(
            f"{counted(facts.summary.n_withheld, 'event', 'events')} had a result that belongs to "
            "somebody else. Their content is not shown, to protect that person (GDPR Art. 15(4))."
        )
    if facts.summary.n_erased:
        items.append(
            f"The content of {counted(facts.summary.n_erased, 'event', 'events')} was erased. That "
            "they happened is still proved."
        )
    return items


def _lost(facts: BundleFacts) -> list[str]:
    return [
        f"The log lost {counted(each.n_events, 'event', 'events')} before "
        f"{when(utc(each.declared_us))} and says so ({escape(each.reason)}). They may or may not "
        "have been about you."
        for each in facts.evidence.losses[:_LOSSES_SHOWN]
    ]


def rights(facts: BundleFacts) -> str:
    """Return what the customer may ask for, of whom, and how to complain."""
    notice = facts.request.notice
    controller, art15 = notice.controller, notice.art15
    contact = text(controller.get("contact") or "those who gave you this file")
    authority = art15.get("complaint_authority")
    unknown = f"a data protection authority (which: {_NOT_STATED})"
    complain = text(authority) if authority else unknown
    rows = [(_NAMES[f"controller.{name}"], controller.get(name)) for name in CONTROLLER]
    rows += [(_NAMES[f"art15.{name}"], value) for name, value in _art15(facts).items()]
    listed = "".join(
        f"<dt>{name}</dt><dd>{text(value) if value else _NOT_STATED}</dd>"
        for name, value in rows
        # Of somebody who is not known there is nothing that the operator would have to state.
        if value or not facts.holds_nothing
    )
    return (
        "<h2 id=rights>Your rights</h2><p>You may have wrong entries corrected, have all of them "
        "erased, have their use restricted, and object to it (GDPR Art. 16 to 21). Write to: "
        f"<b>{contact}</b>, and name request <code>{escape(facts.request.request_id)}</code>.</p>"
        f"<p>If you are not content with the answer you may complain (Art. 77) to {complain}.</p>"
        f"<dl>{listed}</dl>"
    )


_NOT_STATED = "<span class=soft>not stated by the operator</span>"


def _art15(facts: BundleFacts) -> dict[str, Any]:
    """Return what the operator states, or else what the events and settings say."""
    stated = facts.request.notice.art15
    found = {
        "purposes": sorted(filter(None, facts.summary.purposes)),
        "categories": facts.categories,
        "retention": facts.retention,
        "sources": [_SOURCES[each] for each in _SOURCES if facts.summary.sources[each]],
    }
    shown = (name for name in ART_15 if name not in {"recipients", "rights"})
    return {name: stated.get(name) or found.get(name) for name in shown}


_SOURCES = {
    "user_message": "what you said",
    "agent": "what agents wrote",
    "tool": "other systems that agents asked",
}

_NAMES = {
    "controller.name": "Who is responsible",
    "controller.contact": "Contact",
    "controller.dpo": "Data protection officer",
    "art15.purposes": "Purposes",
    "art15.legal_bases": "Legal bases",
    "art15.categories": "Kinds of data",
    "art15.retention": "Kept for",
    "art15.complaint_authority": "Authority for complaints",
    "art15.sources": "Sources",
    "art15.automated_decisions": "Automated decisions",
    "art15.transfers": "Transfers abroad",
}


def not_stated(names: Sequence[str]) -> str:
    """Return what is missing, as a person says it."""
    return joined([_NAMES[each].lower() for each in names])


def checking(facts: BundleFacts) -> str:
    """Return how to see for oneself that nothing was changed."""
    evidence = facts.evidence
    return (
        "<h2 id=checking>Check it yourself</h2>"
        "<p>Each event was sealed when it was recorded: its fingerprint went into a log in which "
        "nothing can be changed, moved or taken out without changing the fingerprint of the whole. "
        "This file holds the proofs. With Python on your computer, and nothing else, run</p>"
        "<pre><code>python3 verify.py</code></pre>"
        "<p>in the folder into which you unpacked it. It should say <code>OK</code>, or what this "
        "page says to be missing, and this key, which you can compare with the one that the "
        "operator has published:</p>"
        f"<pre><code>{escape(evidence.verifier_key)}</code></pre>"
        "<p class=soft>It proves that what is here is what was recorded, and in which order. It "
        "cannot prove that nothing was left out.</p>"
        f"<p class=soft>Log <code>{escape(evidence.origin)}</code>, {evidence.size:,} events of "
        f"all customers, fingerprint <code>{evidence.root.hex()}</code>.</p>"
    )


_FILES = {
    "README.html": "this page",
    "memories.jsonl": "what each store holds, one entry a line",
    "events.jsonl": "everything that was done, oldest first, one event a line",
    "accesses.csv": "who looked, when and why, for a spreadsheet",
    "recipients.json": "who received data",
    "redactions.json": "what is not shown, and why",
    "proofs.jsonl": "the proofs, one for each event",
    "checkpoint.note": "the fingerprint of the whole log, signed",
    "verify.py": "the program that checks all this",
    "manifest.json": "the list of these files, and how complete they are",
    "manifest.note": "the signature of that list",
}


def contents(facts: BundleFacts) -> str:
    """Return what the files are."""
    there = (name for name in _FILES if facts.is_access or name != "accesses.csv")
    rows = "".join(f"<dt><code>{name}</code></dt><dd>{_FILES[name]}</dd>" for name in there)
    return f"<h2 id=files>The files</h2><dl>{rows}</dl>"

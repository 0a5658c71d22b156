"""The sections of the first page on recipients, withheld data, rights and verification."""

from __future__ import annotations

from collections import Counter
from html import escape
from typing import Any

from .facts import Facts, table, text, when
from .sentences import counted
from .statements import utc
from .summary import EventPeriod

_LOSSES_SHOWN = 20


def recipients(facts: Facts) -> str:
    """Return who received data."""
    summary = facts.summary
    stores = [(name, "memory store", each) for name, each in summary.stores.items()]
    models = [
        (" ".join(name).strip(), "language model", each) for name, each in summary.models.items()
    ]
    sinks = [
        (name, "monitoring: no content, a pseudonym for you", summary.all)
        for name in facts.request.sinks
    ]
    rows = [
        _recipient(facts.named(name), what, period)
        for name, what, period in (*stores, *models, *sinks)
    ]
    body = (
        table(["Recipient", "What", "First", "Last", "Times"], rows) if rows else "<p>Nobody.</p>"
    )
    return f"<h2 id=recipients>Who received data about you</h2>{body}"


def _recipient(shown: str, what: str, period: EventPeriod) -> list[str]:
    times = f"{period.count:,}"
    return [shown, what, when(period.first), when(period.last), times]


def withheld(facts: Facts) -> str:
    """Return what is not in the bundle, and why."""
    items = [*_redacted(facts.summary.redactions), *_hidden(facts), *_lost(facts)]
    listed = "".join(f"<li>{item}</li>" for item in items)
    body = f"<ul>{listed}</ul>" if items else "<p>Nothing.</p>"
    return f"<h2 id=withheld>What is not shown</h2>{body}"


def _redacted(redactions: Counter[str]) -> list[str]:
    if not redactions:
        return []
    kinds = ", ".join(f"{escape(name)} ({count:,})" for name, count in redactions.most_common(12))
    item = (
        f"Before anything was stored, personal details were replaced by their kind: {kinds}. What "
        "was replaced is not kept here."
    )
    return [item]


def _hidden(facts: Facts) -> list[str]:
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


def _lost(facts: Facts) -> list[str]:
    return [
        f"The log lost {counted(each.n_events, 'event', 'events')} before "
        f"{when(utc(each.declared_us))} and says so ({escape(each.reason)}). They may or may not "
        "have been about you."
        for each in facts.evidence.losses[:_LOSSES_SHOWN]
    ]


def rights(facts: Facts) -> str:
    """Return what the customer may ask for, and of whom."""
    notice = facts.request.notice
    art15: dict[str, Any] = notice.get("art15") or {}
    controller: dict[str, Any] = notice.get("controller") or {}
    rows = [[escape(_NAMES.get(key, key)), text(_joined(value))] for key, value in art15.items()]
    rows += [[escape(key.capitalize()), text(value)] for key, value in controller.items()]
    stated = (
        table(["", ""], rows)
        if rows
        else (
            "<p class=soft>The operator has not added its name, its purposes or its contacts.</p>"
        )
    )
    return (
        "<h2 id=rights>Your rights</h2><p>You may have wrong entries corrected and all of them "
        "erased, may have their use restricted, may object to it, and may complain to a data "
        f"protection authority (GDPR Art. 15 to 21 and 77).</p>{stated}"
    )


_NAMES = {
    "purposes": "Purposes",
    "categories": "Kinds of data",
    "recipients": "Recipients",
    "retention": "Kept for",
    "rights": "Rights",
    "complaint_authority": "Authority for complaints",
    "sources": "Sources",
    "automated_decisions": "Automated decisions",
    "transfers": "Transfers abroad",
}


def _joined(value: Any) -> Any:
    kind = value.__class__
    return ", ".join(map(str, value)) if kind is list else value


def checking(facts: Facts) -> str:
    """Return how to see for oneself that nothing was changed."""
    evidence = facts.evidence
    return (
        "<h2 id=checking>Check it yourself</h2>"
        "<p>Each event was sealed when it was recorded: its fingerprint went into a log in which "
        "nothing can be changed, moved or taken out without changing the fingerprint of the whole. "
        "This file holds the proofs. With Python on your computer, and nothing else, run</p>"
        "<pre><code>python3 verify.py</code></pre>"
        "<p>in the folder into which you unpacked it. It should say <code>OK</code> and this key, "
        "which you can compare with the one that the operator has published:</p>"
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


def contents(facts: Facts) -> str:
    """Return what the files are."""
    there = (name for name in _FILES if facts.is_access or name != "accesses.csv")
    rows = [[f"<code>{name}</code>", _FILES[name]] for name in there]
    return f"<h2 id=files>The files</h2>{table(['File', 'What it holds'], rows)}"

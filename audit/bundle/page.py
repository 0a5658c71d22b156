"""
README.html: the first page of a bundle, for the customer.

One file, without a network: its style and the script of its filter are inside, and a content
security policy names them by hash, so that nothing that was remembered can run. Without the script
it shows everything. It is bounded: of a long history the newest part, with the files that have all.
"""

from __future__ import annotations

import base64
from hashlib import sha256
from html import escape
from importlib.resources import files

from . import notices, sections
from .contract import RequestType
from .facts import BundleFacts, day_of, joined, when, why
from .statements import utc

_TITLES = {
    RequestType.ACCESS: "What our AI agents remember about you",
    RequestType.PORTABILITY: "What you gave our AI agents to remember",
}
_LINKS = {
    "remembered": "Remembered now",
    "used": "When it was used",
    "recipients": "Who received it",
    "withheld": "Removed or not shown",
    "rights": "Your rights",
    "checking": "Check it",
    "files": "Files",
}
_OF_ACCESS = frozenset({"used", "recipients"})


def first_page(facts: BundleFacts) -> str:
    """Return README.html."""
    style, script = _source("page.css"), _source("page.js")
    # By hash and not by nonce: the page is a file, for which nobody makes a nonce.
    policy = f"default-src 'none'; style-src '{_hash(style)}'; script-src '{_hash(script)}'"
    title = _TITLES[facts.request.kind]
    return (
        f"<!doctype html>\n<html lang=en><head><meta charset=utf-8><title>{title}</title>\n"
        f'<meta http-equiv=Content-Security-Policy content="{policy}">\n'
        '<meta name=viewport content="width=device-width, initial-scale=1">\n'
        "<meta name=referrer content=no-referrer><meta name=robots content=noindex>\n"
        f"<style>{style}</style></head>\n<body>\n<header><h1>{title}</h1>{_opening(facts)}</header>\n"
        f"<main>{_body(facts)}</main>\n{_footer(facts)}\n<script>{script}</script></body></html>\n"
    )


def _body(facts: BundleFacts) -> str:
    parts = {
        "remembered": sections.remembered,
        "used": sections.used,
        "recipients": notices.recipients,
        "withheld": notices.withheld,
        "rights": notices.rights,
        "checking": notices.checking,
        "files": notices.contents,
    }
    return "\n".join(part(facts) for name, part in parts.items() if _is_shown(name, facts))


def _is_shown(name: str, facts: BundleFacts) -> bool:
    return facts.is_access or name not in _OF_ACCESS


def _opening(facts: BundleFacts) -> str:
    links = "".join(
        f"<li><a href=#{name}>{shown}</a></li>"
        for name, shown in _LINKS.items()
        if _is_shown(name, facts)
    )
    return (
        f"{_about(facts)}<p class=soft>Request <code>{escape(facts.request.request_id)}</code>, "
        f"answered {when(utc(facts.request.generated_us))} UTC.{_since(facts)}</p>"
        f"{_verdict(facts)}{_figures(facts)}<nav aria-label=Contents><ol>{links}</ol></nav>"
    )


def _about(facts: BundleFacts) -> str:
    names = [
        f"<b>{escape(each.id)}</b>" + (f" at {escape(each.tenant)}" if each.tenant else "")
        for each in facts.subject.identifiers
    ]
    if not names:
        return ""
    controller = facts.request.notice.controller.get("name")
    by = f", answered by {escape(str(controller))}" if controller else ""
    return f"<p class=about>About {joined(names)}{by}</p>"


def _since(facts: BundleFacts) -> str:
    first = facts.summary.all.first
    return f" First record: {day_of(first)}." if first else ""


def _verdict(facts: BundleFacts) -> str:
    # Nothing was found is not nothing is there while a store was not read.
    if facts.holds_nothing and not facts.lacking:
        return (
            "<p class=verdict><b>No data is held about you.</b> The log of the agents names you "
            "nowhere, and no store that was asked holds anything in your name.</p>"
        )
    if not facts.incomplete:
        return (
            "<p class=verdict><b>This answer is complete.</b> Every store that ever held something "
            "about you was asked, and told everything.</p>"
        )
    items = [f"{facts.named(each.name)}: the store {escape(why(each))}." for each in facts.lacking]
    instead = " Where a store did not tell, what the log last knew to be there is shown."
    if facts.not_stated:
        items.append(
            "Whoever runs the agents (the operator) has to state, and has not: "
            f"{notices.not_stated(facts.not_stated)}."
        )
    listed = "".join(f"<li>{each}</li>" for each in items)
    return (
        "<div class='verdict lacking'><b>Incomplete:</b> parts of this answer are missing."
        f"<ul>{listed}</ul><p>You may <a href=#rights>ask for them</a>."
        f"{instead if facts.lacking else ''}</p></div>"
    )


def _figures(facts: BundleFacts) -> str:
    counts = facts.counts
    figures = [
        (counts.memories, "remembered now"),
        (counts.accesses, "time looked up" if counts.accesses == 1 else "times looked up"),
        (counts.written, "time written" if counts.written == 1 else "times written"),
        (counts.deleted, "time deleted" if counts.deleted == 1 else "times deleted"),
    ]
    if not facts.is_access:
        figures = figures[::2]
    items = "".join(f"<li><b>{number:,}</b>{what}</li>" for number, what in figures)
    return f"<ul class=figures>{items}</ul>"


def _footer(facts: BundleFacts) -> str:
    version = escape(facts.request.version)
    made = f"Made by mnemoscope {version}. Times are in UTC. This page needs no network."
    return f"<footer>{made}</footer>"


def _hash(text: str) -> str:
    return f"sha256-{base64.b64encode(sha256(text.encode()).digest()).decode()}"


def _source(name: str) -> str:
    return (files(__package__ or __name__) / name).read_text(encoding="utf-8")

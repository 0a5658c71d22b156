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
from .contract import RequestType, StoreReport, StoreStatus
from .facts import Facts, short_day_of, when
from .statements import utc

_TITLES = {
    RequestType.ACCESS: "What our AI agents remember about you",
    RequestType.PORTABILITY: "What you gave our AI agents to remember",
}
_LINKS = {
    "remembered": "Remembered now",
    "accesses": "Who looked",
    "timeline": "What was done",
    "recipients": "Recipients",
    "withheld": "Not shown",
    "rights": "Your rights",
    "checking": "Check it",
    "files": "Files",
}
_OF_ACCESS = frozenset({"accesses", "recipients"})


def first_page(facts: Facts) -> str:
    """Return README.html."""
    style, script = _source("page.css"), _source("page.js")
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


def _body(facts: Facts) -> str:
    parts = {
        "remembered": sections.remembered,
        "accesses": sections.accesses,
        "timeline": sections.timeline,
        "recipients": notices.recipients,
        "withheld": notices.withheld,
        "rights": notices.rights,
        "checking": notices.checking,
        "files": notices.contents,
    }
    return "\n".join(part(facts) for name, part in parts.items() if _is_shown(name, facts))


def _is_shown(name: str, facts: Facts) -> bool:
    return facts.is_access or name not in _OF_ACCESS


def _opening(facts: Facts) -> str:
    links = "".join(
        f"<li><a href=#{name}>{shown}</a></li>"
        for name, shown in _LINKS.items()
        if _is_shown(name, facts)
    )
    return (
        f"<p class=soft>Request <code>{escape(facts.request.request_id)}</code>, answered "
        f"{when(utc(facts.request.generated_us))} UTC</p>{_verdict(facts)}{_figures(facts)}"
        f"<nav aria-label=Contents><ol>{links}</ol></nav>"
    )


def _verdict(facts: Facts) -> str:
    if not (facts.summary.all.count or facts.n_memories or facts.lacking):
        return (
            "<p class=verdict><b>No data is held about you.</b> The log of the agents names you "
            "nowhere, and no store that was asked holds anything in your name.</p>"
        )
    if not facts.lacking:
        return (
            "<p class=verdict><b>This answer is complete.</b> Every store that ever held something "
            "about you was asked, and told everything.</p>"
        )
    items = "".join(f"<li>{facts.named(each.name)}: {_why(each)}</li>" for each in facts.lacking)
    return (
        "<div class='verdict lacking'><b>This answer is not complete.</b> Some stores did not tell "
        f"everything; what the log knows of them is listed instead.<ul>{items}</ul></div>"
    )


def _why(report: StoreReport) -> str:
    reasons = {
        StoreStatus.PARTIAL: "it failed before it had told everything",
        StoreStatus.FAILED: "it could not be read",
        StoreStatus.NOT_ASKED: "it was not asked",
    }
    error = f" ({escape(report.error)})" if report.error else ""
    return f"{reasons[report.status]}{error}"


def _figures(facts: Facts) -> str:
    summary = facts.summary
    looked = facts.latest.n_accesses
    figures = [
        (facts.n_memories, "remembered now"),
        (looked, "time looked up" if looked == 1 else "times looked up"),
        (summary.by_class["remember"], "written"),
        (summary.by_class["forget"], "deleted"),
    ]
    if not facts.is_access:
        figures = figures[::2]
    items = "".join(f"<li><b>{number:,}</b>{what}</li>" for number, what in figures)
    if summary.all.first:
        items += f"<li><b>{short_day_of(summary.all.first)}</b>first recorded</li>"
    return f"<ul class=figures>{items}</ul>"


def _footer(facts: Facts) -> str:
    version = escape(facts.request.version)
    made = f"Made by mnemoscope {version}. Times are in UTC. This page needs no network."
    return f"<footer>{made}</footer>"


def _hash(text: str) -> str:
    return f"sha256-{base64.b64encode(sha256(text.encode()).digest()).decode()}"


def _source(name: str) -> str:
    return (files(__package__ or __name__) / name).read_text(encoding="utf-8")

"""The page of a receipt: plain text of 78 columns, for the customer."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from typing import Any

from .report import NOTHING_TO_SEARCH_FOR, VOUCHED

_COLUMNS = 78
_NAMES = {"audit": "the audit trail's files", "logs": "log files"}

_MEANT = {
    "vault": "vault: the sender says that nothing in it stands for your personal data",
    "files": "log files: the sender says that they were looked through",
}
_STAYS = (
    "Numbered entries stay in an audit log: that something was done, when, and in which store. "
    "They do not say whose it was, and what they said about you can no longer be read. Copies that "
    "were made before, as backups, stay until they expire."
)
_CHECK = (
    "This file is signed, and what it says stands in that audit log. To check it, unpack it and "
    "run `python3 verify.py` in its folder: that needs Python 3.8 or newer, and no network. It "
    "prints the key that signed it: compare it with the one that the sender has published."
)


def receipt_page(document: dict[str, Any]) -> str:
    """Return a receipt as a page of plain text."""
    return "\n".join(_lines(document)) + "\n"


def _lines(known: dict[str, Any]) -> Iterator[str]:
    title = "RECEIPT: what was remembered about you was erased"
    yield from (title, "=" * len(title), "")
    yield from _facts(known)
    yield from _headed("What was removed", _removed(known))
    yield from _headed("What was looked at afterwards", _wrapped(_looked(known)))
    vouched = [_vouched(each) for each in known["stores"] if each["status"] == VOUCHED]
    vouched += [_MEANT[each] for each in known["erasure"]["vouched"] if each in _MEANT]
    if vouched:
        yield from _headed("What could not be asked", _points(vouched))
    limits = [message for each in known["stores"] for message in _limits(each)]
    if limits:
        yield from _headed("What the stores say of themselves", _points(limits))
    yield from _headed("What stays", _wrapped(_STAYS))
    yield from _headed("How to check this", _wrapped(_CHECK))


def _facts(known: dict[str, Any]) -> Iterator[str]:
    about = known["subject"]
    for number, each in enumerate(about["identities"]):
        yield _fact("" if number else "Erased", each)
    if about["tenant"] is not None:
        yield _fact("At", about["tenant"])
    yield _fact("Request", known["request_id"])
    yield _fact("Begun", _minute(known["begun_at"]))
    yield _fact("Ended", _minute(known["ended_at"]))
    yield ""


def _fact(name: str, value: str) -> str:
    return f"{name:<10}{value}"


def _minute(moment: str) -> str:
    return f"{moment[:10]} {moment[11:16]} UTC"


def _removed(known: dict[str, Any]) -> Iterator[str]:
    for each in known["stores"]:
        if each["status"] != VOUCHED:
            yield _row(f"{each['title']} ({each['name']})", each["removed"])
    if known["erasure"]["pseudonyms"] is not None:
        yield _row("What stood for your personal data (vault)", known["pseudonyms"])
    yield _row("What the audit trail said about you", known["details"])


def _row(name: str, count: int) -> str:
    return f"  {name + ' ':.<{_COLUMNS - 20}} {count:>8,}"


def _looked(known: dict[str, Any]) -> str:
    second_look = "Each of these was asked again, and had nothing left."
    texts = known["erasure"]["searched_texts"]
    searched: list[str] = known["searched"]
    places = [_NAMES.get(each, each) for each in searched]
    # Nothing was there to look for: "none was found" would be true, and say nothing.
    if not texts:
        return f"{second_look} Files were not searched: {NOTHING_TO_SEARCH_FOR}."
    also = f", {' and '.join(places)}" if places else ""
    return (
        f"{second_look} Their files on the machine that did it{also} were searched for "
        f"{texts:,} texts that had been yours, and had none."
    )


def _vouched(store: dict[str, Any]) -> str:
    reason = ", ".join(store["messages"])
    return f"{store['name']}: {reason}. The sender says that it has nothing of yours"


def _limits(store: dict[str, Any]) -> list[str]:
    if store["status"] == VOUCHED:
        return []
    return [f"{store['name']}: {message}" for message in store["messages"]]


def _headed(heading: str, lines: Iterator[str]) -> Iterator[str]:
    yield from (heading, "-" * len(heading), "")
    yield from lines
    yield ""


def _points(texts: Any) -> Iterator[str]:
    for each in texts:
        yield from textwrap.wrap(each, _COLUMNS, initial_indent="  * ", subsequent_indent="    ")


def _wrapped(text: str) -> Iterator[str]:
    yield from textwrap.wrap(text, _COLUMNS)

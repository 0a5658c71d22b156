"""
Draw the first page of an export for the README: make export-picture.

The people are invented; the code is that of a real export: an audit log, four stores, a bundle. It
needs Chromium on the PATH.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from mnemoscope.audit.bundle.contract import Request
from mnemoscope.audit.bundle.source import source
from mnemoscope.audit.bundle.writing import write_bundle
from mnemoscope.audit.erasure.stores import Thing
from mnemoscope.audit.log import AuditLog
from mnemoscope.telemetry.event.event import Event, OperationClass, Redacted, Status
from mnemoscope.telemetry.event.subject import Subject, SubjectKeys
from mnemoscope.telemetry.event.trace import TraceRef
from mnemoscope.telemetry.event.usage import Usage

PICTURE = Path(__file__).with_name("images") / "export.png"
SIZE = "1000,2060"
KEYS = SubjectKeys(b"a key for a picture, and for nothing else")
CUSTOMER = Subject("mara@example.com", tenant="north-wheels", keys=KEYS)
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")

FACTS = {
    "f1": "Rides a gravel bike, frame size 54, about 6,000 km a year",
    "f2": "Wants e-mail, no calls: <EMAIL_ADDRESS>",
    "f3": "Latex gives her a rash: use nitrile gloves on her handlebars",
    "f4": "<PERSON>, her brother, may collect the bike",
}
NOTES = {"n1": "Workshop booked for 24 November, 9:00, at <STREET_ADDRESS>"}
WHY = {"agent": "workshop", "purpose": "answer a message", "run": "<SUBJECT_ID_51c2>-7"}
RECALL = {"op_class": OperationClass.RECALL, "operation": "search_memory", "method": "search"}
WRITE = {"op_class": OperationClass.REMEMBER, "operation": "create_memory", "method": "add"}
SEEN = {"status": Status.OK, "hits": 3, "scores": (0.91, 0.74, 0.52)}


class Record(NamedTuple):
    """A record of a store."""

    id: str
    content: str
    created: str
    kind: str = "memory"
    collection: str | None = None
    updated: str | None = None
    is_current: bool = True


class Answers(NamedTuple):
    """A store that answers."""

    name: str
    things: tuple[Thing, ...]
    unasked: str | None = None

    @property
    def store(self) -> str:
        """Its name in events."""
        return self.name

    def held(self) -> Iterator[Thing]:
        """Tell all of it."""
        yield from self.things


def moments() -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield when something happened, and what."""
    said = {"mem0": FACTS, "langgraph.store": NOTES}
    written = [
        ("2026-10-02T08:41", "mem0", "f1"),
        ("2026-10-02T08:43", "mem0", "f2"),
        ("2026-10-19T16:05", "mem0", "f3"),
        ("2026-11-20T11:12", "mem0", "f4"),
        ("2026-11-20T11:13", "langgraph.store", "n1"),
    ]
    for moment, store, key in written:
        content = Redacted({"messages": [{"role": "user", "content": said[store][key]}]})
        yield moment, {**WRITE, "store": store, "memory_ids": (key,), "content": content}
    asked = Redacted({"query": "is the bike ready, and can <PERSON> collect it?"})
    ids = ("f4", "f1", "f3")
    yield "2026-10-19T16:04", {**RECALL, "status": Status.EMPTY, "hits": 0}
    yield "2026-11-20T11:10", {**RECALL, **SEEN, "memory_ids": ("f3", "f1", "f2")}
    yield "2026-11-24T17:30", {**RECALL, **SEEN, "memory_ids": ids, "content": asked}
    thread = {"store": "langgraph.checkpoint", "method": "get_tuple"}
    resumed = {**thread, "op_class": OperationClass.RESUME, "operation": "load_checkpoint"}
    yield "2026-11-24T17:29", resumed
    usage = Usage(model="mistral-small", provider="mistral", input_tokens=812, output_tokens=96)
    chat = {"op_class": OperationClass.MODEL, "operation": "chat", "method": "stream"}
    yield "2026-11-24T17:31", {**chat, "store": "langgraph.model", "usage": usage}
    forgot = {"op_class": OperationClass.FORGET, "operation": "delete_memory", "method": "delete"}
    yield "2026-11-24T17:33", {**forgot, "memory_ids": ("f0",)}


def events() -> Iterator[Event]:
    """Yield what happened, as it was recorded."""
    for number, (moment, what) in enumerate(sorted(moments(), key=lambda each: each[0]), 1):
        started = datetime.fromisoformat(moment).replace(tzinfo=UTC).timestamp()
        known: dict[str, Any] = {"store": "mem0", "status": Status.OK, **WHY, **what}
        yield Event(
            writer_id="00000000000000aa",
            writer_seq=number,
            started_ns=round(started * 1e9),
            duration_s=0.02,
            trace=TraceRef(number, number),
            subject=CUSTOMER,
            tenant="north-wheels",
            redactions={"PERSON": 1, "EMAIL_ADDRESS": 1} if number in {2, 7} else {},
            **known,
        )


def stores() -> tuple[Answers, ...]:
    """Return what the stores say now."""
    facts = tuple(
        Record(key, text, moment)
        for (key, text), moment in zip(
            FACTS.items(),
            ("2026-10-02T08:41Z", "2026-10-02T08:43Z", "2026-10-19T16:05Z", "2026-11-20T11:12Z"),
            strict=True,
        )
    )
    note = Record("n1", NOTES["n1"], "2026-11-20T11:13Z", kind="item")
    thread = Record("t7", "9 messages, the last on 24 November", "2026-10-02T08:40Z", kind="thread")
    return (
        Answers("mem0", facts),
        Answers("langgraph.store", (note,)),
        Answers("langgraph.checkpoint", (thread,)),
    )


NOTICE = {
    "controller": {"name": "North Wheels AB", "contact": "privacy@north-wheels.example"},
    "art15": {
        "purposes": ["answering messages", "workshop appointments"],
        "retention": "400 days after the last visit",
    },
}


def export(folder: Path) -> Path:
    """Write a bundle, and return its first page."""
    log = AuditLog(folder / "audit.db", KEYS)
    log.append(list(events()))
    request = Request(
        request_id="20261125-3fa94c07",
        generated_us=round(datetime(2026, 11, 25, 9, 30, tzinfo=UTC).timestamp() * 1e6),
        version="0.1.0",
        notice=NOTICE,
        sinks=("otlp", "logs"),
    )
    with source(log, "mara@example.com", "north-wheels") as found:
        bundle = write_bundle(
            folder / "export.zip",
            request,
            found.evidence,
            history=found.history,
            stores=stores(),
            clock_ns=lambda: request.generated_us * 1_000,
        )
    log.close()
    with zipfile.ZipFile(bundle.path) as archive:
        return Path(archive.extract("README.html", folder))


def main() -> int:
    """Draw the picture."""
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    if browser is None:
        sys.stderr.write(f"needs one of {', '.join(BROWSERS)} on the PATH\n")
        return 1
    with tempfile.TemporaryDirectory() as name:
        page = export(Path(name))
        drawn = Path(name) / "export.png"
        options = ("--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars")
        profile = f"--user-data-dir={name}/profile"
        subprocess.run(  # noqa: S603 - the browser that was just found
            [
                browser,
                *options,
                profile,
                f"--window-size={SIZE}",
                f"--screenshot={drawn}",
                page.as_uri(),
            ],
            check=True,
            capture_output=True,
            timeout=60,
        )
        shutil.copyfile(drawn, PICTURE)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())

"""
Draw the first page of an export for the docs: make export-picture.

The people are invented; the code is that of a real export: an audit log, three stores, a bundle. It
needs Chromium on the PATH. With --look FOLDER it draws the page at 360, 768 and 1,280 pixels and
on paper, for whoever has changed it, and says where something is wider than the screen.
"""

from __future__ import annotations

import argparse
import re
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
from mnemoscope.audit.bundle.notice import Notice
from mnemoscope.audit.bundle.source import source
from mnemoscope.audit.bundle.writing import write_bundle
from mnemoscope.audit.log import AuditLog
from mnemoscope.memory.subject_data.records import SubjectRecord
from mnemoscope.telemetry.event.event import Event, OperationClass, Redacted, Status
from mnemoscope.telemetry.event.subject import Subject, SubjectKeys
from mnemoscope.telemetry.event.trace import TraceRef
from mnemoscope.telemetry.event.usage import Usage

PICTURE = Path(__file__).with_name("images") / "export.png"
SIZE = (840, 1980)
WIDTHS = (360, 768, 1280)
WRITER = "00000000000000aa"
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
WHY = {"agent": "workshop", "purpose": "answer a message"}
RECALL = {"op_class": OperationClass.RECALL, "operation": "search_memory", "method": "search"}
WRITE = {"op_class": OperationClass.REMEMBER, "operation": "create_memory", "method": "add"}
SEEN = {"status": Status.OK, "hits": 3, "scores": (0.91, 0.74, 0.52)}


class Answers(NamedTuple):
    """A store that answers."""

    name: str
    title: str
    held: tuple[SubjectRecord, ...]
    unavailable: str | None = None

    @property
    def store(self) -> str:
        """Its name in events."""
        return self.name

    def records(self) -> Iterator[SubjectRecord]:
        """Yield all of it."""
        yield from self.held


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
    saved = {**thread, "op_class": OperationClass.CHECKPOINT, "operation": "save_checkpoint"}
    for _ in range(306):
        yield "2026-11-24T17:32", saved
    usage = Usage(model="mistral-small", provider="mistral", input_tokens=812, output_tokens=96)
    chat = {"op_class": OperationClass.MODEL, "operation": "chat", "method": "stream"}
    yield "2026-11-24T17:31", {**chat, "store": "langgraph.model", "parts": (usage,)}
    forgot = {"op_class": OperationClass.FORGET, "operation": "delete_memory", "method": "delete"}
    yield "2026-11-24T17:33", {**forgot, "memory_ids": ("f0",)}


def events() -> Iterator[Event]:
    """Yield what happened, as it was recorded."""
    for number, (moment, what) in enumerate(sorted(moments(), key=lambda each: each[0]), 1):
        started = datetime.fromisoformat(moment).replace(tzinfo=UTC).timestamp()
        run = f"<SUBJECT_ID_51c2>-{moment[:10]}"
        known: dict[str, Any] = {"store": "mem0", "status": Status.OK, "run": run, **WHY, **what}
        yield Event(
            writer_id=WRITER,
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
    days = ("2026-10-02T08:41Z", "2026-10-02T08:43Z", "2026-10-19T16:05Z", "2026-11-20T11:12Z")
    facts = tuple(
        SubjectRecord(kind="memory", id=key, content=text, created=day)
        for (key, text), day in zip(FACTS.items(), days, strict=True)
    )
    note = SubjectRecord(kind="item", id="n1", content=NOTES["n1"], created="2026-11-20T11:13Z")
    said = ("human", "Is the bike ready, and can <PERSON> collect it?"), ("ai", "Yes, until 18:00.")
    messages = {"messages": [{"type": who, "content": words} for who, words in said]}
    thread = SubjectRecord(kind="thread", id="t7", content=messages, created="2026-10-02T08:40Z")
    return (
        Answers("mem0", "Facts about you", facts),
        Answers("langgraph.store", "Notes", (note,)),
        Answers("langgraph.checkpoint", "Conversations", (thread,)),
    )


NOTICE = Notice(
    controller={
        "name": "North Wheels AB",
        "contact": "privacy@north-wheels.example",
        "dpo": "none",
    },
    art15={
        "legal_bases": "Art. 6(1)(b), the contract with you",
        "complaint_authority": "Integritetsskyddsmyndigheten, imy.se",
        "automated_decisions": "none",
        "transfers": "none",
    },
)
SINKS = ("otlp", "collector"), ("logs", "file")


def noted(count: int) -> dict[str, Any]:
    """Return what the process noted of who received its events."""
    sinks = [
        {
            "name": name,
            "output": {"kind": kind, "content": False, "subject": "keyed hash", "part": "all"},
            "ranges": [[1, count, count]],
        }
        for name, kind in SINKS
    ]
    return {"writer": WRITER, "sinks": sinks}


def export(folder: Path) -> Path:
    """Write a bundle, and return its first page."""
    log = AuditLog(folder / "audit.db", KEYS)
    recorded = list(events())
    log.append(recorded)
    log.append_log_event("recipients.delivered", noted(len(recorded)))
    request = Request(
        request_id="20261125-3fa94c07",
        generated_us=round(datetime(2026, 11, 25, 9, 30, tzinfo=UTC).timestamp() * 1e6),
        version="0.2.0",
        notice=NOTICE,
    )
    with source(log, "mara@example.com", "north-wheels") as found:
        bundle = write_bundle(
            folder / "export.zip",
            request,
            found.evidence,
            history=found.history,
            subject=found.subject,
            stores=stores(),
            clock_ns=lambda: request.generated_us * 1_000,
        )
    log.close()
    with zipfile.ZipFile(bundle.path) as archive:
        return Path(archive.extract("README.html", folder))


def draw(browser: str, page: Path, *options: str) -> str:
    """Run *browser* on *page*, and return what it writes."""
    common = ("--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars")
    profile = f"--user-data-dir={page.parent}/profile"
    done = subprocess.run(  # noqa: S603 - the browser that was just found
        [browser, *common, profile, *options, page.as_uri()],
        check=True,
        capture_output=True,
        text=True,
        timeout=60,
    )
    return done.stdout


_LOCAL = "--allow-file-access-from-files"
_FRAME = """\
<!doctype html><body style="margin:0">
<iframe src="{page}" style="display:block;width:{width}px;height:{height}px;border:0"></iframe>
<output></output>
<script>addEventListener("load", function () {{
  var inside = document.querySelector("iframe").contentDocument.documentElement;
  var size = "size " + inside.scrollWidth + " by " + inside.scrollHeight;
  document.querySelector("output").textContent = size;
}});</script>
"""


def framed(page: Path, width: int, height: int = 900) -> Path:
    """Return a page with *page* in a frame: Chromium has no window narrower than 500 pixels."""
    frame = page.with_name(f"frame-{width}.html")
    frame.write_text(_FRAME.format(page=page.name, width=width, height=height), encoding="utf-8")
    return frame


def look(browser: str, page: Path, folder: Path) -> int:
    """Draw the page at each width and on paper; return how often it is wider than the screen."""
    too_wide = 0
    for width in WIDTHS:
        picture = folder / f"export-{width}.png"
        frame = framed(page, width)
        said = draw(browser, frame, _LOCAL, "--dump-dom", "--virtual-time-budget=2000")
        found = re.search(r"size (\d+) by (\d+)", said)
        widest, height = map(int, found.groups()) if found else (sys.maxsize, 900)
        size = f"--window-size={max(width, 500)},{height}"
        draw(browser, framed(page, width, height), _LOCAL, size, f"--screenshot={picture}")
        too_wide += widest > width
        sys.stdout.write(f"{picture}: {widest} of {width} pixels\n")
    draw(browser, page, f"--print-to-pdf={folder / 'export.pdf'}", "--no-pdf-header-footer")
    return too_wide


def main() -> int:
    """Draw the picture, or those to look at."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--look", type=Path, metavar="FOLDER")
    chosen = parser.parse_args().look
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    if browser is None:
        sys.stderr.write(f"needs one of {', '.join(BROWSERS)} on the PATH\n")
        return 1
    with tempfile.TemporaryDirectory() as name:
        page = export(Path(name))
        if chosen is not None:
            chosen.mkdir(parents=True, exist_ok=True)
            return min(1, look(browser, page, chosen))
        drawn = Path(name) / "export.png"
        size = f"--window-size={SIZE[0]},{SIZE[1]}"
        draw(browser, page, size, f"--screenshot={drawn}")
        shutil.copyfile(drawn, PICTURE)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())

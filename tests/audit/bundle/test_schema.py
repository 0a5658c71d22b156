"""The JSON Schema that is shipped, against the files of real exports and the events in them."""

from __future__ import annotations

import ast
import base64
import json
from pathlib import Path

import pytest

from mnemoscope import adapters, audit
from mnemoscope.audit import AuditLog
from mnemoscope.audit.bundle.contract import RequestType
from mnemoscope.audit.bundle.notice import Notice
from mnemoscope.audit.erasure import withdrawal
from mnemoscope.audit.erasure.run import COMPLETED, INCOMPLETE, REQUESTED, RESUMED
from mnemoscope.audit.record.spool_numbers import ABOUT_SPOOLS
from mnemoscope.audit.record.writer_events import ABOUT_WRITERS, STARTED, STOPPED
from mnemoscope.audit.sink.deliveries import DELIVERED
from mnemoscope.audit.sink.sink import AuditSink
from mnemoscope.audit.store.customers import ERASED
from mnemoscope.audit.store.departed import GAP
from mnemoscope.audit.store.retention import PRUNED
from mnemoscope.audit.store.writer import BROKEN, SEALED
from mnemoscope.memory.api import Deletes, OperationClass, Redacted, Status, Usage
from mnemoscope.telemetry.delivery.drain import Drain
from mnemoscope.telemetry.event.event import Journalled
from tests.kit.bundle_schema import schema, wrong_by

USAGE = Usage(model="gpt-5", provider="openai", input_tokens=7, output_tokens=2)
SAID = {"messages": [{"role": "user", "content": "likes <FOOD>"}]}
SINKS = {
    "name": "otlp",
    "output": {"kind": "collector", "content": False, "subject": "keyed hash", "part": "all"},
    "ranges": [[1, 3, 3], [4, 9, 2]],
}

LITERAL = {"log.opened", "key.rotated", "subject.linked", "subject.merged"}
EXPORTS = {"privacy.export.requested", "privacy.export.completed"}
ERASURES = {REQUESTED, RESUMED, COMPLETED, INCOMPLETE}
ROWS = {SEALED, BROKEN, ERASED, PRUNED, GAP, DELIVERED}
WITHDRAWALS = {withdrawal.REQUESTED, withdrawal.COMPLETED, withdrawal.INCOMPLETE}
NOTES = ABOUT_WRITERS | ABOUT_SPOOLS | LITERAL | EXPORTS | ERASURES | WITHDRAWALS | ROWS


@pytest.fixture
def history(log, event_factory):
    """Have events of all kinds recorded, as many as have a field that others have not."""
    every = [
        event_factory(op_class=each, status=status) for each in OperationClass for status in Status
    ]
    log.append(
        [
            *every,
            event_factory(hits=2, memory_ids=("m-1", "m-2"), scores=(0.9, 0.1), top_score=0.9),
            event_factory(
                op_class=OperationClass.REMEMBER,
                memory_ids=("m-1",),
                content=Redacted(SAID),
                redactions={"FOOD": 1},
                collection="facts",
                journal=Journalled.REPLAYED,
                agent="sales",
                purpose="reply",
                run="t-1",
                feature="draft",
            ),
            event_factory(op_class=OperationClass.FORGET, deletes=Deletes.SCOPE),
            event_factory(op_class=OperationClass.MODEL, usage=USAGE),
            event_factory(foreign_hits=1, content=Redacted("hers")),
            event_factory(nested=True, neutral=True, late=True, error="ConnectionError"),
        ]
    )
    log.append_log_event("recipients.delivered", {"writer": "00000000000000aa", "sinks": [SINKS]})
    gap = {"writer": "00000000000000ab", "from_wseq": 3, "to_wseq": 5, "count": 3}
    log.append_log_event("audit.gap", {**gap, "reason": "killed"})


def wrong_in(read):
    """Return what is wrong in each file of a bundle, and in each header that is proved."""
    found = {f"{name}.json": wrong_by(name)(read.json(f"{name}.json")) for name in WHOLE}
    for file, name in {"events": "event", "memories": "memory", "proofs": "proof"}.items():
        wrong = wrong_by(name)
        found[file] = [each for line in read.lines(f"{file}.jsonl") for each in wrong(line)]
    wrong = wrong_by("header")
    headers = [json.loads(base64.b64decode(each["header"])) for each in read.lines("proofs.jsonl")]
    return found | {"headers": [each for header in headers for each in wrong(header)]}


WHOLE = ("manifest", "recipients", "redactions")


def test_it_is_a_schema():
    """Of the draft that it names, and every definition is used or is a file's."""
    jsonschema = pytest.importorskip("jsonschema", reason="dependency group grafana")
    jsonschema.Draft202012Validator.check_schema(schema())

    text = json.dumps(schema())
    unused = {name for name in schema()["$defs"] if f'#/$defs/{name}"' not in text}
    shown = {"shown_operations", "shown_memories", "shown_recalls", "shown_blast_radius"}
    assert unused == {"event", "header", "memory", "proof", "recipients", "redactions", *shown}


@pytest.mark.parametrize("kind", RequestType)
def test_every_file_of_an_export_is_as_it_says(history, read, things, kind, log):
    """Of complete stores, one that failed, one that was not asked; stated, and not."""
    store, thing = things
    stores = (
        store("mem0", thing("m-1"), thing("h-1", kind="history"), thing("x", {"a": [1, None]})),
        store("crm", thing("c-1"), fails=TimeoutError()),
    )
    bundles = [read(*stores, kind=kind, notice=each) for each in (Notice(), Notice({"name": "N"}))]

    assert [
        {name: found for name, found in wrong_in(each).items() if found} for each in bundles
    ] == [{}, {}]


def test_what_is_erased_and_what_the_log_notes_is_as_it_says(history, read, log):
    """A detail that is gone, and the events about the log itself."""
    log.subjects.erase(log.subjects.resolve("ada@example.com"), "acme")
    with log.reading() as snapshot:
        headers = [
            json.loads(bytes(each))
            for (each,) in snapshot.execute("SELECT header FROM audit_event")
        ]
    wrong = wrong_by("header")

    assert {each["kind"] for each in headers} == {"operation", "log"}
    assert [each for header in headers for each in wrong(header)] == []


def test_what_a_process_notes_is_as_it_says(history, log, tmp_path, event_factory):
    """That it began and ended, and what earlier releases said of their spools."""
    sink = AuditSink(log)
    drain = Drain([sink])
    sink.attach(drain)
    for name in ABOUT_SPOOLS:
        log.append_log_event(name, {"spool": "0123456789abcdef", "numbers": [[1, 2]]})
    event = event_factory(writer_id=drain.writer_id, writer_seq=drain.next_seq())
    sink.write([event])
    sink.close(1.0)
    with AuditLog(tmp_path / "audit.db", log.ring.current).reading() as snapshot:
        headers = [
            json.loads(bytes(each))
            for (each,) in snapshot.execute("SELECT header FROM audit_event")
        ]
    wrong = wrong_by("header")

    assert {each["operation"] for each in headers} >= {STARTED, STOPPED, *ABOUT_SPOOLS}
    assert any("identities" in each for each in headers)
    assert [each for header in headers for each in wrong(header)] == []


@pytest.mark.parametrize("name", sorted(NOTES))
def test_a_note_is_closed(history, log, name):
    """Of each kind that is written here: a field that nobody knows is wrong."""
    log.append_log_event(name, {"mood": "good"})
    with log.reading() as snapshot:
        found = snapshot.execute("SELECT header FROM audit_event ORDER BY seq DESC LIMIT 1")
        header = json.loads(bytes(found.fetchone()[0]))

    assert "$.data: additionalProperties" in wrong_by("header")(header)


TESTS = Path(__file__).parents[2]
FOLDERS = (
    *(Path(str(each.__file__)).parent for each in (audit, adapters)),
    *(TESTS / each for each in ("audit", "adapters", "kit")),
)
ON_PURPOSE = Path(__file__)
"""Has notes that are wrong on purpose."""


def noted():
    """Yield the place, name and fields of each note that is spelled out, here and in tests."""
    for folder in FOLDERS:
        for path in sorted(folder.rglob("*.py")):
            text = path.read_text(encoding="utf-8")
            if path == ON_PURPOSE or not any(f'"{name}"' in text for name in NOTES):
                continue
            for call in ast.walk(ast.parse(text)):
                match call:
                    case ast.Call(args=[*_, ast.Constant(value=str(name)), ast.Dict(keys=keys)]):
                        if name in NOTES and all(isinstance(each, ast.Constant) for each in keys):
                            yield f"{path.name}:{call.lineno}", name, {each.value for each in keys}


def test_every_note_that_is_spelled_out_has_the_fields_of_its_kind():
    """In the code and in tests, which else would try what no log ever has."""
    kinds = {
        each["if"]["properties"]["operation"]["const"]: each["then"]["properties"]["data"]
        for each in schema()["$defs"]["note"]["allOf"]
    }
    found = list(noted())
    wrong = [
        (place, name)
        for place, name, fields in found
        if not set(kinds[name]["required"]) <= fields <= set(kinds[name]["properties"])
    ]

    assert {name for _place, name, _fields in found} >= {"subject.linked", "subject.merged"}
    assert wrong == []


def test_what_it_does_not_know_is_wrong(history, read):
    """A field that is missing, one that is new, and a value that no version writes."""
    event = read().lines("events.jsonl")[0]
    wrong = wrong_by("event")

    assert wrong(event) == []
    assert wrong({name: each for name, each in event.items() if name != "origin"})
    assert wrong({**event, "mood": "good"})
    assert wrong({**event, "status": "fine"})

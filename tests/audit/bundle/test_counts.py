"""Random small histories: what the command, the first page, the manifest and the files count."""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from itertools import count

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as some

from mnemoscope.adapters.customer_requests import export
from mnemoscope.audit import AuditLog
from mnemoscope.audit.bundle.contract import Request, RequestType
from mnemoscope.audit.bundle.source import source
from mnemoscope.audit.bundle.writing import write_bundle
from mnemoscope.memory.api import OperationClass, Redacted, Status
from tests.kit.lengths import examples

ADA, BOB = "ada@example.com", "bob@example.com"
EVENTS = some.fixed_dictionaries(
    {
        "customer": some.sampled_from((ADA, ADA, ADA, BOB)),
        "op_class": some.sampled_from(OperationClass),
        "status": some.sampled_from((Status.OK, Status.OK, Status.ERROR, Status.EMPTY)),
        "nested": some.booleans(),
        "memory_ids": some.lists(some.sampled_from(("m-1", "m-2", "m-3")), max_size=3).map(tuple),
        "foreign_hits": some.sampled_from((0, 0, 0, 2)),
        "run": some.sampled_from((None, "t-1", "t-2")),
        "store": some.sampled_from(("mem0", "crm")),
        "content": some.sampled_from((None, Redacted("likes tea"), Redacted("likes nougat"))),
    }
)
RECORDS = some.lists(some.sampled_from(("memory", "point", "history", "message")), max_size=4)
FIGURE = re.compile(
    r"<li><b>([\d,]+)</b>(remembered now|times? (?:looked up|written|deleted))</li>"
)
SAID = re.compile(
    r"([\d,]+) remembered now, ([\d,]+) times looked up, ([\d,]+) events"
    r"(?:.*?and ([\d,]+) records)?",
    re.DOTALL,
)


@pytest.fixture
def exported(tmp_path, subject_keys, event_factory):
    """Return what exports Ada from a log of some events, and reads what was written and said."""
    numbers = count()

    def exported(events, stores, kind):
        log = AuditLog(tmp_path / f"{next(numbers)}.db", subject_keys)
        log.append([event_factory(), *(event_factory(**each) for each in events)])
        asked = Request(request_id="x", generated_us=1_800_000_000_000_000, version="0", kind=kind)
        with source(log, ADA, "acme") as found:
            bundle = write_bundle(
                tmp_path / "export.zip", asked, found.evidence, history=found.history, stores=stores
            )
        log.close()
        return bundle

    return exported


@settings(max_examples=examples(8), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    events=some.lists(EVENTS, max_size=12),
    records=RECORDS,
    fails=some.booleans(),
    kind=some.sampled_from(RequestType),
)
def test_counts_agree(exported, read_at, things, events, records, fails, kind):
    """One number for one thing: on the screen, in JSON, on the page, in the manifest and files."""
    store, thing = things
    kept = [thing(f"m-{number}", kind=each) for number, each in enumerate(records)]
    bundle = exported(events, [store("mem0", *kept, fails=TimeoutError() if fails else None)], kind)
    found, counts = read_at(bundle.path), bundle.counts
    said = SAID.search("\n".join(export.bundle_lines(bundle, from_log_alone=False)))
    document = export.bundle_document(bundle, from_log_alone=False)
    shown = {
        what.partition(" ")[2]: int(n.replace(",", "")) for n, what in FIGURE.findall(found.page)
    }
    lines = {name: found.lines(f"{name}.jsonl") for name in ("events", "memories", "proofs")}
    by_class = Counter(each["class"] for each in lines["events"] if not each["nested"])
    current = [each for each in lines["memories"] if each["is_current"] is not False]
    in_files = {
        "events": len(lines["events"]),
        "memories": len(current),
        "beside": len(lines["memories"]) - len(current),
        "written": by_class["remember"],
        "deleted": by_class["forget"],
        "withheld": sum(each["withheld"] not in {None, "erased"} for each in lines["events"]),
        "erased": sum(each["withheld"] == "erased" for each in lines["events"]),
    }
    if kind is RequestType.ACCESS:
        rows = csv.DictReader(io.StringIO(found.text("accesses.csv")))
        in_files["accesses"] = len({row["seq"] for row in rows})

    assert counts._asdict() | in_files == counts._asdict()
    assert found.json("manifest.json")["counts"] == counts._asdict()
    assert len(lines["proofs"]) == counts.events
    assert {name: document[name] for name in ("events", "accesses", "memories", "beside")} == {
        name: getattr(counts, name) for name in ("events", "accesses", "memories", "beside")
    }
    everything = {"now": counts.memories, "written": counts.written}
    if kind is RequestType.ACCESS:
        everything |= {"looked up": counts.accesses, "deleted": counts.deleted}
    assert shown == everything
    if not bundle.holds_nothing:
        assert [int((each or "0").replace(",", "")) for each in said.groups()] == [
            *(counts.memories, counts.accesses, counts.events, counts.beside)
        ]

"""What a bundle holds, and that it is there whole or not at all."""

from __future__ import annotations

import csv
import io
import os
import re
import signal
import warnings
import zipfile
from datetime import datetime
from pathlib import Path

import pytest

from mnemoscope.audit import UnknownSubjectError
from mnemoscope.audit.bundle.contract import RequestType, StoreStatus
from mnemoscope.audit.bundle.notice import CONTROLLER
from mnemoscope.audit.bundle.verify import check
from mnemoscope.audit.database.errors import SubjectConflictError
from mnemoscope.memory.api import Deletes, OperationClass, Redacted, Status, Usage
from mnemoscope.telemetry.event.event import Journalled
from tests.kit.outlived_details import outlive

FILES = {
    *("README.html", "manifest.json", "manifest.note", "memories.jsonl", "events.jsonl"),
    *("accesses.csv", "recipients.json", "redactions.json", "proofs.jsonl", "checkpoint.note"),
    "verify.py",
}
WRITE = {
    "op_class": OperationClass.REMEMBER,
    "operation": "upsert_memory",
    "method": "add",
    "memory_ids": ("m-1",),
    "content": Redacted({"messages": [{"role": "user", "content": "I like oolong"}]}),
}


WRITER = "00000000000000aa"
"""Of the events here."""


def otlp(*ranges, content=False):
    """Return what a process notes of its OTLP sink."""
    output = {"kind": "collector", "content": content, "subject": "keyed hash", "part": "all"}
    return {"name": "otlp", "output": output, "ranges": [*ranges]}


def note(log, *sinks, writer=WRITER):
    """Have a process note who received its events."""
    log.append_log_event("recipients.delivered", {"writer": writer, "sinks": [*sinks]})


def first_page(bundle):
    """Return the size of a bundle's first page."""
    return zipfile.ZipFile(bundle.path).getinfo("README.html").file_size


def test_all_of_it_is_there_and_verifies(log, read, bundled, things, event_factory):
    """Every file that is promised, and a check that finds nothing."""
    store, thing = things
    log.append([event_factory(**WRITE), event_factory()])

    assert set(read(store("mem0", thing("m-1"))).files) == FILES
    report = check(bundled(store("mem0", thing("m-1"))).path)
    assert (report.code, report.events, report.problem) == (0, 2, None)


def test_each_event_is_a_line_with_who_when_why_and_what(log, read, event_factory):
    """Time, agent, feature, purpose, store, status, memories, redactions and content."""
    log.append(
        [
            event_factory(
                agent="sales",
                feature="reply",
                purpose="answer",
                run="thread-1",
                hits=1,
                memory_ids=("m-1",),
                scores=(0.75,),
                redactions={"PERSON": 1},
                content=Redacted({"query": "what does <PERSON> like?"}),
            )
        ]
    )

    (line,) = read().lines("events.jsonl")
    assert line["occurred_at"] == "2023-11-14T22:13:20.123456Z"
    assert (line["agent"], line["feature"], line["purpose"]) == ("sales", "reply", "answer")
    assert (line["store"], line["operation"], line["class"]) == ("mem0", "search_memory", "recall")
    assert (line["status"], line["hits"], line["run"]) == ("ok", 1, "thread-1")
    assert line["memories"] == [{"rank": 1, "memory_id": "m-1", "score": 0.75}]
    assert line["redactions"] == {"PERSON": 1}
    assert line["content"] == {"query": "what does <PERSON> like?"}


def test_events_are_oldest_first_and_have_the_same_keys(log, read, event_factory):
    """As they happened, and with null where nothing is known."""
    log.append(
        [event_factory(started_ns=2_000, agent="a"), event_factory(started_ns=1_000, **WRITE)]
    )

    lines = read().lines("events.jsonl")
    assert [line["class"] for line in lines] == ["remember", "recall"]
    assert lines[0].keys() == lines[1].keys()


def test_nobody_elses_events_are_in_it(log, read, event_factory):
    """One customer of one tenant, and no other."""
    log.append(
        [
            event_factory(),
            event_factory(customer="bob", content=Redacted("zither")),
            event_factory(tenant="other", content=Redacted("zeppelin")),
        ]
    )

    found = read()
    assert len(found.lines("events.jsonl")) == 1
    words = (b"zither", b"zeppelin")
    assert not [name for name, data in found.files.items() for word in words if word in data]


def test_whom_it_is_about_is_said(log, read, event_factory):
    """On the page and in the manifest, with the identifiers by which they were found; once each."""
    log.append([event_factory()])
    found = read()

    subject = found.json("manifest.json")["subject"]
    assert subject["identifiers_matched"] == [{"id": "ada@example.com", "tenant": "acme"}]
    assert re.fullmatch("[a-z2-7]{26}", subject["ref"])
    assert "About <b>ada@example.com</b> at acme" in found.page
    named = {name for name, data in found.files.items() if b"ada@example.com" in data}
    assert named == {"README.html", "manifest.json"}


def test_accesses_are_a_table_for_a_spreadsheet(log, read, event_factory):
    """One line for each memory that was seen, with when, why, who and at which rank."""
    log.append(
        [
            event_factory(purpose="answer", memory_ids=("m-1", "m-2"), scores=(0.9, 0.5)),
            event_factory(status=Status.EMPTY, agent="=HYPERLINK()"),
            event_factory(**WRITE),
        ]
    )

    rows = list(csv.DictReader(io.StringIO(read().files["accesses.csv"].decode())))
    assert [(row["rank"], row["memory_id"], row["purpose"]) for row in rows] == [
        ("1", "m-1", "answer"),
        ("2", "m-2", "answer"),
        ("", "", ""),
    ]
    assert rows[2]["agent"] == "'=HYPERLINK()"


def test_what_the_stores_hold_is_in_it(log, read, things, event_factory):
    """Their own answer, what is recalled and what is kept beside it."""
    store, thing = things
    log.append([event_factory(**WRITE)])
    found = read(store("mem0", thing("m-1"), thing("h-1", kind="history")))

    lines = found.lines("memories.jsonl")
    assert [(line["source"], line["id"], line["is_current"]) for line in lines] == [
        ("store", "m-1", True),
        ("store", "h-1", False),
    ]
    assert found.json("manifest.json")["complete"] is True


def test_a_store_that_was_not_asked_is_named_and_told_from_the_log(log, read, event_factory):
    """What was written and not forgotten since; and the whole is not complete."""
    gone = event_factory(**WRITE | {"memory_ids": ("m-2",)})
    forgotten = event_factory(op_class=OperationClass.FORGET, memory_ids=("m-2",))
    log.append([event_factory(**WRITE), gone, forgotten])
    found = read()

    (line,) = found.lines("memories.jsonl")
    assert (line["source"], line["id"], line["content"]) == ("log", "m-1", WRITE["content"].value)
    manifest = found.json("manifest.json")
    assert manifest["complete"] is False
    assert [(each["name"], each["status"]) for each in manifest["stores"]] == [
        ("mem0", "not_configured")
    ]


def test_a_write_of_many_tells_each_its_part(log, read, event_factory):
    """And what was done inside another operation is told of that one alone."""
    points = [{"text": "tea"}, {"text": "rye"}]
    many = {**WRITE, "memory_ids": ("p-1", "p-2"), "content": Redacted({"points": points})}
    log.append([event_factory(**many), event_factory(**WRITE, nested=True)])

    lines = read().lines("memories.jsonl")
    assert [(line["id"], line["content"]) for line in lines] == [
        ("p-1", {"text": "tea"}),
        ("p-2", {"text": "rye"}),
    ]


@pytest.mark.parametrize(
    ("deletes", "left"),
    [(Deletes.SCOPE, []), (Deletes.EVERYTHING, []), (Deletes.IDS, ["m-1"]), (None, ["m-1"])],
)
def test_a_deletion_without_ids_takes_all_where_it_says_so(log, read, deletes, left, event_factory):
    """One by a filter, or of an older log, may not have taken it: then it is still told."""
    forget = event_factory(op_class=OperationClass.FORGET, deletes=deletes)
    log.append([event_factory(**WRITE), forget])

    assert [line["id"] for line in read().lines("memories.jsonl")] == left


def test_a_write_that_never_arrived_is_not_remembered(log, read, event_factory):
    """Failed and lost: no. Failed and replayed from the journal: yes."""
    failed = {**WRITE, "status": Status.DEGRADED}
    log.append(
        [
            event_factory(**failed, journal=Journalled.LOST),
            event_factory(**failed | {"memory_ids": ("m-2",)}, journal=Journalled.REPLAYED),
        ]
    )

    assert [line["id"] for line in read().lines("memories.jsonl")] == ["m-2"]


@pytest.mark.parametrize(("held", "status"), [(0, StoreStatus.FAILED), (1, StoreStatus.PARTIAL)])
@pytest.mark.fault(83, "export with a store down", expected="incomplete, and says so")
def test_a_store_that_fails_is_named_and_the_others_are_told(
    log, bundled, things, held, status, event_factory
):
    """Its error by type alone: a message may quote what is stored."""
    store, thing = things
    log.append([event_factory(**WRITE)])
    broken = store("mem0", *[thing("m-9")] * held, fails=OSError("secret of ada"))
    bundle = bundled(broken, store("qdrant", thing("p-1")))

    assert [each.status for each in bundle.stores] == [status, StoreStatus.COMPLETE]
    assert bundle.stores[0].error == "OSError"
    assert not bundle.complete
    assert check(bundle.path).code == 3


def test_what_a_failing_store_has_told_is_not_told_again_from_the_log(
    log, read, things, event_factory
):
    """One memory is one line, and counted once: as the store has it, else as the log does."""
    store, thing = things
    log.append([event_factory(**WRITE), event_factory(**WRITE | {"memory_ids": ("m-2",)})])
    found = read(store("mem0", thing("m-1"), fails=OSError()))

    lines = found.lines("memories.jsonl")
    assert [(line["source"], line["id"]) for line in lines] == [("store", "m-1"), ("log", "m-2")]
    assert found.json("manifest.json")["counts"]["memories"] == 2


@pytest.mark.fault(83, "export of an unknown customer", expected="refused: nobody known")
def test_a_customer_of_whom_nothing_is_left_holds_no_data(
    tmp_path, subject_keys, bundled, event_factory
):
    """A whole bundle that says so, and verifies; of somebody unknown there is none."""
    outlive(tmp_path / "audit.db", subject_keys, event_factory)
    bundle = bundled()

    with pytest.raises(UnknownSubjectError):
        bundled(customer="nobody")
    assert bundle.holds_nothing
    assert bundle.complete
    assert check(bundle.path).code == 0


def test_results_of_somebody_else_are_withheld(log, read, event_factory):
    """That it happened is told and proved; what was seen would show another person's data."""
    log.append([event_factory(foreign_hits=1, content=Redacted("about eve"), memory_ids=("e-1",))])
    found = read()

    (line,) = found.lines("events.jsonl")
    assert (line["withheld"], line["content"], line["memories"]) == ("third_party", None, [])
    assert found.json("redactions.json")["third_party"]["n_events"] == 1
    assert not [name for name, data in found.files.items() if b"about eve" in data]


def test_recipients_are_named_with_their_period(log, read, event_factory):
    """Agents, stores, model providers with what they were sent, and sinks."""
    chat = {"op_class": OperationClass.MODEL, "store": "langgraph", "operation": "chat"}
    usage = Usage(model="gpt-4o", provider="openai", input_tokens=7, output_tokens=2)
    log.append([event_factory(agent="sales"), event_factory(**chat, usage=usage)])
    note(log, otlp([1, 2, 2]))
    found = read().json("recipients.json")

    assert [each["name"] for each in found["stores"]] == ["mem0"]
    assert [(each["provider"], each["model"]) for each in found["model_providers"]] == [
        ("openai", "gpt-4o")
    ]
    assert [each["input_tokens"] for each in found["model_providers"]] == [7]
    assert [(each["name"], each["n_events"]) for each in found["sinks"]] == [("otlp", 2)]
    assert found["cannot_tell"]["n_events"] == 0
    assert found["agents"][0]["from"] == "2023-11-14T22:13:20.123456Z"


def test_declared_losses_are_in_the_manifest(log, read, bundled, event_factory):
    """They may have been about this customer: the check says so too."""
    log.append([event_factory()])
    gap = {"writer": "aa", "from_wseq": 2, "to_wseq": 4, "count": 3, "reason": "lane full"}
    log.append_log_event("audit.gap", gap)

    (loss,) = read().json("manifest.json")["loss"]
    assert (loss["count"], loss["reason"]) == (3, "lane full")
    assert bundled().losses == 3


@pytest.mark.parametrize(("mode", "losses"), [("fail_open", 251), ("durable", 0)])
def test_what_a_killed_process_may_have_lost_is_in_the_manifest(
    log, bundled, event_factory, mode, losses
):
    """At most so many; none where calls did not return before their event was on a disk."""
    log.append([event_factory(writer_seq=seq) for seq in range(1, 6)])
    writer = {"writer": "00000000000000aa", "counter": 3, "at_most": 256, "mode": mode}
    log.append_log_event("writer.ended", writer)

    assert bundled().losses == losses


def test_what_was_declared_lost_and_came_after_all_is_no_loss(log, bundled, event_factory):
    """Late is not never, and declared twice is not lost twice."""
    gap = {"writer": "00000000000000aa", "from_wseq": 2, "to_wseq": 3, "count": 2, "reason": "full"}
    log.append([event_factory(writer_seq=1), event_factory(writer_seq=4)])
    log.append_log_event("audit.gap", gap)
    log.append_log_event("audit.gap", gap)
    assert bundled().losses == 2

    log.append([event_factory(writer_seq=2), event_factory(writer_seq=3)])
    assert bundled().losses == 0


def test_portability_is_what_was_given_to_remember(log, read, things, event_factory):
    """Writes and what is remembered; no consultations, no machinery."""
    store, thing = things
    log.append([event_factory(**WRITE), event_factory()])
    found = read(
        store("mem0", thing("m-1"), thing("h-1", kind="history")),
        kind=RequestType.PORTABILITY,
    )

    assert [line["class"] for line in found.lines("events.jsonl")] == ["remember"]
    assert [line["id"] for line in found.lines("memories.jsonl")] == ["m-1"]
    assert "accesses.csv" not in found.files
    assert found.json("manifest.json")["request_type"] == "portability"


def test_portability_leaves_out_what_an_agent_wrote_by_itself(log, read, things, event_factory):
    """What the person said can be taken elsewhere, in whatever words it was kept."""
    store, thing = things
    written = [("m-1", "user"), ("m-2", "user"), ("m-3", "assistant")]
    for name, role in written:
        said = Redacted({"messages": [{"role": role, "content": "I like oolong"}]})
        log.append([event_factory(**WRITE | {"memory_ids": (name,), "content": said})])
    own = thing("m-1", "I like oolong"), thing("m-2", "Drinks tea"), thing("m-3", "I like oolong")
    found = read(store("mem0", *own), kind=RequestType.PORTABILITY)

    lines = [(line["id"], line["origin"]) for line in found.lines("memories.jsonl")]
    assert lines == [("m-1", "provided"), ("m-2", "inferred")]
    assert [line["memories"][0]["memory_id"] for line in found.lines("events.jsonl")] == [
        "m-1",
        "m-2",
    ]
    assert found.json("manifest.json")["counts"]["memories"] == 2


@pytest.mark.fault(83, "export of an alias of two customers", expected="refused")
def test_two_customers_behind_one_id_are_refused(log, bundled, event_factory, monkeypatch):
    """One would be told what the other's agent remembers; says what to do."""
    log.append([event_factory()])
    monkeypatch.setattr(
        "mnemoscope.audit.store.snapshot.Snapshot.uids", lambda *_args: ["uid-1", "uid-2"]
    )

    with pytest.raises(SubjectConflictError, match="merge"):
        bundled()


def test_a_failed_export_leaves_nothing(log, bundled, tmp_path, things, event_factory):
    """No half of it, no draft; and what was there before stays."""
    log.append([event_factory()])
    path = bundled().path
    before = path.read_bytes()
    store, _thing = things

    class Interrupted(store):
        def records(self):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        bundled(Interrupted("mem0"))
    assert [each.name for each in path.parent.iterdir()] == ["export.zip"]
    assert path.read_bytes() == before


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="files without a name: Linux")
def test_a_killed_export_leaves_nothing(log, bundled, things, event_factory):
    """What it had written by then is a person's memory, under a name that nobody would look for."""
    log.append([event_factory()])
    path = bundled().path
    store, _thing = things

    class Killed(store):
        def records(self):
            os.kill(os.getpid(), signal.SIGKILL)

    with warnings.catch_warnings(action="ignore"):  # threads of other tests are not ours
        child = os.fork()
    if not child:
        try:
            bundled(Killed("mem0"))
        finally:
            os._exit(1)

    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
    assert [each.name for each in path.parent.iterdir()] == ["export.zip"]


def test_the_file_is_for_its_owner_alone(log, bundled, event_factory):
    """It is a person's memory."""
    log.append([event_factory()])

    assert bundled().path.stat().st_mode & 0o777 == 0o600


def test_the_memory_it_takes_does_not_grow_with_the_history(log, bundled, event_factory):
    """Ten times the events, the same first page."""
    log.append([event_factory(**WRITE | {"memory_ids": (f"m-{n}",)}) for n in range(700)])
    small = bundled()
    page = first_page(small)
    log.append([event_factory(**WRITE | {"memory_ids": (f"n-{n}",)}) for n in range(2_000)])
    large = bundled()

    assert (small.events, large.events) == (700, 2_700)
    assert first_page(large) < page * 1.1


def test_recipients_are_what_happened(log, read, event_factory):
    """Not what the exporter's environment says: what was acknowledged, and with content or not."""
    log.append([event_factory() for _ in range(6)])
    note(log, otlp([1, 2, 2]), {"name": "mine", "output": None, "ranges": [[1, 6, 6]]})
    note(log, otlp([5, 6, 2], content=True))
    found = read()

    recipients = found.json("recipients.json")
    told = [(each["name"], each["content"], each["n_events"]) for each in recipients["sinks"]]
    assert told == [("otlp", False, 2), ("mine", None, 6), ("otlp", True, 2)]
    assert [line["recipients"] for line in found.lines("events.jsonl")] == [
        *[["otlp", "mine"]] * 2,
        *[["mine"]] * 2,
        *[["otlp", "mine"]] * 2,
    ]


@pytest.mark.parametrize(
    ("notes", "n_certain", "n_possible", "n_unknown"),
    [
        ([], 0, 0, 4),
        ([otlp([1, 2, 2])], 2, 0, 2),  # it still runs, or was killed: the others may have gone out
        ([otlp([1, 1, 1], [4, 4, 1])], 2, 0, 0),  # lanes deliver in order: these were dropped
        ([otlp([1, 4, 3])], 0, 4, 4),
    ],
)
def test_what_is_not_known_is_said(
    log, read, event_factory, notes, n_certain, n_possible, n_unknown
):
    """Older events, killed processes, numbers of which some were acknowledged: cannot tell."""
    log.append([event_factory() for _ in range(4)])
    note(log, otlp([1, 400, 400]), writer="0000000000000b0b")
    for each in notes:
        note(log, each)
    found = read()

    recipients = found.json("recipients.json")
    assert sum(each["n_events"] for each in recipients["sinks"]) == n_certain
    assert sum(each["n_events"] for each in recipients["possible_sinks"]) == n_possible
    assert recipients["cannot_tell"]["n_events"] == n_unknown
    assert ("Cannot tell" in found.page) is bool(n_unknown)
    unknown = [line for line in found.lines("events.jsonl") if line["recipients"] is None]
    assert len(unknown) == n_unknown


@pytest.mark.parametrize(
    ("messages", "origin", "kind"),
    [
        ("I like oolong", "provided", "user_message"),
        ([{"role": "user", "content": "x"}, {"role": "assistant"}], "provided", "user_message"),
        ([{"role": "assistant", "content": "x"}], "inferred", "agent"),
        ([{"role": "tool", "content": "x"}], "observed", "tool"),
        ([{"content": "x"}, 3], None, None),
        (7, None, None),
    ],
)
def test_events_say_where_their_content_came_from(log, read, event_factory, messages, origin, kind):
    """By who said it; where nothing says so, null."""
    log.append([event_factory(**WRITE | {"content": Redacted({"messages": messages})})])

    (line,) = read().lines("events.jsonl")
    assert (line["origin"], (line["source"] or {}).get("kind")) == (origin, kind)


def test_events_say_on_what_basis_by_whom_and_until_when(log, read, stated, event_factory):
    """The operator's basis for their purpose, the role that acted, the end by the settings."""
    bases = {"support": "Art. 6(1)(b)"}
    log.append([event_factory(purpose="support"), event_factory(purpose="ads")])
    notice = stated._replace(art15={**stated.art15, "legal_bases": bases})
    one, other = read(notice=notice).lines("events.jsonl")

    assert (one["legal_basis"], other["legal_basis"]) == ("Art. 6(1)(b)", None)
    assert (one["origin"], one["actor_role"]) == ("observed", "agent")
    recorded, until = map(datetime.fromisoformat, (one["recorded_at"], one["retention_until"]))
    assert (until - recorded).days == 400


def test_it_says_why_the_trail_is_kept_for_less_than_six_months(log, read, stated, event_factory):
    """In the words of the controller, to the customer."""
    log.retention_days, log.retention_reason = 90, "chats of a shop, no high-risk system"
    log.append([event_factory()])
    bundle = read(notice=stated._replace(art15={}))

    kept = "90 days after they were recorded (chats of a shop, no high-risk system)"
    assert kept in bundle.json("manifest.json")["art15"]["retention"]
    assert kept in bundle.page


def test_memories_say_where_they_came_from(log, read, things, event_factory):
    """Said, or worked out from what was said; when, to whom; how often it was used since."""
    store, thing = things
    for number in (1, 2):
        log.append([event_factory(**WRITE | {"memory_ids": (f"m-{number}",)}, agent="sales")])
    log.append([event_factory(memory_ids=("m-2",), scores=(0.5,)) for _ in range(3)])
    own = thing("m-1", "I like oolong"), thing("m-2", "Prefers tea"), thing("m-3", "?")
    lines = read(store("mem0", *own)).lines("memories.jsonl")

    assert [each["origin"] for each in lines] == ["provided", "inferred", None]
    assert [each["came_from"] and each["came_from"]["agent"] for each in lines] == [
        "sales",
        "sales",
        None,
    ]
    assert [each["used"]["times"] for each in lines] == [0, 3, 0]


def test_the_manifest_counts_each_file_and_dates_the_log(log, read, things, event_factory):
    """`n` of every file, the checkpoint's time, and the checkpoints that were sent elsewhere."""
    store, thing = things
    log.append([event_factory(**WRITE), event_factory(), event_factory(nested=True)])
    log.checkpoint(lambda _note: ["otlp"])
    found = read(store("mem0", thing("m-1"), thing("h", kind="history")))
    manifest = found.json("manifest.json")

    n = {each["path"]: each["n"] for each in manifest["files"]}
    assert (n["events.jsonl"], n["proofs.jsonl"], n["memories.jsonl"]) == (3, 3, 2)
    assert manifest["counts"]["memories"] + manifest["counts"]["beside"] == 2
    (anchor,) = manifest["log"]["anchors"]
    assert (anchor["sent_to"], anchor["size"]) == (["otlp"], manifest["log"]["size"])
    assert manifest["log"]["checkpoint_time"].endswith("Z")


@pytest.mark.parametrize(
    "missing", [f"controller.{name}" for name in CONTROLLER] + ["art15.legal_bases"]
)
def test_what_the_operator_does_not_state_is_missing(
    log, read, bundled, things, stated, event_factory, missing
):
    """The manifest, the page, the check and the command's result name it."""
    log.append([event_factory()])
    part, name = missing.split(".")
    others = {key: each for key, each in getattr(stated, part).items() if key != name}
    notice = stated._replace(**{part: others})
    store, _thing = things
    found = read(store("mem0"), notice=notice)

    manifest = found.json("manifest.json")
    assert (manifest["complete"], len(manifest["incomplete"])) == (False, 1)
    assert manifest["incomplete"][0].endswith(f"not stated {missing}")
    assert "Incomplete:" in found.page
    assert "This answer is complete" not in found.page
    bundle = bundled(store("mem0"), notice=notice)
    assert (bundle.not_stated, bundle.complete) == ((missing,), False)
    report = check(bundle.path)
    assert report.code == 3
    assert missing in report.verdict()


def test_purposes_and_sources_are_found_in_the_events(log, read, stated, event_factory):
    """Nobody has to state them where every event says them; where one does not, it is missing."""
    notice = stated._replace(
        art15={
            name: each for name, each in stated.art15.items() if name not in {"purposes", "sources"}
        }
    )
    log.append([event_factory(purpose="support"), event_factory(**WRITE, purpose="support")])
    assert read(notice=notice).json("manifest.json")["art15"]["purposes"] == ["support"]
    assert read(notice=notice).json("manifest.json")["incomplete"] == [
        "store mem0: was not asked",
    ]

    log.append([event_factory()])
    (_store, line) = read(notice=notice).json("manifest.json")["incomplete"]
    assert line.endswith("not stated art15.purposes")


def test_counts_agree_between_page_files_and_result(log, read, bundled, things, event_factory):
    """One number for one thing, wherever it is shown."""
    store, thing = things
    log.append([event_factory(**WRITE), event_factory(**WRITE, nested=True)])
    log.append([event_factory(memory_ids=("m-1",)), event_factory(nested=True)])
    log.append([event_factory(op_class=OperationClass.RESUME, memory_ids=("c",)) for _ in range(3)])
    log.append([event_factory(op_class=OperationClass.FORGET, memory_ids=("m-9",))])
    own = store("mem0", thing("m-1"), thing("m-2"), thing("h-1", kind="history"))
    found, counts = read(own), bundled(own).counts

    assert found.json("manifest.json")["counts"] == counts._asdict()
    figures = re.findall(r"<li><b>([\d,]+)</b>([^<]+)</li>", found.page)
    assert {what: int(number) for number, what in figures} == {
        "remembered now": counts.memories,
        "times looked up": counts.accesses,
        "time written": counts.written,
        "time deleted": counts.deleted,
    }
    looked_up = {row["seq"] for row in csv.DictReader(io.StringIO(found.text("accesses.csv")))}
    assert len(looked_up) == counts.accesses == 4
    current = [each for each in found.lines("memories.jsonl") if each["is_current"]]
    assert (len(current), counts.beside) == (counts.memories, 1)
    assert len(found.lines("events.jsonl")) == counts.events == 8

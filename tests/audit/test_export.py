"""The export of one customer's history as JSON lines."""

from __future__ import annotations

import io
import json

import pytest

from mnemoscope.audit.export import export
from mnemoscope.audit.log import AuditLog
from mnemoscope.telemetry.event import OperationClass, Redacted, Status
from mnemoscope.telemetry.usage import Usage


@pytest.fixture
def log(tmp_path, subject_keys):
    log = AuditLog(tmp_path / "audit.db", subject_keys)
    yield log
    log.close()


def exported(log, customer="ada@example.com", tenant="acme"):
    out = io.BytesIO()
    count = export(log.history(customer, tenant), out)
    lines = [json.loads(line) for line in out.getvalue().splitlines()]
    assert count == len(lines)
    return lines


def test_each_read_and_write_is_a_line_with_who_when_why_and_what(log, event_factory):
    """Time, agent, feature, store, operation, status, memories and redacted content."""
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

    (line,) = exported(log)
    assert line["time"] == "2023-11-14T22:13:20.123456Z"
    assert line["recorded"].endswith("Z")
    assert (line["agent"], line["feature"], line["purpose"]) == ("sales", "reply", "answer")
    assert (line["store"], line["operation"], line["class"]) == ("mem0", "search_memory", "recall")
    assert (line["status"], line["hits"], line["run"]) == ("ok", 1, "thread-1")
    assert line["memories"] == [{"memory_id": "m-1", "rank": 1, "score": 0.75}]
    assert line["redactions"] == {"PERSON": 1}
    assert line["content"] == {"query": "what does <PERSON> like?"}


def test_lines_are_oldest_first(log, event_factory):
    """Reads and writes are told in the order in which they happened."""
    log.append(
        [
            event_factory(started_ns=2_000, op_class=OperationClass.RECALL),
            event_factory(started_ns=1_000, op_class=OperationClass.REMEMBER),
        ]
    )

    assert [line["class"] for line in exported(log)] == ["remember", "recall"]


def test_every_line_has_the_same_keys(log, event_factory):
    """What is not known is null, so that a reader needs no guesses."""
    log.append([event_factory(), event_factory(agent="a", usage=Usage(model="m"), hits=1)])

    plain, full = exported(log)
    assert plain.keys() == full.keys()
    assert plain["usage"] is None
    assert full["usage"]["model"] == "m"


def test_degraded_answers_say_so(log, event_factory):
    """A neutral value is not told as a memory that was empty."""
    log.append([event_factory(status=Status.DEGRADED, neutral=True)])

    (line,) = exported(log)
    assert (line["status"], line["neutral"]) == ("degraded", True)


def test_the_customers_own_id_is_not_repeated(log, event_factory):
    """The file holds what was remembered, not the identifier that it was asked by."""
    log.append([event_factory()])
    out = io.BytesIO()
    export(log.history("ada@example.com", "acme"), out)

    assert b"ada@example.com" not in out.getvalue()


def test_an_unknown_customer_gives_no_lines(log, event_factory):
    """Nobody known by that id: nothing is written, and the count says so."""
    log.append([event_factory()])

    assert exported(log, "eve@example.com") == []

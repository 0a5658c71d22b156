"""Events as OCSF, checked against the schema's own files by somebody else's reading of them."""

from __future__ import annotations

import json
import logging
import sqlite3
from contextlib import nullcontext
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version

import pytest
from fastmcp import Client, FastMCP
from fastmcp.exceptions import ToolError
from hypothesis import given
from jsonschema_rs import Draft202012Validator
from langgraph.store.memory import InMemoryStore
from langgraph.store.sqlite import SqliteStore
from ocsf_json_schema import OcsfJsonSchemaEmbedded, get_ocsf_schema

from mnemoscope.memory import (
    Facts,
    Fails,
    Mnemoscope,
    MnemoscopeError,
    Outcome,
    Point,
    ScopeError,
    Verdict,
    context,
    load_settings,
)
from mnemoscope.memory.api import EventPart, OperationClass, Status, Usage
from mnemoscope.telemetry import JsonFormatter
from tests.kit.log_lines import logged
from tests.kit.sample_events import events

FILES = get_ocsf_schema(version="1.8.0")
SCHEMA = OcsfJsonSchemaEmbedded(FILES)
CAPTIONS = frozenset(json.dumps(FILES).split('"'))
"""All words of the schema's files, with the names that they give to numbers."""


@cache
def validator_of(class_uid, profiles):
    name = SCHEMA.lookup_class_name_from_uid(class_uid)
    return Draft202012Validator(SCHEMA.get_class_schema(class_name=name, profiles=[*profiles]))


def faults_of(record):
    """Return what the schema has against a record, with the sums of its classification."""
    profiles = tuple(record.get("metadata", {}).get("profiles", ()))
    found = validator_of(record["class_uid"], profiles).iter_errors(record)
    faults = [f"{each.instance_path}: {each.message}" for each in found]
    if record["type_uid"] != record["class_uid"] * 100 + record["activity_id"]:
        faults.append("type_uid is not the class's and the activity's")
    return faults


def records_of(*events):
    """Return the records of *events*, each of which the schema has nothing against."""
    found = logged(events, log_format="ocsf")
    assert [faults_of(each) for each in found] == [[]] * len(found)
    return found


class Seen(EventPart, tag="acme.seen", frozen=True):
    """What a feature says about a call, by the fields of a log line."""

    seen: dict[str, str]

    def fields(self):
        return self.seen


def texts_in(value):
    if isinstance(value, dict):
        return {text for each in value.values() for text in texts_in(each)}
    if isinstance(value, list):
        return {text for each in value for text in texts_in(each)}
    return {value} if isinstance(value, str) else set()


def test_the_schema_finds_fault(event_factory):
    """The check is one: what a record must have is missed, and what it must not have is seen."""
    (record,) = records_of(event_factory())

    for name in ("actor", "src_endpoint", "database", "time", "metadata", "severity_id"):
        assert faults_of({key: of for key, of in record.items() if key != name}), name
    assert faults_of(record | {"activity_id": 42})
    assert faults_of(record | {"of_our_own": 1})
    assert faults_of(record | {"actor": {"name": "sales"}})


def test_each_kind_of_event_is_valid(all_kinds):
    """Operations of each class, models, nodes, notices and checkpoints."""
    classes = {each["class_name"] for each in records_of(*all_kinds)}

    assert classes == {"Base Event", "API Activity", "Datastore Activity", "Detection Finding"}


@given(event=events)
def test_whatever_an_event_holds_is_valid(event):
    """Names with control characters, parts of every kind, each class with each status."""
    assert records_of(event)


OURS = frozenset(
    {
        *("1.8.0", "mnemoscope", version("mnemoscope"), "unknown", "budget"),
        *("tripwire", "Results of somebody else's were recalled"),
        *("tenancy", "An operation outside of its customer was denied"),
    }
)


@given(event=events)
def test_no_text_is_there_that_json_has_not(event):
    """Beside the schema's words, ours and ids: whoever may read the one log may read the other."""
    there = texts_in(logged([event])) | CAPTIONS | OURS
    for record in records_of(event):
        label = record.pop("type_name").removeprefix(f"{record['class_name']}: ")
        others = {each for each in texts_in(record) if not each.startswith(event.writer_id)}

        assert {label, *others} <= there


def test_content_is_there_where_the_sink_is_opted_in(all_kinds):
    """By default it is in neither form."""
    with_content = next(each for each in all_kinds if each.content is not None)

    assert "content" not in records_of(with_content)[0]["unmapped"]
    (record,) = logged([with_content], log_format="ocsf", content=True)
    assert "content" in record["unmapped"]


def test_a_recall_is_an_activity_of_a_datastore(event_factory):
    """Who acted, on what, for which run and tenant, and how it ended."""
    (record,) = records_of(
        event_factory(
            agent="sales", run="r-7", collection="facts", status=Status.TIMEOUT, error="E"
        )
    )

    assert record["type_name"] == "Datastore Activity: Query"
    assert record["actor"] == {"app_name": "sales", "session": {"uid": "r-7"}}
    assert record["database"] == {"name": "facts", "type_id": 99, "type": "mem0"}
    assert (record["status_id"], record["status"]) == (2, "Failure")
    assert (record["status_code"], record["status_detail"]) == ("timeout", "E")
    assert record["metadata"]["tenant_uid"] == "acme"
    assert record["metadata"]["profiles"] == ["ai_operation"]
    assert record["time"] == 1_700_000_000_123


@pytest.mark.parametrize(
    ("op_class", "operation", "activity"),
    [
        (OperationClass.RECALL, "read_crm", "Read"),
        (OperationClass.REMEMBER, "create_memory", "Create"),
        (OperationClass.REMEMBER, "upsert_memory", "Write"),
        (OperationClass.REMEMBER, "update_memory", "Update"),
        (OperationClass.FORGET, "delete_memory", "Delete"),
        (OperationClass.RESUME, "search_memory", "Query"),
        (OperationClass.CHECKPOINT, "upsert_memory", "Write"),
        (OperationClass.MODEL, "create_memory", "create_memory"),
    ],
)
def test_an_activity_is_what_is_done_to_memory(op_class, operation, activity, event_factory):
    """By the operation's name, else by its class."""
    (record,) = records_of(event_factory(op_class=op_class, operation=operation))

    assert record["activity_name"] == activity


def test_a_model_call_says_its_model_and_tokens(event_factory):
    """By the AI profile, and in its trace."""
    usage = Usage(model="gpt-5", provider="openai", input_tokens=7, output_tokens=2)
    event = event_factory(op_class=OperationClass.MODEL, operation="chat", usage=usage)
    (record,) = records_of(event)

    assert record["class_name"] == "API Activity"
    assert record["ai_model"] == {"name": "gpt-5", "ai_provider": "openai"}
    assert record["message_context"]["total_tokens"] == 9
    assert record["message_context"]["ai_role"] == "Assistant"
    assert record["trace"]["uid"] == event.trace.trace_hex
    assert record["metadata"]["profiles"] == ["ai_operation", "trace"]


@pytest.mark.parametrize(
    ("overrides", "check", "severity"),
    [
        ({"foreign_hits": 2}, "tripwire", "High"),
        ({"parts": (Seen({"integrity_violation": "changed"}),)}, "integrity", "High"),
        ({"status": Status.DENIED, "error": "m.ScopeError"}, "tenancy", "Medium"),
        ({"parts": (Seen({"mcp_contract": "schema"}),)}, "tool contract", "Medium"),
    ],
)
def test_what_an_operation_finds_is_a_finding_behind_it(overrides, check, severity, event_factory):
    """It is an alert, has an id of its own, and leads back to the activity."""
    activity, finding = records_of(event_factory(**overrides))

    assert finding["class_name"] == "Detection Finding"
    assert (finding["severity"], finding["is_alert"]) == (severity, True)
    assert finding["finding_info"]["analytic"]["name"] == check
    assert finding["finding_info"]["related_events"] == [{"uid": activity["metadata"]["uid"]}]
    assert finding["metadata"]["uid"] != activity["metadata"]["uid"]


@pytest.mark.parametrize("contract", ["kept", "pinned", "failed"])
def test_a_contract_that_is_kept_is_no_finding(contract, event_factory):
    """It is one activity."""
    assert len(records_of(event_factory(parts=(Seen({"mcp_contract": contract}),)))) == 1


@dataclass(frozen=True, kw_only=True)
class Decides:
    """Decides the same of each write."""

    outcome: Outcome
    name: str = "writers"
    shadow: bool = False
    points = frozenset({Point.MEMORY})
    fails = Fails.OPEN

    def settings(self):
        return {}

    def decide(self, facts: Facts) -> Verdict:
        if facts.what != "remember":
            return Verdict()
        return Verdict(self.outcome, "no_role", {"calls": 3})


def scope_that_logs(file, *, settings=(), **given):
    known = {
        "sinks": "logs",
        "log_file": file,
        "log_format": "ocsf",
        "pii_model": "none",
        "audit_pseudonym_key": "ab" * 32,
    }
    return Mnemoscope(load_settings(**(known | dict(settings))), **given)


def read(file):
    """Return the records of a file, each of which the schema has nothing against."""
    found = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    assert [faults_of(each) for each in found] == [[]] * len(found)
    return found


def checks_in(records):
    """Return the checks that made a Detection Finding."""
    return [
        each["finding_info"]["analytic"]["name"]
        for each in records
        if each["class_name"] == "Detection Finding"
    ]


def test_a_memory_that_was_changed_is_a_finding(tmp_path):
    """By the field that the room of integrity gives its events, whatever it calls it."""
    file = tmp_path / "events.jsonl"
    database = sqlite3.connect(tmp_path / "notes.db", check_same_thread=False, isolation_level=None)
    notes = SqliteStore(database)
    notes.setup()
    audit_url = f"sqlite:///{tmp_path / 'audit.db'}"
    settings = {"sinks": "logs,audit", "audit_url": audit_url, "audit_mode": "durable"}
    scope = scope_that_logs(file, settings=settings | {"integrity": "observe"})
    store = scope.store(notes)
    with context(customer="c-42", tenant="acme"):
        store.put(("notes",), "account", {"text": "pay to the account of last year"})
        store.get(("notes",), "account")
        before = checks_in(read(file)) if scope.flush() else None
        database.execute("UPDATE store SET value = ?", (b'{"text": "pay to mine"}',))
        store.get(("notes",), "account")
    scope.close()
    database.close()

    assert before == []
    assert checks_in(read(file)) == ["integrity"]


def test_a_call_for_another_customer_is_a_finding(tmp_path):
    """By the class of the error that tenancy raises, under `enforce`."""
    file = tmp_path / "events.jsonl"
    scope = scope_that_logs(file, settings={"tenancy": "enforce"})
    store = scope.store(InMemoryStore(), customer_at=1)
    with context(tenant="acme", customer="c-1"), pytest.raises(ScopeError):
        store.put(("notes", "c-42"), "likes", {"text": "tea"})
    scope.close()

    assert checks_in(read(file)) == ["tenancy"]


async def test_a_tool_that_was_changed_is_a_finding(tmp_path):
    """By the field that the room of MCP gives its events; one that fails has kept its contract."""
    file = tmp_path / "events.jsonl"
    server = FastMCP("notes")

    @server.tool(name="search_memory", annotations={"readOnlyHint": True})
    def search(query: str) -> list[str]:
        raise ToolError(query)

    scope = scope_that_logs(file)
    client = scope.mcp(Client(server), server="openmemory", recheck_s=0)
    async with client:
        with context(customer="c-42"):
            await client.call_tool("search_memory", {"query": "tea"}, raise_on_error=False)
            before = checks_in(read(file)) if scope.flush() else None

            @server.tool(name="search_memory")
            def later(search_query: str) -> list[str]:
                return [search_query]

            await client.call_tool("search_memory", {"query": "tea"}, raise_on_error=False)
    scope.close()

    assert before == []
    assert checks_in(read(file)) == ["tool contract"]


@pytest.mark.parametrize(
    ("outcome", "shadow", "status", "severity"),
    [
        (Outcome.REFUSE, True, "Warning", "Low"),
        (Outcome.HOLD, False, "Warning", "Medium"),
        (Outcome.REFUSE, False, "Fail", "Medium"),
        (Outcome.STOP, False, "Fail", "High"),
    ],
)
def test_a_verdict_is_a_finding_of_compliance(outcome, shadow, status, severity, tmp_path):
    """Of a real rule: its control is the rule, and its code the reason."""
    file = tmp_path / "events.jsonl"
    scope = scope_that_logs(file, rules=[Decides(outcome=outcome, shadow=shadow)])
    write = scope.observe(store="crm", operation="upsert_memory")(lambda note: note)
    refused = nullcontext() if shadow else pytest.raises(MnemoscopeError)
    with context(tenant="acme", customer="c-42", run="r-1"), refused:
        write("a note of ada@example.com")
    scope.close()

    found = read(file)
    (verdict,) = (each for each in found if each["class_name"] == "Compliance Finding")
    assert (verdict["compliance"]["status"], verdict["severity"]) == (status, severity)
    assert verdict["compliance"]["control"] == "writers"
    assert verdict["compliance"]["status_code"] == "no_role"
    assert verdict["unmapped"]["verdict_calls"] == 3
    assert checks_in(found) == []  # one decision is one finding
    assert "ada@example.com" not in file.read_text(encoding="utf-8")


def test_a_host_gets_one_field():
    """Its name is no attribute of a log record, as those of OCSF would be; JSON is the record."""
    seen = logging.Handler()
    found = []
    seen.emit = found.append
    logger = logging.getLogger("mnemoscope.events")
    logger.addHandler(seen)
    before, logger.level = logger.level, logging.DEBUG
    try:
        scope = Mnemoscope(
            load_settings(sinks="logs", log_to="logging", log_format="ocsf", pii_model="none")
        )
        scope.observe(store="crm", operation="search_memory")(lambda: ["a note"])()
        scope.close()
    finally:
        logger.level = before
        logger.removeHandler(seen)

    (record,) = found
    assert record.ocsf["class_uid"] == 6005
    assert json.loads(JsonFormatter().format(record)) == record.ocsf

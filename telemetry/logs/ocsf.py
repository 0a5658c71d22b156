"""
Log lines as events of the Open Cybersecurity Schema Framework, which the tools of a SOC read.

Every value is one of the JSON line, moved to its place; nothing is looked up. A store's operation
is a Datastore Activity, and a run of a model, tool, node or graph an API Activity, both with the AI
profile. A verdict is a Compliance Finding, and a budget past a level a Detection Finding. What an
operation finds on its way, a tripwire or a memory that was changed, is a Detection Finding of its
own behind the activity. The line's own fields stand under ``unmapped``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from ..event.budget_event import BudgetEvent
from ..event.event import Event, OperationClass
from ..event.kinds import Level, Status
from ..event.verdict_event import Outcome, VerdictEvent
from ..process.version import running_version

VERSION: Final = "1.8.0"
"""Of the schema. Another one is a change of what its readers have set up: see the changelog."""

_PRODUCT: Final = "mnemoscope"
_UNNAMED: Final = "unknown"

Line = Mapping[str, Any]


class _Class(NamedTuple):
    category_uid: int
    category_name: str
    uid: int
    name: str


class _Activity(NamedTuple):
    id: int
    name: str


class _Found(NamedTuple):
    check: str
    severity_id: int
    title: str


_BASE: Final = _Class(0, "Uncategorized", 0, "Base Event")
_DATASTORE: Final = _Class(6, "Application Activity", 6005, "Datastore Activity")
_API: Final = _Class(6, "Application Activity", 6003, "API Activity")
_COMPLIANCE: Final = _Class(2, "Findings", 2003, "Compliance Finding")
_DETECTION: Final = _Class(2, "Findings", 2004, "Detection Finding")

_CREATE: Final = _Activity(1, "Create")
_OTHER_ID: Final = 99
_BY_CLASS: Final = {
    OperationClass.RECALL: _Activity(1, "Read"),
    OperationClass.RESUME: _Activity(1, "Read"),
    OperationClass.REMEMBER: _Activity(5, "Write"),
    OperationClass.CHECKPOINT: _Activity(5, "Write"),
    OperationClass.FORGET: _Activity(7, "Delete"),
}
_BY_OPERATION: Final = {
    "search_memory": _Activity(4, "Query"),
    "create_memory": _Activity(6, "Create"),
    "update_memory": _Activity(2, "Update"),
}

_SEVERITIES: Final = {1: "Informational", 2: "Low", 3: "Medium", 4: "High"}
_INFORMATIONAL, _LOW, _MEDIUM, _HIGH = _SEVERITIES
_BY_LEVEL: Final = dict(zip(Level, _SEVERITIES, strict=True))
_BY_OUTCOME: Final = {
    Outcome.ALLOW: (_LOW, 1, "Pass"),
    Outcome.SHADOW: (_LOW, 2, "Warning"),
    Outcome.HOLD: (_MEDIUM, 2, "Warning"),
    Outcome.REFUSE: (_MEDIUM, 3, "Fail"),
    Outcome.STOP: (_HIGH, 3, "Fail"),
}

_ROLES: Final = {
    "chat": (2, "Assistant"),
    "execute_tool": (3, "Tool"),
    "invoke_agent": (4, "Agent"),
}

_KEPT_CONTRACTS: Final = {None, "kept", "pinned", "failed"}  # as of no tool, or one that raised


def records_of(event: Event, line: Line) -> list[dict[str, Any]]:
    """
    Return the records of one event, its findings behind it.

    Args:
        event: Says which class it is of, and when it was.
        line: What JSON has of it: ``time``, ``message``, and the fields by their names.
    """
    if isinstance(event.notice, VerdictEvent):
        return [_verdict(event, event.notice, line)]
    if isinstance(event.notice, BudgetEvent):
        budget = _Found("budget", _BY_LEVEL[event.notice.level], line["message"])
        return [_finding(event, line, budget)]
    if event.is_notice:
        return [_record(_BASE, _activity_of(event), event, line, _INFORMATIONAL)]
    record = _activity(event, line)
    return [record, *(_finding(event, line, each) for each in _found_by(event, line))]


def _activity(event: Event, line: Line) -> dict[str, Any]:
    """Return the record of an operation."""
    is_model = event.op_class is OperationClass.MODEL
    kind = _API if is_model else _DATASTORE
    is_normal = event.status.is_normal
    # No more than low: a tripwire's weight, or a denial's, is that of the finding behind it.
    severity = _INFORMATIONAL if is_normal else _LOW
    record = _record(kind, _activity_of(event), event, line, severity)
    record["metadata"]["profiles"] = ["ai_operation", "trace"] if is_model else ["ai_operation"]
    record |= {
        "status_id": 1 if is_normal else 2,
        "status": "Success" if is_normal else "Failure",
        "status_code": line["status"],
        # The agent acts; the customer is whom it is about.
        "actor": {"app_name": line.get("agent") or _PRODUCT}
        | ({"session": {"uid": line["run"]}} if "run" in line else {}),
        # The process: a host's name is no value of the JSON line.
        "src_endpoint": {"uid": event.writer_id, "svc_name": _PRODUCT},
    }
    if "error" in line:
        record["status_detail"] = line["error"]
    return record | (_of_model(event, line) if is_model else _of_store(line))


def _activity_of(event: Event) -> _Activity:
    """Return what is done to memory: of a model's run, and of a notice, the operation's name."""
    if event.is_notice or event.op_class is OperationClass.MODEL:
        return _Activity(_OTHER_ID, event.operation)
    return _BY_OPERATION.get(event.operation, _BY_CLASS[event.op_class])


def _of_store(known: Line) -> dict[str, Any]:
    store = known["store"]
    database = {"name": known.get("collection") or store, "type_id": _OTHER_ID, "type": store}
    return {"database": database}


def _of_model(event: Event, known: Line) -> dict[str, Any]:
    started, ended = event.started_ns // 1_000_000, event.ended_ns // 1_000_000
    span = {"uid": known["span_id"], "start_time": started, "end_time": ended}
    role_id, role = _ROLES.get(event.operation, (_OTHER_ID, event.operation))
    service = {"name": known["store"]}
    exchange: dict[str, Any] = {"service": service, "ai_role_id": role_id, "ai_role": role}
    shown: dict[str, Any] = {
        "api": {"operation": event.operation, "service": service},
        "trace": {"uid": known["trace_id"], "span": span},
        "message_context": exchange,
    }
    if "model" in known:
        # The schema wants both, and streams do not always say who served them.
        provider = known.get("provider") or _UNNAMED
        shown["ai_model"] = {"name": known["model"], "ai_provider": provider}
        given, answered = known["input_tokens"], known["output_tokens"]
        exchange |= {"prompt_tokens": given, "completion_tokens": answered}
        exchange["total_tokens"] = given + answered
    return shown


def _found_by(event: Event, line: Line) -> Iterator[_Found]:
    """Yield what an operation found on its way."""
    if event.foreign_hits:
        yield _Found("tripwire", _HIGH, "Results of somebody else's were recalled")
    if "integrity_violation" in line:
        yield _Found("integrity", _HIGH, "A memory is not as it was written")
    # What a rule, a contract or a seal denied has a finding for that: two would be two alerts.
    if event.status is Status.DENIED and (event.error or "").endswith(".ScopeError"):
        yield _Found("tenancy", _MEDIUM, "An operation outside of its customer was denied")
    if line.get("mcp_contract") not in _KEPT_CONTRACTS:
        yield _Found("tool contract", _MEDIUM, "A tool broke its contract")


def _verdict(event: Event, verdict: VerdictEvent, line: Line) -> dict[str, Any]:
    severity, status_id, status = _BY_OUTCOME[verdict.outcome]
    found = _Found(verdict.rule, severity, line["message"])
    compliance = {
        "control": verdict.rule,
        "status_id": status_id,
        "status": status,
        "status_code": verdict.reason,
    }
    return _finding(event, line, found, _COMPLIANCE) | {"compliance": compliance}


def _finding(event: Event, line: Line, found: _Found, kind: _Class = _DETECTION) -> dict[str, Any]:
    """Return a finding: a notice's own, else one that refers to its activity."""
    record = _record(kind, _CREATE, event, line, found.severity_id)
    uid = event.event_id
    info: dict[str, Any] = {
        "uid": uid,
        "title": found.title,
        "analytic": {"name": found.check, "type_id": 1, "type": "Rule"},
    }
    if not event.is_notice:
        info |= {"uid": f"{uid}-{found.check}", "related_events": [{"uid": uid}]}
        # Two records of one id would be one to whoever removes doubles.
        record["metadata"]["uid"] = info["uid"]
    if kind is _DETECTION:
        record["is_alert"] = found.severity_id > _LOW
    return record | {"finding_info": info, "status_id": 1, "status": "New"}


def _record(
    kind: _Class, activity: _Activity, event: Event, line: Line, severity: int
) -> dict[str, Any]:
    """Return what all records have."""
    metadata = {
        "version": VERSION,
        "product": _product(),
        "uid": event.event_id,
        "log_name": _PRODUCT,
        "original_time": line["time"],
        "correlation_uid": line["trace_id"],
    }
    if "tenant" in line:
        metadata["tenant_uid"] = line["tenant"]
    label = activity.name if activity.id != _OTHER_ID else "Other"
    return {
        "time": event.started_ns // 1_000_000,
        "category_uid": kind.category_uid,
        "category_name": kind.category_name,
        "class_uid": kind.uid,
        "class_name": kind.name,
        "activity_id": activity.id,
        "activity_name": activity.name,
        "type_uid": kind.uid * 100 + activity.id,
        "type_name": f"{kind.name}: {label}",
        "severity_id": severity,
        "severity": _SEVERITIES[severity],
        "message": line["message"],
        "metadata": metadata,
        # All of them, mapped or not: one search finds a field in every class.
        "unmapped": {name: value for name, value in line.items() if name not in _ELSEWHERE},
    }


_ELSEWHERE: Final = frozenset({"time", "message", "level", "event_id", "trace_id"})
"""Fields that each record has in a place of the schema's."""


def _product() -> dict[str, str]:
    product = {"name": _PRODUCT, "vendor_name": _PRODUCT, "version": running_version()}
    return {name: value for name, value in product.items() if value}

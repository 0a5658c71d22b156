"""
Stories for `promtool test rules`: what happens to a store, and whether somebody is told.

For every objective: a store that is 20 % slower than it, one that does not answer, one that is in
time, and one whose budget lasts.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from .objectives import Objectives, Promise
from .promql import WHOLE, RuleSpeed, quoted
from .rule import Alert
from .rules_latency import latency

_A_MINUTE: Final = 10_000
_LASTS_MIN: Final = 20
_TOLD_AFTER_MIN: Final = 2
"""When all is slow: two scrapes, and the group's next evaluation."""

_NAME: Final = "mnemoscope_operation_duration_seconds"
_FAST, _SLOWLY = "MnemoscopeLatencyBudgetBurnsFast", "MnemoscopeLatencyBudgetBurnsSlowly"


def stories(objectives: Objectives, runbooks: str, rule_files: Sequence[str]) -> dict[str, Any]:
    """Return the tests of the latency rules that *objectives* make, which are in *rule_files*."""
    alerts = {each.name: each for each in latency(RuleSpeed(), objectives).alerts}
    return {
        "rule_files": list(rule_files),
        "evaluation_interval": "1m",
        "tests": [
            test
            for promise in objectives.promises()
            for test in _of(promise, alerts[_FAST], runbooks)
        ],
    }


def _of(promise: Promise, alert: Alert, runbooks: str) -> Iterator[dict[str, Any]]:
    objective, store = promise.objective, promise.example_store
    lasts = (1 - objective.target) / 2
    told = _told(promise, alert, runbooks)
    slow = f"20 % slower than {objective.within_text}"
    yield _story(promise, f"{store}: {slow}", in_time=0, is_told=told)
    yield _story(
        promise, f"{store}: it does not answer", in_time=0, status="degraded", is_told=told
    )
    yield _story(promise, f"{store}: in time", in_time=_A_MINUTE)
    yield _story(
        promise,
        f"{store}: half as many are slow as may be",
        in_time=round(_A_MINUTE * (1 - lasts)),
    )


def _told(promise: Promise, alert: Alert, runbooks: str) -> dict[str, Any]:
    labels = {
        "severity": alert.severity,
        "job": "agents",
        "store": promise.example_store,
        "class": promise.classes[0].value,
        "target": promise.objective.target_text,
        "within": promise.objective.within_text,
    }
    filled = {f"{{{{ $labels.{name} }}}}": value for name, value in labels.items()}
    filled[WHOLE] = "10000"
    texts = alert.annotations(runbooks)
    for place, value in filled.items():
        texts = {key: text.replace(place, value) for key, text in texts.items()}
    return {"exp_labels": labels, "exp_annotations": texts}


def _story(
    promise: Promise,
    name: str,
    *,
    in_time: int,
    status: str = "ok",
    is_told: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """Return a test in which so many of 10,000 operations a minute are in time."""
    labels = {
        "job": "agents",
        "store": promise.example_store,
        "class": promise.classes[0].value,
        "operation": "an_operation",
        "status": status,
    }
    selector = ",".join(f"{key}={quoted(value)}" for key, value in labels.items())
    bucket = f'{_NAME}_bucket{{{selector},le="{promise.objective.within_s}"}}'
    after_min = _TOLD_AFTER_MIN if is_told else _LASTS_MIN
    alerts = [_FAST] if is_told else [_FAST, _SLOWLY]
    return {
        "name": name,
        "interval": "1m",
        "input_series": [
            {"series": f"{_NAME}_count{{{selector}}}", "values": f"0+{_A_MINUTE}x{_LASTS_MIN}"},
            {"series": bucket, "values": f"0+{in_time}x{_LASTS_MIN}"},
        ],
        "alert_rule_test": [
            {
                "alertname": each,
                "eval_time": f"{after_min}m",
                "exp_alerts": [is_told] if is_told else [],
            }
            for each in alerts
        ],
    }

"""Rules, independent of whether Prometheus or Grafana evaluates them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from .promql import RuleSpeed

Severity = Literal["critical", "warning"]
"""critical: page. warning: look at it today."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordingRule:
    """
    A query whose result is stored as a series: ``level:metric:operation``.

    Attributes:
        name: The name of the series.
        expr: The query.
        labels: Labels that it is given.
    """

    name: str
    expr: str
    labels: Mapping[str, str] = field(default_factory=dict[str, str])

    def document(self, _runbooks: str) -> dict[str, Any]:
        """Return it in Prometheus' format."""
        labels = {"labels": dict(self.labels)} if self.labels else {}
        return {"record": self.name, "expr": self.expr, **labels}


@dataclass(frozen=True, slots=True, kw_only=True)
class Alert:
    """
    A query that returns series only if somebody has to act.

    Attributes:
        name: Camel case, beginning with Mnemoscope.
        expr: The query.
        wait: Time for which it must hold before it fires: ``5m``. None: fires at once.
        hold: Time for which it goes on firing afterwards, so that flapping is one alert.
        severity: Whether it pages.
        summary: One line: what is wrong, and where.
        description: Its meaning, with the value.
        board: The name of the dashboard to look at first.
    """

    name: str
    expr: str
    wait: str | None = None
    hold: str | None = None
    severity: Severity
    summary: str
    description: str
    board: str

    @property
    def anchor(self) -> str:
        """The anchor of its section in the runbooks."""
        return self.name.lower()

    def annotations(self, runbooks: str) -> dict[str, str]:
        """Return its annotations; *runbooks* is the address of docs/runbooks.md."""
        return {
            "summary": self.summary,
            "description": self.description,
            "runbook_url": f"{runbooks}#{self.anchor}",
            "dashboard": f"/d/mnemoscope-{self.board}",
        }

    def document(self, runbooks: str) -> dict[str, Any]:
        """Return it in Prometheus' format."""
        timing = {"for": self.wait, "keep_firing_for": self.hold}
        return {
            "alert": self.name,
            "expr": self.expr,
            **{key: value for key, value in timing.items() if value},
            "labels": {"severity": self.severity},
            "annotations": self.annotations(runbooks),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleGroup:
    """
    Rules that are evaluated one after the other.

    Attributes:
        name: Its name, and that of its file.
        rules: Records before the alerts that use them.
    """

    name: str
    rules: Sequence[RecordingRule | Alert]

    @property
    def alerts(self) -> list[Alert]:
        """The rules that are alerts."""
        return [rule for rule in self.rules if isinstance(rule, Alert)]

    def document(self, runbooks: str, pace: RuleSpeed) -> dict[str, Any]:
        """Return it in Prometheus' format."""
        rules = [rule.document(runbooks) for rule in self.rules]
        name = f"mnemoscope-{self.name}"
        return {"name": name, "interval": pace("30s"), "rules": rules}


def managed(groups: Sequence[RuleGroup], runbooks: str) -> dict[str, Any]:
    """Return the alerts of *groups* as rules that Grafana itself evaluates, for provisioning."""
    return {
        "apiVersion": 1,
        "groups": [
            {
                "orgId": 1,
                "name": f"mnemoscope-{group.name}",
                "folder": "mnemoscope",
                "interval": "1m",
                "rules": [_managed(alert, runbooks) for alert in group.alerts],
            }
            for group in groups
        ],
    }


def _managed(alert: Alert, runbooks: str) -> dict[str, Any]:
    annotations = alert.annotations(runbooks)
    board = f"mnemoscope-{alert.board}"
    return {
        "uid": re.sub(r"(?<!^)(?=[A-Z])", "-", alert.name).lower(),
        "title": alert.name,
        "condition": "condition",
        "data": [_query(alert.expr), _CONDITION],
        # No series is what a Prometheus alert returns when all is well.
        "noDataState": "OK",
        "execErrState": "Error",
        "for": alert.wait or "0s",
        "labels": {"severity": alert.severity},
        "annotations": {
            key: text.replace("$value", "$values.query.Value") for key, text in annotations.items()
        }
        | {"__dashboardUid__": board},
        "isPaused": False,
    }


def _query(expr: str) -> dict[str, Any]:
    return {
        "refId": "query",
        "datasourceUid": "prometheus",
        "relativeTimeRange": {"from": 600, "to": 0},
        "model": {"refId": "query", "expr": expr, "instant": True, "range": False},
    }


_CONDITION: dict[str, Any] = {
    "refId": "condition",
    "datasourceUid": "__expr__",
    "relativeTimeRange": {"from": 0, "to": 0},
    # Whatever has an answer fires, whichever it is: the threshold is in the query.
    "model": {
        "refId": "condition",
        "type": "math",
        "expression": "is_number($query) || is_nan($query) || is_inf($query)",
    },
}

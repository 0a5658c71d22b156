"""What a rule is, whoever evaluates it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from promql import Pace

Severity = Literal["critical", "warning"]
"""critical: somebody is woken. warning: somebody looks today."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """
    A query whose answer is kept under a name of its own: ``level:metric:operation``.

    Attributes:
        name: That name.
        expr: The query.
    """

    name: str
    expr: str

    def document(self, _runbooks: str) -> dict[str, Any]:
        """Return what Prometheus reads."""
        return {"record": self.name, "expr": self.expr}


@dataclass(frozen=True, slots=True, kw_only=True)
class Alert:
    """
    A query that has an answer only when somebody should act.

    Attributes:
        name: In camel case, with our name first.
        expr: The query.
        wait: How long it must have had an answer: ``5m``. None: tell at once.
        hold: How long to go on firing when it has none any more, so that flapping is one alert.
        severity: Whether somebody is woken.
        summary: One line: what is wrong, and where.
        description: What it means, with the figure.
        board: The dashboard to look at first: the end of its address.
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
        """The heading of its section in the runbooks, as an address has it."""
        return self.name.lower()

    def annotations(self, runbooks: str) -> dict[str, str]:
        """Return what is sent with it; *runbooks* is the address of docs/runbooks.md."""
        return {
            "summary": self.summary,
            "description": self.description,
            "runbook_url": f"{runbooks}#{self.anchor}",
            "dashboard": f"/d/mnemoscope-{self.board}",
        }

    def document(self, runbooks: str) -> dict[str, Any]:
        """Return what Prometheus reads."""
        timing = {"for": self.wait, "keep_firing_for": self.hold}
        return {
            "alert": self.name,
            "expr": self.expr,
            **{key: value for key, value in timing.items() if value},
            "labels": {"severity": self.severity},
            "annotations": self.annotations(runbooks),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """
    Rules that are evaluated one after the other.

    Attributes:
        name: Also that of its file.
        rules: Records before the alerts that use them.
    """

    name: str
    rules: Sequence[Record | Alert]

    @property
    def alerts(self) -> list[Alert]:
        """Those that tell somebody."""
        return [rule for rule in self.rules if isinstance(rule, Alert)]

    def document(self, runbooks: str, pace: Pace) -> dict[str, Any]:
        """Return what Prometheus reads."""
        rules = [rule.document(runbooks) for rule in self.rules]
        name = f"mnemoscope-{self.name}"
        return {"groups": [{"name": name, "interval": pace("30s"), "rules": rules}]}


def managed(groups: Sequence[Group], runbooks: str) -> dict[str, Any]:
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

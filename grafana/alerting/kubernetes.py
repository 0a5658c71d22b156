"""Rules and dashboards as objects of Kubernetes: a PrometheusRule, and ConfigMaps."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

LABELS: Final = {"app.kubernetes.io/part-of": "mnemoscope"}
DASHBOARD: Final = {"grafana_dashboard": "1"}
"""The label by which the sidecar of Grafana's Helm chart finds dashboards."""

FOLDER: Final = {"grafana_folder": "mnemoscope"}


def prometheus_rule(rules: Mapping[str, Any]) -> dict[str, Any]:
    """Return a file of Prometheus' rules as an object of the Prometheus operator's."""
    return {
        "apiVersion": "monitoring.coreos.com/v1",
        "kind": "PrometheusRule",
        "metadata": {"name": "mnemoscope", "labels": LABELS},
        "spec": rules,
    }


def config_map(name: str, dashboard: str) -> dict[str, Any]:
    """Return the JSON of a *dashboard* as a ConfigMap that Grafana's sidecar loads."""
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": f"mnemoscope-dashboard-{name}",
            "labels": LABELS | DASHBOARD,
            "annotations": FOLDER,
        },
        "data": {f"mnemoscope-{name}.json": dashboard},
    }

"""What the tests of the dashboards and rules need: the folder itself, and Prometheus' own tools."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

GRAFANA = Path(__file__).parents[2] / "grafana"


@pytest.fixture(scope="session")
def grafana() -> Path:
    """Return the folder that is shipped."""
    return GRAFANA


def tool(name: str) -> str:
    """Return where *name* is, or skip the test and say how to have it."""
    found = shutil.which(name)
    if found is None:
        pytest.skip(f"{name} is not installed: apt-get install prometheus prometheus-alertmanager")
    return found


@pytest.fixture(scope="session")
def promtool() -> str:
    """Return Prometheus' tool for rules."""
    return tool("promtool")


@pytest.fixture(scope="session")
def amtool() -> str:
    """Return Alertmanager's tool for configurations."""
    return tool("amtool")

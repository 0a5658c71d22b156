"""What every suite may use."""

from __future__ import annotations

import atexit
import gc
import os
import shutil
import tempfile
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

# mem0 reads both as it is imported, and makes the folder: no test may import it before.
os.environ["MEM0_TELEMETRY"] = "False"
if "MEM0_DIR" not in os.environ:
    os.environ["MEM0_DIR"] = tempfile.mkdtemp(prefix="mem0-")
    atexit.register(shutil.rmtree, os.environ["MEM0_DIR"], ignore_errors=True)

from mnemoscope.telemetry.event.event import Event, OperationClass, Status
from mnemoscope.telemetry.event.subject import Subject, SubjectKeys
from mnemoscope.telemetry.event.trace_ref import TraceRef
from tests.kit.lengths import examples

pytest_plugins = [
    "tests.kit.patience",
    "tests.kit.long_tests",
    "tests.kit.receivers",
    "tests.kit.back_ends",
    "tests.kit.collectors",
    "tests.kit.fault_report",
    "tests.kit.postgres",
    "tests.kit.postgres_line",
    "tests.kit.interleaving",
    "tests.kit.crash_report",
    "tests.kit.work_units",
    "tests.kit.sealed_scopes",
    "tests.kit.kafka_broker",
]

IN_MEMORY = Path("/dev/shm")  # noqa: S108 - what is made in it is pytest's, with a number of its own
"""Databases wait for each of their writes to be on disk, which here takes no time."""


def pytest_configure(config: pytest.Config) -> None:
    """Name the marker of tests that run while their process is small; keep files in memory."""
    if "PYTEST_DEBUG_TEMPROOT" not in os.environ and _is_roomy(IN_MEMORY):
        os.environ["PYTEST_DEBUG_TEMPROOT"] = str(IN_MEMORY)
    config.addinivalue_line(
        "markers", "forks_often: Runs first: a fork copies the tables of all that a process holds."
    )


def _is_roomy(folder: Path) -> bool:
    """Return whether tests may write, and run, what they like there. In containers they may not."""
    if not os.access(folder, os.W_OK):
        return False
    found = os.statvfs(folder)
    return found.f_bavail * found.f_frsize > 4 << 30 and not found.f_flag & os.ST_NOEXEC


def pytest_collection_finish() -> None:
    """Have the collector of garbage leave alone what stays to the end: a sixth of all time."""
    gc.collect()
    gc.freeze()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """
    Put the tests that fork again and again before those that fill the process.

    After them those of this folder itself, which have long programs run: last of all, one worker
    would be left alone with them.
    """
    items.sort(
        key=lambda each: (
            each.get_closest_marker("forks_often") is None,
            each.path.parent != Path(__file__).parent,
        )
    )


# No test depends on the machine's speed.
settings.register_profile(
    "unhurried",
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    max_examples=examples(100),
)
settings.load_profile("unhurried")

SECRET = b"sixteen bytes or more"


@pytest.fixture
def subject_keys() -> SubjectKeys:
    """Return keys that are the same in every test."""
    return SubjectKeys(SECRET)


@pytest.fixture
def event_factory(subject_keys: SubjectKeys) -> Callable[..., Event]:
    """Return a factory of events: a mem0 recall of Ada's, with whatever is overridden."""
    numbers = count(1)

    def an_event(*, customer: str | None = "ada@example.com", **overrides: Any) -> Event:
        tenant = overrides.get("tenant", "acme")
        subject = customer and Subject(customer, tenant=tenant, keys=subject_keys)
        fields: dict[str, Any] = {
            "writer_id": "00000000000000aa",
            "writer_seq": next(numbers),
            "started_ns": 1_700_000_000_123_456_789,
            "duration_s": 0.0125,
            "operation": "search_memory",
            "op_class": OperationClass.RECALL,
            "store": "mem0",
            "method": "search",
            "status": Status.OK,
            "trace": TraceRef(0xA1, 0xB1),
            "subject": subject,
            "tenant": tenant,
        }
        if (usage := overrides.pop("usage", None)) is not None:
            overrides["parts"] = (usage, *overrides.get("parts", ()))
        return Event(**(fields | overrides))

    return an_event

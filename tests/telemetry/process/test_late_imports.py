"""Libraries are imported by one of our threads at a time."""

from __future__ import annotations

from tests.kit.own_process import run_python

PROGRAM = """
import os
import sys
import threading
import time

from mnemoscope.telemetry.process.late_imports import LATE_IMPORTS

LATE_IMPORTS._lock = threading.RLock()  # which knows its owner
alone, beside = set(), set()


class Watch:
    def find_spec(self, name, path=None, target=None):
        top = name.partition(".")[0]
        ours = threading.current_thread().name.startswith("mnemoscope-")
        if ours and top not in sys.stdlib_module_names and top != "mnemoscope":
            (alone if LATE_IMPORTS._lock._is_owned() else beside).add(top)


sys.meta_path.insert(0, Watch())
from mnemoscope.memory import configure

scope = configure(pii_model="none", sinks="otlp,langsmith")
scope.observe(store="crm", operation="search_memory")(list)()
scope.health(0.5)
while not {"langsmith", "opentelemetry"} <= alone | beside:
    time.sleep(0.01)
with LATE_IMPORTS:  # whoever imports has come to an end
    pass
print(sorted(alone), sorted(beside), flush=True)
os._exit(0)
"""


def test_a_thread_of_ours_imports_in_its_turn(tmp_path):
    """Else two of them hand each other modules that have no names yet."""
    nowhere = "http://127.0.0.1:9"
    variables = {
        "OTEL_EXPORTER_OTLP_ENDPOINT": nowhere,
        "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL": "grpc",
        "OTEL_EXPORTER_OTLP_METRICS_PROTOCOL": "http/protobuf",
        "LANGSMITH_ENDPOINT": nowhere,
        "LANGSMITH_API_KEY": "none",
    }
    said = run_python("-W", "ignore", "-c", PROGRAM, folder=tmp_path, **variables).stdout

    alone, _, beside = said.strip().partition("] ")
    assert "langsmith" in alone
    assert beside == "[]"

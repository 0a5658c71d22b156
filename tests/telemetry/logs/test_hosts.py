"""What a host reads on stderr, by how it has set up its logging: each in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.kit.patience import GIVE_UP_S

CALLS = """
from mnemoscope.memory import configure, observe

scope = configure(sinks="logs", pii_model="none", log_to="{log_to}")

@observe(store="crm", operation="search_memory", neutral=list)
def facts(broken):
    if broken:
        raise ConnectionError
    return ["a fact"]

facts(broken=False)
facts(broken=True)
scope.flush()
"""
HOSTS = {
    "nothing": ("", "loguru", {}),
    "loguru imported": ("from loguru import logger", "loguru", {}),
    "a level of loguru's": ("", "loguru", {"LOGURU_LEVEL": "DEBUG"}),
    "a higher level": ("", "loguru", {"LOGURU_LEVEL": "ERROR"}),
    "a handler at DEBUG": (
        "import sys\nfrom loguru import logger\nlogger.remove()\nlogger.add(sys.stderr)",
        "loguru",
        {},
    ),
    "no handler": ("from loguru import logger\nlogger.remove()", "loguru", {}),
    "logging": ("", "logging", {}),
    "logging at INFO": (
        "import logging\nlogging.basicConfig(level='INFO', format='%(levelname)s %(message)s')",
        "logging",
        {},
    ),
}


@pytest.mark.long_but_each(4)
@pytest.mark.parametrize(
    ("host", "ordinary", "abnormal"),
    [
        ("nothing", 0, 1),
        ("loguru imported", 0, 1),
        ("a level of loguru's", 1, 1),
        ("a higher level", 0, 0),
        ("a handler at DEBUG", 1, 1),
        ("no handler", 0, 0),
        ("logging", 0, 1),
        ("logging at INFO", 0, 1),
    ],
)
def test_a_host_reads_what_it_has_set_up(host, ordinary, abnormal, tmp_path):
    """Who never set anything up reads nothing of calls that went well."""
    setup, log_to, variables = HOSTS[host]
    environment = {key: value for key, value in os.environ.items() if key != "LOGURU_LEVEL"}
    run = subprocess.run(
        [sys.executable, "-c", f"{setup}\n{CALLS.format(log_to=log_to)}"],
        env={**environment, **variables, "XDG_DATA_HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=GIVE_UP_S,
        check=True,
    )

    said = [line for line in run.stderr.splitlines() if "crm search_memory" in line]
    well = [line for line in said if " ok " in line]
    assert (len(well), len(said) - len(well)) == (ordinary, abnormal)

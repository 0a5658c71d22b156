"""A sink of somebody else's: installed by itself, found by its entry point."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.kit.patience import GIVE_UP_S

pytest.importorskip("pyarrow")

PACKAGE = Path(__file__).parents[3] / "examples" / "third_party" / "parquet_sink"

AGENT = f"""
from mnemoscope.memory import configure, context

scope = configure(sinks="parquet", audit_pseudonym_key="ab" * 32, pii_model="none")

@scope.observe(store="crm", operation="search_memory", neutral=list)
def facts():
    return ["tea"]

with context(tenant="acme", customer="grace@example.com", feature="reply"):
    facts()
scope.close({GIVE_UP_S})
"""

CHECK = """
import pathlib, sys
import pyarrow.parquet as pq
from mnemoscope.memory.testing import check_sink
from mnemoscope_parquet import ParquetSink

folder = pathlib.Path(sys.argv[1])
read = lambda: str(pq.read_table(folder).to_pylist()).encode()
check_sink(lambda: ParquetSink(folder), read=read)
"""


@pytest.fixture(scope="module")
def environment(tmp_path_factory) -> dict[str, str]:
    """Return the environment of a process that has the package installed."""
    folder = tmp_path_factory.mktemp("installed")
    source = folder / "source"
    copied = ["pyproject.toml", "README.md", "src/mnemoscope_parquet/__init__.py"]
    for each in copied:  # setuptools builds in the folder that it is given
        (source / each).parent.mkdir(parents=True, exist_ok=True)
        (source / each).write_text((PACKAGE / each).read_text())
    install = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index"]
    subprocess.run(
        [*install, "--no-build-isolation", "--target", folder / "site", source],
        check=True,
        timeout=GIVE_UP_S,
    )
    paths = [str(folder / "site"), *filter(None, [os.environ.get("PYTHONPATH")])]
    return os.environ | {"PYTHONPATH": os.pathsep.join(paths)}


def test_a_guarded_call_is_in_its_file(environment, tmp_path):
    """By nothing but its name in the settings; the customer is in it as a keyed hash."""
    import pyarrow.parquet as pq

    folder = tmp_path / "events"

    subprocess.run(
        [sys.executable, "-c", AGENT],
        env=environment | {"MNEMOSCOPE_PARQUET_FOLDER": str(folder)},
        check=True,
        timeout=GIVE_UP_S,
    )

    (event,) = pq.read_table(folder).to_pylist()
    known = event["store"], event["method"], event["status"], event["tenant"], event["feature"]
    assert known == ("crm", "facts", "ok", "acme", "reply")
    assert event["subject"]
    assert "grace" not in str(event)


def test_it_holds_the_contract_of_sinks(environment, tmp_path):
    """As ours do."""
    subprocess.run(
        [sys.executable, "-c", CHECK, tmp_path / "events"],
        env=environment,
        check=True,
        timeout=GIVE_UP_S,
    )


def test_it_is_short():
    """A sink is eighty lines of somebody's afternoon."""
    assert len((PACKAGE / "src/mnemoscope_parquet/__init__.py").read_text().splitlines()) <= 80

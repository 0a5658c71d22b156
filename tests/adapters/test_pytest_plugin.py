"""The plugin of pytest: its fixtures, in suites of a user's own."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.metadata import entry_points
from textwrap import dedent

import pytest

from tests.kit.patience import GIVE_UP_S

pytest_plugins = ["pytester"]

PLUGIN = "mnemoscope.adapters.pytest_plugin"
LOADED = ("-p", PLUGIN, "-p", "syrupy", "-W", "ignore::pytest.PytestAssertRewriteWarning")
AGENT = """
from langgraph.store.memory import InMemoryStore


def agent(store, recalls=True):
    store.put(("notes", "c-1"), "k", {"likes": "tea"})
    if recalls:
        store.search(("notes", "c-1"))
    return store.get(("notes", "c-1"), "k")
"""


@pytest.fixture
def suite(pytester, monkeypatch):
    """Return what runs pytest over a test file of a user's, and returns what it prints."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    monkeypatch.delenv("PYTEST_XDIST_WORKER", raising=False)
    pytester.makepyfile(agent=AGENT)
    pytester.makeini("[pytest]\nfilterwarnings = error\n")
    pytester.syspathinsert()

    def run(code, *options, exits=0):
        pytester.makepyfile(test_agent=dedent(code))
        done = pytester.runpytest_inprocess(*LOADED, *options)
        assert done.ret == exits
        return done.stdout.str()

    return run


GOLDEN = """
from agent import *

def test_reply(memory_scope, golden_memory):
    scope, _sink = memory_scope
    agent(scope.store(InMemoryStore()), recalls=RECALLS)
    golden_memory()
"""


def test_a_dropped_recall_is_told_in_words(suite, pytester):
    """No snapshot fails, one is written, the same run passes, another one is told."""
    same, other = GOLDEN.replace("RECALLS", "True"), GOLDEN.replace("RECALLS", "False")
    assert "run with --snapshot-update" in suite(same, exits=1)
    suite(same, "--snapshot-update")
    (file,) = (pytester.path / "__snapshots__").rglob("*.json")
    assert "tea" not in file.read_text()
    suite(same)
    said = suite(other, exits=1)

    assert "the memory operations are not those of the snapshot" in said
    assert "dropped: operation 2 of 3, recall (search of langgraph.store at " in said
    assert "tea" not in said.partition("the memory operations")[2].partition("short test")[0]


@pytest.mark.long
def test_the_seed_of_toxics_is_an_option(suite):
    """So that the run in which something was found can be made again."""
    code = """
    from agent import *

    def test_reply(memory_scope, toxics):
        from mnemoscope.memory.testing import Toxic
        scope, _sink = memory_scope
        store = scope.store(InMemoryStore())
        with toxics(Toxic("empty", 0.5)).on(store) as strikes:
            for _ in range(20):
                agent(store)
        print("struck", ",".join(each.method for each in strikes))
    """

    def struck(seed):
        return suite(code, "-s", "--toxic-seed", seed).partition("struck ")[2].split()[0]

    one, again, other = map(struck, ("1", "1", "2"))
    assert one == again != other
    assert 10 <= len(one.split(",")) <= 40


def test_isolation_is_a_fixture(suite):
    """As the function is."""
    code = """
    from langgraph.store.base import SearchOp
    from langgraph.store.memory import InMemoryStore

    def test_tenants(memory_scope, check_isolation):
        scope, _sink = memory_scope
        store = scope.store(InMemoryStore())
        check_isolation(
            store,
            write=lambda who, text: store.put(("notes", who), "k", {"v": text}),
            reads={
                "get": lambda who: {"namespace": ("notes", who), "key": "k"},
                "search": lambda who: {"namespace_prefix": ("notes", who)},
                "list_namespaces": lambda who: {},
                "batch": lambda who: {"ops": [SearchOp(("notes", who))]},
            },
        )
    """
    assert "search hands acme what is globex's" in suite(code, exits=1)


def test_the_plugin_has_a_section_in_the_help(suite):
    """With its option, and the fixtures are listed with what they are."""
    assert "--toxic-seed" in suite("", "--help").partition("memory of agents:")[2]
    listed = suite("", "--fixtures").partition(f"fixtures defined from {PLUGIN}")[2]
    ours = listed.partition("fixtures defined from")[0]
    for name in ("memory_scope", "toxics", "golden_memory", "check_isolation"):
        assert f"{name} " in ours
    assert "no docstring available" not in ours


@pytest.mark.long
def test_a_suite_that_uses_none_of_it_imports_none_of_it(tmp_path):
    """The plugin is loaded in every suite where mnemoscope is installed."""
    (tmp_path / "test_reply.py").write_text(
        dedent("""
        import sys

        def test_reply():
            ours = {each for each in sys.modules if each.startswith("mnemoscope.")}
            assert ours == {"mnemoscope.adapters", "mnemoscope.adapters.pytest_plugin"}
            heavy = {"jsonschema", "langgraph", "msgspec", "opentelemetry", "pydantic", "syrupy"}
            assert not heavy & sys.modules.keys()
        """)
    )
    subprocess.run(
        [sys.executable, "-m", "pytest", "-p", PLUGIN, "-p", "no:cacheprovider", str(tmp_path)],
        cwd=tmp_path,
        env={"PATH": os.environ["PATH"], "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        timeout=GIVE_UP_S,
        check=True,
    )


def test_pytest_finds_the_plugin_by_itself():
    """By the entry point, under the name that ``-p`` takes, so that it is never loaded twice."""
    (found,) = entry_points(group="pytest11", name=PLUGIN)
    assert found.value == PLUGIN

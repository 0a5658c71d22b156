"""One `/metrics`, with a relay and without: the same of the same work."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.kit.own_process import run_code
from tests.kit.patience import GIVE_UP_S, UNHURRIED

APPLICATION = """
import sys, threading, time
from langgraph.store.memory import InMemoryStore
from mnemoscope.memory import Budget, Mnemoscope, context
from mnemoscope.memory.settings import load_settings


class Away(InMemoryStore):
    def batch(self, ops):
        raise ConnectionError("away")


scope = Mnemoscope(load_settings(), budgets=[Budget(usd=5.0, per="day", name="all")])
recall = scope.observe(store="crm", operation="search_memory", neutral=list, inline=True)(list)
asked = scope.observe(store="crm", operation="search_memory", neutral=list)
store = scope.store(Away())


@scope.observe(store="docs", operation="search_memory", neutral=list)
def broken():
    raise ConnectionError("away")


hung, going_on = threading.Event(), threading.Event()


def work():
    with context(tenant="acme", customer="ada", feature="draft"):
        for _ in range(3):
            recall()
        for _ in range(30):
            broken()
        for number in range(20):
            store.put(("facts",), str(number), {"likes": "ada@example.com"})
        threading.Thread(target=asked(lambda: hung.set() or going_on.wait()), daemon=True).start()
        hung.wait()


def until_it_may_end():
    print("done", flush=True)
    sys.stdin.read()
    going_on.set()
"""

BY_ITSELF = """
from prometheus_client import REGISTRY, generate_latest
work()
scope.flush(60)
sys.stdout.buffer.write(generate_latest(REGISTRY))
going_on.set()
"""

IN_FLIGHT = "mnemoscope_operations_in_flight"

RELAYED = """
work()
until_it_may_end()
"""

RELAY = """
import sys, time
from prometheus_client import REGISTRY, generate_latest
from mnemoscope.memory.building.relay import build_relay
from mnemoscope.memory.settings import load_settings
settings = load_settings()
relay = build_relay(settings, settings.relay)
while True:
    relay.look()
    moved = [feed.turn() for feed in relay.feeds]
    said = {each.name for each in relay.samples() if each.value}
    if not any(moved) and "mnemoscope_operations_in_flight" in said:
        break
    time.sleep(0.02)
sys.stdout.buffer.write(generate_latest(REGISTRY))
sys.stdout.buffer.flush()
relay.close()
"""


@pytest.fixture
def environment(tmp_path):
    """Return a function that returns the variables of a process."""

    def of(kind, **more):
        folder = tmp_path / kind
        folder.mkdir(exist_ok=True)
        kept = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("MNEMOSCOPE_", "OTEL_", "LANGSMITH_", "LANGCHAIN_"))
        }
        own = {
            "XDG_DATA_HOME": str(folder),
            "MNEMOSCOPE_SINKS": "prometheus,logs,audit",
            "MNEMOSCOPE_AUDIT_PSEUDONYM_KEY": "ab" * 32,
            "MNEMOSCOPE_LOG_FILE": str(folder / "events.jsonl"),
            "MNEMOSCOPE_JOURNAL": str(folder / "journal.db"),
            "MNEMOSCOPE_PII_MODEL": "none",
        }
        return kept | UNHURRIED | own | more

    return of


def samples(text):
    """Return the samples of a scrape that tell of mnemoscope, by name and labels."""
    return {
        (sample.name, *sorted(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if sample.name.startswith("mnemoscope_")
    }


def is_of_a_relay(name, *labels):
    """Return whether there is nothing to tell where there is no relay."""
    return name.startswith("mnemoscope_relay_") or ("sink", "relay") in labels


@pytest.mark.long
def test_the_same_work_says_the_same(environment, tmp_path):
    """Every metric with all its labels; and what it says where that is no matter of time."""
    alone = samples(run_code(APPLICATION + BY_ITSELF, environment("alone")).stdout)
    relayed = environment("relayed", MNEMOSCOPE_RELAY=str(tmp_path / "relay"))
    command = [sys.executable, "-c", APPLICATION + RELAYED]
    streams = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, env=relayed, **streams) as application:
        assert application.stdout.readline() == "done\n"
        beside = samples(run_code(RELAY, relayed).stdout)
        application.communicate(timeout=GIVE_UP_S)
    shared = {each: beside[each] for each in beside if not is_of_a_relay(*each)}
    # In the process by itself the journal may be at it this moment, to make a write again.
    tried_again = IN_FLIGHT, ("class", "remember"), ("store", "langgraph.store")
    steady = [
        each
        for each in alone
        if each != tried_again
        and not each[0].endswith(("_seconds", "_seconds_total", "_sum", "_bucket", "_created"))
        and not each[0].endswith(("_tree_size", "_bytes", "_breaker_state"))
    ]

    assert alone.keys() == shared.keys()
    assert {each: alone[each] for each in steady} == {each: shared[each] for each in steady}
    assert shared[tried_again] == 0
    assert alone[tried_again] in {0, 1}
    assert shared[IN_FLIGHT, ("class", "recall"), ("store", "crm")] == 1
    assert shared["mnemoscope_breaker_state", ("class", "recall"), ("store", "docs")] > 0  # open
    assert shared["mnemoscope_journal_waiting", ("store", "langgraph.store")] == 20

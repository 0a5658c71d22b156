"""An application that ended while every back end was away: with a relay, nothing of it is lost."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from textwrap import dedent

import orjson
import pytest

from mnemoscope.memory import load_settings
from mnemoscope.memory.building.relay import build_relay
from mnemoscope.telemetry.queue.folder import files_in
from tests.kit.back_ends import FaultProxy
from tests.kit.own_process import run_python
from tests.kit.patience import until
from tests.kit.relay_kills import BackEnds, back_ends, recorded

CALLS = 100
SINKS = ("audit", "logs", "otlp", "langsmith")
APPLICATION = dedent(
    """
    import atexit, sys, threading
    from mnemoscope.memory import configure, context

    @atexit.register  # the first that is registered is the last that is called
    def left():
        print(len(threading.enumerate()))

    scope = configure()
    recall = scope.observe(store="crm", operation="search_memory", neutral=list, inline=True)(list)
    with context(tenant="acme", customer="ada"):
        for _ in range(int(sys.argv[1])):
            recall()
            event = scope.last_outcome()
            print(event.event_id, event.trace.span_hex)
    """
)


class Away:
    """A collector and a LangSmith that are not there, and a disk that is not mounted, yet."""

    def __init__(self, ends: BackEnds, disk) -> None:
        self.ends, self.disk = ends, disk
        self.otlp = FaultProxy(ends.otlp.url, listening=False)
        self.langsmith = FaultProxy(ends.langsmith.http.url, listening=False)
        disk.write_bytes(b"")  # no folder: nothing can be written below it

    @property
    def variables(self) -> dict[str, str]:
        """What the environment of an application says of them."""
        return {
            **self.ends.variables,
            "OTEL_EXPORTER_OTLP_ENDPOINT": self.otlp.url,
            "LANGSMITH_ENDPOINT": self.langsmith.url,
        }

    def come_back(self) -> None:
        """Be there from now on."""
        self.disk.unlink()
        self.disk.mkdir()
        self.otlp.listen()
        self.langsmith.listen()

    def close(self) -> None:
        self.otlp.close()
        self.langsmith.close()


@pytest.fixture
def away(tmp_path, monkeypatch) -> Iterator[Away]:
    """Return back ends that are away, which the environment names."""
    from langsmith.utils import get_env_var

    with back_ends() as ends:
        made = Away(ends, tmp_path / "disk")
        for name, value in made.variables.items():
            monkeypatch.setenv(name, value)
        get_env_var.cache_clear()
        with contextlib.closing(made):
            yield made
        get_env_var.cache_clear()


def test_all_of_it_is_delivered_when_they_are_back(away, tmp_path):
    """Its exit waits for none of them, and leaves no thread behind that could."""
    chosen = {
        "relay": tmp_path / "relay",
        "sinks": ",".join(SINKS),
        "audit_pseudonym_key": "ab" * 32,
        "audit_url": f"sqlite:///{away.disk / 'audit.db'}",
        "audit_spool": tmp_path / "spool",
        "log_file": tmp_path / "events.jsonl",
        "pii_model": "none",
    }
    settings = load_settings(**chosen)
    variables = {f"MNEMOSCOPE_{name.upper()}": str(value) for name, value in chosen.items()}
    program = run_python(
        *("-c", APPLICATION, str(CALLS)), folder=tmp_path, **away.variables, **variables
    )
    *calls, threads = program.stdout.splitlines()
    events, spans = zip(*map(str.split, calls), strict=True)

    relay, stopping = build_relay(settings, settings.relay), threading.Event()
    running = threading.Thread(target=relay.run, args=(stopping,))
    running.start()
    try:
        were_away = until(
            lambda: not (relay._drain.is_up("otlp") or relay._drain.is_up("langsmith"))
        )
        before = (away.ends.spans(), away.ends.runs())
        away.come_back()
        is_done = until(lambda: not files_in(settings.relay))
    finally:
        stopping.set()
        running.join()
    lines = (tmp_path / "events.jsonl").read_text().splitlines()

    assert (len(events), threads) == (CALLS, "1")
    assert were_away
    assert not any(before)
    assert is_done
    assert sorted(recorded(settings)) == sorted(events)
    assert {*events} <= {orjson.loads(line)["event_id"] for line in lines}
    assert {int(each, 16) for each in spans} <= away.ends.spans().keys()
    assert {*events} <= away.ends.runs().keys()

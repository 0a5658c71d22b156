"""Collectors that refuse, die, stand still or are away: nobody waits, and all is counted."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

from mnemoscope.memory import Mnemoscope, context
from tests.kit.collectors import point_to
from tests.kit.patience import GIVE_UP_S, until

WORST_S = 1.0
"""Seconds that one call may take, where others share these cores: each outage lasts longer."""


class Agent:
    """Calls that name their span, and the longest that one of them took."""

    def __init__(self, scope: Mnemoscope) -> None:
        self._scope = scope
        self._call = scope.observe(store="crm", operation="search_memory", neutral=list)(list)
        self.spans: list[int] = []
        self.longest_s = 0.0

    def ask(self, times: int = 1, pause_s: float = 0.0) -> None:
        with context(tenant="acme", customer="c-42"):
            for _ in range(times):
                began = time.perf_counter()
                self._call()
                self.longest_s = max(self.longest_s, time.perf_counter() - began)
                outcome = self._scope.last_outcome()
                assert outcome is not None
                self.spans.append(outcome.trace.span_id)
                time.sleep(pause_s)

    def books(self) -> Any:
        """Return the counters of the OTLP lane."""
        return next(each for each in self._scope._parts.drain.stats() if each.sink == "otlp")

    def meanwhile(self, during: Callable[[], object]) -> None:
        """Ask about 200 times a second until *during* returns."""
        done = threading.Event()

        def work() -> None:
            while not done.is_set():
                self.ask(pause_s=0.005)

        thread = threading.Thread(target=work)
        thread.start()
        try:
            during()
        finally:
            done.set()
            thread.join()


@pytest.fixture(params=["grpc", "http"])
def agent(request, monkeypatch, collector, made_scope):
    """An agent whose OTLP goes to the Collector of its machine, over each protocol."""
    point_to(monkeypatch, collector, request.param)
    agent = Agent(made_scope())
    agent.ask()
    assert agent._scope.flush(GIVE_UP_S)
    return agent


def test_what_a_full_collector_refuses_arrives_later(agent, collector, gateway):
    """Its `memory_limiter` answers 503 or UNAVAILABLE; each span is there once nevertheless."""
    collector.stop()
    collector.start(COLLECTOR_LIMIT_MIB="2", COLLECTOR_SPIKE_MIB="1")
    agent.meanwhile(lambda: until(lambda: not agent.books().is_up) and time.sleep(2))
    refused = agent.books()
    collector.stop()
    collector.start(COLLECTOR_LIMIT_MIB="512", COLLECTOR_SPIKE_MIB="128")

    assert agent._scope.flush(GIVE_UP_S)
    assert until(lambda: gateway.span_counts().keys() >= {*agent.spans})
    assert refused.queued > 100
    assert gateway.span_counts() == dict.fromkeys(agent.spans, 1)
    assert agent.books().dropped == {}
    assert agent.longest_s < WORST_S


def test_a_killed_collector_has_lost_nothing_that_it_acknowledged(agent, collector, gateway):
    """Its queue is on the disk. What it had not acknowledged is sent again, and may come twice."""

    def kill_it() -> None:
        for _ in range(4):
            time.sleep(0.7)
            collector.kill()
            collector.start()

    agent.meanwhile(kill_it)

    assert agent._scope.flush(GIVE_UP_S)
    assert until(lambda: gateway.span_counts().keys() >= {*agent.spans})
    counts = gateway.span_counts()
    assert counts.keys() == {*agent.spans}
    # Of each kill, the one request that was under way.
    assert sum(counts.values()) - len(counts) <= 4 * 512
    books = agent.books()
    assert (books.delivered, books.dropped) == (len(agent.spans), {})
    assert agent.longest_s < WORST_S


def test_a_collector_that_stands_still_delays_nobody(agent, collector, gateway):
    """Requests that it had not answered in two seconds are sent again, as OTLP allows."""

    def stand_still() -> None:
        collector.pause()
        time.sleep(4)
        collector.go_on()

    agent.meanwhile(stand_still)

    assert agent._scope.flush(GIVE_UP_S)
    assert until(lambda: gateway.span_counts().keys() >= {*agent.spans})
    counts = gateway.span_counts()
    assert counts.keys() == {*agent.spans}
    assert agent.books().dropped == {}
    assert agent.longest_s < WORST_S


def test_what_a_dead_gateway_does_not_take_waits_on_the_machines_disk(agent, collector, gateway):
    """The agent notices nothing, and another Collector on that disk hands all of it on."""
    gateway.stop()
    agent.ask(1_000)
    assert agent._scope.flush(GIVE_UP_S)
    taken = agent.books()
    collector.stop()
    collector.start()
    gateway.start()

    assert taken.delivered == len(agent.spans)
    assert until(lambda: gateway.span_counts().keys() >= {*agent.spans})
    assert gateway.span_counts() == dict.fromkeys(agent.spans, 1)


def test_what_does_not_fit_while_it_is_away_is_counted(agent, collector, gateway):
    """A lane holds 8,192 events; each call is either at the gateway or counted as dropped."""
    collector.kill()
    agent.ask(20_000)
    full = agent.books()
    collector.start()

    assert not agent._scope.flush(GIVE_UP_S)  # since something was lost
    books = agent.books()
    assert until(lambda: len(gateway.span_counts()) == books.delivered)
    assert full.queued <= 8_192 + 512
    assert books.dropped == {"overflow": len(agent.spans) - books.delivered}
    assert sum(books.dropped.values()) >= 20_000 - 8_192 - 512
    assert gateway.span_counts().keys() < {*agent.spans}

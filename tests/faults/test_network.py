"""Faults 1-12, 16: the back ends of sinks, and the network in front of them."""

from __future__ import annotations

import logging
import socket
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

from mnemoscope.memory import context
from tests.kit.back_ends import BROKEN_BACK_ENDS
from tests.kit.patience import GIVE_UP_S
from tests.kit.receivers import speak_tls, write_certificate

HTTP = "http/protobuf"


@pytest.fixture
def slow_path_is_free(seen) -> Callable[[list[float]], None]:
    """Return the check that calls cost what they cost without the fault, as far as one can tell."""

    def check(added: list[float]) -> None:
        # The list says 1 ms; ten times that, since other tests share these two cores.
        assert seen.added(added) < 0.010

    return check


@pytest.mark.fault(
    1, "connection refused", expected="kept and retried in the background; delivered once back"
)
def test_refused(
    fault_proxy, otlp_http, otlp_at, make_scope, agent_of, books_of, eventually, seen,
    slow_path_is_free,
):  # fmt: skip
    """A collector that restarts costs no event: the lane asks until it is back."""
    collector = fault_proxy(otlp_http.http.url, listening=False)
    otlp_at(collector.url)
    scope = make_scope(sinks="otlp")
    agent = agent_of(scope)
    slow_path_is_free(agent.ask(300))
    # Longer than what fails for no known reason is tried.
    assert eventually(lambda: scope._parts.faults.counts["sink.otlp"] > 3)
    collector.listen()

    assert scope.flush(GIVE_UP_S)
    books = books_of(scope, agent.asked)["otlp"]
    seen(f"down, then {books.delivered} of {agent.asked} delivered, {books.dropped} lost")
    assert books.is_up
    assert len({span.span_id for span in otlp_http.spans}) == agent.asked == books.delivered


@pytest.mark.parametrize("protocol", [HTTP, "grpc"])
@pytest.mark.fault(
    2, "black hole: accepted, never answered", expected="≤ 3 s a request; exit ≤ 2.5 s"
)
def test_black_hole(black_hole, otlp_at, run_host, seen, protocol):
    """OTLP and LangSmith swallowed at once do not hold the exit."""
    otlp_at(black_hole)
    ended = run_host(
        """
configure(sinks="otlp,langsmith,logs,audit")
for n in range(50):
    assert recall(n) == [n]
time.sleep(1)
leaving()
""",
        env={"OTEL_EXPORTER_OTLP_PROTOCOL": protocol},
    )
    seen(f"{protocol}: exit handlers {ended.exit_s:.1f} s, process gone {ended.gone_s:.1f} s")

    assert (ended.code, ended.out) == (0, "")
    # Each sink that took nothing is named; that a request failed before is said where it did.
    failed = tuple(f"mnemoscope failed in sink.{each} (" for each in ("otlp", "langsmith"))
    # The last one is the checkpoint that the audit trail signs at the end.
    assert [each for each in ended.err.splitlines() if not each.startswith(failed)] == [
        f"closing: sink {each} did not acknowledge 51 events in time, which may be missing there: "
        "`mnemoscope doctor` tells whether it answers"
        for each in ("otlp", "langsmith")
    ]
    assert ended.exit_s < 2.5


@pytest.mark.fault(3, "SYN drop, as behind a default-drop firewall", expected="init < 50 ms")
def test_unanswered(unanswered, otlp_at, make_scope, agent_of, seen, slow_path_is_free):
    """Making a scope connects to nothing, and the agent never waits for a connection."""
    otlp_at(unanswered)
    make_scope(sinks="otlp,langsmith").close()  # imports, once a process
    started = time.perf_counter()
    scope = make_scope(sinks="otlp,langsmith")
    init_s = time.perf_counter() - started
    slow_path_is_free(agent_of(scope).ask(100))
    started = time.perf_counter()
    scope.close()
    close_s = time.perf_counter() - started
    seen(f"init {init_s * 1e3:.1f} ms, close {close_s:.1f} s")

    assert init_s < 0.5
    assert close_s < 2.5


@pytest.mark.fault(4, "DNS hangs, then NXDOMAIN", expected="resolved on the lane's thread alone")
def test_dns(otlp_at, make_scope, agent_of, eventually, monkeypatch, seen, slow_path_is_free):
    """Neither making a scope nor a call looks a name up; closing does not wait for one."""
    asking, answer = [], threading.Event()

    def hang(host: str, *_args: Any, **_kwargs: Any) -> Any:
        asking.append((host, threading.current_thread().name))
        answer.wait(GIVE_UP_S)
        raise socket.gaierror(socket.EAI_NONAME, "unknown")

    monkeypatch.setattr(socket, "getaddrinfo", hang)
    otlp_at("http://collector.invalid:4318")
    scope = make_scope(sinks="otlp")
    slow_path_is_free(agent_of(scope).ask(100))
    asked = eventually(lambda: bool(asking))
    started = time.perf_counter()
    scope.close()
    close_s = time.perf_counter() - started
    answer.set()
    seen(f"looked up on {asking[0][1]}; close {close_s:.1f} s")

    assert asked
    assert set(asking) == {("collector.invalid", "mnemoscope-otlp")}
    assert close_s < 2.5


@pytest.mark.fault(5, "answer drips, a byte each 50 ms", expected="one deadline for the whole")
def test_drip(fault_proxy, otlp_at, make_scope, agent_of, eventually, seen, slow_path_is_free):
    """A request ends although every single read is quick."""
    collector = fault_proxy(mode="drip")
    otlp_at(collector.url)
    scope = make_scope(sinks="otlp")
    started = time.perf_counter()
    slow_path_is_free(agent_of(scope).ask(100))
    gave_up = eventually(lambda: scope._parts.faults.counts["sink.otlp"] > 0)
    took = time.perf_counter() - started
    seen(f"first request given up after {took:.1f} s")

    assert gave_up
    assert took < 5


@pytest.mark.fault(6, "TLS: expired certificate", expected="one warning; nothing sent")
def test_tls(
    http_receiver, tmp_path, otlp_at, make_scope, agent_of, eventually, monkeypatch, caplog, seen,
    slow_path_is_free,
):  # fmt: skip
    """Even one that is trusted otherwise. It is said once, however often it is asked."""
    certificate = write_certificate(tmp_path / "expired.pem", expired=True)
    otlp_at(speak_tls(http_receiver, certificate))
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_CERTIFICATE", str(certificate))
    scope = make_scope(sinks="otlp")
    with caplog.at_level(logging.DEBUG, "mnemoscope"):
        with context(customer="c-42"):
            slow_path_is_free(agent_of(scope).ask(100))
        failed = eventually(lambda: scope._parts.faults.counts["sink.otlp"] >= 3)
    warnings = [each for each in caplog.records if each.levelno >= logging.WARNING]
    seen(f"{scope._parts.faults.counts['sink.otlp']} attempts, {len(warnings)} warning")

    assert failed
    assert len(warnings) == 1
    assert not http_receiver.requests


@pytest.mark.fault(
    7, "429 with Retry-After: 3600", expected="left alone, within reason; what does not fit dropped"
)
def test_throttled(
    otlp_http, otlp_at, make_scope, agent_of, event_factory, books_of, eventually, seen,
    slow_path_is_free,
):  # fmt: skip
    """One request, then silence, however much comes in; one more for somebody who waits."""
    http = otlp_http.http
    http.answer = lambda handler: http.respond(handler, 429, retry_after="3600")
    otlp_at(http.url)
    scope = make_scope(sinks="otlp")
    agent = agent_of(scope)
    slow_path_is_free(agent.ask(100))
    assert eventually(lambda: not books_of(scope)["otlp"].is_up)
    asked_once = len(http.requests)
    for _ in range(10_000):
        scope._parts.drain.emit(event_factory())
    time.sleep(1)
    asked_still = len(http.requests)
    flushed = scope.flush(0.1)
    eventually(lambda: len(http.requests) > 1)
    books = books_of(scope, agent.asked + 10_000)["otlp"]
    seen(
        f"{asked_still} request, 1 more for flush(), "
        f"{books.queued} kept, {books.dropped['overflow']} dropped"
    )

    assert (asked_once, asked_still, len(http.requests), flushed) == (1, 1, 2, False)
    assert books.dropped.keys() == {"overflow"}
    assert books.queued_bytes <= 8 * 1024 * 1024


@pytest.mark.fault(
    8, "500 and 503, flapping", expected="one probe at a time; nothing lost or counted twice"
)
def test_flapping(otlp_http, otlp_at, make_scope, agent_of, books_of, seen, slow_path_is_free):
    """Every other request fails; there are never two at once."""
    http, accept = otlp_http.http, otlp_http.http.answer
    busy, clashes, answers = threading.Lock(), [], iter([500, 503, 0, 503, 0, 500, 500, 503])

    def flap(handler: Any) -> None:
        if not busy.acquire(blocking=False):
            clashes.append(1)
            return
        status = next(answers, 0)
        busy.release()
        http.respond(handler, status) if status else accept(handler)

    http.answer = flap
    otlp_at(http.url)
    scope = make_scope(sinks="otlp")
    agent = agent_of(scope)
    for _ in range(5):
        slow_path_is_free(agent.ask(100))
        time.sleep(0.06)

    assert scope.flush(GIVE_UP_S)
    books = books_of(scope, agent.asked)["otlp"]
    ids = [span.span_id for span in otlp_http.spans]
    seen(f"{len(http.requests)} requests, never two at once, {books.delivered} delivered")
    assert not clashes
    assert len(ids) == len(set(ids)) == agent.asked == books.delivered


@pytest.mark.fault(
    9, "400 and 413: a batch is refused", expected="halved; only the event to blame is lost"
)
def test_poison(otlp_http, otlp_at, make_scope, event_factory, books_of, seen):
    """Too large a batch arrives in parts, and an event that is refused alone is lost alone."""
    http, accept = otlp_http.http, otlp_http.http.answer

    def choose(handler: Any) -> None:
        _path, _headers, body = http.requests[-1]
        if len(body) > 40_000:
            http.respond(handler, 413)
        elif b"poison" in body:
            http.respond(handler, 400)
        else:
            accept(handler)

    http.answer = choose
    otlp_at(http.url)
    scope = make_scope(sinks="otlp")
    for n in range(400):
        scope._parts.drain.emit(event_factory(agent="poison" if n == 123 else "sales"))

    assert not scope.flush(GIVE_UP_S)
    books = books_of(scope, 400)["otlp"]
    seen(f"{len(http.requests)} requests, {books.delivered} delivered, {books.dropped}")
    assert books.dropped == {"refused": 1}
    assert len({span.span_id for span in otlp_http.spans}) == len({0xB1}) == 1
    assert len(otlp_http.spans) == 399 == books.delivered


@pytest.mark.parametrize("mode", ["reset", "lose answer"])
@pytest.mark.fault(
    10, "connection reset in mid-batch", expected="again with the same ids; the receiver tells"
)
def test_reset(
    fault_proxy, otlp_http, otlp_at, make_scope, agent_of, books_of, eventually, seen, mode,
    slow_path_is_free,
):  # fmt: skip
    """Whether the batch had arrived or not, each event is there, under one id."""
    collector = fault_proxy(otlp_http.http.url, mode)
    otlp_at(collector.url)
    scope = make_scope(sinks="otlp")
    agent = agent_of(scope)
    slow_path_is_free(agent.ask(100))
    assert eventually(lambda: not books_of(scope)["otlp"].is_up)
    collector.mode = "pass"

    assert scope.flush(GIVE_UP_S)
    books = books_of(scope, agent.asked)["otlp"]
    ids = [span.span_id for span in otlp_http.spans]
    seen(f"{mode}: {len(ids)} spans arrived with {len(set(ids))} ids for {agent.asked} events")
    assert len(set(ids)) == agent.asked == books.delivered
    assert (len(ids) > len(set(ids))) == (mode == "lose answer")


@pytest.mark.parametrize("kind", ["redirects", "portal"])
@pytest.mark.fault(11, "redirect, captive portal", expected="a failure, not a success")
def test_portal(kind, otlp_at, make_scope, agent_of, books_of, eventually, seen, slow_path_is_free):
    """Whatever answers, it is not the collector: nothing counts as delivered."""
    back_end = BROKEN_BACK_ENDS[kind]()
    otlp_at(next(back_end))
    scope = make_scope(sinks="otlp,langsmith")
    agent = agent_of(scope)
    slow_path_is_free(agent.ask(100))
    noticed = eventually(lambda: not any(each.is_up for each in books_of(scope).values()))
    scope.close()
    next(back_end, None)
    books = books_of(scope, agent.asked)
    seen(f"{kind}: {sum(each.delivered for each in books.values())} delivered")

    assert noticed
    assert all(each.delivered == 0 for each in books.values())


@pytest.mark.fault(16, "one of five sinks dead", expected="the other four at full rate")
def test_one_dead(
    black_hole, langsmith_server, http_receiver, otlp_at, make_scope, agent_of, books_of,
    eventually, monkeypatch, full, seen, slow_path_is_free,
):  # fmt: skip
    """All events reach four sinks while the fifth hangs in its first request."""
    otlp_at(black_hole)
    monkeypatch.setenv("LANGSMITH_ENDPOINT", http_receiver.url)
    scope = make_scope(sinks="otlp,prometheus,logs,langsmith,audit")
    agent = agent_of(scope)
    started = time.perf_counter()
    slow_path_is_free(agent.ask(5_000 if full else 1_000))
    alive = ("prometheus", "logs", "langsmith", "audit")
    arrived = eventually(
        # Past 4,096 events the audit log is signed, which the others are told of.
        lambda: all(books_of(scope)[name].delivered >= agent.asked for name in alive)
    )
    took = time.perf_counter() - started
    seen(f"{agent.asked} events in four sinks after {took:.1f} s, none in the dead one")

    assert arrived
    assert books_of(scope)["otlp"].delivered == 0
    assert books_of(scope)["audit"].delivered == agent.asked
    runs = langsmith_server.runs.values()
    assert sum("root" not in (run.get("outputs") or {}) for run in runs) == agent.asked

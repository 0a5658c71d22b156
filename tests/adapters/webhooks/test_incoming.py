"""Incoming webhooks: decisions and aborts, signed by the reference library, each taken once."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import subprocess
import sys
import threading
import time
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from langchain_core.runnables import RunnableLambda
from langgraph.graph import START, StateGraph
from langgraph.store.memory import InMemoryStore
from standardwebhooks import Webhook
from starlette.applications import Starlette
from starlette.testclient import TestClient
from typing_extensions import TypedDict

from mnemoscope.adapters.webhooks import routes
from mnemoscope.memory import (
    Facts,
    Fails,
    HeldError,
    Mnemoscope,
    Outcome,
    Point,
    RefusedError,
    Stopped,
    Stopping,
    Verdict,
    context,
    load_settings,
)
from tests.kit.held_writes import Quarantine, held_write
from tests.kit.patience import until

SECRET = "whsec_" + base64.b64encode(bytes(range(32))).decode()
OTHER = "whsec_" + base64.b64encode(bytes(range(1, 33))).decode()
GRACE = "grace@example.com"
UNKNOWN_RUN = (202, "sealed, and the audit trail knows no such run yet")
SEALED = {200, UNKNOWN_RUN[0]}
"""Of a run at work, of which the trail may have something by then."""
ARABIC = "\u0661" * 10


@dataclass(frozen=True, kw_only=True)
class Holding:
    """A rule that holds all writes."""

    name: str = "holding"
    shadow: bool = False
    points = frozenset({Point.MEMORY})
    fails = Fails.TO_HUMAN

    def settings(self) -> dict[str, Any]:
        return {"name": self.name}

    def decide(self, facts: Facts) -> Verdict:
        asked = facts.what == "remember"
        return Verdict(Outcome.HOLD, "doubtful") if asked else Verdict()


class State(TypedDict):
    turns: int


class Clock:
    """Seconds since 1970, which a test may move."""

    moved_s = 0.0

    def __call__(self) -> float:
        return time.time() + self.moved_s


@pytest.fixture(autouse=True)
def look_at_once(monkeypatch):
    """Look for decisions and aborts whenever there is an occasion."""
    monkeypatch.setattr("mnemoscope.memory.rules.held_writes.LOOK_AGAIN_S", 0.0)
    monkeypatch.setattr("mnemoscope.memory.rules.aborts.LOOK_AGAIN_S", 0.0)


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def make_scope(tmp_path):
    """Return a function that makes a scope on one trail."""
    made = []

    def make(*rules, **settings):
        given = {
            "sinks": "audit",
            "audit_url": f"sqlite:///{tmp_path}/audit.db",
            "audit_pseudonym_key": "ab" * 32,
            "pii_model": "none",
        }
        scope = Mnemoscope(load_settings(**(given | settings)), rules=rules)
        made.append(scope)
        return scope

    yield make
    for each in made:
        each.close()


@pytest.fixture
def door(make_scope, clock):
    """Return a client of an application with the route, which shares the trail alone."""
    app = Starlette(routes=routes(make_scope().audit, SECRET, clock=clock))
    with TestClient(app) as client:
        yield client


def send(door, message, *, message_id="msg_1", secret=SECRET, at=None, **headers):
    """Send a signed message, and return status and sentence."""
    body = message if isinstance(message, str) else json.dumps(message)
    at = at or datetime.now(UTC)
    signed = {
        "webhook-id": message_id,
        "webhook-timestamp": str(int(at.timestamp())),
        "webhook-signature": Webhook(secret).sign(message_id, at, body),
    }
    answer = door.post("/webhooks", content=body, headers=signed | headers)
    return answer.status_code, answer.text.strip()


def abort(**data):
    return {"type": "abort", "data": {"by": GRACE, "name": "t-1", "tenant": "acme", **data}}


def verdicts(scope, rule):
    """Return the sealed verdicts of a rule, with the row of each."""
    if not scope.audit.path.exists():
        return []
    found = [row for row in scope.audit.rows() if row.operation == "verdict"]
    return [(row, json.loads(row.header)["verdict"]) for row in found if row.method == rule]


def aborts(scope):
    return verdicts(scope, "abort")


# -- attacks ---------------------------------------------------------------------------------------


def test_a_forged_webhook_is_refused(door, make_scope):
    """Signed with another secret: nothing is sealed."""
    assert send(door, abort(), secret=OTHER) == (401, "the signature is wrong")
    assert aborts(make_scope()) == []


@pytest.mark.parametrize(
    "changed",
    [
        {"webhook-id": "msg_2"},
        {"webhook-timestamp": str(int(time.time()) + 100)},
        {"webhook-signature": "v1,"},
        {"webhook-signature": "v2,AAAA"},
        {"webhook-signature": ""},
        {"webhook-timestamp": "now"},
        {"webhook-timestamp": ARABIC},
        {"webhook-id": ""},
    ],
)
def test_a_header_that_was_changed_is_refused(door, make_scope, changed):
    """Id and time are signed with the body; headers that are missing are no signature."""
    headers = {name: of.encode() for name, of in changed.items()}
    status, _said = send(door, abort(), **headers)

    assert status == 401
    assert aborts(make_scope()) == []


def test_a_body_that_was_changed_is_refused(door, make_scope):
    """As by somebody between sender and receiver."""
    at, body = datetime.now(UTC), json.dumps(abort())
    headers = {
        "webhook-id": "msg_1",
        "webhook-timestamp": str(int(at.timestamp())),
        "webhook-signature": Webhook(SECRET).sign("msg_1", at, body),
    }
    forged = body.replace("t-1", "t-2")

    assert door.post("/webhooks", content=forged, headers=headers).status_code == 401
    assert aborts(make_scope()) == []


@pytest.mark.parametrize("minutes", [-5.1, 5.1])
def test_a_webhook_of_another_time_is_refused(door, make_scope, minutes):
    """More than five minutes old, or from the future, though it is signed."""
    at = datetime.now(UTC) + timedelta(minutes=minutes)

    assert send(door, abort(), at=at) == (400, "the timestamp is more than 5 minutes off")
    assert aborts(make_scope()) == []


def test_a_forger_learns_nothing_of_times_and_ids(door):
    """A wrong signature is told first."""
    send(door, abort())
    old = datetime.now(UTC) - timedelta(hours=1)

    assert send(door, abort(), secret=OTHER, at=old)[0] == 401
    assert send(door, abort(), secret=OTHER)[0] == 401


def test_a_replayed_webhook_is_refused(door, make_scope):
    """The very same request again, and the id with another body."""
    assert send(door, abort()) == UNKNOWN_RUN

    repeated = (409, "this webhook-id was received before")
    assert send(door, abort()) == repeated
    assert send(door, abort(name="t-2")) == repeated
    assert len(aborts(make_scope())) == 1


def test_a_replay_to_another_process_is_refused(door, make_scope, clock):
    """Which has not seen the id: the trail has."""
    send(door, abort())
    elsewhere = Starlette(routes=routes(make_scope().audit, SECRET, clock=clock))

    with TestClient(elsewhere) as other:
        assert send(other, abort())[0] == 409
    assert len(aborts(make_scope())) == 1


def test_a_replay_after_its_time_is_refused(door, clock):
    """Ids are forgotten once their timestamps are too old."""
    send(door, abort())
    clock.moved_s = 601

    assert send(door, abort())[0] == 400


def test_of_one_webhook_sent_many_times_at_once_one_is_taken(door, make_scope):
    """By as many threads."""
    answers: list[int] = []
    threads = [
        threading.Thread(target=lambda: answers.append(send(door, abort())[0])) for _ in range(8)
    ]
    for each in threads:
        each.start()
    for each in threads:
        each.join()

    assert sorted(answers) == [202] + [409] * 7
    assert len(aborts(make_scope())) == 1


@pytest.mark.parametrize(
    "message",
    [
        "no json",
        "[]",
        {"type": "erase", "data": {}},
        {"type": "abort"},
        {"type": "abort", "data": {"name": "t-1"}},
        {"type": "abort", "data": {"by": "", "name": "t-1"}},
        abort(run="b" * 26),
        abort(name=""),
        {"type": "abort", "data": {"by": GRACE, "run": "../../etc"}},
        abort(why="because I said so"),
        abort(more=1),
        {"type": "decide", "data": {"approval": "ab", "choice": "used", "by": GRACE}},
        pytest.param(
            '{"type": "decide", "data": {"by": ' + "[" * 60_000 + "]" * 60_000 + "}}", id="nested"
        ),
    ],
)
def test_what_makes_no_sense_is_refused_in_one_sentence(door, make_scope, message):
    """Which quotes nothing of it."""
    status, said = send(door, message)

    assert status == 422
    assert said.startswith("expected")
    assert GRACE not in said
    assert aborts(make_scope()) == []


def test_a_body_without_end_is_refused(door):
    """Before it is read to its end."""
    assert send(door, "x" * 140_000)[0] == 413


def test_only_posts_are_taken(door):
    """Nothing can be done by following a link."""
    assert door.get("/webhooks").status_code == 405


def test_who_has_another_secret_cannot_be_given_by_mistake(make_scope):
    """A secret that is none is refused as the route is made."""
    with pytest.raises(ValueError, match="whsec_"):
        routes(make_scope().audit, "hunter2")


# -- decisions -------------------------------------------------------------------------------------


def hold(store):
    """Write, and return the approval that the write waits for."""
    with pytest.raises(HeldError) as raised:
        store.put(("facts",), "k", {"likes": "tea"})
    return raised.value.approval


def decide(approval, choice="approve", **data):
    return {"type": "decide", "data": {"approval": approval, "choice": choice, "by": GRACE, **data}}


def test_an_approved_write_passes_and_says_who_approved_it(door, make_scope):
    """As by `mnemoscope approvals decide`."""
    scope = make_scope(Holding())
    store = scope.store(InMemoryStore())
    approval = hold(store)
    assert scope.flush()

    assert send(door, decide(approval, why="tone_fits")) == (200, "done")

    store.put(("facts",), "k", {"likes": "tea"})
    (row, verdict), _used = verdicts(scope, "approvals")
    assert verdict["reason"] == "tone_fits"
    assert row.subject_uid is not None


def test_a_rejected_write_stays_refused(door, make_scope):
    """The answer of a second decision says which one holds."""
    scope = make_scope(Holding())
    store = scope.store(InMemoryStore())
    approval = hold(store)
    assert scope.flush()

    assert send(door, decide(approval, "reject")) == (200, "done")
    late = send(door, decide(approval), message_id="msg_2")

    assert late == (409, "decided already: reject")
    unfit = send(door, decide(approval, "edit", text=" "), message_id="msg_3")
    assert unfit == (409, "decided already: reject")
    with pytest.raises(RefusedError):
        store.put(("facts",), "k", {"likes": "tea"})


def test_an_approval_of_before_approves_nothing_again(door, make_scope, clock):
    """A replay to a process that has not seen the id, once the same write is held again."""
    scope = make_scope(Holding())
    store = scope.store(InMemoryStore())
    approval = hold(store)
    assert scope.flush()
    at = datetime.now(UTC) - timedelta(seconds=30)
    assert send(door, decide(approval), at=at) == (200, "done")
    store.put(("facts",), "k", {"likes": "tea"})
    assert hold(store) == approval
    assert scope.flush()

    elsewhere = Starlette(routes=routes(make_scope().audit, SECRET, clock=clock))
    with TestClient(elsewhere) as other:
        replayed = send(other, decide(approval), at=at)

    assert replayed == (409, "the decision is older than what it is on")
    assert hold(store) == approval
    assert send(door, decide(approval), message_id="msg_2") == (200, "done")


def test_a_decision_is_taken_once_however_the_senders_clock_goes(door, make_scope):
    """Its timestamp says that it came after the write was held again: its id was seen before."""
    scope = make_scope(Holding())
    store = scope.store(InMemoryStore())
    approval = hold(store)
    assert scope.flush()
    ahead = datetime.now(UTC) + timedelta(seconds=60)
    assert send(door, decide(approval), at=ahead) == (200, "done")
    store.put(("facts",), "k", {"likes": "tea"})
    assert hold(store) == approval
    assert scope.flush()

    replayed = send(door, decide(approval), at=ahead)

    assert replayed == (409, "this webhook-id was received before")
    assert hold(store) == approval


def test_an_edited_write_is_made_with_the_text_of_the_webhook(door, make_scope):
    """Redacted, as in the console: the same function seals it."""
    scope = make_scope(Quarantine())
    approval = held_write(scope)
    text = "likes nougat\r\nand writes to bob@example.com"

    assert send(door, decide(approval, "edit", text=text)) == (200, "done")

    inner = InMemoryStore()
    with context(customer="ada", run="r-1"):
        scope.store(inner).put(("facts",), "k", {"text": "likes marzipan"})
    expected = {"text": "likes nougat\nand writes to <EMAIL_ADDRESS>"}
    assert inner.get(("facts",), "k").value == expected


def test_the_scopes_own_redactor_may_be_given(make_scope, clock):
    """Else that of the environment redacts."""
    scope = make_scope(Quarantine(), pii_operators={"EMAIL_ADDRESS": "mask"})
    approval = held_write(scope)
    app = Starlette(routes=routes(scope.audit, SECRET, redactor=scope.redactor, clock=clock))

    with TestClient(app) as door:
        assert send(door, decide(approval, "edit", text="bob@example.com")) == (200, "done")

    (edit,) = (row.content for row in scope.audit.rows() if row.method == "edit")
    assert "<EMAIL_ADDRESS>" not in edit
    assert "bob@" not in edit


def test_the_longest_text_is_taken(door, make_scope):
    """However JSON writes it."""
    approval = held_write(make_scope(Quarantine()))

    assert send(door, decide(approval, "edit", text="\u017c" * 20_000)) == (200, "done")


@pytest.mark.parametrize(
    ("choice", "text"),
    [("approve", "likes nougat"), ("edit", " "), ("edit", "x" * 20_001), ("edit", "a\0b")],
)
def test_a_text_that_cannot_be_written_decides_nothing(door, make_scope, choice, text):
    """It is refused in one sentence, and the write waits on."""
    approval = held_write(make_scope(Quarantine()))

    status, said = send(door, decide(approval, choice, text=text))

    assert status == 422
    assert "nougat" not in said
    assert send(door, decide(approval), message_id="msg_2") == (200, "done")


def test_of_several_texts_none_is_edited(door, make_scope):
    """Which one is meant cannot be told."""
    scope = make_scope(Quarantine())
    with context(customer="ada"), pytest.raises(HeldError) as raised:
        scope.store(InMemoryStore()).put(("facts",), "two", {"text": "tea", "more": "and cake"})
    assert scope.flush()

    status, said = send(door, decide(raised.value.approval, "edit", text="likes nougat"))

    assert (status, "no one text" in said) == (422, True)


def test_what_is_not_held_cannot_be_decided(door, make_scope):
    """An id that nobody has."""
    assert send(door, decide("0123456789abcdef")) == (404, "there is no such approval")


def test_a_trail_that_is_away_is_no_decision(make_scope, clock, tmp_path):
    """And the same webhook is taken once it is back."""
    scope = make_scope(Holding())
    approval = hold(scope.store(InMemoryStore()))
    assert scope.flush()
    path = scope.audit.path
    app = Starlette(routes=routes(make_scope().audit, SECRET, clock=clock))
    with TestClient(app) as door:
        path.chmod(0o400)
        moved = path.rename(tmp_path / "away.db")
        path.mkdir()
        assert send(door, decide(approval))[0] == 503
        path.rmdir()
        moved.rename(path)
        path.chmod(0o600)
        assert send(door, decide(approval)) == (200, "done")


# -- aborts ----------------------------------------------------------------------------------------


def turning(scope: Mnemoscope, began: threading.Event) -> Any:
    """Return a graph that turns for ever, a little at a time."""

    async def aturn(state: State) -> State:
        began.set()
        await asyncio.sleep(0.005)
        return {"turns": state["turns"] + 1}

    def turn(state: State) -> State:
        began.set()
        time.sleep(0.005)
        return {"turns": state["turns"] + 1}

    builder = StateGraph(State)
    builder.add_node("turn", RunnableLambda(turn, aturn))
    builder.add_edge(START, "turn")
    builder.add_edge("turn", "turn")
    return scope.runnable(builder.compile())


LIMITS = {"max_cost_usd": None, "timeout_s": None, "patience": None}


def ended(scope, began, *, is_async=False):
    """Run the graph on a thread, and return a function that waits for how it ended."""
    said: list[BaseException] = []
    config = {"configurable": {"thread_id": "t-1"}, "recursion_limit": 100_000}

    def run():
        graph = turning(scope, began)
        try:
            with context(tenant="acme"):
                if is_async:
                    asyncio.run(graph.ainvoke({"turns": 0}, config))
                else:
                    graph.invoke({"turns": 0}, config)
        except Stopped as exc:
            said.append(exc)

    thread = threading.Thread(target=run)
    thread.start()

    def wait():
        thread.join()
        return said[0]

    return wait


@pytest.mark.parametrize("is_async", [False, True])
def test_an_abort_ends_the_run_in_the_process_that_is_at_work_on_it(door, make_scope, is_async):
    """By its name; who did it is sealed, as a customer is."""
    scope, began = make_scope(Stopping(**LIMITS)), threading.Event()
    wait = ended(scope, began, is_async=is_async)
    began.wait()
    assert send(door, abort(why="runaway"))[0] in SEALED
    error = wait()

    assert isinstance(error, Stopped)
    assert error.reason == "aborted"
    ((row, verdict),) = aborts(scope)
    assert verdict["reason"] == "runaway"
    assert row.subject_uid is not None
    assert GRACE.encode() not in row.header
    assert b"t-1" not in row.header
    assert scope.flush()
    (stop,) = (of for _row, of in verdicts(scope, "stopping") if of["outcome"] == "stop")
    assert stop["reason"] == "aborted"


def test_another_run_goes_on(door, make_scope):
    """Of the same name in another tenant, and of another name."""
    scope, began = make_scope(Stopping(**LIMITS)), threading.Event()
    wait = ended(scope, began)
    began.wait()
    send(door, abort(tenant="other"), message_id="msg_a")
    send(door, abort(name="t-2"), message_id="msg_b")
    looked = scope._parts.accounting.rulebook._aborts
    assert until(lambda: looked._next_seq > 0)
    assert not scope._parts.accounting.rulebook.runs.of(("acme", "t-1")).known
    send(door, abort(), message_id="msg_c")

    assert wait().reason == "aborted"


def test_a_run_is_ended_by_the_hash_that_messages_have(door, make_scope, http_receiver):
    """As whoever was sent a message on it knows the run."""
    told = {"webhook_url": http_receiver.url, "webhook_secret": SECRET, "sinks": "audit,webhooks"}
    scope, began = make_scope(Stopping(**LIMITS), Holding(), **told), threading.Event()
    with pytest.raises(HeldError), context(tenant="acme", run="t-1"):
        scope.store(InMemoryStore()).put(("facts",), "k", {"likes": "tea"})
    assert scope.flush()
    run = json.loads(http_receiver.requests[0][2])["data"]["run"]
    wait = ended(scope, began)
    began.wait()

    data = {"by": GRACE, "run": run}
    assert send(door, {"type": "abort", "data": data}) == (200, "done")
    assert wait().reason == "aborted"


@pytest.mark.parametrize(
    ("named", "expected"),
    [
        ({}, (200, "done")),
        ({"name": "t-2"}, UNKNOWN_RUN),
        ({"tenant": "other"}, UNKNOWN_RUN),
        ({"name": "", "run": "b" * 26}, UNKNOWN_RUN),
    ],
    ids=["known", "another name", "another tenant", "another hash"],
)
def test_that_no_such_run_is_known_is_said(door, make_scope, named, expected):
    """And sealed all the same: the first event of a run at work may be still to come."""
    scope = make_scope()
    with context(tenant="acme", run="t-1"):
        scope.store(InMemoryStore()).put(("facts",), "k", {"likes": "tea"})
    assert scope.flush()

    assert send(door, abort(**named)) == expected
    assert len(aborts(scope)) == 1


@pytest.mark.xdist_group("postgres")
def test_aborts_and_decisions_on_postgresql(make_scope, postgres_url, clock):
    """The same there: one of each, and its replay."""
    scope = make_scope(Holding(), Stopping(**LIMITS), audit_url=postgres_url)
    approval, began = hold(scope.store(InMemoryStore())), threading.Event()
    assert scope.flush()
    wait = ended(scope, began)
    began.wait()
    app = Starlette(routes=routes(make_scope(audit_url=postgres_url).audit, SECRET, clock=clock))
    with TestClient(app) as door:
        assert send(door, decide(approval), message_id="msg_a") == (200, "done")
        assert send(door, abort())[0] in SEALED
        assert send(door, abort())[0] == 409

    assert wait().reason == "aborted"


def test_an_abort_of_before_ends_no_run_of_now(door, make_scope):
    """The same thread, asked again after it was aborted."""
    send(door, abort())
    scope = make_scope(Stopping(max_iterations=3, **LIMITS))

    assert ended(scope, threading.Event())().reason == "iterations"


RUNNER = """
import sys, time
from langgraph.graph import START, MessagesState, StateGraph
from mnemoscope.memory import Stopped, Stopping, configure

def turn(state):
    print("at work", flush=True)
    time.sleep(0.05)
    return state

scope = configure(rules=[Stopping(max_cost_usd=None, timeout_s=None, patience=None)])
builder = StateGraph(MessagesState)
builder.add_node("turn", turn)
builder.add_edge(START, "turn")
builder.add_edge("turn", "turn")
config = {"configurable": {"thread_id": "t-1"}, "recursion_limit": 10_000}
try:
    scope.runnable(builder.compile()).invoke({"messages": []}, config)
except Stopped as stopped:
    print("ended", stopped.reason, time.time(), flush=True)
"""


def test_an_abort_reaches_another_process(make_scope, clock, tmp_path):
    """Which looks once a second, and ends before its next turn."""
    scope = make_scope()
    variables = {
        "MNEMOSCOPE_SINKS": "audit",
        "MNEMOSCOPE_AUDIT_URL": f"sqlite:///{tmp_path}/audit.db",
        "MNEMOSCOPE_AUDIT_PSEUDONYM_KEY": "ab" * 32,
        "MNEMOSCOPE_PII_MODEL": "none",
    }
    command = [sys.executable, "-c", RUNNER]
    app = Starlette(routes=routes(scope.audit, SECRET, clock=clock))
    with (
        subprocess.Popen(
            command, stdout=subprocess.PIPE, text=True, env={**os.environ, **variables}
        ) as runner,
        TestClient(app) as door,
    ):
        assert runner.stdout is not None
        assert runner.stdout.readline() == "at work\n"
        sent_at = time.time()
        assert send(door, abort(tenant=None))[0] in SEALED
        said, _err = runner.communicate()

    *_turns, end = said.splitlines()
    _ended, reason, at = end.split()
    assert reason == "aborted"
    assert float(at) - sent_at < 10

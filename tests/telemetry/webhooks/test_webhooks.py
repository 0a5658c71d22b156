"""Outgoing webhooks: real requests on loopback, verified by the reference library."""

from __future__ import annotations

import asyncio
import base64
import json
import logging
import signal
import subprocess
import sys
import threading
from dataclasses import dataclass
from typing import Any

import pytest
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage
from langgraph.graph import START, StateGraph
from langgraph.store.memory import InMemoryStore
from standardwebhooks import Webhook, WebhookVerificationError
from typing_extensions import TypedDict

from mnemoscope.memory import (
    Approval,
    Budget,
    ConfigurationError,
    Facts,
    Fails,
    HeldError,
    Mnemoscope,
    Outcome,
    Point,
    Stopped,
    Stopping,
    Verdict,
    context,
    load_settings,
)
from mnemoscope.memory.api import DeliveryError, UnacceptableError, UnavailableError
from mnemoscope.memory.testing import check_sink
from tests.kit.patience import until

RELAY = "from mnemoscope.adapters.cli.root import main; main()"
SECRET = "whsec_" + base64.b64encode(bytes(range(32))).decode()
CANARY = "canary-4711@example.com"
KINDS = ("held", "stopped", "budget", "tripwire", "integrity")


@dataclass(frozen=True, kw_only=True)
class Holding:
    """A rule that holds all writes, and says why in words that no code has."""

    name: str = "holding"
    reason: str = "doubtful"
    shadow: bool = False
    points = frozenset({Point.MEMORY})
    fails = Fails.TO_HUMAN

    def settings(self) -> dict[str, Any]:
        return {"name": self.name}

    def decide(self, facts: Facts) -> Verdict:
        asked = facts.what == "remember"
        return Verdict(Outcome.HOLD, self.reason, {"n": 2, "text": CANARY}) if asked else Verdict()


class State(TypedDict):
    turns: int


@pytest.fixture
def receiver(http_receiver):
    return http_receiver


@pytest.fixture
def make_scope(receiver, tmp_path):
    """Return a function that makes a scope with webhooks to the receiver."""
    made = []

    def make(rules=(), budgets=(), **settings):
        given = {
            "sinks": "webhooks,audit",
            "audit_url": f"sqlite:///{tmp_path}/audit.db",
            "audit_pseudonym_key": "ab" * 32,
            "pii_model": "none",
            "webhook_url": f"{receiver.url}/hooks/token-of-the-channel",
            "webhook_secret": SECRET,
        }
        scope = Mnemoscope(load_settings(**(given | settings)), rules=rules, budgets=budgets)
        made.append(scope)
        return scope

    yield make
    for each in made:
        each.close()


@pytest.fixture
def sink_of():
    """Return a function that returns the webhooks sink of a scope."""
    return lambda scope: next(e for e in scope._parts.drain.sinks if e.name == "webhooks")


def received(receiver) -> list[dict[str, Any]]:
    """Return what came, each message verified."""
    verifier = Webhook(SECRET)
    return [verifier.verify(body, headers) for _path, headers, body in receiver.requests]


def hold(scope: Mnemoscope, text: str = "tea") -> str | None:
    """Have a write held, and return its approval."""
    with pytest.raises(HeldError) as raised, context(customer=CANARY, run="r-1", tenant="acme"):
        scope.store(InMemoryStore()).put(("facts",), "k", {"likes": text})
    return raised.value.approval


def test_a_held_write_is_sent_signed_and_without_content(receiver, make_scope):
    """Rule, code, figures, the id to decide by, and keyed hashes; nothing that a person said."""
    scope = make_scope([Holding()], console_url="https://console.example.com")
    approval = hold(scope, f"tea, says {CANARY}")
    assert scope.flush()

    (message,) = received(receiver)
    data = message["data"]
    assert message["type"] == "held"
    assert (data["rule"], data["reason"], data["point"]) == ("holding", "doubtful", "memory")
    assert data["approval"] == approval
    assert data["figures"] == {"n": 2}
    assert data["console"] == "https://console.example.com"
    assert len(data["run"]) == len(data["subject"]) == 26
    sent = repr(receiver.requests)
    assert CANARY not in sent
    assert "tea" not in sent
    assert "acme" not in sent
    assert "r-1" not in sent


def test_a_forged_body_does_not_verify(receiver, make_scope):
    """The signature covers id, time and body."""
    scope = make_scope([Holding()])
    hold(scope)
    assert scope.flush()
    _path, headers, body = receiver.requests[0]

    with pytest.raises(WebhookVerificationError):
        Webhook(SECRET).verify(body.replace(b"held", b"used"), headers)
    with pytest.raises(WebhookVerificationError):
        Webhook(SECRET).verify(body, headers | {"webhook-id": "msg_other"})


def test_of_a_blind_decision_the_verdict_is_not_sent(receiver, make_scope):
    """Whoever decides may read the message first."""
    gate = Approval("g", outcome=lambda _text: 0.3, blind=1.0, places=["*"])
    scope = make_scope([gate])
    approval = hold(scope)
    assert scope.flush()

    data = received(receiver)[0]["data"]
    assert (data["approval"], data["reason"], data["figures"]) == (approval, "blind", {})


def test_a_reason_in_words_stays_here(receiver, make_scope):
    """A rule of the user's own may give a sentence for a code."""
    scope = make_scope([Holding(reason=f"says {CANARY}")])
    hold(scope)
    assert scope.flush()

    assert received(receiver)[0]["data"]["reason"] == "other"


def test_a_rule_in_shadow_sends_nothing(receiver, make_scope):
    """It has stopped nobody."""
    scope = make_scope([Holding(shadow=True)])
    scope.store(InMemoryStore()).put(("facts",), "k", {"likes": "tea"})
    assert scope.flush()

    assert receiver.requests == []


def looping(scope: Mnemoscope) -> Any:
    """Return a graph that turns until it is stopped."""
    builder = StateGraph(State)
    builder.add_node("turn", lambda state: {"turns": state["turns"] + 1})
    builder.add_edge(START, "turn")
    builder.add_edge("turn", "turn")
    return scope.runnable(builder.compile())


@pytest.mark.parametrize("is_async", [False, True])
def test_a_stopped_run_is_sent_once(receiver, make_scope, is_async):
    """From applications of both colours."""
    scope = make_scope([Stopping(max_iterations=3)])
    graph, config = looping(scope), {"recursion_limit": 50}

    def run():
        if is_async:
            return asyncio.run(graph.ainvoke({"turns": 0}, config))
        return graph.invoke({"turns": 0}, config)

    with pytest.raises(Stopped), context(run="t-1", tenant="acme"):
        run()
    assert scope.flush()

    (message,) = received(receiver)
    assert message["type"] == "stopped"
    assert message["data"]["reason"] == "iterations"
    assert message["data"]["figures"] == {"iteration": 3}


def test_a_budget_is_sent_with_its_level(receiver, make_scope):
    """And not each call that is refused after it."""
    scope = make_scope(budgets=[Budget(tokens=100, per="day", name="small")])
    used = {"input_tokens": 90, "output_tokens": 20, "total_tokens": 110}
    said = AIMessage("Hello", usage_metadata=used)
    builder = StateGraph(State)
    model = GenericFakeChatModel(messages=iter([said]))
    builder.add_node("ask", lambda state: {"turns": len(model.invoke("hi").content)} and state)
    builder.add_edge(START, "ask")
    scope.runnable(builder.compile()).invoke({"turns": 0})
    assert scope.flush()

    data = [each["data"] for each in received(receiver)]
    assert {each["level"] for each in data} == {"alert", "exceeded"}
    assert data[0]["budget"] == "small"
    assert data[0]["figures"]["spent"] == 110


def test_a_tripwire_is_sent(receiver, make_scope, event_factory):
    """A store that returns records of somebody else's."""
    scope = make_scope()
    scope._parts.drain.emit(event_factory(foreign_hits=2, hits=3))
    scope._parts.drain.emit(event_factory(hits=3))
    assert scope.flush()

    (message,) = received(receiver)
    assert message["type"] == "tripwire"
    assert message["data"]["figures"] == {"foreign_hits": 2}
    assert message["data"]["store"] == "mem0"


def test_an_integrity_violation_is_sent(receiver, make_scope):
    """Of a read that is not what was written, and of a node that breaks an invariant."""
    scope = make_scope(integrity="observe", audit_mode="durable")
    inner = InMemoryStore()
    store = scope.store(inner)
    store.put(("notes",), "account", {"text": "pay to the account of last year"})
    inner.put(("notes",), "account", {"text": "pay to mine"})
    store.get(("notes",), "account")
    scope.integrity_gate([("not empty", bool)]).check("")
    assert scope.flush()

    by_read, by_gate = (each["data"] for each in received(receiver))
    assert by_read["figures"] == {"changed": 1}
    assert by_gate["reason"] == "violated"


def test_what_is_not_named_is_not_sent(receiver, make_scope, event_factory):
    """`MNEMOSCOPE_WEBHOOK_EVENTS` names the kinds."""
    scope = make_scope([Holding()], webhook_events="tripwire, stopped")
    hold(scope)
    scope._parts.drain.emit(event_factory(foreign_hits=1))
    assert scope.flush()

    assert [each["type"] for each in received(receiver)] == ["tripwire"]


def test_the_form_of_chat_services(receiver, make_scope):
    """One text, in which nothing is markup, and no signature where there is no secret."""
    scope = make_scope(
        [Holding(name="<!channel> & co")], webhook_format="slack", webhook_secret=None
    )
    receiver.answer = lambda handler: receiver.respond(
        handler,
        200,
        b"ok",
        content_type="text/html",  # as Slack says it
    )
    approval = hold(scope)
    assert scope.flush()

    ((_path, headers, body),) = receiver.requests
    said = json.loads(body)
    assert set(said) == {"text"}
    assert said["text"].startswith("Waits for a human: ")
    assert "&lt;!channel&gt; &amp; co" in said["text"]
    assert approval in said["text"]
    assert "webhook-signature" not in {each.lower() for each in headers}


def answers(receiver, *statuses, **headers):
    """Have the receiver answer with these, one after the other, and then 200."""
    left = iter(statuses)

    def answer(handler):
        receiver.respond(handler, next(left, 200), **headers)

    receiver.answer = answer


def ids(receiver) -> list[str]:
    """Return the ids of the messages in the order in which they came."""
    return [
        {name.lower(): of for name, of in headers.items()}["webhook-id"]
        for _path, headers, _body in receiver.requests
    ]


def test_a_receiver_that_is_away_gets_it_later_under_the_same_id(receiver, make_scope):
    """At least once: 500, 429 and no answer at all are waited out."""
    scope = make_scope([Holding()])
    answers(receiver, 500, 429)
    hold(scope)
    assert scope.flush()

    assert len(ids(receiver)) == 3
    assert len({*ids(receiver)}) == 1
    assert received(receiver)[2]["type"] == "held"


def test_the_time_that_a_receiver_asks_for_is_kept(receiver, make_scope, sink_of, event_factory):
    """`Retry-After`, in the lane's hands."""
    sink = sink_of(make_scope())
    answers(receiver, 503, Retry_After="7")

    with pytest.raises(UnavailableError) as raised:
        sink.write([event_factory(foreign_hits=1)])

    assert raised.value.retry_after_s == 7


def test_of_a_batch_that_is_tried_again_only_the_rest_is_sent(
    receiver, make_scope, sink_of, event_factory
):
    """What has arrived is not sent twice for what has not."""
    sink = sink_of(make_scope())
    batch = [event_factory(foreign_hits=each) for each in (1, 2, 3)]
    answers(receiver, 200, 500)
    with pytest.raises(UnavailableError):
        sink.write(batch)
    sink.write(batch)

    first, second, again, third = ids(receiver)
    assert second == again
    assert len({first, second, third}) == 3


def test_a_message_that_is_refused_is_not_asked_about_again(receiver, make_scope, event_factory):
    """And takes no other with it."""
    scope = make_scope()
    answers(receiver, 200, 400)
    for each in (1, 2, 3):
        scope._parts.drain.emit(event_factory(foreign_hits=each))
    assert not scope.flush()

    assert len(ids(receiver)) == len({*ids(receiver)}) == 3


def test_an_answer_of_the_door_is_not_retried_for_ever(receiver, make_scope, event_factory):
    """403, say: three times, as with any error."""
    scope = make_scope()
    receiver.answer = lambda handler: receiver.respond(handler, 403)
    scope._parts.drain.emit(event_factory(foreign_hits=1))
    assert not scope.flush()

    assert len(ids(receiver)) == 3


def test_a_receiver_that_is_gone_is_left_alone(receiver, make_scope, sink_of, event_factory):
    """410: no further message is sent, each is counted as refused, and `doctor` says so."""
    scope = make_scope()
    answers(receiver, 410)
    for each in (1, 2):
        scope._parts.drain.emit(event_factory(foreign_hits=each))
    assert not scope.flush()

    assert len(ids(receiver)) == 1
    stats = next(each for each in scope._parts.drain.stats() if each.sink == "webhooks")
    assert stats.dropped == {"refused": 2}
    with pytest.raises(DeliveryError, match="410"):
        sink_of(scope).check(0.1)
    with pytest.raises(UnacceptableError):
        sink_of(scope).write([event_factory(foreign_hits=3)])


def test_a_redirect_is_not_followed(receiver, make_scope, sink_of, event_factory):
    """A message goes to the address that was configured, or nowhere."""
    sink = sink_of(make_scope())
    receiver.answer = lambda handler: receiver.respond(handler, 302, Location="/elsewhere")

    with pytest.raises(DeliveryError, match="302"):
        sink.write([event_factory(foreign_hits=1)])

    assert [path for path, _headers, _body in receiver.requests] == ["/hooks/token-of-the-channel"]


def test_the_queue_holds_messages_alone(receiver, make_scope, event_factory):
    """While a receiver is away, ordinary events push no message out."""
    scope = make_scope()
    opened = threading.Event()

    def answer(handler):
        receiver.respond(handler, 200 if opened.is_set() else 503)

    receiver.answer = answer
    scope._parts.drain.emit(event_factory(foreign_hits=1))
    for _ in range(10_000):
        scope._parts.drain.emit(event_factory(hits=1))
    opened.set()
    assert scope._parts.drain.settle("webhooks", 300)

    stats = next(each for each in scope._parts.drain.stats() if each.sink == "webhooks")
    assert (stats.offered, stats.delivered, stats.dropped) == (1, 1, {})


def test_no_secret_is_shown(receiver, make_scope, sink_of, event_factory, caplog):
    """In settings, sink, errors, health and logs: neither the address nor the key."""
    receiver.close()
    settings = load_settings(webhook_url="https://hooks.example.com/token", webhook_secret=SECRET)
    scope = make_scope(webhook_url=f"{receiver.url}/hooks/token-of-the-channel")
    with caplog.at_level(logging.DEBUG), pytest.raises(UnavailableError) as raised:
        sink_of(scope).write([event_factory(foreign_hits=1)])
    shown = [repr(settings), repr(sink_of(scope)), repr(raised.value), caplog.text]
    shown += [repr(scope.health(0.1)), repr(raised.value.__cause__)]

    assert raised.value.__cause__ is raised.value.__context__ is None
    assert [each for each in shown if "token" in each or SECRET[6:] in each] == []


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"webhook_secret": None}, "MNEMOSCOPE_WEBHOOK_SECRET is not set"),
        ({"webhook_secret": "hunter2"}, "MNEMOSCOPE_WEBHOOK_SECRET: expected whsec_"),
        ({"webhook_secret": "whsec_c2hvcnQ="}, "MNEMOSCOPE_WEBHOOK_SECRET: expected whsec_"),
        ({"webhook_url": "hooks.example.com"}, "MNEMOSCOPE_WEBHOOK_URL: expected https"),
        ({"webhook_events": "held,everything"}, "MNEMOSCOPE_WEBHOOK_EVENTS"),
        ({"webhook_format": "teams"}, "MNEMOSCOPE_WEBHOOK_FORMAT: expected `slack` or `standard`"),
        ({"webhook_url": None}, "the webhooks sink is not configured"),
    ],
)
def test_a_mistake_is_told_in_one_line(make_scope, given, expected):
    """Which names the variable and never quotes the value."""
    with pytest.raises(ConfigurationError) as raised:
        make_scope(**given)

    assert expected in str(raised.value)
    assert "\n" not in str(raised.value)
    assert "hunter2" not in str(raised.value)


def test_an_address_switches_the_sink_on(receiver, make_scope):
    """Where no setting names sinks; without an address there is none."""
    on = make_scope(sinks=None)
    off = make_scope(sinks=None, webhook_url=None)

    names = [[each.name for each in scope._parts.drain.sinks] for scope in (on, off)]
    assert "webhooks" in names[0]
    assert "webhooks" not in names[1]


def test_the_contract_of_sinks_holds(receiver, make_scope, sink_of):
    """The checks that each sink is put to; the customer and content are nowhere."""

    def bodies() -> bytes:
        return b"".join(body for _path, _headers, body in receiver.requests)

    check_sink(lambda: sink_of(make_scope()), read=bodies)


@pytest.mark.long
def test_the_relay_sends_for_all_processes(receiver, make_scope, tmp_path, monkeypatch):
    """Events wait in its files: what a process told before it ended is sent by the relay."""
    folder = tmp_path / "relay"
    scope = make_scope([Holding()], relay=folder)
    hold(scope)
    scope.close()
    assert receiver.requests == []

    variables = {
        "SINKS": "webhooks,audit",
        "AUDIT_URL": f"sqlite:///{tmp_path}/audit.db",
        "AUDIT_PSEUDONYM_KEY": "ab" * 32,
        "WEBHOOK_URL": receiver.url,
        "WEBHOOK_SECRET": SECRET,
    }
    for name, value in variables.items():
        monkeypatch.setenv(f"MNEMOSCOPE_{name}", value)
    command = [sys.executable, "-c", RELAY, "relay", str(folder)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as relay:
        assert until(lambda: bool(receiver.requests))
        relay.send_signal(signal.SIGTERM)
        _out, said = relay.communicate()

    assert received(receiver)[0]["type"] == "held"
    assert receiver.url not in said

"""Checkpointers behind the guard: real graphs and savers, and what a failure may not do."""

from __future__ import annotations

import asyncio
import copy
import inspect
import operator
import sqlite3
import threading
from dataclasses import dataclass, replace
from typing import Annotated, Any, TypedDict

import pytest
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langgraph.checkpoint.base import BaseCheckpointSaver, empty_checkpoint
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.types import Command, Interrupt, Send, interrupt

from mnemoscope.adapters.langgraph.checkpoint.adapter import ADAPTER, METHODS, NOT_GUARDED
from mnemoscope.adapters.langgraph.shared.state import StateWalker
from mnemoscope.adapters.toolkit.proxy import guard_of, inner_of
from mnemoscope.memory import (
    DeadlineExceededError,
    Policy,
    RedactionError,
    ScopeError,
    UnsupportedClientError,
    context,
)
from mnemoscope.memory.api import OperationClass, Status
from tests.kit.bench import wrapping
from tests.kit.patience import GIVE_UP_S

guarded = wrapping(ADAPTER)

MAIL = "ada@example.com"
THREAD = {"configurable": {"thread_id": "t-1"}}


class State(TypedDict):
    notes: Annotated[list[str], operator.add]


class Outage(InMemorySaver):
    """A saver whose database fails as often as it is told to."""

    def __init__(self):
        super().__init__()
        self.failures = {}
        self.attempts = []

    def _reach(self, name):
        self.attempts.append(name)
        if self.failures.get(name, 0) > 0:
            self.failures[name] -= 1
            raise ConnectionError(MAIL)

    def get_tuple(self, config):
        self._reach("get_tuple")
        return super().get_tuple(config)

    def put(self, config, checkpoint, metadata, new_versions):
        self._reach("put")
        return super().put(config, checkpoint, metadata, new_versions)

    def put_writes(self, config, writes, task_id, task_path=""):
        self._reach("put_writes")
        return super().put_writes(config, writes, task_id, task_path)

    def delete_thread(self, thread_id):
        self._reach("delete_thread")
        return super().delete_thread(thread_id)

    def list(self, config, **options):
        self._reach("list")
        for number, found in enumerate(super().list(config, **options)):
            if number == self.failures.get("list after"):
                raise ConnectionError(MAIL)
            yield found


@pytest.fixture
def impatient(bench):
    """Return a bench that tries a checkpoint three times without a pause."""
    return replace(bench, policy=Policy(checkpoint_pauses_s=(0.0, 0.0)))


def note(text):
    return lambda _state: {"notes": [text]}


def two_steps(saver, **options):
    builder = StateGraph(State)
    builder.add_node("first", note(f"first told {MAIL}"))
    builder.add_node("second", lambda state: {"notes": [f"second saw {state['notes'][-1]}"]})
    builder.add_edge(START, "first")
    builder.add_edge("first", "second")
    return builder.compile(checkpointer=saver, **options)


def approving(saver):
    def ask(_state):
        return {"notes": [f"answered {interrupt({'question': 'send it?'})}"]}

    inner = StateGraph(State)
    inner.add_node("ask", ask)
    inner.add_edge(START, "ask")
    builder = StateGraph(State)
    builder.add_node("before", note("before"))
    builder.add_node("child", inner.compile())
    builder.add_edge(START, "before")
    builder.add_edge("before", "child")
    return builder.compile(checkpointer=saver)


def stored_in(saver):
    return repr(
        [(each.checkpoint, each.metadata, each.pending_writes) for each in saver.list(None)]
    )


class TestDropIn:
    def test_is_what_the_saver_is(self, bench):
        """A guarded saver is an instance of the saver's class, true, with its attributes."""
        bare = InMemorySaver()
        saver = guarded(bare, bench)

        assert isinstance(saver, InMemorySaver)
        assert bool(saver)
        assert saver.storage is bare.storage
        assert saver.serde is bare.serde
        assert saver.config_specs == bare.config_specs
        assert inspect.signature(saver.put_writes) == inspect.signature(bare.put_writes)
        assert saver.get_next_version(None, None).startswith("0000")

    def test_is_never_false(self, bench):
        """LangGraph takes a saver that is false for none, and silently saves nothing."""

        class Empty(InMemorySaver):
            def __len__(self):
                return 0

        assert guarded(Empty(), bench)

    def test_nothing_else_is_taken(self, bench):
        """What is no checkpointer is refused by the names of the types."""
        with pytest.raises(UnsupportedClientError, match="BaseCheckpointSaver"):
            guarded({}, bench)

    def test_what_the_saver_cannot_is_not_promised(self, bench):
        """A method that the saver does not override stays the base class's."""
        kind = type(guarded(InMemorySaver(), bench))

        assert kind.aprune is BaseCheckpointSaver.aprune
        assert kind.put is not BaseCheckpointSaver.put
        with pytest.raises(NotImplementedError):
            guarded(InMemorySaver(), bench).prune(["t-1"])

    @pytest.mark.parametrize(
        "kind", [BaseCheckpointSaver, InMemorySaver, SqliteSaver, AsyncSqliteSaver]
    )
    def test_every_method_is_in_the_table(self, kind):
        """A public method of a saver is guarded, or named with the reason why it is not."""
        known = {*METHODS, *(f"a{name}" for name in METHODS), *NOT_GUARDED}
        of_sqlite = {"from_conn_string", "conn", "is_setup", "lock"}
        public = {name for name in dir(kind) if not name.startswith("_")}

        assert public - known - of_sqlite == set()
        assert set(METHODS) - set(dir(BaseCheckpointSaver)) == set()

    def test_an_allowlist_keeps_the_guard(self, bench, monkeypatch):
        """The saver that a strict graph works with shares the guard of the one it was given."""
        saver = guarded(InMemorySaver(), bench)
        allowing = saver.with_allowlist({("a.module", "Type")})

        assert guard_of(allowing) is guard_of(saver)
        assert inner_of(allowing) is not None

    def test_a_copy_is_guarded(self, bench):
        """``copy.copy``, which LangGraph may do, gives a guarded saver again."""
        saver = guarded(InMemorySaver(), bench)

        assert guard_of(copy.copy(saver)) is guard_of(saver)

    async def test_a_synchronous_call_in_the_loop_fails_as_it_does_bare(self, bench, tmp_path):
        """An asynchronous saver refuses synchronous calls in its loop, rather than hang."""
        async with AsyncSqliteSaver.from_conn_string(str(tmp_path / "t.db")) as bare:
            saver = guarded(bare, bench)

            with pytest.raises(asyncio.InvalidStateError):
                saver.get_tuple(THREAD)
            with pytest.raises(asyncio.InvalidStateError):
                next(saver.list(THREAD))

    def test_a_connection_bound_to_its_thread_can_be_used(self, bench):
        """A saver on a connection that only its own thread may use is called on that thread."""
        connection = sqlite3.connect(":memory:")
        try:
            saver = guarded(SqliteSaver(connection), bench)

            assert saver.get_tuple({"configurable": {"thread_id": "t-1"}}) is None
        finally:
            connection.close()


class TestGraphs:
    @pytest.mark.parametrize("durability", ["sync", "async", "exit"])
    def test_a_run_is_as_it_is_without(self, durability, bench):
        """A graph with a guarded saver returns what it returns with a bare one."""
        expected = two_steps(InMemorySaver()).invoke({"notes": []}, THREAD, durability=durability)
        found = two_steps(guarded(InMemorySaver(), bench)).invoke(
            {"notes": []}, THREAD, durability=durability
        )

        assert found == expected
        assert MAIL in found["notes"][1]

    @pytest.mark.parametrize("redact", [True, False], ids=["redacted", "verbatim"])
    def test_an_interrupted_subgraph_resumes(self, redact, bench):
        """Interrupt, approve and resume work through a guarded saver, inside a subgraph."""
        graph = approving(guarded(InMemorySaver(), bench, redact=redact))
        asked = graph.invoke({"notes": []}, THREAD)
        answered = graph.invoke(Command(resume="yes"), THREAD)

        assert asked["__interrupt__"][0].value == {"question": "send it?"}
        assert answered["notes"][-1] == "answered yes"
        assert answered["notes"].count("before") >= 1

    async def test_an_interrupted_subgraph_resumes_in_a_loop(self, bench, tmp_path):
        """The same, asynchronously, on a real database."""
        async with AsyncSqliteSaver.from_conn_string(str(tmp_path / "t.db")) as bare:
            graph = approving(guarded(bare, bench))
            asked = await graph.ainvoke({"notes": []}, THREAD)
            answered = await graph.ainvoke(Command(resume="yes"), THREAD)
            history = [each async for each in graph.aget_state_history(THREAD)]

        assert asked["__interrupt__"][0].value == {"question": "send it?"}
        assert answered["notes"][-1] == "answered yes"
        assert history

    def test_a_thread_goes_on_with_the_bare_saver(self, bench):
        """Threads move freely between the guarded saver and the bare one."""
        bare = InMemorySaver()
        two_steps(guarded(bare, bench)).invoke({"notes": []}, THREAD)
        again = two_steps(bare).invoke({"notes": []}, THREAD)

        assert len(again["notes"]) == 4

    def test_updating_the_state_by_hand_works(self, bench):
        """``update_state`` works with what a guarded ``put`` returns."""
        graph = two_steps(guarded(InMemorySaver(), bench))
        graph.invoke({"notes": []}, THREAD)
        config = graph.update_state(THREAD, {"notes": ["by hand"]}, as_node="second")

        assert graph.get_state(config).values["notes"][-1] == "by hand"


class TestPrivacy:
    def test_what_is_stored_is_redacted_and_the_run_is_not(self, bench, tmp_path):
        """Nothing of the caller's reaches the database, and the running graph is not disturbed."""
        config = {
            "configurable": {"thread_id": "t-1", "contact": MAIL},
            "metadata": {"note": f"asked by {MAIL}"},
        }
        path = tmp_path / "threads.db"
        with SqliteSaver.from_conn_string(str(path)) as bare:
            found = two_steps(guarded(bare, bench)).invoke({"notes": [MAIL]}, config)
            stored = stored_in(bare)

        assert found["notes"][0] == MAIL
        assert found["notes"][-1] == f"second saw first told {MAIL}"
        assert MAIL not in stored
        assert MAIL.encode() not in path.read_bytes()
        assert "first told <EMAIL_ADDRESS>" in stored

    def test_metadata_is_redacted_and_its_structure_is_not(self, bench):
        """What LangGraph finds its checkpoints by stays, and nothing else in the metadata."""
        bare = InMemorySaver()
        config = {"configurable": {"thread_id": "t-1", "checkpoint_ns": ""}}
        metadata = {
            "source": "loop",
            "step": 3,
            "run_id": "r-1",
            "said": {"deep": [f"mail {MAIL}"]},
        }
        guarded(bare, bench).put(config, empty_checkpoint(), metadata, {})
        (found,) = bare.list(None)

        assert found.metadata["said"] == {"deep": ["mail <EMAIL_ADDRESS>"]}
        assert {name: found.metadata[name] for name in ("source", "step", "run_id")} == {
            "source": "loop",
            "step": 3,
            "run_id": "r-1",
        }
        assert metadata["said"] == {"deep": [f"mail {MAIL}"]}

    def test_the_name_of_a_node_stays_where_it_is_the_whole_state_of_a_channel(self, bench):
        """A swarm's active agent is such a name, and without it the next turn finds no agent."""

        class Turn(TypedDict):
            active: str
            said: str

        name = "Dr Jane Smith"
        builder = StateGraph(Turn)
        builder.add_node("first", lambda _: Command(goto=name, update={"active": name}))
        builder.add_node(name, lambda _: {"said": f"{name} writes from {MAIL}"})
        builder.add_edge(START, "first")
        bare = InMemorySaver()
        graph = builder.compile(checkpointer=guarded(bare, bench))

        graph.invoke({"active": MAIL, "said": ""}, THREAD)
        first, *_, last = sorted(bare.list(THREAD), key=lambda each: each.metadata["step"])
        writes = [each for found in bare.list(THREAD) for each in found.pending_writes]

        assert last.checkpoint["channel_values"]["active"] == name
        assert name in [value for _task, channel, value in writes if channel == "active"]
        assert name not in last.checkpoint["channel_values"]["said"]
        assert MAIL not in repr(first)

    def test_a_resumed_run_sees_redacted_state(self, bench):
        """What was redacted before it was stored is what a later run finds."""
        graph = two_steps(guarded(InMemorySaver(), bench))
        graph.invoke({"notes": []}, THREAD)

        assert graph.get_state(THREAD).values["notes"][0] == "first told <EMAIL_ADDRESS>"

    def test_verbatim_state_is_stored_verbatim_and_told_to_nobody(self, bench, events):
        """With ``redact=False`` the saver alone has the state; no event has."""
        bare = InMemorySaver()
        two_steps(guarded(bare, bench, redact=False)).invoke({"notes": []}, THREAD)

        assert MAIL in stored_in(bare)
        assert MAIL not in "".join(
            repr(each) + repr(each.content.value) for each in events() if each.content
        )

    def test_metadata_is_found_by_what_it_was_stored_from(self, bench):
        """A filter on an identifier finds the metadata that was stored under its pseudonym."""
        bare = InMemorySaver()
        saver = guarded(bare, bench)
        config = {
            "configurable": {"thread_id": "t-1", "checkpoint_ns": ""},
            "metadata": {"contact": MAIL},
        }
        saver.put(config, empty_checkpoint(), {"source": "input", "step": -1}, {})

        assert len(list(saver.list(None, filter={"contact": MAIL, "step": -1}))) == 1
        assert list(bare.list(None, filter={"contact": MAIL})) == []

    @pytest.mark.parametrize("id_", ["call_1", "4111111111111111", MAIL, f"call {MAIL}"])
    def test_names_that_others_find_things_by_still_match(self, bench, id_):
        """Ids stay, or become one pseudonym in each place where a format has an id."""
        call = {"id": id_, "name": "mail", "args": {"to": MAIL}, "type": "tool_call"}
        values = {
            "messages": [
                HumanMessage(f"write to {MAIL}", id=id_, name="ada"),
                AIMessage([{"type": "text", "text": MAIL, "id": id_}], id=id_, tool_calls=[call]),
                ToolMessage(f"sent to {MAIL}", tool_call_id=id_),
                {"role": "assistant", "content": MAIL, "tool_call_id": id_},
            ],
            "sends": [Send("node", {"to": MAIL})],
            "asked": (Interrupt(value=f"send to {MAIL}?", id=id_),),
        }
        redaction = bench.redactor.begin()
        walked = StateWalker(redaction).walk(values)
        human, machine, tool, plain = walked["messages"]
        expected = redaction.label(id_)

        assert MAIL not in repr(walked)
        assert (human.id, machine.id, tool.tool_call_id) == (expected,) * 3
        assert machine.tool_calls[0]["id"] == expected
        assert machine.content[0]["id"] == expected
        assert plain["tool_call_id"] == expected
        assert walked["sends"][0].node == "node"
        assert walked["asked"][0].id == expected
        assert type(walked["asked"][0]) is Interrupt
        assert MAIL in repr(values), "the live state was changed"
        assert (expected == id_) is (id_ == "call_1")

    @pytest.mark.parametrize("id_", ["call_1", MAIL, f"call {MAIL}"])
    def test_a_resumed_run_matches_calls_and_replaces_messages(self, bench, id_):
        """Ids of a stored state are the same in all places, whatever they look like."""

        def ask(_state):
            call = {"id": id_, "name": "mail", "args": {"id": MAIL}, "type": "tool_call"}
            return {"messages": [AIMessage("?", id=id_, tool_calls=[call])]}

        def answer(state):
            interrupt("go on?")
            asked = state["messages"][-1]
            (call,) = asked.tool_calls
            result = ToolMessage("sent", tool_call_id=call["id"])
            return {"messages": [AIMessage("!", id=asked.id, tool_calls=[call]), result]}

        builder = StateGraph(MessagesState)
        builder.add_sequence([("ask", ask), ("answer", answer)])
        builder.add_edge(START, "ask")
        saver = guarded(InMemorySaver(), bench)
        live = builder.compile(checkpointer=saver).invoke({"messages": []}, THREAD)
        graph = builder.compile(checkpointer=saver)
        waiting = graph.get_state(THREAD).interrupts
        graph.invoke(Command(resume={waiting[0].id: "yes"}), THREAD)
        replaced, result = graph.get_state(THREAD).values["messages"]

        assert waiting[0].id == live["__interrupt__"][0].id
        assert replaced.content == "!"
        assert replaced.tool_calls[0]["id"] == result.tool_call_id
        assert MAIL not in stored_in(inner_of(saver))

    def test_an_object_of_any_class_is_looked_into(self, bench):
        """State of an unknown class is copied and its attributes are redacted."""

        class Contact:
            def __init__(self, mail):
                self.mail = mail
                self.others = [mail]

        @dataclass(slots=True)
        class Held:
            contact: Any

        live = Held(Contact(MAIL))
        walked = StateWalker(bench.redactor.begin()).walk(live)

        assert type(walked) is Held
        assert type(walked.contact) is Contact
        assert MAIL not in repr(vars(walked.contact))
        assert live.contact.others == [MAIL]

    def test_what_cannot_be_looked_into_is_not_stored(self, bench, events):
        """A write with state that cannot be redacted raises an error that names its type only."""
        bare = InMemorySaver()
        saver = guarded(bare, bench)
        config = {"configurable": {"thread_id": "t-1", "checkpoint_ns": "", "checkpoint_id": "c"}}
        with pytest.raises(RedactionError) as seen:
            saver.put_writes(config, [("notes", threading.Lock())], "task")

        assert "put_writes" in str(seen.value)
        assert dict(bare.writes) == {}
        assert [each.status for each in events()] == [Status.REFUSED]

    def test_state_that_holds_itself_is_refused(self, bench):
        """A cycle ends in an error, not in a recursion without end."""
        loop = []
        loop.append(loop)
        with pytest.raises(RedactionError, match="holds itself"):
            StateWalker(bench.redactor.begin()).walk(loop)

    def test_an_error_is_stored_without_what_it_says(self, bench):
        """The exception that a failed node leaves behind keeps its type and loses the address."""
        bare = InMemorySaver()

        def failing(_state):
            raise ValueError(f"no such user: {MAIL}")

        builder = StateGraph(State)
        builder.add_node("failing", failing)
        builder.add_edge(START, "failing")
        with pytest.raises(ValueError, match=MAIL):
            builder.compile(checkpointer=guarded(bare, bench)).invoke({"notes": []}, THREAD)

        assert "no such user: <EMAIL_ADDRESS>" in stored_in(bare)
        assert MAIL not in stored_in(bare)


class TestOutage:
    def test_a_read_that_fails_stops_the_run_before_any_node(self, impatient, events):
        """A graph never begins anew because its saver did not answer."""
        saver = Outage()
        graph = two_steps(guarded(saver, impatient))
        graph.invoke({"notes": []}, THREAD)
        before = stored_in(saver)
        saver.failures = {"get_tuple": 1}
        with pytest.raises(ConnectionError):
            graph.invoke({"notes": []}, THREAD)

        assert stored_in(saver) == before
        assert [each.status for each in events()][-1] is Status.ERROR

    def test_a_write_that_fails_once_is_tried_again(self, impatient):
        """One transient failure of a put is repaired inside the call: the run does not notice."""
        saver = Outage()
        saver.failures = {"put": 2, "put_writes": 2}
        found = two_steps(guarded(saver, impatient)).invoke(
            {"notes": []}, THREAD, durability="sync"
        )
        reloaded = two_steps(saver).get_state(THREAD)

        assert len(found["notes"]) == 2
        assert len(reloaded.values["notes"]) == 2

    def test_a_write_that_keeps_failing_fails_the_run(self, impatient, events):
        """After the attempts the policy allows, the saver's own error is raised."""
        saver = Outage()
        saver.failures = {"put": 100}
        with pytest.raises(ConnectionError):
            two_steps(guarded(saver, impatient)).invoke({"notes": []}, THREAD, durability="sync")

        # LangGraph before 1.2.24 puts once more as the run ends.
        puts = [each for each in events() if each.method == "put"]
        assert puts
        assert saver.attempts.count("put") == 3 * len(puts)

    def test_a_deletion_that_fails_says_so(self, impatient, events):
        """Nobody is told that a thread was deleted while it was not."""
        saver = Outage()
        saver.failures = {"delete_thread": 1}
        with pytest.raises(ConnectionError):
            guarded(saver, impatient).delete_thread("t-1")

        assert [(each.op_class, each.status) for each in events()] == [
            (OperationClass.FORGET, Status.ERROR)
        ]
        assert MAIL not in repr(events())

    def test_a_read_that_hangs_is_given_up(self, bench):
        """A saver that does not answer within its deadline raises, and never answers None."""
        released = threading.Event()

        class Hanging(InMemorySaver):
            def get_tuple(self, config):
                released.wait(GIVE_UP_S)

        policy = Policy(deadlines_s={OperationClass.RESUME: 0.01})
        try:
            with pytest.raises(DeadlineExceededError):
                guarded(Hanging(), replace(bench, policy=policy)).get_tuple(THREAD)
        finally:
            released.set()

    def test_a_graph_interrupt_is_not_a_failure(self, impatient, events):
        """The exceptions that LangGraph steers by are not counted against the saver."""
        graph = approving(guarded(InMemorySaver(), impatient))
        graph.invoke({"notes": []}, THREAD)

        assert {each.status for each in events()} <= {Status.OK, Status.EMPTY}


class TestListing:
    @pytest.fixture
    def full(self, bench):
        saver = Outage()
        two_steps(saver).invoke({"notes": []}, THREAD)
        saver.attempts.clear()
        return saver

    def test_nothing_happens_before_the_first_item(self, full, bench, events):
        """Listing is as lazy as the saver's own."""
        guarded(full, bench).list(THREAD)

        assert full.attempts == []
        assert events() == []

    def test_a_listing_has_one_event(self, full, bench, events):
        """All items of a listing are one operation."""
        found = list(guarded(full, bench).list(THREAD, limit=3))

        assert [each.checkpoint["id"] for each in found] == [
            each.checkpoint["id"] for each in full.list(THREAD, limit=3)
        ]
        assert [(each.method, each.status, each.hits) for each in events()] == [
            ("list", Status.OK, 3)
        ]

    def test_a_listing_that_is_left_early_has_one_event(self, full, bench, events):
        """What was taken is what was listed."""
        listing = guarded(full, bench).list(THREAD)
        next(listing)
        listing.close()

        assert [(each.status, each.hits) for each in events()] == [(Status.OK, 1)]

    def test_a_failure_half_way_is_raised_and_reported(self, full, bench, events):
        """An error after some items is the saver's own, and the event has it."""
        full.failures = {"list after": 2}
        saver = guarded(full, bench)
        listing = saver.list(THREAD)
        taken = [next(listing), next(listing)]
        with pytest.raises(ConnectionError):
            next(listing)

        assert len(taken) == 2
        assert [(each.status, each.error) for each in events()] == [
            (Status.ERROR, "ConnectionError")
        ]
        assert guard_of(saver).limits[OperationClass.RESUME].bulkhead.in_flight == 0

    def test_the_callers_own_time_is_not_the_savers(self, full, bench, events):
        """What the caller does between two items is not in the duration."""
        ticks = [0.0]
        clocked = replace(bench, clock=lambda: ticks[0])
        for _found in guarded(full, clocked).list(THREAD):
            ticks[0] += 60.0

        assert [each.duration_s for each in events()] == [0.0]

    def test_the_consumer_is_not_inside_the_call(self, full, bench, events):
        """A call that the consumer makes between two items is not nested in the listing."""
        saver = guarded(full, bench)
        for _found in saver.list(THREAD, limit=1):
            saver.get_tuple(THREAD)

        assert [(each.method, each.nested) for each in events()] == [
            ("get_tuple", False),
            ("list", False),
        ]

    async def test_an_asynchronous_listing_has_one_event(self, full, bench, events):
        """The same for ``alist``, to its end and left early."""
        saver = guarded(full, bench)
        found = [each async for each in saver.alist(THREAD, limit=2)]
        listing = saver.alist(THREAD)
        await anext(listing)
        await listing.aclose()

        assert len(found) == 2
        assert [(each.method, each.hits) for each in events()] == [("list", 2), ("list", 1)]

    async def test_an_asynchronous_listing_that_is_cancelled_says_so(self, bench, events):
        """Cancelling the consumer's task is not a failure of the saver's."""

        class Endless(InMemorySaver):
            async def alist(self, config, **options):
                await asyncio.Event().wait()
                yield

        async def consume():
            async for _found in guarded(Endless(), bench).alist(THREAD):
                pass

        task = asyncio.create_task(consume())
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

        assert [each.status for each in events()] == [Status.CANCELLED]

    async def test_an_item_that_does_not_come_is_given_up(self, bench, events):
        """Each item of an asynchronous listing has the deadline of its class."""

        class Endless(InMemorySaver):
            async def alist(self, config, **options):
                await asyncio.Event().wait()
                yield

        policy = Policy(deadlines_s={OperationClass.RESUME: 0.01})
        with pytest.raises(DeadlineExceededError):
            await anext(guarded(Endless(), replace(bench, policy=policy)).alist(THREAD))

        assert [each.status for each in events()] == [Status.TIMEOUT]


class TestScope:
    def test_the_config_names_whom_it_is_about(self, bench, events):
        """Thread, user and agent are taken from the config where the context does not say."""
        saver = guarded(InMemorySaver(), bench)
        ids = {"thread_id": "t-1", "user_id": "c-42", "agent_id": "sales"}
        saver.get_tuple({"configurable": ids})
        with context(customer="c-7"):
            saver.get_tuple({"configurable": ids})
        first, second = events()

        assert (first.run, first.agent) == ("t-1", "sales")
        assert first.subject is not None
        assert first.subject.hashed("x") != second.subject.hashed("x")
        assert (first.method, first.op_class) == ("get_tuple", OperationClass.RESUME)

    def test_a_user_may_be_a_number(self, bench, events):
        """Its digits are the customer's id; the saver gets the number."""
        saver = guarded(InMemorySaver(), bench)
        for user in (7, "7"):
            saver.get_tuple({"configurable": {"thread_id": "t-1", "user_id": user}})
        first, second = events()

        assert first.subject is not None
        assert first.subject.hashed("x") == second.subject.hashed("x")

    def test_a_thread_that_is_a_number_is_its_digits(self, bench, events):
        """As LangGraph's savers have it; the saver is given it as it is."""
        saver = InMemorySaver()
        guarded(saver, bench).put(
            {"configurable": {"thread_id": 7, "checkpoint_ns": ""}}, empty_checkpoint(), {}, {}
        )

        assert [each.run for each in events()] == ["7"]
        assert [*saver.storage] == [7]

    @pytest.mark.parametrize("thread", ["*", 7.0, True, ["t-1"], {"$ne": ""}])
    def test_ids_are_text_and_name_one(self, thread, bench, events):
        """A wildcard or an id that is no text or number is refused before the saver is asked."""
        saver = Outage()
        with pytest.raises(ScopeError, match="thread_id"):
            guarded(saver, bench).delete_thread(thread)

        assert saver.attempts == []
        assert [each.status for each in events()] == [Status.DENIED]

    @pytest.mark.parametrize("key", ["x') OR '1'='1", "a b", "", 7, "$.x", "ä", "@t:{*}", "x\n"])
    async def test_a_key_of_a_filter_is_a_plain_name(self, key, bench, events):
        """Savers put it into their queries: another is refused before the saver is asked."""
        saver, found = guarded(InMemorySaver(), bench), {"source": "loop", key: "x"}
        with pytest.raises(ScopeError, match="no plain name"):
            [*saver.list(None, filter=found)]
        with pytest.raises(ScopeError, match="no plain name"):
            [each async for each in saver.alist(None, filter=found)]

        assert [each.status for each in events()] == [Status.DENIED] * 2

    @pytest.mark.parametrize("key", ["source", "langgraph_step", "a.b-c", "user_id"])
    def test_a_plain_name_filters(self, key, bench):
        """As without the guard."""
        saver = InMemorySaver()
        config = {"configurable": {"thread_id": "t-1", "checkpoint_ns": ""}}
        for value in (1, 2):
            saver.put(config, empty_checkpoint(), {key: value}, {})

        found = guarded(saver, bench).list(None, filter={key: 2})
        assert [each.metadata[key] for each in found] == [2]

    def test_classes_of_operations(self):
        """Reads resume, writes checkpoint, deletions forget: nothing of a checkpoint fails open."""
        classes = {name: method.op_class.value for name, method in METHODS.items()}

        assert classes == {
            "get": "resume",
            "get_tuple": "resume",
            "list": "resume",
            "get_delta_channel_history": "resume",
            "put": "checkpoint",
            "put_writes": "checkpoint",
            "copy_thread": "checkpoint",
            "delete_thread": "forget",
            "delete_for_runs": "forget",
            "prune": "forget",
        }


def test_the_end_of_a_graph_is_reached(bench):
    """Parallel branches and ``Send`` work through a guarded saver."""

    def fan_out(_state):
        return [Send("worker", {"notes": [str(number)]}) for number in range(3)]

    builder = StateGraph(State)
    builder.add_node("worker", lambda state: {"notes": [f"did {state['notes'][0]}"]})
    builder.add_conditional_edges(START, fan_out, ["worker"])
    builder.add_edge("worker", END)
    found = builder.compile(checkpointer=guarded(InMemorySaver(), bench)).invoke(
        {"notes": []}, THREAD
    )

    assert sorted(found["notes"]) == ["did 0", "did 1", "did 2"]

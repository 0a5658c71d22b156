"""An agent whose stores die in the middle, one at a time: what it did adds up afterwards."""

from __future__ import annotations

import warnings
from collections import Counter

import pytest

from mnemoscope.memory.api import OperationClass, Status
from mnemoscope.memory.testing import CapturingSink
from mnemoscope.telemetry.event.event import Journalled
from tests.kit.patience import GIVE_UP_S

TURNS = 9
DEAD = range(3, 6)
"""The turns in which the store is down."""

WRITES = {OperationClass.REMEMBER, OperationClass.CHECKPOINT}
STORES = {
    "mem0": "mem0",
    "qdrant": "qdrant",
    "store": "langgraph.store",
    "checkpointer": "langgraph.checkpoint",
}


def said(turn):
    return f"In message {turn} I ask for tea number {turn}."


@pytest.fixture
def kill():
    """Return a function that takes a bare client away, and returns how to give it back."""
    from mnemoscope.demo.faults import BREAKABLE

    def begin(name, client):
        methods, error = BREAKABLE[name]

        def fail(*_args, **_kwargs):
            raise error()

        def take():
            for each in methods:
                setattr(client, each, fail)

        def answer_and_die(*args, **kwargs):
            take()
            return write(*args, **kwargs)

        if name == "checkpointer":
            # Away before a run begins, it stops the run, as it must: so it dies in the middle.
            write = client.put_writes
            client.put_writes = answer_and_die
        else:
            take()
        return lambda: [delattr(client, each) for each in methods]

    return begin


@pytest.mark.parametrize("journal", [True, False], ids=["journal", "no journal"])
@pytest.mark.parametrize("broken", STORES)
@pytest.mark.fault(
    53, "each store in turn dies under an agent", expected="every turn answered; writes add up"
)
def test_reconciliation(make_scope, tmp_path, kill, eventually, seen, broken, journal):
    """Every write is in its store, or waited and is there now, or is counted as lost."""
    pytest.importorskip("wordllama", reason="needs mnemoscope[qdrant]")
    from mnemoscope.demo.agent import AgentContext, build_agent, reply
    from mnemoscope.demo.scripted_model import ScriptedModel
    from mnemoscope.demo.stores import open_stores

    sink, folder, answers = CapturingSink(), tmp_path / "stores", []
    scope = make_scope(sink, journal=tmp_path / "journal" if journal else None)
    folder.mkdir()

    def fates(store):
        assert scope.flush(GIVE_UP_S)
        own = [each for each in sink.events if each.store == store and not each.nested]
        return Counter(each.journal or each.status for each in own if each.op_class in WRITES)

    def settled():
        found = [fates(store) for store in STORES.values()]
        again = Journalled.APPENDED, Journalled.REPLAYED
        return all(len({each[journalled] for journalled in again}) == 1 for each in found)

    with warnings.catch_warnings(action="ignore"), open_stores(folder, scope) as stores:
        bare = stores.bare
        saver = scope.checkpointer(bare["checkpointer"], degraded=True)
        graph = build_agent(stores.store, saver)
        agent = AgentContext(
            customer="c-1",
            known=(),
            memory=stores.memory,
            documents=stores.documents,
            model=ScriptedModel(),
            infers=False,  # each message is to be found again
        )
        for turn in range(TURNS):
            if turn == DEAD.start:
                come_back = kill(broken, bare[broken])
            if turn == DEAD.stop:
                come_back()
            answers.append(reply(graph, said(turn), agent=agent, thread="t-1", scope=scope))
        came_back = eventually(settled)
        found = {name: fates(store) for name, store in STORES.items()}
        memories = Counter(
            each["memory"]
            for each in bare["mem0"].get_all(filters={"user_id": "c-1"}, top_k=100)["results"]
        )
        last = bare["store"].get(("customers", "c-1"), "last-message")
        state = build_agent(bare["store"], bare["checkpointer"]).get_state(
            {"configurable": {"thread_id": "t-1"}}
        )
    fate = found[broken]
    seen(f"{broken}: {dict(fate)}")

    assert all(each.text for each in answers)
    assert len(answers) == TURNS
    assert came_back
    assert broken != "checkpointer" or fate[Journalled.APPENDED] > len(DEAD)
    for name in ("mem0", "store"):
        each = found[name]
        written = each[Status.OK] + each[Journalled.APPENDED] + each[Journalled.LOST]
        assert written == TURNS
        assert each[Journalled.LOST] == (0 if journal or name != broken else len(DEAD))
    assert set(memories.values()) == {1}
    assert len(memories) + found["mem0"][Journalled.LOST] == TURNS
    assert last.value["text"] == said(TURNS - 1)
    assert len(state.values["messages"]) == 2 * TURNS

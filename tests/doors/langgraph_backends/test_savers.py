"""Savers of other databases behind the guard: LangGraph's conformance kit, and quick starts."""

from __future__ import annotations

import pytest
from langgraph.graph import StateGraph

from mnemoscope.memory import context
from mnemoscope.memory.api import DataSubject
from mnemoscope.memory.testing import scope_for_tests
from tests.kit.async_saver import awaited
from tests.kit.conformance import verdicts
from tests.kit.patience import GIVE_UP_S
from tests.kit.saver_quick_start import quick_start, said

# redisvl's own advice to whoever makes the client, which the saver does.
pytestmark = pytest.mark.filterwarnings("ignore:get_async_redis_connection will become")

SAVERS = (
    "redis_saver",
    "async_redis_saver",
    "valkey_saver",
    "async_valkey_saver",
    "mongodb_saver",
    "dynamodb_saver",
    "dynamodb_saver_with_s3",
)
THREAD = {"configurable": {"thread_id": "t-1"}}
ASKED = {"messages": [("user", "I am ada@example.com" + " and like tea" * 30_000)]}
"""Longer than what DynamoDB keeps in an item: it goes to S3, or into chunks."""


@pytest.fixture(params=SAVERS)
def backend(request):
    return request.getfixturevalue(request.param)


@pytest.fixture
def scope():
    with scope_for_tests(
        deadline_resume_s=GIVE_UP_S, deadline_checkpoint_s=GIVE_UP_S, deadline_forget_s=GIVE_UP_S
    ) as (made, _sink):
        yield made


async def run(backend, graph, *given):
    return await graph.ainvoke(*given) if backend.is_async else graph.invoke(*given)


async def deleted(backend, saver, thread):
    if backend.is_async:
        await saver.adelete_thread(thread)
    else:
        saver.delete_thread(thread)


@pytest.mark.parametrize("backend", SAVERS[:-1], indirect=True)  # S3 does not change the answers
async def test_a_guarded_saver_conforms_where_the_bare_one_does(backend, scope):
    """LangGraph's kit finds the same capabilities, and says the same of each."""
    shown = (lambda saver: saver) if backend.is_async else awaited
    bare = await verdicts(backend.opened, shown)
    guarded = await verdicts(backend.opened, lambda saver: shown(scope.checkpointer(saver)))

    assert guarded == bare
    assert bare["put"]["tests_passed"] >= 14


async def test_its_quick_start_works_on_a_guarded_saver(backend, scope):
    """What is put is got, and listed."""
    async with backend.opened() as bare:
        # Guarding it is the one line that is not its own.
        await quick_start(scope.checkpointer(bare), is_async=backend.is_async)


async def test_a_graph_over_numbers_runs_as_in_the_quick_start_of_aws(backend, scope):
    """A state that is a number, and no mapping."""
    async with backend.opened() as bare:
        checkpointer = scope.checkpointer(bare)
        builder = StateGraph(int)
        builder.add_node("add_one", lambda x: x + 1)
        builder.set_entry_point("add_one")
        builder.set_finish_point("add_one")
        graph = builder.compile(checkpointer=checkpointer)

        assert await run(backend, graph, 1, {"configurable": {"thread_id": "session-1"}}) == 2


async def test_what_is_stored_is_redacted_and_a_deleted_thread_leaves_nothing(backend, scope):
    """In whatever the database holds: rows, keys, objects."""
    async with backend.opened() as bare:
        saver = scope.checkpointer(bare)
        answer = await run(backend, said(saver), ASKED, THREAD)
        stored = backend.stored()
        await deleted(backend, saver, "t-1")
        left = backend.stored()

    assert answer["messages"][-1].content == "Ask bob@example.com"
    assert "t-1" in stored
    assert "EMAIL_ADDRESS" in stored  # it can be read here, and so could an address
    assert "ada@example" not in stored
    assert "bob@example" not in stored
    assert "t-1" not in left


async def test_the_threads_of_a_customer_are_exported_and_erased(backend, scope):
    """Those that the trail names; DynamoDB's saver cannot be asked for all, which is said."""
    subject = DataSubject(customer="17", runs={"t-1"})
    async with backend.opened() as bare:
        graph = said(scope.checkpointer(bare))
        for customer, thread in (("17", "t-1"), ("18", "t-2")):
            with context(tenant="acme", customer=customer):
                await run(backend, graph, ASKED, {"configurable": {"thread_id": thread}})
        (provider,) = scope.subject_data.named().values()
        if "DynamoDB" in type(bare).__name__:
            with pytest.raises(ValueError, match="must contain thread_id"):
                await provider.page(subject)
            return
        page = await provider.page(subject)
        erased = await provider.erase(subject)
        left = backend.stored()

    assert [each.id for each in page.records] == ["t-1"]
    assert erased.removed == 1
    assert "t-1" not in left
    assert "t-2" in left

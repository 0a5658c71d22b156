"""The clients of the hosted service behind the chokepoint, against a made-up service."""

from __future__ import annotations

import inspect
from operator import attrgetter
from urllib.parse import unquote

import httpx
import pytest
from mem0 import AsyncMemoryClient, MemoryClient
from mem0 import exceptions as theirs
from mem0.client.types import AddMemoryOptions, DeleteAllMemoryOptions, SearchMemoryOptions

from mnemoscope.adapters.mem0.adapter import ADAPTER
from mnemoscope.adapters.mem0.hosted_methods import HOSTED_METHODS, PROJECT_METHODS
from mnemoscope.memory import ScopeError
from mnemoscope.memory.api import OperationClass, Status
from mnemoscope.memory.limits.policy import FAILS_OPEN
from tests.kit.bench import wrapping
from tests.kit.hosted_service import CALLS, MAIL, USER
from tests.kit.hosted_service import MEMORY_ID as ID

guarded = wrapping(ADAPTER)

NEEDS_ADDRESS = {"project.add_member", "project.update_member", "project.remove_member"}
METHODS = HOSTED_METHODS | {f"project.{name}": row for name, row in PROJECT_METHODS.items()}


@pytest.fixture(params=[MemoryClient, AsyncMemoryClient])
def bare(request, make_client):
    """Return a bare client sync and async."""
    return make_client(request.param)


@pytest.mark.parametrize("method", CALLS)
async def test_a_call_is_the_bare_call_without_personal_data(
    method, bare, service, bench, events, done
):
    """The service gets the request that a bare client would send, redacted, and one event tells."""
    expected = await done(attrgetter(method)(bare)(**CALLS[method]))
    sent, service.requests = service.requests, []
    result = await done(attrgetter(method)(guarded(bare, bench))(**CALLS[method]))
    (event,) = events()

    assert result == expected
    assert [(verb, target) for verb, target, _ in service.requests] == [
        (verb, target) for verb, target, _ in sent
    ]
    assert (MAIL in repr(CALLS[method])) == (MAIL in unquote(repr(sent)))
    assert (MAIL in unquote(repr(service.requests))) == (method in NEEDS_ADDRESS)
    assert MAIL not in repr(event)
    assert MAIL not in repr(event.content and event.content.value)
    assert (event.store, event.method, event.nested) == ("mem0", method, False)
    assert event.status.is_normal


@pytest.mark.parametrize("method", CALLS)
async def test_a_service_that_is_down_gives_way_or_is_told(
    method, bare, service, bench, events, done
):
    """What has an honest neutral value gets it; everything else gets the client's own error."""
    service.answer = (503, {"detail": "no"})
    call = attrgetter(method)(guarded(bare, bench))
    gives_way = METHODS[method].neutral is not None
    if gives_way:
        answer = await done(call(**CALLS[method]))
        assert answer == METHODS[method].neutral(CALLS[method])
    else:
        with pytest.raises(theirs.NetworkError):
            await done(call(**CALLS[method]))
    (event,) = events()

    expected = (Status.DEGRADED, True) if gives_way else (Status.ERROR, False)
    assert (event.status, event.neutral) == expected
    assert event.error == "mem0.exceptions.NetworkError"


def test_what_is_forgotten_is_never_made_up():
    """No method that deletes has a neutral value, and none that fails closed."""
    for method in METHODS.values():
        assert (method.neutral is None) or (method.op_class in FAILS_OPEN)
        if method.operation == "delete_memory":
            assert method.op_class is OperationClass.FORGET


@pytest.mark.parametrize(
    ("status", "error", "expected"),
    [
        (400, theirs.ValidationError, Status.ERROR),
        (409, theirs.ValidationError, Status.ERROR),
        (422, theirs.ValidationError, Status.ERROR),
        (401, None, Status.DEGRADED),
        (403, None, Status.DEGRADED),
        (404, None, Status.DEGRADED),
        (413, None, Status.DEGRADED),
        (408, None, Status.DEGRADED),
        (429, None, Status.DEGRADED),
        (500, None, Status.DEGRADED),
        (502, None, Status.DEGRADED),
        (504, None, Status.DEGRADED),
    ],
)
async def test_a_status_is_the_callers_or_the_services(
    status, error, expected, bare, service, bench, events, done
):
    """Invalid requests are raised as the client raises them; all other refusals degrade."""
    service.answer = (status, {"detail": "no"})
    search = guarded(bare, bench).search
    if error is None:
        assert await done(search("tea", filters=USER)) == {"results": []}
    else:
        with pytest.raises(error, match="no"):
            await done(search("tea", filters=USER))

    assert [each.status for each in events()] == [expected]


@pytest.mark.parametrize("exc", [httpx.ConnectError("no"), httpx.ReadTimeout("no")], ids=repr)
async def test_a_service_out_of_reach_degrades(exc, bare, service, bench, events, done):
    """Refused connections and timeouts of the transport are the service's."""
    service.answer = exc
    memory = guarded(bare, bench)

    assert await done(memory.get(ID)) is None
    assert [each.status for each in events()] == [Status.DEGRADED]


@pytest.mark.parametrize(
    ("method", "arguments"),
    [
        ("add", {"messages": 5, "user_id": "u-17"}),
        ("search", {"query": " ", "filters": USER}),
        ("search", {"query": "tea", "user_id": "u-17"}),
        ("search", {"query": "tea", "options": 5}),
        ("search", {"query": "tea", "options": {"filters": USER}}),
        ("get_all", {"user_id": "u-17"}),
        ("update", {"memory_id": ID}),
        ("feedback", {"memory_id": ID, "feedback": "GREAT"}),
        ("update_project", {}),
        ("project.update", {}),
        ("project.add_member", {"email": MAIL, "role": "BOSS"}),
        ("project.update_member", {"email": MAIL, "role": "BOSS"}),
        ("project.add_member", {}),
        ("get", {}),
        ("delete", {}),
    ],
)
async def test_a_callers_mistake_is_the_callers(
    method, arguments, bare, service, bench, events, done
):
    """Wrong arguments raise what the bare client raises, type and message, and send nothing."""
    with pytest.raises(Exception) as expected:  # noqa: PT011 - whatever it is
        await done(attrgetter(method)(bare)(**arguments))
    with pytest.raises(Exception) as raised:  # noqa: PT011 - the same
        await done(attrgetter(method)(guarded(bare, bench))(**arguments))

    assert type(raised.value) is type(expected.value)
    assert str(raised.value) == str(expected.value)
    assert service.requests == []
    assert [(each.status, each.neutral) for each in events()] == [(Status.ERROR, False)]


@pytest.mark.parametrize(
    ("method", "arguments"),
    [
        ("add", {"messages": "tea", "user_id": "*"}),
        ("add", {"messages": "tea", "options": AddMemoryOptions(filters={"user_id": "*"})}),
        ("search", {"query": "tea", "filters": {"OR": [{"user_id": "*"}]}}),
        ("get_all", {"filters": {"app_id": {"in": ["*"]}}}),
        ("delete_all", {}),
        ("delete_all", {"user_id": None}),
        ("delete_all", {"options": DeleteAllMemoryOptions(filters={"user_id": "*"})}),
        ("delete_users", {}),
        ("delete_users", {"user_id": ""}),
        ("delete_users", {"user_id": "u-17", "agent_id": "a"}),
        ("delete", {"memory_id": "."}),
        ("delete", {"memory_id": ""}),
        ("get", {"memory_id": ".."}),
        ("update", {"memory_id": ".", "text": "tea"}),
        ("get_profile", {"entity_id": "*"}),
        ("create_memory_export", {"schema": "{}", "user_id": "*"}),
        ("get_webhooks", {"project_id": "."}),
        ("delete_webhook", {"webhook_id": ".."}),
    ],
)
async def test_nobody_can_ask_for_everybody(method, arguments, bare, service, bench, events, done):
    """Calls that the service would take for everybody's memories are denied before they leave."""
    with pytest.raises(ScopeError):
        await done(getattr(guarded(bare, bench), method)(**arguments))

    assert service.requests == []
    assert [each.status for each in events()] == [Status.DENIED]


async def test_without_us_a_dot_deletes_all_memories(bare, service, done):
    """The control: the request of a bare client is for the collection, not for a memory."""
    await done(bare.delete("."))
    await done(bare.delete_all())

    assert [each[:2] for each in service.requests] == [("DELETE", "/v1/memories/")] * 2


async def test_a_reset_is_one_call_not_three(bare, service, bench, events, done):
    """The client's own calls of its public methods are not observed a second time."""
    await done(guarded(bare, bench).reset())

    assert [each[:2] for each in service.requests] == [
        ("GET", "/v1/entities/"),
        ("DELETE", "/v2/entities/user/u-17/"),
    ]
    assert [each.method for each in events()] == ["reset"]


async def test_typed_options_are_redacted_and_sent(bare, service, bench, events, done):
    """Options travel as the client's own type, redacted, and the caller's are not touched."""
    options = SearchMemoryOptions(filters={**USER, "contact": MAIL}, top_k=2)
    service.records = [{"id": ID, "score": 0.5, "user_id": "u-17"}]
    await done(guarded(bare, bench).search("tea", options))
    (event,) = events()
    (_, _, body) = service.requests[0]

    assert body["query"] == "tea"
    assert (body["top_k"], body["filters"]["user_id"]) == (2, "u-17")
    assert body["filters"]["contact"].startswith("<EMAIL_ADDRESS_")
    assert options.filters == {**USER, "contact": MAIL}
    assert (event.hits, event.memory_ids, event.scores) == (1, (ID,), (0.5,))
    assert event.subject is not None


async def test_a_batch_names_its_memories(bare, bench, events, done):
    """Every memory that was changed or deleted is in the event."""
    memory = guarded(bare, bench)
    other = ID.replace("3", "4")
    await done(memory.batch_update([{"memory_id": ID, "text": "x"}, {"memory_id": other}]))
    await done(memory.batch_delete([{"memory_id": ID}]))

    assert [each.memory_ids for each in events()] == [(ID, other), (ID,)]


async def test_an_asynchronous_client_is_a_context_manager(make_client, bench):
    """``async with`` gives the guarded client and closes the wrapped one."""
    bare = make_client(AsyncMemoryClient)
    async with guarded(bare, bench) as memory:
        assert isinstance(memory, AsyncMemoryClient)
        assert inspect.iscoroutinefunction(memory.search)

    assert bare.async_client.is_closed

"""The clients of the hosted service behind the chokepoint, against a made-up service."""

from __future__ import annotations

import inspect
from typing import Any

import httpx
import pytest
from bench import wrapping
from mem0 import AsyncMemoryClient, MemoryClient
from mem0 import exceptions as theirs
from mem0.client.types import AddMemoryOptions, DeleteAllMemoryOptions, SearchMemoryOptions

from mnemoscope.adapters.mem0.adapter import ADAPTER
from mnemoscope.adapters.mem0.hosted_methods import HOSTED_METHODS
from mnemoscope.memory.errors import ScopeError
from mnemoscope.memory.limits.policy import FAILS_OPEN
from mnemoscope.telemetry.event.event import OperationClass, Status

guarded = wrapping(ADAPTER)

MAIL = "ada@example.com"
ID = "3f9ab1de-6b8e-4a3c-9a75-0d2a2c1b7c11"
USER = {"user_id": "u-17"}
NOT_CONFIRMED = {"message": "Not confirmed: the memory store did not answer."}
ARGUMENTS: dict[str, dict[str, Any]] = {
    "add": {"messages": f"mail {MAIL}", "user_id": "u-17"},
    "search": {"query": f"mail {MAIL}", "filters": USER},
    "get_all": {"filters": {**USER, "contact": MAIL}, "page": 1},
    "get": {"memory_id": ID},
    "history": {"memory_id": ID},
    "update": {"memory_id": ID, "text": f"mail {MAIL}"},
    "batch_update": {"memories": [{"memory_id": ID, "text": f"mail {MAIL}"}]},
    "feedback": {"memory_id": ID, "feedback": "POSITIVE", "feedback_reason": f"mail {MAIL}"},
    "delete": {"memory_id": ID},
    "batch_delete": {"memories": [{"memory_id": ID}]},
    "delete_all": {"user_id": "u-17"},
    "delete_users": {"user_id": "u-17"},
    "reset": {},
    "users": {},
    "get_profile": {"entity_id": "u-17"},
    "get_summary": {"filters": {**USER, "contact": MAIL}},
    "create_memory_export": {"schema": f"mail {MAIL}", "user_id": "u-17"},
    "get_memory_export": {"user_id": "u-17"},
    "generate_profile": {"entity_id": "u-17", "idempotency_key": "k-1"},
    "update_profile_settings": {"custom_instructions": f"mail {MAIL}"},
    "update_project": {"custom_instructions": f"mail {MAIL}"},
}
NEUTRAL: dict[str, Any] = {
    "add": {"results": []},
    "search": {"results": []},
    "get_all": {"count": 0, "next": None, "previous": None, "results": []},
    "get": None,
    "history": [],
    "update": NOT_CONFIRMED,
    "batch_update": NOT_CONFIRMED,
    "feedback": NOT_CONFIRMED,
    "users": {"results": []},
    "get_profile": {
        "profile": {},
        "status": "failed",
        "entity_type": "user",
        "entity_id": "u-17",
    },
}
ENTITIES = {"results": [{"type": "user", "name": "u-17"}]}
FOUND = {"results": [{"id": ID, "memory": "likes tea"}]}
ANSWERS = {"reset": ENTITIES, "users": ENTITIES, "search": FOUND, "get_all": FOUND, "history": []}
READ = sorted(HOSTED_METHODS.keys() - {"delete_users"})  # which says by itself what it did
UNDOCUMENTED = [
    *((method, page) for method in READ for page in ("null", "5", '"ok"', "<html>Sign in</html>")),
    *((method, "[5]") for method in READ if method != "history"),
    *((method, "{}") for method in ("search", "get_all", "users", "history")),
]


@pytest.fixture(params=[MemoryClient, AsyncMemoryClient])
def bare(request, make_client):
    """Return a bare client sync and async."""
    return make_client(request.param)


@pytest.mark.parametrize("method", sorted(HOSTED_METHODS))
async def test_a_call_is_the_bare_call_without_personal_data(
    method, bare, service, bench, events, done
):
    """The service gets the request that a bare client would send, redacted, and one event tells."""
    service.answer = (200, ANSWERS.get(method, {"id": ID}))
    expected = await done(getattr(bare, method)(**ARGUMENTS[method]))
    sent, service.requests = service.requests, []
    result = await done(getattr(guarded(bare, bench), method)(**ARGUMENTS[method]))
    (event,) = events()

    assert result == expected
    assert [(verb, target) for verb, target, _ in service.requests] == [
        (verb, target) for verb, target, _ in sent
    ]
    assert (MAIL in repr(ARGUMENTS[method])) == (MAIL in repr(sent))
    assert MAIL not in repr(service.requests)
    assert (event.store, event.method, event.nested) == ("mem0", method, False)
    assert event.status.is_normal


@pytest.mark.parametrize("method", sorted(HOSTED_METHODS))
async def test_a_service_that_is_down_gives_way_or_is_told(
    method, bare, service, bench, events, done
):
    """What has an honest neutral value gets it; everything else gets the client's own error."""
    service.answer = (503, {"detail": "no"})
    call = getattr(guarded(bare, bench), method)
    if method in NEUTRAL:
        assert await done(call(**ARGUMENTS[method])) == NEUTRAL[method]
    else:
        with pytest.raises(theirs.NetworkError):
            await done(call(**ARGUMENTS[method]))
    (event,) = events()

    expected = (Status.DEGRADED, True) if method in NEUTRAL else (Status.ERROR, False)
    assert (event.status, event.neutral) == expected
    assert event.error == "mem0.exceptions.NetworkError"


def test_what_is_forgotten_is_never_made_up():
    """No method that deletes has a neutral value, and none that fails closed."""
    for method in HOSTED_METHODS.values():
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


@pytest.mark.parametrize(("method", "page"), UNDOCUMENTED)
async def test_an_answer_that_the_service_does_not_document_is_its_failure(
    method, page, bare, service, bench, events, done
):
    """It never reaches the host: as what it is not, or as a None that looks like an answer."""
    service.page = page
    call = getattr(guarded(bare, bench), method)
    if method in NEUTRAL:
        assert await done(call(**ARGUMENTS[method])) == NEUTRAL[method]
    else:
        with pytest.raises(Exception):  # noqa: B017, PT011 - the client's own, or ours
            await done(call(**ARGUMENTS[method]))

    assert [each.status for each in events()] == [
        Status.DEGRADED if method in NEUTRAL else Status.ERROR
    ]


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
        ("get", {}),
        ("delete", {}),
    ],
)
async def test_a_callers_mistake_is_the_callers(
    method, arguments, bare, service, bench, events, done
):
    """Wrong arguments raise what the bare client raises, type and message, and send nothing."""
    with pytest.raises(Exception) as expected:  # noqa: PT011 - whatever it is
        await done(getattr(bare, method)(**arguments))
    with pytest.raises(Exception) as raised:  # noqa: PT011 - the same
        await done(getattr(guarded(bare, bench), method)(**arguments))

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
    service.answer = (200, ENTITIES)
    await done(guarded(bare, bench).reset())

    assert [each[:2] for each in service.requests] == [
        ("GET", "/v1/entities/"),
        ("DELETE", "/v2/entities/user/u-17/"),
    ]
    assert [each.method for each in events()] == ["reset"]


async def test_typed_options_are_redacted_and_sent(bare, service, bench, events, done):
    """Options travel as the client's own type, redacted, and the caller's are not touched."""
    options = SearchMemoryOptions(filters={**USER, "contact": MAIL}, top_k=2)
    service.answer = (200, {"results": [{"id": ID, "score": 0.5, "user_id": "u-17"}]})
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


@pytest.mark.parametrize("method", ["get_project", "get_profile_settings"])
async def test_settings_go_straight_to_the_client(method, bare, service, bench, events, done):
    """Administration is not memory: same answer, no event."""
    service.answer = (200, {"name": "p"})

    assert await done(getattr(guarded(bare, bench), method)()) == {"name": "p"}
    assert events() == []


async def test_an_asynchronous_client_is_a_context_manager(make_client, bench):
    """``async with`` gives the guarded client and closes the wrapped one."""
    bare = make_client(AsyncMemoryClient)
    async with guarded(bare, bench) as memory:
        assert isinstance(memory, AsyncMemoryClient)
        assert inspect.iscoroutinefunction(memory.search)

    assert bare.async_client.is_closed

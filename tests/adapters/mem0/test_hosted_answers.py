"""What the hosted service documents passes as it is; nothing else counts as an answer."""

from __future__ import annotations

import json
from operator import attrgetter
from typing import Any

import pytest
from mem0 import AsyncMemoryClient, MemoryClient

from mnemoscope.adapters.mem0.adapter import ADAPTER
from mnemoscope.memory.api import Status
from mnemoscope.memory.errors import UnexpectedAnswerError
from tests.kit.bench import wrapping
from tests.kit.hosted_service import CALLS, RECORD

guarded = wrapping(ADAPTER)

NOT_CONFIRMED = {"message": "Not confirmed: the memory store did not answer."}
NEUTRAL: dict[str, Any] = {
    "add": {"results": []},
    "search": {"results": []},
    "get_all": {"count": 0, "next": None, "previous": None, "results": []},
    "get": None,
    "history": [],
    **dict.fromkeys(("update", "batch_update", "feedback"), NOT_CONFIRMED),
    "users": {"results": []},
    "get_profile": {
        "profile": {},
        "status": "failed",
        "entity_type": "user",
        "entity_id": "u-17",
    },
}
LISTS = {"history", "get_webhooks"}
"""Methods whose answer is a list, which may be empty."""

WRONG = {
    "null": "null",
    "an empty list": "[]",
    "an empty text": '""',
    "a text": '"ok"',
    "a number": "5",
    "true": "true",
    "nothing": "",
    "a page": "<html><body>Sign in to the network</body></html>",
    "half of it": '{"results": [{"id": "m-1", "mem',
    "an object for a list": '{"results": []}',
    "a list for an object": '[{"note": "x"}]',
    "a list of numbers": "[5]",
    "no documented key": '{"detail": "x"}',
    "an empty object": "{}",
    "numbers for results": '{"results": [5]}',
    "null for results": '{"results": null}',
}
DOCUMENTED = {
    *((method, wrong) for method in LISTS for wrong in ("an empty list", "a list for an object")),
    *((method, "a list for an object") for method in ("add", "search", "get_all", "get_summary")),
    *((method, "an object for a list") for method in ("add", "search", "get_all", "users")),
    ("reset", "an object for a list"),  # a page without entities
    *((method, wrong)
      for method in ("get_memory_export", "get_summary", "get_project", "project.get")
      for wrong in ("an object for a list", "numbers for results", "null for results")),
}  # fmt: skip
"""What of those a method's documentation has room for."""


@pytest.fixture(params=[MemoryClient, AsyncMemoryClient])
def bare(request, make_client):
    """Return a bare client sync and async."""
    return make_client(request.param)


@pytest.mark.long_but_each(4)
@pytest.mark.parametrize("method", CALLS)
async def test_an_answer_that_the_service_does_not_document_is_its_failure(
    method, bare, service, bench, events, done
):
    """It reaches the host neither as what it is not nor as a None that looks like an answer."""
    tried = [each for each in WRONG if (method, each) not in DOCUMENTED]
    for wrong in tried:
        service.page = WRONG[wrong]
        call = attrgetter(method)(guarded(bare, bench))
        if method in NEUTRAL:
            assert await done(call(**CALLS[method])) == NEUTRAL[method], wrong
        else:
            with pytest.raises(UnexpectedAnswerError) as raised:
                await done(call(**CALLS[method]))
            assert str(raised.value).startswith(f"{method}() was answered with a "), wrong
            assert "\n" not in str(raised.value), wrong
            assert raised.value.__context__ is None, wrong

    told = dict(zip(tried, events(), strict=True))
    status = Status.DEGRADED if method in NEUTRAL else Status.ERROR
    error = "mnemoscope.memory.errors.UnexpectedAnswerError"
    assert {wrong: (each.status, each.error) for wrong, each in told.items()} == dict.fromkeys(
        tried, (status, error)
    )


PENDING = {"event_id": "e-1", "status": "PENDING"}
ADDED = {"id": "m-1", "data": {"memory": "likes tea"}, "event": "ADD"}
POSSIBLE = [
    ("add", PENDING),
    ("add", [{"message": "queued", **PENDING}]),
    ("add", {"message": "stored", "status": "SUCCEEDED", "results": [ADDED], **PENDING}),
    ("add", {"results": [ADDED]}),
    ("add", {"results": [], "relations": []}),
    ("add", [ADDED]),
    ("search", {"results": [RECORD]}),
    ("search", {"results": [], "relations": []}),
    ("search", [RECORD]),
    ("search", {"results": [{"memory": "only the fields asked for"}]}),
    ("get_all", {"count": 0, "next": None, "previous": None, "results": []}),
    ("get_all", [RECORD]),
    ("history", []),
    ("update", RECORD),
    ("update", {"message": "Memory updated successfully!"}),
    ("delete_all", {"message": "Memories deleted successfully!"}),
    ("delete_all", {"message": "queued", "event_id": "e-1"}),
    ("get_webhooks", []),
    ("get_summary", {"summary": "likes tea", "status": "done"}),
    ("get_summary", [{"summary": "likes tea"}]),
    ("get_project", {"custom_instructions": None}),
    ("project.get_members", {"members": []}),
    ("create_webhook", {"id": "w-1", "name": "logger"}),
]


@pytest.mark.parametrize(("method", "answer"), POSSIBLE)
async def test_what_the_service_documents_passes_as_it_is(
    method, answer, bare, service, bench, events, done
):
    """Lists of the first version, pages of the later ones, and writes that it has queued."""
    service.page = json.dumps(answer)

    assert await done(attrgetter(method)(guarded(bare, bench))(**CALLS[method])) == answer
    assert [each.status.is_normal for each in events()] == [True]


async def test_an_entity_may_be_deleted_without_a_word(bare, service, bench, events, done):
    """No content is what the first version of that request answers with."""
    service.status, service.page = 204, ""

    answer = await done(guarded(bare, bench).delete_users(user_id="u-17"))

    assert answer == {"message": "Entity deleted successfully."}
    assert [each.status for each in events()] == [Status.OK]


async def test_outside_a_guarded_call_the_transport_is_as_it_was(bare, service, bench, done):
    """The client that was wrapped stays usable, unguarded, as it is."""
    guarded(bare, bench)
    service.page = "<html>"

    assert "message" in await done(bare.delete_users(user_id="u-17"))

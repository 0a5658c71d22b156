"""All that a hosted client can send is guarded: what it holds in attributes too."""

from __future__ import annotations

import copy
import inspect
from operator import attrgetter
from typing import Any

import pytest
from mem0 import AsyncMemoryClient, MemoryClient
from mem0.client.project import AsyncProject, Project

from mnemoscope.adapters.mem0.adapter import ADAPTER
from mnemoscope.adapters.mem0.hosted_methods import HOSTED_NOT_GUARDED
from mnemoscope.adapters.toolkit.proxy import inner_of
from mnemoscope.memory import StoreUnavailableError
from tests.kit.bench import wrapping
from tests.kit.hosted_service import CALLS, MAIL

guarded = wrapping(ADAPTER)

NOT_GUARDED = {
    **HOSTED_NOT_GUARDED,
    "client": "the transport: requests that are made with it are the caller's own",
    "async_client": "the same",
    "project.config": "settings of this process",
}


def callables(held: Any, prefix: str = "") -> set[str]:
    """Return the paths of what can be called below *held*: methods, and objects that have some."""
    found: set[str] = set()
    for name in {*dir(type(held)), *vars(inner_of(held) or held)}:
        if name.startswith("_"):
            continue
        value, path = getattr(held, name), f"{prefix}{name}"
        if not inspect.isroutine(value) and type(value).__module__ == "builtins":
            continue
        walked = isinstance(value, (Project, AsyncProject))
        found |= callables(value, f"{path}.") if walked else {path}
    return found


@pytest.fixture(params=[MemoryClient, AsyncMemoryClient])
def bare(request, make_client):
    """Return a bare client sync and async."""
    return make_client(request.param)


def test_nothing_that_can_be_called_is_unaccounted_for(bare, bench):
    """A method, or an object with methods, that a later version adds is noticed."""
    below = callables(guarded(bare, bench))

    assert below == callables(bare)
    assert below - NOT_GUARDED.keys() == CALLS.keys()
    assert NOT_GUARDED.keys() - below <= {"client", "async_client"}  # one of the two


@pytest.mark.parametrize("method", CALLS)
async def test_whatever_sends_something_goes_through_the_chokepoint(
    method, bare, service, bench, events, done
):
    """Sync and async: one event, of the client's store."""
    await done(attrgetter(method)(guarded(bare, bench))(**CALLS[method]))

    assert service.requests != []
    assert [(each.store, each.method) for each in events()] == [("mem0", method)]


class TestProject:
    def test_it_is_the_kind_of_object_that_it_was(self, bare, bench):
        """Its class, its attributes, and the same object each time."""
        memory = guarded(bare, bench)

        assert isinstance(memory.project, (Project, AsyncProject))
        assert type(memory.project).__name__ == type(bare.project).__name__
        assert memory.project is memory.project
        assert memory.project.config is bare.project.config
        assert (memory.project.org_id, memory.project.project_id) == ("o-1", "p-1")
        assert repr(memory.project) == f"<{type(bare.project).__name__} guarded by mnemoscope>"

    def test_another_one_can_be_assigned(self, bare, bench):
        """It is the wrapped client's then, and guarded here."""
        memory, old = guarded(bare, bench), bare.project
        other = type(old)(client=old._client, org_id="o-2", project_id="p-2")
        memory.project = other

        assert bare.project is other
        assert memory.project.org_id == "o-2"
        assert inner_of(memory.project) is other

    def test_given_back_it_is_the_clients_own(self, bare, bench):
        """What the wrapped client has is never guarded: it would be twice."""
        memory, own = guarded(bare, bench), bare.project
        memory.project = memory.project

        assert bare.project is own

    def test_what_is_no_project_is_left_as_it_is(self, bare, bench):
        """There is nothing in it to guard."""
        memory = guarded(bare, bench)
        memory.project = None

        assert memory.project is None

    async def test_a_copy_is_guarded_too(self, bare, bench, events, done):
        """Of the client or of the project."""
        memory = guarded(bare, bench)
        await done(copy.copy(memory).project.get_members())
        await done(copy.copy(memory.project).get_members())

        assert [each.method for each in events()] == ["project.get_members"] * 2

    def test_attributes_are_the_wrapped_ones(self, bare, bench):
        """Read and written."""
        memory = guarded(bare, bench)
        memory.project.note = "x"

        assert bare.project.note == "x"


@pytest.mark.parametrize("name", ["add_member", "update_member", "remove_member"])
async def test_a_members_address_is_sent_and_told_to_nobody(
    name, bare, service, bench, events, done
):
    """Without it the call would mean nothing; no event has it."""
    project = guarded(bare, bench).project
    await done(getattr(project, name)(**CALLS[f"project.{name}"]))
    (event,) = events()

    assert "ada" in repr(service.requests)
    assert MAIL not in f"{event!r}{event.content and event.content.value!r}"


async def test_a_webhook_is_sent_where_it_should_go(bare, service, bench, events, done):
    """Its address is the service's to use, and its name is text."""
    url = f"https://hooks.example/{MAIL}"
    memory = guarded(bare, bench)
    await done(memory.create_webhook(url, f"for {MAIL}", "p-1", ["memory:add", "memory_delete"]))
    (event,) = events()
    ((_, _, body),) = service.requests

    assert (body["url"], body["event_types"]) == (url, ["memory:add", "memory_delete"])
    assert MAIL not in body["name"]
    assert MAIL not in f"{event!r}{event.content and event.content.value!r}"


def test_an_open_breaker_holds_for_the_project(make_client, service, bench):
    """The guard is the client's."""
    service.answer = (503, {"detail": "no"})
    memory = guarded(make_client(MemoryClient), bench)
    for _ in range(50):
        with pytest.raises(Exception):  # noqa: B017, PT011 - the client's, then ours
            memory.project.get_members()
    with pytest.raises(StoreUnavailableError):
        memory.project.get_members()

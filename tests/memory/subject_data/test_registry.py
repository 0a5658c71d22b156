"""The subject data providers of a scope: how long it has them, by which name, how they run."""

from __future__ import annotations

import asyncio
import gc

import pytest

from mnemoscope.memory import ConfigurationError, Mnemoscope, ScopeError, load_settings
from mnemoscope.memory.api import DataSubject, Erased, Page, SubjectDataRegistry, SubjectRecord
from mnemoscope.memory.subject_data.registry import keep_clients
from mnemoscope.memory.subject_data.runner import SubjectDataRunner

ADA = DataSubject(customer="c-grace")


class Notes:
    """A store of an application's own: as many notes as it is told, two a page."""

    store = "notes"
    title = "Notes"
    unavailable = None

    def __init__(self, count=0):
        self.notes = [SubjectRecord(kind="item", id=str(number)) for number in range(count)]

    async def page(self, subject, after=None):
        await asyncio.sleep(0)
        place = after or 0
        following = place + 2
        page = tuple(self.notes[place:following])
        return Page(page, following if following < len(self.notes) else None)

    async def erase(self, subject):
        removed, self.notes = len(self.notes), []
        return Erased(removed)

    async def files(self):
        return ()


class TestHowLong:
    def test_a_provider_goes_with_its_guard(self, make_guard):
        """Clients that live for one request leave nothing behind in the scope."""
        registry, guard = SubjectDataRegistry(), make_guard()
        registry.add(Notes(), guard)
        assert list(registry.named()) == ["notes"]

        del guard
        gc.collect()

        assert registry.named() == {}

    def test_it_stays_where_it_is_kept(self, make_guard):
        """A function that returns a scope may forget its clients: the command line asks them."""
        registry = SubjectDataRegistry()
        with keep_clients():
            registry.add(Notes(), make_guard())

        gc.collect()

        assert list(registry.named()) == ["notes"]

    def test_clients_are_kept_no_longer_than_that(self, make_guard):
        """What is wrapped later is of the application's own lifetime again."""
        with keep_clients():
            pass
        registry = SubjectDataRegistry()
        registry.add(Notes(), make_guard())

        gc.collect()

        assert registry.named() == {}

    def test_an_applications_own_stays(self):
        """A store without a guard belongs to the scope."""
        registry = SubjectDataRegistry()
        registry.add(Notes())

        gc.collect()

        assert list(registry.named()) == ["notes"]


def test_the_second_client_of_a_store_has_a_number(make_guard):
    """So that a report can name it."""
    registry, guards = SubjectDataRegistry(), [make_guard(), make_guard()]
    for guard in guards:
        registry.add(Notes(), guard)
    registry.add(Notes())

    assert list(registry.named()) == ["notes", "notes#2", "notes#3"]


def test_all_pages_are_read():
    """One after the other, from code that is not asynchronous."""
    registry = SubjectDataRegistry()
    registry.add(Notes(5))

    with SubjectDataRunner() as runner:
        (store,) = runner.stores(registry, ADA)
        before = [each.id for each in store.records()]
        removed = store.erase().removed
        after = list(store.records())

    assert (before, removed, after) == (["0", "1", "2", "3", "4"], 5, [])


@pytest.mark.parametrize("customer", ["", " ", "*", " * "])
def test_nobody_and_everybody_are_no_subject(customer):
    """Stores take a star for any customer, and would forget all of them."""
    with pytest.raises(ScopeError):
        DataSubject(customer=customer)


def test_a_subject_is_not_shown():
    """Neither ids nor contents may reach a log by way of a repr."""
    subject = DataSubject(
        customer="grace@example.com", runs={"t-grace"}, memory_ids={"mem0": {"m-grace"}}
    )
    record = SubjectRecord(kind="memory", id="m-grace", content="lives in Ada")

    assert "grace" not in f"{subject!r} {record!r}".casefold()


def test_a_disabled_scope_holds_nothing_and_cannot_be_erased_from():
    """It wraps nothing, so it knows no stores: that is said, and is no empty answer."""
    scope = Mnemoscope(load_settings(disabled=True))

    assert scope.subject_data.named() == {}
    with pytest.raises(ConfigurationError, match="disabled"):
        scope.customer_data("c-grace")

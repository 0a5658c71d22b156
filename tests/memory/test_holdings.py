"""What stores hold: how long a scope knows it, by which name, and how it is asked for."""

from __future__ import annotations

import asyncio
import gc

import pytest

from mnemoscope.memory.asking import Asking
from mnemoscope.memory.errors import ConfigurationError, ScopeError
from mnemoscope.memory.front_door import Mnemoscope
from mnemoscope.memory.holdings import Forgotten, Held, Holdings, Page, Person, keeping
from mnemoscope.memory.settings import load_settings

ADA = Person(customer="c-ada")


class Notes:
    """A store of an application's own: as many notes as it is told, two a page."""

    store = "notes"
    unasked = None

    def __init__(self, count=0):
        self.notes = [Held(kind="item", id=str(number)) for number in range(count)]

    async def page(self, person, after=None):
        await asyncio.sleep(0)
        place = after or 0
        following = place + 2
        page = tuple(self.notes[place:following])
        return Page(page, following if following < len(self.notes) else None)

    async def forget(self, person):
        removed, self.notes = len(self.notes), []
        return Forgotten(removed)

    async def files(self):
        return ()


class TestHowLong:
    def test_a_holding_goes_with_its_guard(self, make_guard):
        """Clients that live for one request leave nothing behind in the scope."""
        holdings, guard = Holdings(), make_guard()
        holdings.add(Notes(), guard)
        assert list(holdings.named()) == ["notes"]

        del guard
        gc.collect()

        assert holdings.named() == {}

    def test_it_stays_where_it_is_kept(self, make_guard):
        """A function that returns a scope may forget its clients: the command line asks them."""
        holdings = Holdings()
        with keeping():
            holdings.add(Notes(), make_guard())

        gc.collect()

        assert list(holdings.named()) == ["notes"]

    def test_keeping_ends_with_its_body(self, make_guard):
        """What is wrapped later is of the application's own lifetime again."""
        with keeping():
            pass
        holdings = Holdings()
        holdings.add(Notes(), make_guard())

        gc.collect()

        assert holdings.named() == {}

    def test_an_applications_own_stays(self):
        """A store without a guard belongs to the scope."""
        holdings = Holdings()
        holdings.add(Notes())

        gc.collect()

        assert list(holdings.named()) == ["notes"]


def test_the_second_client_of_a_store_has_a_number(make_guard):
    """So that a report can name it."""
    holdings, guards = Holdings(), [make_guard(), make_guard()]
    for guard in guards:
        holdings.add(Notes(), guard)
    holdings.add(Notes())

    assert list(holdings.named()) == ["notes", "notes#2", "notes#3"]


def test_all_pages_are_read():
    """One after the other, from code that is not asynchronous."""
    holdings = Holdings()
    holdings.add(Notes(5))

    with Asking() as asking:
        (store,) = asking.each(holdings, ADA)
        before = [each.id for each in store.held()]
        removed = store.forget().removed
        after = list(store.held())

    assert (before, removed, after) == (["0", "1", "2", "3", "4"], 5, [])


@pytest.mark.parametrize("customer", ["", " ", "*", " * "])
def test_nobody_and_everybody_are_no_person(customer):
    """Stores take a star for any customer, and would forget all of them."""
    with pytest.raises(ScopeError):
        Person(customer=customer)


def test_a_person_is_not_shown():
    """Neither ids nor contents may reach a log by way of a repr."""
    person = Person(customer="ada@example.com", runs={"t-ada"}, memory_ids={"mem0": {"m-ada"}})
    held = Held(kind="memory", id="m-ada", content="lives in Ada")

    assert "ada" not in f"{person!r} {held!r}".casefold()


def test_a_disabled_scope_holds_nothing_and_cannot_be_erased_from():
    """It wraps nothing, so it knows no stores: that is said, and is no empty answer."""
    scope = Mnemoscope(load_settings(disabled=True))

    assert scope.holdings.named() == {}
    with pytest.raises(ConfigurationError, match="disabled"):
        scope.places("c-ada")

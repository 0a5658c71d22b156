"""Adapters of a store that two customers share: one that keeps them apart, and leaks of it."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from mnemoscope.memory.api import (
    Deletes,
    Erased,
    Page,
    Scope,
    ScopeError,
    StoreAdapter,
    StoreBinding,
    SubjectRecord,
    Summary,
    forget,
    method_table,
    recall,
    remember,
)
from mnemoscope.memory.guard.steps.tenancy import Tenancy
from mnemoscope.memory.testing import AdapterCase, check_adapter


class Cards:
    """The client of a store: numbered cards of customers, all in one box."""

    def __init__(self):
        self.cards = {}

    def write(self, text, owner=None):
        self.cards[len(self.cards)] = (owner, text)

    def write_all(self, cards):
        for each in cards:
            self.write(**each)

    def read(self, number):
        owner, text = self.cards.get(number, (None, None))
        return {"number": number, "owner": owner, "text": text}

    def find(self, word, owner=None):
        return [
            {"number": number, "owner": whose, "text": text}
            for number, (whose, text) in self.cards.items()
            if word in (text or "") and owner in {None, whose}
        ]

    def count(self):
        return len(self.cards)

    def drop(self, number, owner=None):
        if owner in {None, self.cards.get(number, (None,))[0]}:
            self.cards.pop(number, None)


class CardsOfPeople:
    """What is held about a person."""

    store = "cards"
    title = "Cards about you"
    unavailable = None

    def __init__(self, client):
        self._client = client

    async def page(self, person, after=None):
        found = self._client.find("", owner=person.customer)
        return Page(
            tuple(
                SubjectRecord(kind="memory", id=str(each["number"]), content=each["text"])
                for each in found
            )
        )

    async def erase(self, person):
        found = self._client.find("", owner=person.customer)
        for each in found:
            self._client.drop(each["number"])
        return Erased(len(found))

    async def files(self):
        return ()


def redact(arguments, redaction):
    """Replace what is said, and keep whose it is."""
    given = dict(arguments)
    for name in given.keys() & {"text", "word"}:
        given[name] = redaction.text(given[name])
    if "cards" in given:
        given["cards"] = [redact(each, redaction) for each in given["cards"]]
    return given


def named(given):
    """Return whom the arguments name."""
    owners = {given.get("owner"), *(each.get("owner") for each in given.get("cards", ()))} - {None}
    return Scope(customer=owners.pop() if len(owners) == 1 else None, tenant=given.get("tenant"))


def confine(given, customer):
    """Ask for the customer's alone; refuse what is written for another."""
    if any(each.get("owner") != customer for each in given.get("cards", ())):
        raise ScopeError("a card is somebody else's")
    return given if "cards" in given else {**given, "owner": customer}


def as_given(given, _customer):
    return given


def own(card, customer):
    """Return the card of a customer, or an empty one."""
    return card if card["owner"] == customer else {**card, "owner": None, "text": None}


OPTIONS = {"redact": redact, "scope": named, "needs_owner": True}
METHODS = method_table(
    remember("write", "create_memory", neutral=lambda _: None, confine=confine, **OPTIONS),
    remember("write_all", "create_memory", neutral=lambda _: None, confine=confine, **OPTIONS),
    recall(
        "read",
        neutral=lambda _: {},
        only=own,
        summary=lambda card, _: Summary(hits=int(card["text"] is not None)),
        **OPTIONS,
    ),
    recall(
        "find",
        neutral=lambda _: [],
        confine=confine,
        summary=lambda found, _: Summary(hits=len(found)),
        **OPTIONS,
    ),
    recall("count", neutral=lambda _: 0, redact=redact),
    forget("drop", deletes=Deletes.IDS, confine=confine, **OPTIONS),
)
CALLS = {
    "write": lambda text: {"text": text, "owner": "c-42"},
    "write_all": lambda text: {"cards": [{"text": text, "owner": "c-42"}]},
    "read": lambda text: {"number": 0},
    "find": lambda text: {"word": text, "owner": "c-42"},
    "count": lambda text: {},
    "drop": lambda text: {"number": 0, "owner": "c-42"},
}


class Patterns(Cards):
    """A client that takes an owner's id for a pattern."""

    def find(self, word, owner=None):
        found = super().find(word)
        return [each for each in found if re.fullmatch(owner or "", each["owner"] or "")]


def a_case(name=None, make_client=Cards, calls=CALLS, people=CardsOfPeople, **changed):
    """Return the case of the cards, with one row changed."""
    rows = METHODS if name is None else {**METHODS, name: replace(METHODS[name], **changed)}

    def bind(client, services, /):
        return StoreBinding(methods=rows, subject_data=people(client))

    return AdapterCase(
        adapter=StoreAdapter(store="cards", client_types=(Cards,), bind=bind),
        make_client=make_client,
        calls=calls,
        customer="c-42",
    )


def test_customers_may_be_kept_apart():
    """By narrowing what is asked, and what is answered; what cannot be is refused by the guard."""
    check_adapter(a_case())


def refuse(_given, _customer):
    raise ScopeError("no")


LEAKS = {
    "find hands out another customer's memories, naming nobody": ("find", {"confine": as_given}),
    "find hands out another customer's memories, inside of another call": (
        "find",
        {"confine": as_given},
    ),
    "read hands out another customer's memories, naming the other": (
        "read",
        {"only": as_given},
    ),
    "read hands out another customer's memories, naming itself, by the other's ids": (
        "read",
        {"only": None, "unconfined": "a number is known to its owner alone"},
    ),
    "count answers otherwise where another customer has memories": (
        "count",
        {"unconfined": "a number tells nothing"},
    ),
    "drop changes another customer's memories, naming nobody": ("drop", {"confine": as_given}),
    "find is refused to the customer whom it names": ("find", {"confine": refuse}),
    "no read finds what its own customer wrote": ("find", {"confine": refuse}),
    "write_all changes another customer's memories, naming both in one batch": (
        "write_all",
        {"confine": as_given},
    ),
}


@pytest.mark.long_but_each(4)
@pytest.mark.parametrize("leak", LEAKS)
def test_a_leak_is_named(leak):
    """In one line: the method, what it does, and the way to it."""
    name, changed = LEAKS[leak]
    with pytest.raises(AssertionError) as raised:
        check_adapter(a_case(name, **changed))

    assert leak in str(raised.value)


ERASES = {
    "everybody": lambda asked, owner: True,
    "who begins so": lambda asked, owner: owner.startswith(asked),
    "in any case": lambda asked, owner: owner.casefold() == asked.casefold(),
    "by SQL's pattern": lambda asked, owner: re.fullmatch(
        re.escape(asked).replace("%", ".*").replace("_", "."), owner
    ),
}


@pytest.mark.parametrize("whom", ERASES)
def test_an_erasure_that_takes_another_customers_memories_is_named(whom):
    """Whichever way the two ids are taken for one."""

    class Careless(CardsOfPeople):
        async def erase(self, person):
            cards = self._client.cards
            fits = [each for each in cards if ERASES[whom](person.customer, cards[each][0])]
            for each in fits:
                del cards[each]
            return Erased(len(fits))

    with pytest.raises(AssertionError, match="an erasure of somebody else takes this customer's"):
        check_adapter(a_case(people=Careless))


def test_an_id_that_a_store_takes_for_more_than_one_is_named():
    """With the id."""
    with pytest.raises(AssertionError, match=r"find hands out .* to the id '\.\*'"):
        check_adapter(a_case(make_client=Patterns))


KEEPS = {
    "every answer": lambda answer, cards, seen: True,
    "what is found": lambda answer, cards, seen: bool(answer),
    "until there is another card": lambda answer, cards, seen: seen == cards,
}


@pytest.mark.parametrize("keeps", KEEPS)
def test_a_store_that_keeps_answers_whoever_asks_is_named(keeps):
    """Also one that keeps that there is nothing: it is not asked before anything is written."""

    class Keeping(Cards):
        def __init__(self):
            super().__init__()
            self.kept = {}

        def find(self, word, owner=None):
            answer, seen = self.kept.get(word, (None, None))
            if answer is None or not KEEPS[keeps](answer, len(self.cards), seen):
                answer = super().find(word, owner)
                self.kept[word] = answer, len(self.cards)
            return answer

    with pytest.raises(AssertionError, match="find hands out another customer's memories"):
        check_adapter(a_case(make_client=Keeping, people=KnowsAll))


class KnowsAll(CardsOfPeople):
    """What is held about a person, past what the client keeps."""

    def __init__(self, client):
        super().__init__(client)
        self._client = Cards()
        self._client.cards = client.cards


def test_a_guard_that_lets_another_tenant_in_is_named(monkeypatch):
    """The rule looks at what is served, not at what the guard is said to do."""
    calls = {**CALLS, "find": lambda text: {"word": text, "owner": "c-42", "tenant": "acme"}}
    monkeypatch.setattr(Cards, "find", lambda self, word, owner=None, tenant=None: [])
    monkeypatch.setattr(Tenancy, "_confine", Tenancy.name_owner)
    with pytest.raises(AssertionError, match="find names a tenant, and is served in the context"):
        check_adapter(a_case(calls=calls))

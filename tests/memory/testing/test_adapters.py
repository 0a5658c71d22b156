"""The contract of adapters: an adapter that keeps it, and one breach of it at a time."""

from __future__ import annotations

import inspect
from dataclasses import replace
from functools import wraps

import pytest

from mnemoscope.memory.api import (
    CallerMistake,
    Deletes,
    Erased,
    Method,
    OperationClass,
    Page,
    Scope,
    StoreAdapter,
    StoreBinding,
    SubjectRecord,
    Summary,
)
from mnemoscope.memory.testing import AdapterCase, check_adapter


class Notes:
    """The client of a store: notes of people, in memory."""

    def __init__(self):
        self.notes = []

    def write(self, text, /, owner):
        self.notes.append((owner, text))

    def find(self, word, owner):
        return [text for whose, text in self.notes if whose == owner and word in text]

    def drop(self, owner):
        self.notes[:] = [each for each in self.notes if each[0] != owner]

    def close(self):
        return


class AsyncNotes(Notes):
    """The same, asynchronously."""

    async def write(self, text, /, owner):
        super().write(text, owner)

    async def find(self, word, owner):
        return super().find(word, owner)

    async def drop(self, owner):
        super().drop(owner)


class NotesOfPeople:
    """What is held about a person."""

    store = "notes"
    title = "Notes about you"
    unavailable = None

    def __init__(self, client):
        self._client = client

    async def page(self, person, after=None):
        found = [text for owner, text in self._client.notes if owner == person.customer]
        return Page(
            tuple(SubjectRecord(kind="memory", id=str(n), content=t) for n, t in enumerate(found))
        )

    async def erase(self, person):
        before = len(self._client.notes)
        Notes.drop(self._client, person.customer)
        return Erased(before - len(self._client.notes))

    async def files(self):
        return ()


def redact(arguments, redaction):
    texts = {
        name: redaction.text(arguments[name]) for name in ("text", "word") if name in arguments
    }
    return {**arguments, **texts}


def described(name, operation, op_class, **more):
    """Return a method of the notes: redacted, and of whom it says."""
    return Method(
        name=name,
        operation=operation,
        op_class=op_class,
        redact=redact,
        scope=lambda given: Scope(customer=given.get("owner")),
        content=lambda given: {name: given[name] for name in given if name != "owner"},
        needs_owner=True,
        **more,
    )


METHODS = {
    "write": described("write", "create_memory", OperationClass.REMEMBER, neutral=lambda _: None),
    "find": described(
        "find",
        "search_memory",
        OperationClass.RECALL,
        neutral=lambda _: [],
        summary=lambda found, _: Summary(hits=len(found)),
    ),
    "drop": described("drop", "delete_memory", OperationClass.FORGET, deletes=Deletes.SCOPE),
}
CASE = AdapterCase(
    adapter=StoreAdapter(
        store="notes", client_types=(Notes,), bind=None, not_guarded={"close": "ends the client"}
    ),
    make_client=Notes,
    calls={
        "write": lambda text: {"text": text, "owner": "c-42"},
        "find": lambda text: {"word": text, "owner": "c-42"},
        "drop": lambda text: {"owner": "c-42"},
    },
    customer="c-42",
)


def a_case(*, methods=(), provider=NotesOfPeople, mistakes=(), adapter=(), **changed):
    """Return the case of the notes, with what is changed in the adapter, methods or binding."""
    rows = {**METHODS, **dict(methods)}

    def bind(client, services, /):
        return StoreBinding(
            methods={name: row for name, row in rows.items() if row is not None},
            caller_mistakes=mistakes,
            subject_data=provider and provider(client),
        )

    return replace(CASE, adapter=replace(CASE.adapter, bind=bind, **dict(adapter)), **changed)


def changed(name, **fields):
    """Return the methods' table with one method changed."""
    return {name: replace(METHODS[name], **fields)}


@pytest.mark.parametrize("make_client", [Notes, AsyncNotes])
def test_an_adapter_may_keep_it(make_client):
    """With clients whose methods are synchronous, and with asynchronous ones."""
    check_adapter(a_case(make_client=make_client))


class Another(Notes):
    """A newer client, with a method that the adapter does not know."""

    def merge(self, other):
        return


def logged(method):
    """Return *method* as some decorators do: what does not bind is found out inside of them."""

    @wraps(method)
    def called(*args, **kwargs):
        return method(*args, **kwargs)

    return called


class Decorated(Notes):
    """A client of which the adapter does not say so."""

    find = logged(Notes.find)


class Forgetful(NotesOfPeople):
    """Says that it forgets."""

    async def erase(self, person):
        return Erased(1)


class Raw(NotesOfPeople):
    """Lists everybody's."""

    async def page(self, person, after=None):
        return Page((SubjectRecord(kind="memory", id="1", content=""),))


def as_given(arguments, _redaction):
    return arguments


def in_place(arguments, redaction):
    arguments["text"]["said"] = redaction.text(arguments["text"]["said"])
    return arguments


BREACHES = {
    "a short name": {"adapter": {"store": "notes of c-42"}},
    "expected one of dict, Another": {"adapter": {"client_types": (dict, Another)}},
    "client_types is empty": {"adapter": {"client_types": ()}},
    "merge is neither in": {"make_client": Another},
    "close is in not_guarded without a reason": {"adapter": {"not_guarded": {"close": " "}}},
    "split is in not_guarded, and no client": {
        "adapter": {"not_guarded": {"close": "ends the client", "split": "is gone"}}
    },
    "merge is in the methods table, and the client": {"methods": {"merge": METHODS["drop"]}},
    "drop is guarded, and the case has no call": {
        "calls": {name: CASE.calls[name] for name in ("write", "find")}
    },
    "'ask' is not one of search_memory": {"methods": changed("find", operation="ask")},
    "search_memory is recall, not remember": {
        "methods": changed("find", op_class=OperationClass.REMEMBER)
    },
    "find fails open: it needs a neutral value": {"methods": changed("find", neutral=None)},
    "drop fails closed: its neutral value": {"methods": changed("drop", neutral=lambda _: None)},
    "neutral value None, where the store answers": {
        "methods": changed("find", neutral=lambda _: None)
    },
    "given by name reaches the store": {"methods": changed("write", redact=as_given)},
    "given by position reaches the store": {"methods": changed("find", redact=as_given)},
    "is in its event": {
        "methods": changed("find", redact=as_given, content=lambda given: given["word"])
    },
    "write changes the caller's arguments": {
        "methods": changed("write", redact=in_place),
        "calls": {**CASE.calls, "write": lambda text: {"text": {"said": text}, "owner": "c-42"}},
    },
    "no method finds what was remembered": {
        "methods": changed("find", summary=lambda found, _: Summary())
    },
    "find finds something in an empty store": {
        "methods": changed("find", summary=lambda found, _: Summary(hits=1))
    },
    "find raises ConnectionError: is it a row of caller_mistakes?": {
        "mistakes": [CallerMistake(what="", error=Exception, where=("mnemoscope",), how="beneath")]
    },
    "find is told as ['degraded']: expected one event, error": {"make_client": Decorated},
    "binding lists nothing about them": {"provider": None},
    "what was erased is still listed": {"provider": Forgetful},
    "what was erased is erased once more": {"provider": Forgetful},
    "something is listed about somebody else": {"provider": Raw},
}


@pytest.mark.long_but_each(4)
@pytest.mark.parametrize("breach", BREACHES)
def test_a_breach_is_named(breach):
    """In one line, which says what was expected."""
    with pytest.raises(AssertionError) as raised:
        check_adapter(a_case(**BREACHES[breach]))

    assert breach in str(raised.value)
    assert str(raised.value).startswith("the adapter of 'notes")


def test_all_breaches_are_named_at_once():
    """Whoever writes an adapter sees at once what is left to do."""
    case = a_case(methods=changed("find", neutral=None), adapter={"not_guarded": {}})
    with pytest.raises(AssertionError) as raised:
        check_adapter(case)

    assert "close is neither in" in str(raised.value)
    assert "find fails open" in str(raised.value)


def test_a_method_without_a_neutral_value_may_say_why():
    """Then its caller is given the store's error."""
    adapter = {"raises": {"find": "an empty answer would be taken for the truth"}}

    check_adapter(a_case(methods=changed("find", neutral=None), adapter=adapter))


def test_an_owner_is_asked_for_where_one_is_needed():
    """Not where the table says that none is."""
    methods = {name: replace(row, needs_owner=False) for name, row in METHODS.items()}

    check_adapter(a_case(methods=methods))


def test_the_twins_are_of_both_kinds():
    """Else the contract would have been held for one kind only."""
    assert inspect.iscoroutinefunction(AsyncNotes.find)
    assert not inspect.iscoroutinefunction(Notes.find)

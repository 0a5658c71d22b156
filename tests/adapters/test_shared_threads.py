"""Threads that two customers wrote in: neither is erased, or told, with the other unasked."""

from __future__ import annotations

import json
from zipfile import ZipFile

import pytest
from langgraph.checkpoint.base import empty_checkpoint
from langgraph.graph import START, StateGraph

from mnemoscope.adapters.customer_requests.erase import erase, leave_receipt
from mnemoscope.adapters.customer_requests.export import export_from_scope, new_request
from mnemoscope.adapters.customer_requests.requested_person import person_in_scope
from mnemoscope.adapters.toolkit.sync_async import loop_of
from mnemoscope.audit.store.person_lookup import CustomerQuery
from mnemoscope.memory import Mnemoscope, context, load_settings
from tests.kit.customer_records import run_for
from tests.kit.every_store import async_sqlite_saver, memory_saver, postgres_saver, sqlite_saver
from tests.kit.patience import GIVE_UP_S

ADA, BOB = "customer-ada", "customer-bob"
WORDS = {ADA: "nougat", BOB: "marzipan"}
SHARED, OWN = f"t-{BOB}", "t-own"  # in Bob's name the trail calls it otherwise
GONE = "threads in which another customer has written, too, are gone for both"


class Desk:
    """An application with one saver, in whose threads customers write."""

    def __init__(self, saver, folder):
        self.bare, self.folder = saver, folder
        self.scope = Mnemoscope(
            load_settings(
                sinks="audit",
                audit_url=f"sqlite:///{folder}/audit.db",
                audit_spool=folder / "spool",
                audit_pseudonym_key="00112233445566778899aabbccddeeff",
                pii_model="none",
            )
        )
        graph = StateGraph(dict)
        graph.add_node("say", lambda state: state)
        graph.add_edge(START, "say")
        self.graph = graph.compile(checkpointer=self.scope.checkpointer(saver))

    def say(self, customer, thread):
        """Write in a thread, so that the trail knows whose it is."""
        config, said = {"configurable": {"thread_id": thread}}, {"said": WORDS.get(customer)}
        with context(customer=customer):
            if loop_of(self.bare) is None:
                self.graph.invoke(said, config)
            else:
                run_for(self.bare, self.graph.ainvoke(said, config))

    def say_aside(self, customer, thread):
        """Write in it past the guard: the saver's metadata alone knows whose it is."""
        config = {"configurable": {"thread_id": thread, "checkpoint_ns": ""}}
        given = config, empty_checkpoint(), {"user_id": customer}, {}
        if loop_of(self.bare) is None:
            self.bare.put(*given)
        else:
            run_for(self.bare, self.bare.aput(*given))

    def threads(self):
        """Return the threads that are there."""

        async def listed():
            return [each async for each in self.bare.alist(None)]

        is_sync = loop_of(self.bare) is None
        found = self.bare.list(None) if is_sync else run_for(self.bare, listed())
        return {each.config["configurable"]["thread_id"] for each in found}

    def person(self, customer):
        return person_in_scope(self.scope, CustomerQuery(customer=customer))

    def erase(self, customer, **given):
        erased = erase(self.scope, self.person(customer), **given)
        (saver,) = erased.stores
        return erased, saver

    def export(self, customer, **given):
        """Return the report on the saver, and the content of each thread by its id."""
        path = self.folder / "export.zip"
        request = new_request()
        bundle = export_from_scope(
            self.scope, self.person(customer), request=request, path=path, **given
        )
        with ZipFile(path) as archive:
            lines = archive.read("memories.jsonl").splitlines()
            self.page = archive.read("README.html").decode()
        records = [json.loads(each) for each in lines]
        (saver,) = bundle.stores
        return saver, {each["id"]: each["content"] for each in records}


@pytest.fixture(
    params=[
        memory_saver,
        sqlite_saver,
        async_sqlite_saver,
        pytest.param(postgres_saver, marks=pytest.mark.xdist_group("postgres")),
    ],
    ids=lambda each: each.__name__,
)
def desk(request, tmp_path, pool):
    with request.param(tmp_path, pool) as provider:
        made = Desk(provider._client, tmp_path)
        yield made
        made.scope.close()


@pytest.fixture(params=["by the trail", "by the saver"])
def shared(request, desk):
    """Return a desk where Ada has a thread of her own, and one that Bob has written in, too."""
    desk.say(ADA, OWN)
    desk.say(ADA, SHARED)
    (desk.say if request.param == "by the trail" else desk.say_aside)(BOB, SHARED)
    return desk


def test_it_is_kept_and_said_until_it_is_asked_for(shared):
    """Ada's own goes; what is Bob's as well stays, is named, and goes for both when told to."""
    for _ in range(2):
        erased, saver = shared.erase(ADA)
        assert (erased.complete, saver.status, saver.retained) == (False, "partial", 1)
        assert saver.messages[0].startswith(f"{SHARED} is shared with another customer, and was")
        assert shared.threads() == {SHARED}
    assert leave_receipt(shared.scope, erased, None, person=shared.person(ADA)).path is None

    erased, saver = shared.erase(ADA, including_shared=True)

    assert (erased.complete, saver.removed, saver.retained) == (True, 1, 0)
    assert saver.messages[0] == f"1 {GONE}"
    assert shared.threads() == set()


def test_its_content_is_told_to_neither(shared):
    """Ada is told of it, without Bob's words, and that this is not all; with them if asked for."""
    saver, contents = shared.export(ADA)

    assert (saver.status, saver.n_shared, contents[SHARED]) == ("partial", 1, None)
    assert contents[OWN]
    assert "somebody else&#x27;s, too" in shared.page or "somebody else's, too" in shared.page
    saver, contents = shared.export(ADA, including_shared=True)
    assert (saver.status, saver.n_shared) == ("complete", 0)
    assert contents[SHARED] is not None


def test_a_receipt_says_what_was_shared(shared):
    """The customer's own file has it."""
    person = shared.person(ADA)
    erased, _saver = shared.erase(ADA, including_shared=True)
    left = leave_receipt(shared.scope, erased, shared.folder / "receipt.zip", person=person)

    with ZipFile(left.path) as archive:
        said = " ".join(archive.read("RECEIPT.txt").decode().split())
    assert GONE in said
    assert BOB not in said


def test_what_redaction_left_of_an_id_is_nobody_else(desk):
    """The metadata of what a guard wrote has a tag where the customer's id was."""
    desk.say(ADA, OWN)
    desk.say_aside("<SUBJECT_ID_0a1b2c>", OWN)

    erased, _saver = desk.erase(ADA)
    assert (erased.complete, desk.threads()) == (True, set())


@pytest.mark.parametrize("thread", [42, "42"])
def test_a_thread_with_a_number_for_an_id(desk, thread):
    """The trail knows it by its digits, and it is found, shared and erased as any other."""
    if "Postgres" in type(desk.bare).__name__ and isinstance(thread, int):
        pytest.skip("LangGraph's own takes text alone")
    desk.say(7, thread)
    desk.say(8, thread)
    desk.scope.flush(GIVE_UP_S)
    assert {row.run for row in desk.scope.audit.history("7") if row.memories} == {"42"}
    _erased, saver = desk.erase("7")
    assert saver.messages[0].startswith("42 is shared with another customer")

    erased, saver = desk.erase("7", including_shared=True)

    assert (erased.complete, saver.removed, desk.threads()) == (True, 1, set())


def test_what_the_other_has_left_is_shared_no_more(desk):
    """Once Bob is erased with it, and of threads where nobody else wrote, nothing is asked."""
    desk.say(ADA, SHARED)
    desk.say(BOB, SHARED)
    desk.erase(BOB, including_shared=True)
    desk.say(ADA, SHARED)
    with context():
        desk.say(None, SHARED)  # in nobody's name

    erased, _saver = desk.erase(ADA)

    assert erased.complete
    assert desk.threads() == set()


def test_nothing_of_it_is_left_in_the_history_of_the_other(desk):
    """What Bob is told of what was remembered for him has none of Ada's words once she is gone."""
    desk.say(ADA, SHARED)
    desk.say(BOB, SHARED)
    desk.say(ADA, OWN)
    desk.scope.flush(GIVE_UP_S)
    assert WORDS[ADA] in told_of(desk, ADA)  # so that what follows can fail

    desk.erase(ADA, including_shared=True)

    left = told_of(desk, BOB)
    assert WORDS[ADA] not in left
    assert ADA not in left


def told_of(desk, customer):
    """Return all that an export tells of a customer, every file of it, and what the trail does."""
    desk.export(customer, including_shared=True)
    with ZipFile(desk.folder / "export.zip") as archive:
        files = [archive.read(name).decode(errors="replace") for name in archive.namelist()]
    return "\n".join([*files, *map(repr, desk.scope.audit.history(customer))])

"""
Answers about a person against an independent sweep of all stores and the log.

Over random tenants, ids, spellings, releases and stores, of which one may be away: an export is
complete, and an erasure says "forgotten", only if the sweep finds nothing else; nothing of anybody
else's is ever in the one, or gone with the other.
"""

from __future__ import annotations

import json
import zipfile
from collections import defaultdict
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple
from unicodedata import normalize

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from mnemoscope.adapters.customer_requests.erase import erase
from mnemoscope.adapters.customer_requests.export import export_from_scope, new_request
from mnemoscope.adapters.customer_requests.requested_person import person_in_scope
from mnemoscope.audit import (
    AmbiguousSubjectError,
    AuditError,
    AuditLog,
    OtherSpellings,
    UnknownSubjectError,
)
from mnemoscope.audit.bundle.notice import ART_15, CONTROLLER, Notice
from mnemoscope.audit.store.person_lookup import CustomerQuery
from mnemoscope.memory import Mnemoscope, load_settings
from mnemoscope.memory.api import (
    Erased,
    Event,
    OperationClass,
    Page,
    Redacted,
    Status,
    Subject,
    SubjectRecord,
    TraceRef,
)
from mnemoscope.telemetry.event.spelling import folded
from mnemoscope.telemetry.event.subject import SubjectKeys
from tests.kit.lengths import examples

SECRET = bytes(range(32))
KEYS = SubjectKeys(SECRET)
STATED = Notice(dict.fromkeys(CONTROLLER, "stated"), dict.fromkeys(ART_15, "stated"))
TENANTS = ("", "acme", "globex")
IDS = ("c-42", "zoë")
USUAL = (str, str, str, str.upper, lambda text: normalize("NFD", text))
ODD = (*USUAL, lambda text: f" {text}", lambda text: text.replace("c", "Ｃ").replace("z", "Ｚ"))  # noqa: RUF001
STORES = ("notes", "files")
GONE = "gone"
"""A store that the log names and no scope has."""


class Written(NamedTuple):
    """A write of a customer's that the log has, and that a store has too if it is `kept`."""

    tenant: str
    customer: str
    store: str = "notes"
    kept: bool = True
    is_old: bool = False


class Answerer:
    """
    A store of notes that knows no tenants.

    Args:
        name: Its name.
        is_away: It answers nobody.
    """

    title = "Notes"
    unavailable = None

    def __init__(self, name, is_away):
        self.store = name
        self.is_away = is_away
        self.notes = defaultdict(list)

    async def page(self, subject, _after=None):
        if self.is_away:
            raise ConnectionError
        found = self.notes[subject.customer]
        return Page(tuple(SubjectRecord(kind="item", id=each, content=each) for each in found))

    async def erase(self, subject):
        return Erased(len(self.notes.pop(subject.customer, ())))

    async def files(self):
        return ()


class World(NamedTuple):
    """
    What there is.

    Attributes:
        writes: By what each of them says.
        beside: Notes that were stored past mnemoscope: store and id, by what each says.
        away: The store that does not answer, if one does not.
    """

    writes: dict[str, Written]
    beside: dict[str, tuple[str, str]]
    away: str | None


def ids(spellings):
    return st.builds(
        lambda name, spell: spell(name), st.sampled_from(IDS), st.sampled_from(spellings)
    )


def numbered(name, values, most):
    named = st.lists(values, max_size=most)
    return named.map(lambda found: {f"{name}-{n:03d}-words": x for n, x in enumerate(found)})


seldom = st.sampled_from((False,) * 7 + (True,))
writes = st.builds(
    Written,
    tenant=st.sampled_from(TENANTS),
    customer=ids(ODD),
    store=st.sampled_from((*STORES * 4, GONE)),
    kept=st.booleans(),
    is_old=seldom,
)
worlds = st.builds(
    World,
    numbered("write", writes, 6),
    numbered("beside", st.tuples(st.sampled_from(STORES), ids(USUAL)), 3),
    st.sampled_from((None,) * 6 + STORES),
)


@st.composite
def cases(draw):
    """A world, and a question that mostly is for somebody who is in it."""
    world = draw(worlds)
    known = [(each.tenant, each.customer) for each in world.writes.values()]
    known += [("", customer) for _store, customer in world.beside.values()]
    anybody = st.tuples(st.sampled_from(TENANTS), ids(USUAL))
    tenant, customer = draw(st.sampled_from(known * 3) | anybody if known else anybody)
    return world, CustomerQuery(
        customer=customer,
        tenant=draw(st.sampled_from((None, None, None, tenant, tenant, "acme"))),
        all_tenants=draw(st.booleans()),
        spellings=draw(st.sampled_from(OtherSpellings)),
    )


def log_of(world, url):
    """Write the log: first what an earlier release did, which kept no spellings."""
    numbers = iter(range(1, 100))
    for is_old in (True, False):
        with closing(AuditLog(url, KEYS)) as log:
            log.append(
                [
                    _event(next(numbers), words, each)
                    for words, each in world.writes.items()
                    if each.is_old is is_old
                ]
            )
            if is_old:
                with log.tables.writing() as (connection, head):
                    connection.execute(
                        "UPDATE audit_subject_alias SET folded = NULL, sealed = NULL"
                    )
                    log.tables.note(connection, head, "subject.linked", {"id_type": "email"})


def _event(number, words, write):
    return Event(
        writer_id="00000000000000aa",
        writer_seq=number,
        started_ns=1_700_000_000 * 10**9,
        duration_s=0.01,
        operation="create_memory",
        op_class=OperationClass.REMEMBER,
        store=write.store,
        method="add",
        status=Status.OK,
        trace=TraceRef(1, 2),
        subject=Subject(write.customer, tenant=write.tenant, keys=KEYS),
        tenant=write.tenant or None,
        memory_ids=(words,),
        content=Redacted({"text": words}),
    )


def stores_of(world):
    """Return the stores, with what was written to them."""
    stores = {name: Answerer(name, name == world.away) for name in STORES}
    for words, each in world.writes.items():
        if each.kept and each.store in stores:
            stores[each.store].notes[each.customer].append(words)
    for words, (store, customer) in world.beside.items():
        stores[store].notes[customer].append(words)
    return stores


class Sweep:
    """What a question is about, by looking at all there is."""

    def __init__(self, world, asked):
        self._asked = asked
        mine = {words for words, each in world.writes.items() if self._is(each, each.tenant)}
        named = {words: each for words, each in world.writes.items() if self._is(each, None)}
        logged = {each.customer for each in named.values()}
        here = {named[words].customer for words in mine}
        self.logged = mine
        # Of an id that is another tenant's alone, what no write tells of is not this one's.
        self.beside = {
            words
            for words, (_store, name) in world.beside.items()
            if self._is_spelled(name) and (name in here or name not in logged)
        }
        self.kept = {
            words
            for words in mine
            if world.writes[words].kept and world.writes[words].store != GONE
        } | self.beside
        self.unseen = {words for words in mine if world.writes[words].store == GONE}
        self.strangers = {*world.writes, *world.beside} - self.logged - self.beside

    def _is(self, write, tenant):
        return self._is_spelled(write.customer) and (
            tenant is None or self._asked.tenant in {None, tenant}
        )

    def _is_spelled(self, name):
        if self._asked.spellings is OtherSpellings.LEAVE_OUT:
            return name == self._asked.customer
        return folded(name) == folded(self._asked.customer)


def said_in(path):
    """Return all bytes of the bundle, and the words in its events and in its memories."""
    with zipfile.ZipFile(path) as archive:
        whole = b"".join(map(archive.read, archive.namelist()))
        events, memories = (
            [json.loads(line) for line in archive.read(name).splitlines()]
            for name in ("events.jsonl", "memories.jsonl")
        )
    logged = {each["memories"][0]["memory_id"] for each in events}
    return whole, logged, {each["id"] for each in memories}


def left_of(scope, stores):
    """Return the words that the details of the log, and the stores, still have."""
    details = {each.memories[0].memory_id for each in scope.audit.rows() if each.memories}
    return details, {
        words for each in stores.values() for notes in each.notes.values() for words in notes
    }


def is_right(refusal, world, asked):
    """Return whether nobody, or several, are an answer to the question."""
    exact = [each for each in world.writes.values() if each.customer == asked.customer]
    if isinstance(refusal, UnknownSubjectError):
        here = [each for each in exact if asked.tenant in {None, each.tenant}]
        held = {name for _store, name in world.beside.values()}
        return not here and (bool(exact) or bool(world.away) or asked.customer not in held)
    sweep = Sweep(world, asked)
    return len(sweep.logged) + len(sweep.beside) > 1


def of_two(first, second):
    return World({"write-000-words": first, "write-001-words": second}, {}, None)


ACME = Written("acme", "c-42")
TENANTS_OF_ONE_ID = of_two(ACME, Written("globex", "c-42"))
SPELLINGS_OF_ONE_ID = of_two(ACME, Written("acme", "C-42"))
ODD_ONE_BEFORE = of_two(ACME, Written("acme", "Ｃ-42", is_old=True))  # noqa: RUF001
A_STORE_TOO_FEW = of_two(ACME, Written("acme", "c-42", GONE))


@pytest.mark.long
@settings(max_examples=examples(30))
@example(case=(TENANTS_OF_ONE_ID, CustomerQuery(customer="c-42", tenant="acme")))
@example(case=(TENANTS_OF_ONE_ID, CustomerQuery(customer="c-42", all_tenants=True)))
@example(case=(SPELLINGS_OF_ONE_ID, CustomerQuery(customer="c-42")))
@example(
    case=(SPELLINGS_OF_ONE_ID, CustomerQuery(customer="c-42", spellings=OtherSpellings.INCLUDE))
)
@example(case=(ODD_ONE_BEFORE, CustomerQuery(customer="c-42")))
@example(case=(A_STORE_TOO_FEW, CustomerQuery(customer="c-42")))
@given(case=cases())
def test_an_answer_is_complete_only_if_a_sweep_finds_nothing_else(case):
    """Of any tenants, ids, spellings, releases and stores; nobody known is nobody there."""
    world, asked = case
    with TemporaryDirectory() as folder:
        url, path = f"sqlite:///{folder}/audit.db", Path(folder) / "export.zip"
        log_of(world, url)
        given_ = {"audit_url": url, "audit_pseudonym_key": SECRET.hex(), "pii_model": "none"}
        sweep, stores = Sweep(world, asked), stores_of(world)
        everything = (
            {*world.writes},
            {*world.beside}
            | {words for words, each in world.writes.items() if each.kept and each.store != GONE},
        )
        with closing(Mnemoscope(load_settings(sinks="audit", **given_))) as scope:
            for each in stores.values():
                scope.subject_data.add(each)
            try:
                person = person_in_scope(scope, asked)
            except (UnknownSubjectError, AmbiguousSubjectError) as error:
                refusal = error
            else:
                refusal = None
            if refusal is not None:
                assert is_right(refusal, world, asked)
                return
            bundle = export_from_scope(scope, person, request=new_request(notice=STATED), path=path)
            whole, logged, remembered = said_in(path)

            assert not {words for words in sweep.strangers if words.encode() in whole}
            if bundle.complete:
                assert (logged, remembered) == (sweep.logged, sweep.kept)
                assert not sweep.unseen

            try:
                erasure = erase(scope, person, tenant=asked.tenant)
            except AuditError:
                assert left_of(scope, stores) == everything
                return
            details, notes = left_of(scope, stores)
            assert sweep.strangers & everything[0] <= details
            assert sweep.strangers & everything[1] <= notes
            if erasure.complete:
                assert not (sweep.logged & details) | (sweep.kept & notes) | sweep.unseen

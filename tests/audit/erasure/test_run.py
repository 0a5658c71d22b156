"""Forgetting a person: every step, what proves it, and how it goes on after a crash."""

from __future__ import annotations

import fcntl
import gzip
import json
import lzma
import os
import sqlite3
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from concurrent.futures import wait as wait_for
from contextlib import closing
from dataclasses import dataclass, field
from itertools import count, takewhile
from pathlib import Path
from typing import Any

import pytest

from mnemoscope.audit import AuditError
from mnemoscope.audit.database.errors import KeyMissingError
from mnemoscope.audit.erasure import run
from mnemoscope.audit.erasure.residue_scan import MAX_TEXTS, ResidueTexts, Search, search
from mnemoscope.audit.erasure.run import (
    COMPLETED,
    INCOMPLETE,
    REQUESTED,
    RESUMED,
    ErasureRun,
)
from mnemoscope.audit.log import AuditLog
from mnemoscope.audit.proof.merkle import root_of
from mnemoscope.audit.verification.whole import verify
from mnemoscope.memory.subject_data.records import (
    Erased,
    NotErasedError,
    SealedFiles,
    SubjectRecord,
)
from mnemoscope.telemetry.event.event import OperationClass
from tests.kit.children import exit_code_of_child
from tests.kit.patience import GIVE_UP_S

ADA, TENANT = "ada@example.com", "acme"
TEXT = "her grandmother's marzipan recipe"


@dataclass
class Notes:
    """A store in one file."""

    path: Path
    name: str = "notes"
    title: str = "Notes"
    store: str = "mem0"
    unavailable: str | None = None
    fails: Exception | None = None
    keeps: bool = False
    forgotten: int = 0

    def records(self) -> Iterator[SubjectRecord]:
        if self.fails:
            raise self.fails
        lines = self.path.read_text().splitlines()
        return iter(
            SubjectRecord(kind="memory", id=f"note-{number}", content=line)
            for number, line in enumerate(lines)
        )

    def erase(self) -> Erased:
        self.forgotten += 1
        removed = len(self.path.read_text().splitlines())
        if not self.keeps:
            self.path.write_text("")
        return Erased(removed)

    def files(self) -> tuple[Path, ...]:
        return (self.path,)


@dataclass
class Everywhere:
    """The data of a customer in an application with some notes."""

    notes: list[Notes]
    pseudonyms: int | None = 2
    unsettled: list[str] = field(default_factory=list)
    beside: dict[str, list[Path]] = field(default_factory=dict)
    waiting: dict[str, list[str]] = field(default_factory=dict)
    known: Any = None

    def settle(self) -> list[str]:
        return self.unsettled

    def stores(self, subject):
        self.known = subject
        return self.notes

    def erase_pseudonyms(self):
        """Erase them: they are there once."""
        erased, self.pseudonyms = self.pseudonyms, self.pseudonyms and 0
        return erased

    def files(self):
        return self.beside

    def sealed(self):
        return self.waiting


@pytest.fixture
def remembered(log, event_factory):
    """Return a log that knows Ada and Bob: writes, a thread, reads."""
    writes = {"op_class": OperationClass.REMEMBER, "operation": "create_memory"}
    saves = {"op_class": OperationClass.CHECKPOINT}
    for customer, thread in ((ADA, "t-1"), ("bob@example.com", "t-2")):
        log.append(
            [
                event_factory(customer=customer, memory_ids=(f"m-{thread}",), **writes),
                event_factory(customer=customer, memory_ids=(f"m-{thread}",)),
                event_factory(customer=customer, run=thread, memory_ids=(f"c-{thread}",), **saves),
            ]
        )
    return log


@pytest.fixture
def notes(tmp_path):
    """Return a store that knows something of Ada."""
    path = tmp_path / "notes.txt"
    path.write_text(TEXT + "\n")
    return Notes(path)


@pytest.fixture
def places(notes):
    """Return an application with that store."""
    return Everywhere([notes])


def erase(log, places, customer=ADA, **given):
    return ErasureRun(log, places, customer=customer, tenant=TENANT, **given).run()


def log_events(log, *names):
    """Return the data of events about the log itself, oldest first."""
    with log.reading() as snapshot:
        found = snapshot.execute("SELECT header FROM audit_event WHERE kind = 'log' ORDER BY seq")
        headers = [json.loads(header) for (header,) in found.fetchall()]
    return [(each["operation"], each["data"]) for each in headers if each["operation"] in names]


def leaves_of(log):
    with log.reading() as snapshot:
        found = snapshot.execute("SELECT leaf FROM audit_event ORDER BY seq")
        return [bytes(leaf) for (leaf,) in found.fetchall()]


class TestEverythingGoes:
    def test_stores_vault_and_trail_have_nothing_left(self, remembered, places, notes):
        """And what was found and removed is said."""
        erasure = erase(remembered, places)

        assert erasure.complete
        assert (erasure.stores[0].status, erasure.stores[0].removed) == ("complete", 1)
        assert (erasure.pseudonyms, erasure.details) == (2, 3)
        assert remembered.subjects.resolve(ADA, TENANT) is None
        assert notes.path.read_text() == ""

    def test_nobody_else_is_touched(self, remembered, places):
        """The other customer's history is what it was."""
        before = [row.event_id for row in remembered.history("bob@example.com", TENANT)]

        erase(remembered, places)

        assert [row.event_id for row in remembered.history("bob@example.com", TENANT)] == before

    def test_sealed_events_stay(self, remembered, places):
        """The tree over what was there before has the same root as before."""
        before = leaves_of(remembered)

        erase(remembered, places)

        after = leaves_of(remembered)
        assert root_of(after[: len(before)]) == root_of(before)
        assert len(after) > len(before)

    def test_who_is_seen_again_is_somebody_new(self, remembered, places, event_factory):
        """Nothing leads from the new to the old."""
        old = remembered.subjects.resolve(ADA, TENANT)
        erase(remembered, places)
        assert remembered.subjects.resolve(ADA, TENANT) is None

        remembered.append([event_factory()])

        assert remembered.subjects.resolve(ADA, TENANT) not in {None, old}
        assert len(list(remembered.history(ADA, TENANT))) == 1

    def test_stores_are_told_what_only_the_trail_knows(self, remembered, places):
        """Threads, and ids of memories that may be deleted; nothing of anybody else's."""
        erase(remembered, places)

        assert places.known.runs == {"t-1"}
        assert places.known.memory_ids == {"mem0": {"m-t-1", "c-t-1"}}
        assert places.known.stores == {"mem0"}

    def test_a_customer_whom_nobody_knows_is_forgotten_at_once(self, log, tmp_path):
        """No data held is an answer, and is proven as any other."""
        empty = tmp_path / "empty.txt"
        empty.touch()

        erasure = erase(log, Everywhere([Notes(empty)], pseudonyms=None))

        assert erasure.complete
        assert (erasure.stores[0].removed, erasure.details, erasure.pseudonyms) == (0, 0, None)


class TestProof:
    def test_it_begins_and_ends_with_an_event(self, remembered, places):
        """The end says what was done, in numbers and names of stores."""
        erasure = erase(remembered, places)

        (requested, completed) = log_events(remembered, REQUESTED, COMPLETED, INCOMPLETE)
        assert requested == (REQUESTED, {"request": erasure.request})
        assert completed[0] == COMPLETED
        assert completed[1]["stores"]["notes"] == {
            "status": "complete",
            "removed": 1,
            "retained": 0,
            "remaining": 0,
            "traces": 0,
        }
        assert completed[1]["details"] == 3
        assert completed[1]["searched_texts"] == 1

    def test_it_names_nobody(self, remembered, places):
        """Neither the customer nor their alias is in any sealed event."""
        with remembered.reading() as snapshot:
            found = snapshot.execute("SELECT alias, subject_uid FROM audit_subject_alias")
            secret = [each for row in found.fetchall() for each in row]
        erase(remembered, places)

        with remembered.reading() as snapshot:
            headers = snapshot.execute("SELECT header FROM audit_event").fetchall()
        text = b"".join(bytes(header) for (header,) in headers)
        assert not [each for each in [ADA, "marzipan", *secret] if each.encode() in text]

    def test_nothing_of_the_request_itself_stays(self, remembered, places, path):
        """The alias that says whose request it is goes with the last step."""
        erase(remembered, places)

        with remembered.reading() as snapshot:
            kinds = snapshot.execute("SELECT DISTINCT id_type FROM audit_subject_alias").fetchall()
        assert ("erasing",) not in kinds


class TestWhatIsLeft:
    def test_a_store_that_fails_is_named_and_keeps_the_trail(self, remembered, places, notes):
        """The trail knows which threads are theirs, and is needed when the store is back."""
        notes.fails = ConnectionError("ada@example.com is away")

        erasure = erase(remembered, places)

        (store,) = erasure.stores
        assert (store.status, erasure.complete, erasure.details) == ("failed", False, None)
        (message,) = store.messages
        assert message == (
            "it raised ConnectionError: its records may still be there. Run this again"
        )
        assert len(list(remembered.history(ADA, TENANT))) == 3
        assert [name for name, _data in log_events(remembered, COMPLETED, INCOMPLETE)] == [
            INCOMPLETE
        ]

    def test_the_other_stores_are_still_asked(self, remembered, places, notes, tmp_path):
        """One that is down is no reason to keep the rest."""
        other = tmp_path / "other.txt"
        other.write_text("something else of hers\n")
        notes.fails = ConnectionError()
        places.notes.append(Notes(other, name="other"))

        erasure = erase(remembered, places)

        assert [each.status for each in erasure.stores] == ["failed", "complete"]
        assert other.read_text() == ""

    def test_a_store_that_still_answers_is_caught(self, remembered, places, notes):
        """Saying that it forgot is not enough: it is asked again."""
        notes.keeps = True

        erasure = erase(remembered, places)

        (store,) = erasure.stores
        assert (store.status, store.remaining, erasure.details) == ("partial", 1, None)

    def test_a_file_that_still_has_it_is_caught(self, remembered, places, notes, tmp_path):
        """A store may answer nothing and still have it on the disk."""
        (tmp_path / "copy.txt").write_text(f"...{TEXT}...")
        notes.files = lambda: (notes.path, tmp_path / "copy.txt")

        erasure = erase(remembered, places)

        (store,) = erasure.stores
        assert (store.status, store.traces, erasure.complete) == ("partial", 1, False)

    def test_a_log_that_has_it_is_caught(self, remembered, places, tmp_path):
        """Files that are no store's are searched too."""
        (tmp_path / "app.log").write_text(TEXT)
        places.beside = {"logs": [tmp_path / "app.log"]}

        erasure = erase(remembered, places)

        assert (erasure.traces["logs"], erasure.complete) == (1, False)

    def test_what_is_under_way_keeps_the_trail(self, remembered, places):
        """A write that waits in the journal would bring back what was forgotten."""
        places.unsettled = ["3 writes wait"]

        erasure = erase(remembered, places)

        assert (erasure.complete, erasure.details) == (False, None)

    def test_a_vault_that_fails_is_named_and_keeps_the_trail(self, remembered, places):
        """Its pseudonyms are of the same person, and the next run tries again."""

        def fails():
            raise OSError

        places.erase_pseudonyms = fails

        erasure = erase(remembered, places)

        assert erasure.unsettled == ("the vault could not erase: it raised OSError",)
        assert (erasure.complete, erasure.details) == (False, None)

    def test_what_the_vault_says_is_told(self, remembered, places):
        """It knows why, and says it without personal data."""

        def fails():
            raise NotErasedError("another key is needed")

        places.erase_pseudonyms = fails

        erasure = erase(remembered, places)

        assert erasure.unsettled == ("vault: another key is needed",)
        assert (erasure.complete, erasure.details) == (False, None)

        vouched = erase(remembered, places, vouched=["vault", "whatever was typed"])
        assert (vouched.complete, vouched.pseudonyms) == (True, None)
        ((_name, proof),) = log_events(remembered, COMPLETED)
        assert proof["vouched"] == ["vault"]

    def test_a_store_that_cannot_be_asked_is_unknown(self, remembered, places, notes):
        """However often, nobody may call it forgotten; whoever vouches for it ends the request."""
        places.notes.append(Notes(notes.path, name="house", unavailable="says not whose"))

        runs = [erase(remembered, places) for _ in range(2)]
        vouched = erase(remembered, places, vouched=["house"])

        assert [each.status for each in runs[0].stores] == ["complete", "unknown"]
        assert [(each.complete, each.unknown) for each in runs] == [(False, ("house",))] * 2
        assert (vouched.complete, vouched.request) == (True, runs[0].request)
        assert vouched.searched_texts >= runs[0].searched_texts
        ((_name, proof), _second) = log_events(remembered, INCOMPLETE)
        assert (proof["complete"], proof["stores"]["house"]["status"]) == (False, "unknown")

    def test_an_operator_may_vouch_for_it(self, remembered, places, notes):
        """Documents of the house have no owner, and the proof says who says so."""
        places.notes.append(Notes(notes.path, name="house", unavailable="says not whose"))

        erasure = erase(remembered, places, vouched=["house", "notes"])

        assert [each.status for each in erasure.stores] == ["complete", "vouched"]
        assert erasure.complete
        ((_name, proof),) = log_events(remembered, COMPLETED)
        assert proof["stores"]["house"]["status"] == "vouched"

    def test_a_store_that_only_the_trail_knows_is_missing(self, remembered, places):
        """The scope does not wrap it: what the trail knows is kept, for one that does."""
        places.notes[0].store = "notes"

        runs = [erase(remembered, places) for _ in range(2)]

        for each in runs:
            states = {store.name: store.status for store in each.stores}
            assert states["mem0"] == "failed"
            assert (each.complete, each.details) == (False, None)
        assert erase(remembered, places, vouched=["mem0"]).complete

    def test_what_waits_in_a_sealed_file_keeps_the_trail(self, remembered, places):
        """It cannot be searched, and may bring back what was forgotten."""
        places.waiting = {"journal": SealedFiles(["3 writes wait"]), "audit spool": SealedFiles()}

        erasure = erase(remembered, places)

        states = {each.name: each.status for each in erasure.places}
        assert states == {"audit": "complete", "journal": "partial", "audit spool": "complete"}
        assert (erasure.complete, erasure.details) == (False, None)

    def test_what_is_beside_and_anothers_is_said_and_keeps_nothing(self, remembered, places):
        """Else an application that is down would hold up the erasures of all others."""
        places.waiting = {"audit spool": SealedFiles(others=["not looked at: audit-1.spool"])}

        erasure = erase(remembered, places)

        (spool,) = (each for each in erasure.places if each.name == "audit spool")
        assert (spool.status, spool.messages) == ("complete", ("not looked at: audit-1.spool",))
        assert erasure.complete

    @pytest.mark.parametrize("place", ["files", "sealed"])
    def test_a_place_that_cannot_be_looked_at_is_no_clean_one(
        self, remembered, places, monkeypatch, place
    ):
        """Whatever it raises, it is told, and the next run asks again."""

        def fails():
            raise OSError

        with monkeypatch.context() as away:
            away.setattr(places, place, fails)
            first = erase(remembered, places)
        second = erase(remembered, places)

        assert (first.complete, second.complete, second.resumed) == (False, True, True)


STEPS = (
    "opening the request",
    "settling what is under way",
    "forgetting in notes",
    "forgetting pseudonyms",
    "shredding the trail",
    "searching files",
    "writing the proof",
)


MOMENTS = (*STEPS, "leaving the receipt")
GOES_ON = [
    each if each in {MOMENTS[0], *MOMENTS[-2:]} else pytest.param(each, marks=pytest.mark.long)
    for each in MOMENTS
]


def erase_telling(log, places, uids, tell):
    """Return whether it is complete. False: another run was first."""

    def leave(_erasure):
        tell(MOMENTS[-1])
        return True

    try:
        return erase(log, places, uids=uids, tell=tell, leave=leave).complete
    except AuditError as error:
        assert "another run has erased" in str(error)  # noqa: PT017 - one of two ends
        return False


class Killed(BaseException):
    """The process ends here."""


class TestWordsAreKept:
    @pytest.fixture
    def app_log(self, places, tmp_path):
        """Return a log that still has a text of hers."""
        path = tmp_path / "app.log"
        path.write_text(f'{{"said": "{TEXT}"}}\n')
        places.beside = {"logs": [path]}
        return path

    def test_it_is_not_forgotten_until_it_is_gone(self, remembered, places, app_log):
        """However often it is asked; then the request that began it ends."""
        runs = [erase(remembered, places) for _ in range(3)]
        assert [(each.complete, each.traces["logs"]) for each in runs] == [(False, 1)] * 3
        assert "app.log" in runs[2].places[0].messages[0]

        app_log.write_text("")
        last = erase(remembered, places)

        assert (last.complete, last.searched_texts) == (True, runs[0].searched_texts)
        assert {each.request for each in runs} == {last.request}

    @pytest.mark.parametrize("step", STEPS)
    def test_they_outlive_the_process(self, remembered, places, app_log, step):
        """Killed before any step, after a store has erased what the words were learned from."""

        def die(name):
            if name == step:
                raise Killed

        with pytest.raises(Killed):
            erase(remembered, places, tell=die)

        assert not erase(remembered, places).complete

    def test_a_store_that_erased_only_half_says_so_again(self, remembered, places, notes, tmp_path):
        """Its own files are searched for what they had before the first run."""
        copy = tmp_path / "copy.txt"
        copy.write_text(f"...{TEXT}...")
        notes.files = lambda: (notes.path, copy)
        erase(remembered, places)

        second = erase(remembered, places)
        copy.unlink()

        assert (second.stores[0].status, second.complete) == ("partial", False)
        assert erase(remembered, places).complete

    def test_what_is_offered_later_pushes_none_out(self):
        """A store that is back has longer texts; those of before are looked for all the same."""
        residue = ResidueTexts({TEXT})
        for number in range(99):
            residue.offer(f"{number} things that are longer than the text that was kept before")

        assert TEXT in residue.texts()
        assert len(residue) == MAX_TEXTS + 1

    def test_the_same_texts_again_add_none(self):
        """Or every run would look for more."""
        residue = ResidueTexts()
        offered = [f"a text of hers, number {number}" for number in range(99)]
        residue.offer(offered)
        again = ResidueTexts(residue.texts())
        again.offer(offered)

        assert again.texts() == residue.texts()

    def test_they_are_kept_encrypted_and_not_longer_than_needed(
        self, remembered, places, app_log, path
    ):
        """No file of the trail has them in clear, nor in any form when it is done."""
        erase(remembered, places)
        with remembered.reading() as snapshot:
            ((sealed,),) = snapshot.execute("SELECT sealed FROM audit_erasure").fetchall()
        files = [path, path.with_name(f"{path.name}-wal")]
        kept = [(bytes(sealed)[:32],)]
        assert search(kept, files).traces == 1
        assert search([(TEXT.encode(),)], files).traces == 0

        app_log.write_text("")
        erase(remembered, places)

        assert search(kept, files).traces == 0
        with remembered.reading() as snapshot:
            assert snapshot.execute("SELECT count(*) FROM audit_erasure").fetchone() == (0,)

    def test_words_that_are_lost_are_told(self, remembered, places, app_log):
        """A row that is gone, or was never there, is no reason to find nothing."""
        erase(remembered, places)
        with remembered.tables.writing() as (connection, _head):
            connection.execute("DELETE FROM audit_erasure")
        app_log.write_text("")

        runs = [erase(remembered, places) for _ in range(2)]
        vouched = erase(remembered, places, vouched=["files"])

        assert [each.complete for each in runs] == [False, False]
        assert "--vouch files" in runs[1].unsettled[0]
        assert vouched.complete

    @pytest.mark.parametrize("step", STEPS[1:])
    def test_two_runs_at_once_lose_none(self, remembered, places, app_log, step):
        """Whenever another one comes: both look for what either has met."""

        def another(name):
            if name == step:
                erase(remembered, places)

        first = erase(remembered, places, tell=another)
        app_log.write_text("")
        last = erase(remembered, places)

        assert (first.complete, last.complete) == (False, True)
        assert last.searched_texts == 1

    def test_a_run_behind_one_that_ended_keeps_nothing(self, remembered, places):
        """There would be nobody left to remove it."""

        def another(name):
            if name == "forgetting in notes":
                assert erase(remembered, places).complete

        with pytest.raises(AuditError, match="another run has erased"):
            erase(remembered, places, tell=another)

        with remembered.reading() as snapshot:
            assert snapshot.execute("SELECT count(*) FROM audit_erasure").fetchone() == (0,)
        assert len(log_events(remembered, COMPLETED)) == 1
        remembered.checkpoint_now()
        assert verify(remembered).counts["tampered"] == 0

    @pytest.mark.parametrize("waits_at", MOMENTS)
    @pytest.mark.parametrize("goes_on_at", GOES_ON)
    def test_two_runs_seal_one_end(self, remembered, places, waits_at, goes_on_at):
        """However they are interleaved: one request, one proof that it is complete, one end."""
        waits, goes_on = threading.Event(), threading.Event()
        uids = remembered.person(ADA, TENANT).uids

        def first(step):
            if step == waits_at:
                waits.set()
                assert goes_on.wait(GIVE_UP_S)

        with ThreadPoolExecutor(1) as pool:
            one = pool.submit(erase_telling, remembered, places, uids, first)
            assert waits.wait(GIVE_UP_S)

            def second(step):
                if step == goes_on_at:
                    goes_on.set()
                    wait_for([one], GIVE_UP_S)

            other = erase_telling(remembered, places, uids, second)
            goes_on.set()

        assert one.result() or other
        assert len(log_events(remembered, REQUESTED)) == 1
        assert len(log_events(remembered, COMPLETED)) == 1
        assert len(log_events(remembered, "privacy.erase.closed")) == 1
        assert log_events(remembered, INCOMPLETE) == []

    def test_a_run_that_comes_too_late_makes_no_second_request(self, remembered, places):
        """They were there when it was begun: a proof that nothing was would be a wrong one."""
        person = remembered.person(ADA, TENANT)
        erase(remembered, places, uids=person.uids)

        with pytest.raises(AuditError, match="another run has erased"):
            erase(remembered, places, uids=person.uids)

        assert len(log_events(remembered, REQUESTED)) == 1

    def test_words_that_were_changed_are_an_error(self, remembered, places, app_log):
        """Others may have been put in their place."""
        erase(remembered, places)
        with remembered.tables.writing() as (connection, _head):
            connection.execute("UPDATE audit_erasure SET sealed = ?", (bytes(99),))

        with pytest.raises(KeyMissingError):
            erase(remembered, places)


class TestGoingOn:
    @pytest.mark.parametrize("step", STEPS)
    @pytest.mark.fault(
        82, "erasure killed at any step", expected="the next run ends the same request"
    )
    def test_it_goes_on_wherever_it_was_broken_off(self, remembered, places, step):
        """Before any step: the next run ends what the first began, under the same number."""

        def die(name):
            if name == step:
                raise Killed

        with pytest.raises(Killed):
            erase(remembered, places, tell=die)
        began = log_events(remembered, REQUESTED)

        erasure = erase(remembered, places)

        assert erasure.complete
        assert remembered.subjects.resolve(ADA, TENANT) is None
        requests = {data["request"] for _name, data in log_events(remembered, REQUESTED, RESUMED)}
        assert requests == {erasure.request}
        assert erasure.resumed is bool(began)
        assert len(log_events(remembered, COMPLETED)) == 1

    def test_a_store_that_is_back_is_all_it_takes(self, remembered, places, notes):
        """Run again, it ends the same request."""
        notes.fails = ConnectionError()
        first = erase(remembered, places)
        notes.fails = None

        second = erase(remembered, places)

        assert (second.complete, second.resumed, second.request) == (True, True, first.request)
        assert second.details == 3

    def test_one_that_is_under_way_is_no_tampering(self, remembered, places, notes):
        """Neither while it waits for a store, nor when it is done."""
        notes.fails = ConnectionError()
        erase(remembered, places)
        remembered.checkpoint_now()
        assert verify(remembered).state == "ok"

        notes.fails = None
        erase(remembered, places)
        assert verify(remembered).counts["tampered"] == 0

    @pytest.mark.parametrize(
        ("change", "said"),
        [
            (
                "UPDATE audit_subject_alias SET subject_uid = 'x' WHERE id_type = 'erasing'",
                ["1 aliases name an erasure that is not under way"],
            ),
            (
                "UPDATE audit_subject_alias SET id_type = 'customer' WHERE id_type = 'erasing'",
                ["1 aliases name no customer"],
            ),
            ("DELETE FROM audit_subject_alias WHERE id_type = 'erasing'", []),
        ],
        ids=["strange", "stray", "gone"],
    )
    def test_a_request_that_was_tampered_with_is_found(
        self, remembered, places, notes, change, said
    ):
        """That it is under way is sealed: a row that says otherwise does not agree."""
        notes.fails = ConnectionError()
        erase(remembered, places)
        with remembered.tables.writing() as (connection, head):
            connection.execute(change)
            remembered.tables.note(connection, head, "subject.linked", {"id_type": "email"})

        found = verify(remembered, with_details=True).findings["tampered"]
        assert found == [*said, "1 erasures can no longer be resumed"]

    def test_another_customers_request_is_another_one(self, remembered, places, notes):
        """What was begun for one is not ended by an erasure of another."""
        notes.fails = ConnectionError()
        first = erase(remembered, places)
        notes.fails = None

        second = erase(remembered, places, customer="bob@example.com")

        assert (second.resumed, second.request == first.request) == (False, False)
        assert len(list(remembered.history(ADA, TENANT))) == 3

    def test_a_second_erasure_is_a_new_one(self, remembered, places):
        """What was completed is not resumed."""
        first = erase(remembered, places)

        second = erase(remembered, places)

        assert (second.resumed, second.request == first.request) == (False, False)
        assert second.complete


class TestWhileTheyAreWrittenAbout:
    @pytest.mark.fault(82, "erased while being written about", expected="nothing under the old key")
    def test_nothing_stays_under_the_old_key(self, path, subject_keys, event_factory, seen):
        """Two writers go on through it: what came before is gone, the rest is somebody new's."""
        log = AuditLog(path, subject_keys)
        log.append([event_factory(writer_id="first")])
        old = log.subjects.resolve(ADA, TENANT)
        written, stop = threading.Semaphore(0), threading.Event()

        def write(name):
            own = AuditLog(path, subject_keys)
            for seq in takewhile(lambda _seq: not stop.is_set(), count(1)):
                own.append([event_factory(writer_id=name, writer_seq=seq)])
                written.release()
            own.close()

        threads = [threading.Thread(target=write, args=(name,)) for name in ("aa", "bb")]
        for thread in threads:
            thread.start()
        assert all(written.acquire(timeout=GIVE_UP_S) for _ in range(20))
        erased = log.subjects.erase(old, TENANT)
        while written.acquire(blocking=False):
            pass
        # Each writer may still have told of one from before.
        assert all(written.acquire(timeout=GIVE_UP_S) for _ in range(3))
        stop.set()
        for thread in threads:
            thread.join()
        log.checkpoint_now()
        found, new = verify(log), log.subjects.resolve(ADA, TENANT)
        with log.reading() as snapshot:
            left = snapshot.execute("SELECT DISTINCT subject_uid FROM audit_detail").fetchall()
        after = len(list(log.history(ADA, TENANT)))
        log.close()
        seen(f"{erased} before it are gone, {after} after it are somebody new's, {found.state}")

        assert found.state == "ok", found.findings
        assert (left, found.erased) == ([(new,)], erased)
        assert new not in {None, old}
        assert erased >= 20
        assert after > 0


class TestTrailFiles:
    def test_aliases_and_keys_are_gone_from_the_files(self, remembered, places, path):
        """With the control that they are there before."""
        uid = remembered.subjects.resolve(ADA, TENANT)
        with remembered.reading() as snapshot:
            needles = [(each,) for each in run._samples(snapshot, [uid])]
        files = [path, path.with_name(f"{path.name}-wal")]
        assert search(needles, files).traces == len(needles) > 4

        erasure = erase(remembered, places)

        assert search(needles, files).traces == 0
        assert erasure.traces["audit"] == 0


class TestSentinels:
    def test_the_longest_texts_are_chosen(self):
        """They are the least likely to be anybody else's."""
        residue = ResidueTexts()
        for number in range(100):
            residue.offer({"text": "x" * (12 + number % 50) + f" {number}"})

        assert len(residue) == MAX_TEXTS
        assert min(len(forms[0]) for forms in residue.needles()) > 40

    @pytest.mark.parametrize(
        "written",
        [
            lambda text: text.encode(),
            lambda text: json.dumps({"text": text}).encode(),
            lambda text: json.dumps({"text": text}, ensure_ascii=False).encode(),
        ],
        ids=["utf-8", "escaped", "json"],
    )
    @pytest.mark.parametrize("text", ["bakes marzipan on Fridays", "пекла марципан по пятницам"])
    def test_a_text_is_found_however_it_was_written(self, tmp_path, written, text):
        """In UTF-8, or as JSON with escapes; in the middle of other bytes."""
        residue = ResidueTexts()
        residue.offer([{"content": text}])
        (tmp_path / "store.db").write_bytes(b"\x00\xff" * 999 + written(text) + b"\x00")

        assert search(residue.needles(), [tmp_path]).traces == 1

    def test_a_database_keeps_its_locks_while_it_is_searched(self, tmp_path):
        """Without them another process that closes it removes the log that is written here."""
        path = tmp_path / "notes.db"
        length, start = 510, 0x4000_0002  # where SQLite has the locks of readers

        def is_locked():
            with path.open("r+b") as file, pytest.raises(BlockingIOError):
                fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, length, start)

        with closing(sqlite3.connect(path)) as connection:
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("CREATE TABLE notes(text)")
            found = search([(b"nowhere to be found",)], [path])

            assert exit_code_of_child(is_locked) == 0
        assert found == Search(0)

    def test_a_text_across_two_blocks_is_found(self, tmp_path):
        """A file is read in parts, and a part may end anywhere."""
        residue = ResidueTexts()
        residue.offer(TEXT)
        for before in (1 << 20) - 5, (1 << 20) - 30, 1 << 20:
            (tmp_path / "store.db").write_bytes(b"." * before + TEXT.encode() + b"." * 99)

            assert search(residue.needles(), [tmp_path]).traces == 1

    @pytest.mark.parametrize(
        ("name", "opened"), [("a.log", open), ("a.log.1.gz", gzip.open), ("a.log.2.xz", lzma.open)]
    )
    def test_a_log_is_searched_however_it_was_rotated(self, tmp_path, name, opened):
        """Compressed, too."""
        with opened(tmp_path / name, "wb") as file:
            file.write(b"." * 999 + TEXT.encode())

        assert search([(TEXT.encode(),)], [tmp_path]) == Search(1, (name,))

    @pytest.mark.parametrize("name", ["a.log.zst", "a.log.zip", "a.log.gz", "a.log.xz"])
    def test_a_log_that_cannot_be_read_is_told(self, tmp_path, name):
        """Whatever packed or damaged it: it is not called clean."""
        (tmp_path / name).write_bytes(b"no such thing")

        assert search([(TEXT.encode(),)], [tmp_path]) == Search(unread=(name,))

    def test_a_folder_that_cannot_be_looked_into_is_told(self, tmp_path, monkeypatch):
        """Or what is in it would be nowhere."""
        (tmp_path / "inside").mkdir()

        def refused(path):
            raise PermissionError(13, "no", str(path))

        monkeypatch.setattr(os, "scandir", refused)

        assert search([(TEXT.encode(),)], [tmp_path / "inside", tmp_path / "none"]) == Search(
            unread=("inside",)
        )

    @pytest.mark.parametrize(
        "ours",
        [
            "<SUBJECT_ID_0123456789abcdef>",
            "<PERSON>",
            "<KEY_0123456789abcdef>",
            "<PERSON_0123456789abcdef> <EMAIL_ADDRESS> <OVERSIZE>",
            "********",
            "[REDACTED:error]",
            "<employee_0123456789abcdef>",
        ],
    )
    def test_what_redaction_wrote_is_nobodys(self, tmp_path, ours):
        """It stands in everybody's texts; what is around it is theirs."""
        residue = ResidueTexts()
        residue.offer([f"{ours}", f"{ours}{ours}", {"said": f"{TEXT}, says {ours} twice: {ours}"}])
        (tmp_path / "app.log").write_text(f"{ours} {ours}{ours} says {ours}")

        assert residue.texts() == {f"{TEXT}, says"}
        assert search(residue.needles(), [tmp_path]).traces == 0

    @pytest.mark.parametrize(
        "content",
        [
            {"role": "user", "content": "hello"},
            {"content": "conversation-summary"},
            {"key": "summary of 2026 so far", "value": {}},
        ],
        ids=["short", "a name", "a key"],
    )
    def test_what_others_may_have_too_is_not_looked_for(self, content):
        """It would be found, and nothing be wrong."""
        residue = ResidueTexts()
        residue.offer(content)

        assert len(residue) == 0

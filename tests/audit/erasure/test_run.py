"""Forgetting a person: every step, what proves it, and how it goes on after a crash."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count, takewhile
from pathlib import Path
from typing import Any

import pytest

from mnemoscope.audit.erasure import run
from mnemoscope.audit.erasure.residue_scan import MAX_TEXTS, ResidueTexts, traces
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
from mnemoscope.memory.subject_data.records import Erased, NotErasedError, SubjectRecord
from mnemoscope.telemetry.event.event import OperationClass

ADA, TENANT = "ada@example.com", "acme"
TEXT = "her grandmother's marzipan recipe"


@dataclass
class Notes:
    """A store in one file."""

    path: Path
    name: str = "notes"
    title: str = "Notes"
    unavailable: str | None = None
    fails: Exception | None = None
    keeps: bool = False
    forgotten: int = 0

    @property
    def store(self) -> str:
        return self.name

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
    known: Any = None

    def settle(self) -> list[str]:
        return self.unsettled

    def stores(self, subject):
        self.known = subject
        return self.notes

    def erase_pseudonyms(self):
        return self.pseudonyms

    def files(self):
        return self.beside


@pytest.fixture
def remembered(log, event_factory):
    """Return a log that knows Ada and Bob: writes, a thread, reads."""
    writes = {"op_class": OperationClass.REMEMBER, "operation": "create_memory"}
    saves = {"op_class": OperationClass.CHECKPOINT, "store": "langgraph.checkpoint"}
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
        assert places.known.memory_ids == {"mem0": {"m-t-1"}, "langgraph.checkpoint": {"c-t-1"}}

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
        assert completed[1]["searched_texts"] > 1

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

    def test_a_store_that_cannot_be_asked_is_told_and_no_failure(self, remembered, places, notes):
        """Documents of the house have no owner."""
        places.notes.append(Notes(notes.path, name="house", unavailable="nobody's"))

        erasure = erase(remembered, places)

        assert [each.status for each in erasure.stores] == ["complete", "not_configured"]
        assert erasure.complete


STEPS = (
    "opening the request",
    "settling what is under way",
    "forgetting in notes",
    "forgetting pseudonyms",
    "shredding the trail",
    "searching files",
    "writing the proof",
)


class Killed(BaseException):
    """The process ends here."""


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
        with remembered.tables.writing() as (connection, _head):
            connection.execute(change)

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
        assert all(written.acquire(timeout=30) for _ in range(20))
        erased = log.subjects.erase(old, TENANT)
        while written.acquire(blocking=False):
            pass
        # Each writer may still have told of one from before.
        assert all(written.acquire(timeout=30) for _ in range(3))
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
            needles = run._samples(snapshot, [uid])
        files = [path, path.with_name(f"{path.name}-wal")]
        assert traces(needles, files) == len(needles) > 4

        erasure = erase(remembered, places)

        assert traces(needles, files) == 0
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

        assert traces(residue.needles(), [tmp_path]) == 1

    def test_a_text_across_two_blocks_is_found(self, tmp_path):
        """A file is read in parts, and a part may end anywhere."""
        residue = ResidueTexts()
        residue.offer(TEXT)
        for before in (1 << 20) - 5, (1 << 20) - 30, 1 << 20:
            (tmp_path / "store.db").write_bytes(b"." * before + TEXT.encode() + b"." * 99)

            assert traces(residue.needles(), [tmp_path]) == 1

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

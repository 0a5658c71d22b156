"""What was remembered at a moment: equal to a model of it, for any history and any moment."""

from __future__ import annotations

import json
from itertools import count
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mnemoscope.audit import AuditLog, UnknownSubjectError
from mnemoscope.audit.queries.memory_model import remembered_at
from mnemoscope.memory.api import (
    Deletes,
    Event,
    OperationClass,
    Redacted,
    Status,
    Subject,
    TraceRef,
)
from mnemoscope.telemetry.event.subject import SubjectKeys
from tests.kit.lengths import examples

ADA, BOB, TENANT = "ada@example.com", "bob@example.com", "acme"
SECOND = 1_000_000
IDS = ("m1", "m2")
PLACES = (("mem0", None), ("qdrant", "notes"), ("qdrant", "files"))

places = st.sampled_from((*PLACES, PLACES[1]))
ids = st.lists(st.sampled_from(IDS), min_size=1, max_size=2, unique=True)
people = st.sampled_from((ADA, ADA, ADA, BOB))
ends = st.sampled_from((Status.OK, Status.OK, Status.OK, Status.TIMEOUT, Status.ERROR))
kinds = st.sampled_from(
    (*["write"] * 8, *["delete"] * 4, *["read"] * 2, *["delete_all"] * 2, "erase")
)
step = st.tuples(kinds, people, places, ids, st.text("abc", min_size=1), ends)
steps = st.lists(step, min_size=8, max_size=24)


class Model:
    """What two people have remembered of them, second by second."""

    def __init__(self):
        self.now = {ADA: {}, BOB: {}}
        self.moments = {ADA: [{}], BOB: [{}]}

    def do(self, kind, who, place, memory_ids, text, end):
        known = self.now[who]
        if kind == "erase":
            # Nothing is known any more of any moment before.
            self.moments[who] = [{} for _ in self.moments[who]]
            known.clear()
        elif end is Status.OK:
            self._apply(known, kind, place, memory_ids, text)
        for each, memories in self.now.items():
            self.moments[each].append(dict(memories))

    def _apply(self, known, kind, place, memory_ids, text):
        keys = [(*place, each) for each in memory_ids]
        if kind == "write":
            known.update(dict.fromkeys(keys, text))
        elif kind == "delete":
            for key in keys:
                known.pop(key, None)
        elif kind == "delete_all":
            for key in [each for each in known if each[:2] == place]:
                del known[key]


DELETES = {"delete": Deletes.IDS, "delete_all": Deletes.SCOPE}
CLASSES = {"write": OperationClass.REMEMBER, "read": OperationClass.RECALL}


def event_of(event_factory, second, step):
    kind, who, (store, collection), memory_ids, text, end = step
    return event_factory(
        customer=who,
        started_ns=second * 1_000_000_000,
        duration_s=0.5,
        op_class=CLASSES.get(kind, OperationClass.FORGET),
        deletes=DELETES.get(kind),
        method={"write": "add", "read": "search"}.get(kind, kind),
        store=store,
        collection=collection,
        memory_ids=() if kind == "delete_all" else tuple(memory_ids),
        status=end,
        content=Redacted({"text": text}) if kind == "write" else None,
    )


def known(log, who, second):
    try:
        found = remembered_at(log, who, TENANT, second * SECOND + 600_000).remembered
    except UnknownSubjectError:  # never seen, or erased
        return {}
    return {
        (each.store, each.collection, each.memory_id): json.loads(each.content)["text"]
        for each in found
    }


@settings(max_examples=examples(30), deadline=None)
@given(history=steps, data=st.data())
def test_any_moment_of_any_history_is_what_it_was(history, data):
    """Writes, changes, deletions and erasures of two people, some of which failed."""
    keys, numbers, model = SubjectKeys(bytes(range(32))), count(1), Model()

    def event_factory(*, customer, **given):
        subject = Subject(customer, tenant=TENANT, keys=keys)
        return Event(
            writer_id="00000000000000aa",
            writer_seq=next(numbers),
            operation="any",
            trace=TraceRef(1, 2),
            subject=subject,
            tenant=TENANT,
            **given,
        )

    with TemporaryDirectory() as folder:
        log = AuditLog(f"sqlite:///{folder}/audit.db", keys)
        log.append([])
        for second, step in enumerate(history, 1):
            if step[0] == "erase":
                uid = log.subjects.resolve(step[1], TENANT)
                if uid:
                    log.subjects.erase(uid, TENANT)
            else:
                log.append([event_of(event_factory, second, step)])
            model.do(*step)
        moments = st.lists(st.integers(0, len(history)), min_size=1, max_size=6)
        for second in {*data.draw(moments), len(history)}:
            for who in (ADA, BOB):
                assert known(log, who, second) == model.moments[who][second]
        log.close()


@pytest.fixture
def written(log, event_factory):
    """Return how to have something written, and what is known a moment later."""

    def write(**given):
        defaults = {
            "op_class": OperationClass.REMEMBER,
            "method": "add",
            "memory_ids": ("m1",),
            "content": Redacted({"text": "likes tea"}),
        }
        log.append([event_factory(**(defaults | given))])
        return remembered_at(log, ADA, TENANT, 1_900_000_000 * SECOND).remembered

    return write


class TestDetails:
    def test_a_write_counts_from_its_end(self, log, written):
        """While a slow store is at work, nobody could have recalled it."""
        written(started_ns=10 * 10**9, duration_s=5.0)

        assert remembered_at(log, ADA, TENANT, 14 * SECOND).remembered == []
        assert len(remembered_at(log, ADA, TENANT, 15 * SECOND).remembered) == 1

    def test_a_change_without_words_keeps_the_old_ones(self, written):
        """New metadata alone is no new memory."""
        written(started_ns=10**9)

        (memory,) = written(started_ns=2 * 10**9, content=None, method="update")

        assert json.loads(memory.content) == {"text": "likes tea"}
        assert (memory.written_us, memory.changed_us) == (1_012_500, 2_012_500)

    def test_of_many_that_were_written_at_once_each_has_its_own_words(self, written):
        """By its id where the write has ids, else by its place."""
        points = [{"id": "b", "payload": {"text": "two"}}, {"id": "a", "payload": {"text": "one"}}]
        found = written(memory_ids=("a", "b"), content=Redacted({"points": points}))

        texts = {each.memory_id: json.loads(each.content)["payload"]["text"] for each in found}
        assert texts == {"a": "one", "b": "two"}

    def test_a_deletion_by_a_filter_leaves_doubt(self, written):
        """The trail does not know which memories it took, and says so."""
        written()

        (memory,) = written(op_class=OperationClass.FORGET, deletes=Deletes.IDS, memory_ids=())

        assert memory.in_doubt

    @pytest.mark.parametrize(
        ("operation", "in_doubt"), [("delete_memory", [True]), ("delete_memory_store", [])]
    )
    def test_an_older_log_does_not_say_how_much_was_deleted(self, written, operation, in_doubt):
        """Then a dropped store held everything, and any other deletion leaves doubt."""
        written()

        found = written(op_class=OperationClass.FORGET, operation=operation, memory_ids=())

        assert [memory.in_doubt for memory in found] == in_doubt

    @pytest.mark.parametrize(
        ("deletes", "left"), [(Deletes.EVERYTHING, 0), (Deletes.SCOPE, 1), (Deletes.IDS, 1)]
    )
    def test_a_deletion_of_everything_in_nobodys_name_takes_all(self, written, deletes, left):
        """It is in no customer's history, and still everybody's; what is smaller is not theirs."""
        written()

        found = written(
            customer=None, op_class=OperationClass.FORGET, deletes=deletes, memory_ids=()
        )

        assert len(found) == left

    def test_what_a_store_does_below_another_is_not_told_twice(self, written):
        """mem0's writes to the Qdrant below it are mem0's."""
        assert written(nested=True) == []

    def test_a_neutral_answer_is_no_memory(self, written):
        """A write that the store did not take was answered, and is not remembered."""
        assert written(neutral=True, status=Status.DEGRADED) == []

"""What a memory has reached: who saw it, what they wrote after that, and so on."""

from __future__ import annotations

import random

import pytest

from mnemoscope.audit.database.errors import AmbiguousMemoryError, UnknownMemoryError
from mnemoscope.audit.queries.blast_radius import blast_radius
from mnemoscope.memory.api import OperationClass, Status
from mnemoscope.telemetry.event.event import Journalled

WRITE = {"op_class": OperationClass.REMEMBER, "method": "add", "operation": "create_memory"}
DELETE = {"op_class": OperationClass.FORGET, "method": "delete", "operation": "delete_memory"}
SAVE = {"op_class": OperationClass.CHECKPOINT, "method": "put", "store": "langgraph.checkpoint"}
RESUME = {"op_class": OperationClass.RESUME, "method": "get_tuple", "store": "langgraph.checkpoint"}


@pytest.fixture
def at(log, event_factory):
    """Return how to record something at a second, which takes a millisecond."""

    def record(second, *ids, run=None, **given):
        given = {"duration_s": 0.001} | given
        log.append([event_factory(started_ns=int(second * 1e9), memory_ids=ids, run=run, **given)])

    return record


def reached(radius):
    """Return the ids of the runs and of the memories that were reached."""
    runs = {each.address.run for each in radius.runs}
    return runs, {each.address.memory_id for each in radius.derived}


class TestReach:
    def test_who_wrote_it_comes_first(self, log, at):
        """The event, the run, the agent, the customer's pseudonym."""
        at(1, "m1", run="r-0", agent="sales", **WRITE)

        radius = blast_radius(log, "m1")

        (memory,) = radius.memories
        (write,) = memory.writes
        assert (write.seq, write.run, write.agent, memory.hops) == (1, "r-0", "sales", 0)
        assert memory.customer == log.subjects.resolve("ada@example.com", "acme")

    def test_what_a_run_wrote_after_it_saw_it_is_reached(self, log, at):
        """And what it had written before is not."""
        at(1, "m1", run="r-0", **WRITE)
        at(2, "before", run="r-1", **WRITE)
        at(3, "m1", run="r-1")
        at(4, "after", run="r-1", **WRITE)
        at(5, "elsewhere", run="r-2", **WRITE)

        assert reached(blast_radius(log, "m1")) == ({"r-1"}, {"after"})

    def test_it_is_followed_from_run_to_run(self, log, at):
        """A third run saw only what the second one made of it."""
        at(1, "m1", run="r-0", **WRITE)
        at(2, "m1", run="r-1")
        at(3, "m2", run="r-1", **WRITE)
        at(4, "m2", run="r-2")
        at(5, "m3", run="r-2", **WRITE)

        radius = blast_radius(log, "m1")

        assert [each.hops for each in radius.memories] == [0, 1, 2]
        third = radius.memories[2]
        assert (third.address.memory_id, third.through.run) == ("m3", "r-2")
        assert radius.runs[1].through.memory_id == "m2"

    def test_checkpoints_are_written_and_seen_likewise(self, log, at):
        """A run that resumes from a state goes on with what is in it."""
        at(1, "m1", run="r-0", **WRITE)
        at(2, "m1", run="r-1")
        at(3, "c1", run="r-1", **SAVE)
        at(4, "c1", run="r-2", **RESUME)
        at(5, "m2", run="r-2", **WRITE)

        assert reached(blast_radius(log, "m1")) == ({"r-1", "r-2"}, {"c1", "m2"})

    def test_what_overlapped_counts_as_afterwards(self, log, at):
        """Whether the recall was answered before the write was made nobody can tell."""
        at(1, "m1", run="r-0", **WRITE)
        at(2, "m1", run="r-1")
        at(1.5, "m2", run="r-1", **(WRITE | {"duration_s": 2.0}))

        assert reached(blast_radius(log, "m1")) == ({"r-1"}, {"m2"})

    def test_a_memory_of_that_id_elsewhere_is_another(self, log, at):
        """Of another store or collection."""
        at(1, "m1", run="r-0", **WRITE)
        at(2, "m1", run="r-1", store="qdrant")
        at(3, "m1", run="r-2", collection="notes")

        with pytest.raises(AmbiguousMemoryError) as raised:
            blast_radius(log, "m1")

        assert raised.value.places == (("mem0", None), ("qdrant", None), ("mem0", "notes"))
        assert reached(blast_radius(log, "m1", store="qdrant")) == ({"r-1"}, set())
        assert reached(blast_radius(log, "m1", collection="notes")) == ({"r-2"}, set())

    def test_a_run_of_that_name_in_another_tenant_is_another(self, log, at):
        """Two tenants may have a thread 1."""
        at(1, "m1", run="r-0", **WRITE)
        at(2, "m1", run="r-1")
        at(3, "m2", run="r-1", tenant="globex", **WRITE)

        assert reached(blast_radius(log, "m1")) == ({"r-1"}, set())

    def test_places_named_by_a_customers_id_are_one_for_each(self, log, at):
        """Where the trail has a tag in place of the id, the name is the same for all of them."""
        place = {"store": "langgraph.store", "collection": "profiles/<SUBJECT_ID>"}
        at(1, "m1", run="r-0", **WRITE)
        at(2, "m1", run="r-1")
        at(3, "last", run="r-1", **(WRITE | place))
        at(4, "last", run="r-2", customer="bob@example.com", **place)
        at(5, "last", run="r-3", **place)

        assert reached(blast_radius(log, "m1")) == ({"r-1", "r-3"}, {"last"})

    def test_a_deletion_is_told(self, log, at):
        """It may be gone already."""
        at(1, "m1", run="r-0", **WRITE)
        at(2, "m1", **DELETE)

        (memory,) = blast_radius(log, "m1").memories

        assert [each.seq for each in memory.deletions] == [2]

    @pytest.mark.parametrize(
        ("outcome", "is_reached"),
        [
            ({"status": Status.TIMEOUT}, True),
            ({"status": Status.ERROR}, True),
            ({"status": Status.REJECTED, "journal": Journalled.APPENDED}, True),
            ({"status": Status.REJECTED}, False),
            ({"status": Status.REFUSED}, False),
            ({"status": Status.DENIED}, False),
        ],
        ids=str,
    )
    def test_what_may_have_been_written_counts(self, log, at, outcome, is_reached):
        """The store may have it; what never got there it has not."""
        at(1, "m1", run="r-0", **WRITE)
        at(2, "m1", run="r-1")
        at(3, "m2", run="r-1", **(WRITE | outcome))

        assert reached(blast_radius(log, "m1"))[1] == ({"m2"} if is_reached else set())


class TestLimits:
    def test_of_an_id_that_is_not_known_it_cannot_tell(self, log, at):
        """That it reached nobody would be a false answer."""
        at(1, "m1", **WRITE)

        with pytest.raises(UnknownMemoryError, match="cannot tell"):
            blast_radius(log, "m2")

    def test_a_recall_without_a_run_is_named(self, log, at):
        """What its caller did then is not known."""
        at(1, "m1", run="r-0", **WRITE)
        at(2, "m1")

        radius = blast_radius(log, "m1")

        assert ([each.seq for each in radius.without_run], radius.runs) == ([2], ())

    def test_operations_that_were_erased_since_are_counted(self, log, at):
        """One of them may have seen it; those before cannot have."""
        at(1, "m0", run="r-9", customer="bob@example.com", **WRITE)
        at(2, "m1", run="r-0", **WRITE)
        at(3, "m1", run="r-1", customer="bob@example.com")
        log.subjects.erase(log.subjects.resolve("bob@example.com", "acme"), "acme")

        radius = blast_radius(log, "m1")

        assert (radius.runs, radius.erased) == ((), 1)

    def test_it_says_where_it_was_cut(self, log, at):
        """What was reached first is there, and that there may be more is said."""
        at(1, "m1", run="r-0", **WRITE)
        for number in range(20):
            at(2 + number, "m1", run=f"r-{number}")

        radius = blast_radius(log, "m1", most=12)

        assert (radius.is_cut, radius.operations) == (True, 12)
        assert 0 < len(radius.runs) < 20
        assert not blast_radius(log, "m1").is_cut

    def test_what_was_there_before_the_trail_is_followed_all_the_same(self, log, at):
        """By who saw it."""
        at(1, "m1", run="r-1")
        at(2, "m2", run="r-1", **WRITE)

        radius = blast_radius(log, "m1")

        assert (radius.memories[0].writes, reached(radius)) == ((), ({"r-1"}, {"m2"}))


RUNS, IDS, HISTORIES, STEPS = 6, 8, 12, 40


def a_history(chance, prefix):
    """Return random operations, one after the other: what each does, in which run, to what."""
    return [
        (
            chance.choice(["write", "write", "read", "read", "read", "save", "resume", "delete"]),
            f"{prefix}-r{chance.randrange(RUNS)}",
            tuple(
                f"{prefix}-{number}" for number in chance.sample(range(IDS), chance.randint(1, 3))
            ),
        )
        for _step in range(STEPS)
    ]


def simulated(history, memory_id, kind):
    """Return the runs and memories that *memory_id* has reached, by walking through it in time."""
    root = (kind, memory_id)
    runs, memories, is_there = (
        set(),
        {root},
        not any(
            what == {"mem0": "write", "langgraph.checkpoint": "save"}[kind] and memory_id in ids
            for what, _run, ids in history
        ),
    )
    for what, run, ids in history:
        store = "langgraph.checkpoint" if what in {"save", "resume"} else "mem0"
        named = {(store, each) for each in ids}
        is_write = what in {"write", "save"}
        is_there |= is_write and root in named
        if is_there and what in {"read", "resume"} and named & memories:
            runs.add(run)
        elif is_write and run in runs:
            memories |= named
    return runs, memories - {root}


@pytest.mark.long
def test_random_histories_reach_what_a_walk_through_time_does(log, event_factory):
    """In whatever order they were recorded, of every memory in them."""
    chance = random.Random(19)  # noqa: S311 - a seed
    histories = {f"h{number}": a_history(chance, f"h{number}") for number in range(HISTORIES)}
    forms = {"write": WRITE, "delete": DELETE, "save": SAVE, "resume": RESUME, "read": {}}
    events = [
        event_factory(
            started_ns=step * 10**9, duration_s=0.5, run=run, memory_ids=ids, **forms[what]
        )
        for history in histories.values()
        for step, (what, run, ids) in enumerate(history, 1)
    ]
    chance.shuffle(events)
    log.append(events)

    differing, wide = [], 0
    for history in histories.values():
        for kind, memory_id in dict.fromkeys(
            ("langgraph.checkpoint" if what in {"save", "resume"} else "mem0", each)
            for what, _run, ids in history
            for each in ids
        ):
            radius = blast_radius(log, memory_id, store=kind)
            runs = {each.address.run for each in radius.runs}
            memories = {each.address[::2][:2] for each in radius.derived}
            wide += len(memories) > 2
            if (runs, memories) != simulated(history, memory_id, kind):
                differing.append((kind, memory_id))

    assert differing == []
    assert wide > HISTORIES  # histories that reach nothing would prove nothing

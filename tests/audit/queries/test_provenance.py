"""Why a run said what it said: what it saw, where that came from, and what became of it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mnemoscope.audit.erasure.customer_ids import data_subject
from mnemoscope.audit.queries.provenance import recalls, rows_of, verbatim
from mnemoscope.memory.api import DataSubject, OperationClass, Redacted, Status

ADA, TENANT = "ada@example.com", "acme"
WRITE = {"op_class": OperationClass.REMEMBER, "method": "add", "operation": "create_memory"}
DELETE = {"op_class": OperationClass.FORGET, "method": "delete", "operation": "delete_memory"}


@pytest.fixture
def at(log, event_factory):
    """Return how to record something at a second."""

    def record(second, **given):
        log.append([event_factory(started_ns=second * 10**9, duration_s=0.001, **given)])

    return record


def seen_by(log, run, **whose):
    return [each for recall in recalls(log, rows_of(log, run, **whose)) for each in recall.seen]


class TestSeen:
    def test_rank_and_score_are_those_of_the_recall(self, log, at):
        """In the order in which the run was given them."""
        at(1, run="r-1", memory_ids=("m1", "m2"), scores=(0.9, 0.4))

        assert [(each.memory_id, each.rank, each.score) for each in seen_by(log, "r-1")] == [
            ("m1", 1, 0.9),
            ("m2", 2, 0.4),
        ]

    def test_another_runs_recalls_are_not_told(self, log, at):
        """Only what this run saw can have been said by it."""
        at(1, run="r-1", memory_ids=("m1",))
        at(2, run="r-2", memory_ids=("m2",))

        assert [each.memory_id for each in seen_by(log, "r-2")] == ["m2"]

    def test_a_memory_is_followed_to_who_wrote_it(self, log, at):
        """Which agent, in which run, from which message."""
        at(1, run="r-0", agent="sales", memory_ids=("m1",), content=Redacted("likes tea"), **WRITE)
        at(2, run="r-1", memory_ids=("m1",))

        (seen,) = seen_by(log, "r-1")

        origin = seen.origin
        assert (origin.run, origin.agent, origin.content) == ("r-0", "sales", '"likes tea"')
        assert (seen.before, seen.since) == ((), ())

    def test_changes_are_told_by_when_they_were(self, log, at):
        """What the run saw was as it had been written by then; what came later is apart."""
        at(1, memory_ids=("m1",), **WRITE)
        at(2, memory_ids=("m1",), **(WRITE | {"method": "update"}))
        at(3, run="r-1", memory_ids=("m1",))
        at(4, memory_ids=("m1",), **(WRITE | {"method": "update"}))
        at(5, memory_ids=("m1",), **DELETE)

        (seen,) = seen_by(log, "r-1")

        assert [row.method for row in seen.before] == ["update"]
        assert [row.method for row in seen.since] == ["update", "delete"]

    def test_a_memory_of_another_collection_is_another(self, log, at):
        """Keys like ``profile`` are in many."""
        at(1, collection="one", memory_ids=("profile",), **WRITE)
        at(2, collection="two", run="r-1", memory_ids=("profile",))

        (seen,) = seen_by(log, "r-1")

        assert seen.origin is None

    def test_a_write_that_failed_is_no_origin(self, log, at):
        """The store never had it."""
        at(1, memory_ids=("m1",), status=Status.ERROR, **WRITE)
        at(2, run="r-1", memory_ids=("m1",))

        (seen,) = seen_by(log, "r-1")

        assert seen.origin is None

    def test_what_was_erased_is_not_told(self, log, at):
        """Nor is it made up."""
        at(1, memory_ids=("m1",), **WRITE)
        at(2, run="r-1", memory_ids=("m1",))

        log.subjects.erase(log.subjects.resolve(ADA, TENANT), TENANT)

        assert seen_by(log, "r-1") == []


class TestNames:
    def test_a_run_named_after_its_customer_is_found_with_their_id(self, log, at):
        """It is recorded without the id, and who asks may know it."""
        at(1, run="<SUBJECT_ID_4456211268f7f611>-7", memory_ids=("m1",))

        assert seen_by(log, f"{ADA}-7") == []
        assert len(seen_by(log, f"{ADA}-7", customer=ADA, tenant=TENANT)) == 1

    def test_such_a_thread_is_a_lead_by_both_names(self, log, at):
        """A checkpointer knows it by the id."""
        at(
            1,
            run="<SUBJECT_ID>-7",
            op_class=OperationClass.CHECKPOINT,
            store="langgraph.checkpoint",
        )

        assert data_subject(log, ADA, TENANT).runs == {"<SUBJECT_ID>-7", f"{ADA}-7"}
        assert verbatim("<SUBJECT_ID>-7", r"\1") == r"\1-7"

    def test_what_was_only_read_is_no_lead(self, log, at):
        """A document that was found for them is not theirs to be forgotten."""
        at(1, run="r-1", memory_ids=("document",))

        found, nothing = data_subject(log, ADA, TENANT), DataSubject(customer=ADA, tenant=TENANT)

        assert replace(found, runs=tuple(found.runs), is_shared=nothing.is_shared) == nothing

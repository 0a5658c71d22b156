"""
What is remembered about a person, and what was only used to answer them.

Every way to write a memory, crossed with everybody for whom it is recalled: the trail at a moment
and the export tell of each person what is true.
"""

from __future__ import annotations

import json
import sqlite3
import zipfile
from contextlib import closing
from itertools import combinations

import orjson
import pytest

from mnemoscope.audit import AuditError, AuditLog
from mnemoscope.audit.bundle.contract import Request
from mnemoscope.audit.bundle.source import source
from mnemoscope.audit.bundle.writing import write_bundle
from mnemoscope.audit.queries.memory_model import remembered_at
from mnemoscope.memory.api import OperationClass, Redacted
from tests.kit.sample_events import PUBLIC

ADA, BOB, TENANT = "ada@example.com", "bob@example.com", "acme"
PEOPLE = (ADA, BOB)
PAGE = "Breakfast is at 8."
WRITERS = {
    "nobody": (None,),
    "the person": (ADA,),
    "another person": (BOB,),
    "nobody, and then the person": (None, ADA),
    "the person, and then nobody": (ADA, None),
    "somebody before the trail began": (),
}
READERS = [each for size in range(4) for each in combinations((ADA, BOB, None), size)]
WRITES = {OperationClass.REMEMBER}
LATER_US = 1_900_000_000_000_000
REQUEST = Request(request_id="20261101-0a0b0c0d", generated_us=LATER_US, version="0.1")


@pytest.fixture
def known(tmp_path, subject_keys, event_factory):
    """Return what records writes and recalls of one page, and reads what is known of each."""

    def record(writers, readers):
        log = AuditLog(f"sqlite:///{tmp_path}/audit.db", subject_keys)
        done = [(OperationClass.REMEMBER, each) for each in writers]
        done += [(OperationClass.RECALL, each) for each in readers]
        for second, (op_class, who) in enumerate(done, 1):
            events = [
                event_factory(
                    customer=who,
                    started_ns=second * 10**9,
                    op_class=op_class,
                    memory_ids=("page",),
                    content=Redacted({"text": PAGE}),
                    method="any",
                )
            ]
            log.append(events)
        for who in PEOPLE:
            # Everybody is known, or there is nobody to ask for.
            log.append([event_factory(customer=who, op_class=OperationClass.MODEL)])
        return log

    return record


def exported(log, who, path):
    with source(log, who, TENANT) as found:
        write_bundle(path, REQUEST, found.evidence, history=found.history, subject=found.subject)
    with zipfile.ZipFile(path) as archive:
        lines = {
            name: [json.loads(line) for line in archive.read(name).splitlines()]
            for name in ("memories.jsonl", "events.jsonl")
        }
        return lines, archive.read("README.html").decode()


@pytest.mark.parametrize("readers", READERS)
@pytest.mark.parametrize("written", WRITERS)
def test_each_statement_about_a_person_is_true(known, tmp_path, written, readers):
    """It is about them if it was written for them, else it was used where it was recalled."""
    writers = WRITERS[written]
    log = known(writers, readers)
    for who in PEOPLE:
        now = remembered_at(log, who, TENANT, LATER_US)
        lines, page = exported(log, who, tmp_path / "export.zip")
        is_theirs, was_used = who in writers, who in readers
        writes = [each for each in lines["events.jsonl"] if each["class"] == "remember"]

        done = [each for each in log.history(who, TENANT) if each.op_class in WRITES]

        assert bool(done) == is_theirs
        assert len(now.remembered) == is_theirs
        assert [each.times for each in now.used] == ([1] if was_used and not is_theirs else [])
        assert len(lines["memories.jsonl"]) == is_theirs
        assert bool(writes) == is_theirs
        assert ("<b>1</b>remembered now" in page) == is_theirs
        assert any(each["class"] == "recall" for each in lines["events.jsonl"]) >= was_used
    log.close()


def test_before_it_was_written_for_them_it_is_not_about_them(known):
    """At a moment only what had happened counts: the page was nobody's, and was used."""
    log = known((None, ADA), ())
    first, second = (remembered_at(log, ADA, TENANT, each * 10**6 + 900_000) for each in (1, 2))
    log.close()

    assert first.remembered == []
    assert [json.loads(each.content)["text"] for each in second.remembered] == [PAGE]


def test_the_words_of_what_was_used_are_told(known):
    """Where the trail has them, beside how often it was used."""
    log = known((None,), (ADA, ADA))
    (used,) = remembered_at(log, ADA, TENANT, LATER_US).used
    log.close()

    assert json.loads(used.content) == {"text": PAGE}
    assert used.times == 2


def test_an_export_counts_what_it_leaves_out_of_such_entries(known, tmp_path):
    """What was written there is nobody's by the trail; that there is something is said."""
    log = known((None, None), (ADA,))
    _lines, page = exported(log, ADA, tmp_path / "export.zip")
    log.close()

    assert "a page of help for example" in page
    assert "2 events name nobody" in page


@pytest.fixture
def with_pages(tmp_path, subject_keys, event_factory):
    """Return a log in which somebody was shown two pages; one is public, as the user said."""
    log = AuditLog(f"sqlite:///{tmp_path}/audit.db", subject_keys)
    for page, parts in (("public", (PUBLIC,)), ("untold", ())):
        written = {"op_class": OperationClass.REMEMBER, "content": Redacted({"text": PAGE})}
        log.append([event_factory(customer=None, memory_ids=(page,), parts=parts, **written)])
        log.append([event_factory(customer=ADA, memory_ids=(page,))])
    yield log
    log.close()


def words(log):
    """Return what the trail has of the content of writes, by memory; None where it is erased."""
    writes = (row for row in log.rows() if row.op_class in WRITES)
    return [None if row.detail is None else row.memories[0].memory_id for row in writes]


def test_an_erasure_leaves_the_writes_of_what_is_nobodys(with_pages):
    """What was only recalled for somebody is not theirs. Where nobody said so it may be."""
    erased = with_pages.subjects.erase(with_pages.subjects.resolve(ADA, TENANT), TENANT)

    assert erased == 3
    assert words(with_pages) == ["public", None]


def test_nobody_makes_a_write_public_afterwards(with_pages, tmp_path):
    """An erasure that believed it would leave the write out."""
    with closing(sqlite3.connect(tmp_path / "audit.db", isolation_level=None)) as connection:
        trigger = "SELECT sql FROM sqlite_master WHERE name = 'audit_event_no_update'"
        (as_it_was,) = connection.execute(trigger).fetchone()
        ((header,),) = connection.execute("SELECT header FROM audit_event WHERE seq = 3")
        connection.execute("DROP TRIGGER audit_event_no_update")
        changed = orjson.dumps(orjson.loads(header) | {"nobodys": True})
        connection.execute("UPDATE audit_event SET header = ? WHERE seq = 3", (changed,))
        connection.execute(as_it_was)

    with pytest.raises(AuditError, match="event 3 is not one of those that were sealed"):
        with_pages.subjects.erase(with_pages.subjects.resolve(ADA, TENANT), TENANT)


def test_an_export_counts_nothing_of_what_is_nobodys(with_pages, tmp_path):
    """It names what may be somebody's: one write, of the other page."""
    _lines, page = exported(with_pages, ADA, tmp_path / "export.zip")

    assert "1 event names nobody" in page


def test_the_words_of_what_is_nobodys_are_told_as_used(with_pages):
    """With those that the trail has."""
    used = remembered_at(with_pages, ADA, TENANT, LATER_US).used

    assert [json.loads(each.content) for each in used] == [{"text": PAGE}] * 2

"""
What is remembered about a person, and what was only used to answer them.

Every way to write a memory, crossed with everybody for whom it is recalled: the trail at a moment
and the export tell of each person what is true.
"""

from __future__ import annotations

import json
import zipfile
from itertools import combinations

import pytest

from mnemoscope.audit import AuditLog
from mnemoscope.audit.bundle.contract import Request
from mnemoscope.audit.bundle.source import source
from mnemoscope.audit.bundle.writing import write_bundle
from mnemoscope.audit.queries.memory_model import remembered_at
from mnemoscope.memory.api import OperationClass, Redacted

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

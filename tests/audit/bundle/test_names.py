"""Names and cells that are more than one line of plain text: found all the same, and never run."""

from __future__ import annotations

import csv
import io
import json

import pytest

from mnemoscope.audit.bundle.logged_memories import LoggedMemories
from mnemoscope.audit.bundle.provenance import ProvenanceIndex
from mnemoscope.audit.bundle.statements import csv_lines
from mnemoscope.audit.bundle.temporary_database import temporary_database
from mnemoscope.audit.queries.blast_radius import blast_radius
from mnemoscope.audit.queries.memory_model import remembered_at
from mnemoscope.telemetry.event.event import OperationClass, Redacted
from mnemoscope.telemetry.text import recorded_name

ODD = ["a\tb", "a\rb", "a\nb", "a\u2028b", "a\u202eb", "a\x00b", "a\ud800b", "\x1b[2Jb"]
WRITTEN = {
    "class": "remember",
    "store": "langgraph.store",
    "occurred_at": "2026-01-01T00:00:00Z",
    "seq": 1,
    "agent": None,
    "purpose": None,
    "origin": "provided",
    "source": None,
    "content": "tea",
    "status": "ok",
    "neutral": False,
    "nested": False,
    "journal": "none",
}


@pytest.mark.parametrize("name", ODD, ids=ascii)
@pytest.mark.parametrize("in_place", [False, True], ids=["key", "collection"])
def test_a_store_and_the_trail_call_a_memory_the_same(name, in_place):
    """The trail has its key in one line; a store's own record has it as it is."""
    key, place = ("m-1", name) if in_place else (name, "notes")
    event = {
        **WRITTEN,
        "collection": recorded_name(place),
        "memories": [{"memory_id": recorded_name(key)}],
    }
    record = {"id": key, "collection": place, "kind": "memory", "content": "tea"}
    database = temporary_database()
    known, remaining = ProvenanceIndex(database), LoggedMemories(database)
    for each in (event, {**event, "collection": "elsewhere"}):
        known.add(each)
        remaining.add(each)
    known.add({**event, "class": "recall"})
    remaining.leave_out("langgraph.store", {**record, "is_current": True})

    _origin, source, used = known.of("langgraph.store", record)
    assert used["times"] == 1
    assert source is not None
    assert [each["collection"] for each in remaining.remembered("langgraph.store")] == ["elsewhere"]
    database.close()


def test_two_names_stay_two(log, event_factory):
    """Memories whose keys differ in such a character alone are not taken for one."""
    for name in ODD:
        given = {"memory_ids": (recorded_name(name),), "content": Redacted(ascii(name))}
        log.append([event_factory(customer="ada", op_class=OperationClass.REMEMBER, **given)])

    found = remembered_at(log, "ada", None, 1_900_000_000_000_000).remembered
    assert sorted(each.content for each in found) == sorted(json.dumps(ascii(each)) for each in ODD)


@pytest.mark.parametrize("name", ODD, ids=ascii)
def test_it_is_found_by_its_own_name(log, event_factory, name):
    """By key and by run, as whoever asks has them from their store."""
    given = {"memory_ids": (recorded_name(name),), "run": recorded_name(name)}
    log.append([event_factory(op_class=OperationClass.REMEMBER, **given)])

    assert len(list(log.rows(memory_id=name))) == 1
    assert len(list(log.rows(run=name))) == 1
    assert len(blast_radius(log, name).memories) == 1


SIGNS = "=+-@|%\uff1d\uff0b\uff0d\uff20\ufe66\ufe62\ufe63\ufe6b\u2212\t\r\n"
BEFORE = ["", " ", "\u00a0", "\ufeff", "\u200b", "\u3000", " \t", "\x00"]


@pytest.mark.parametrize("sign", SIGNS, ids=ascii)
def test_no_cell_is_a_formula(sign):
    """Whatever form its sign has, and whatever stands before it that a spreadsheet leaves out."""
    cells = [f"{before}{sign}HYPERLINK(1)" for before in BEFORE]
    (row,) = csv.reader(io.StringIO(csv_lines([cells]).decode(), newline=""))

    assert [cell for cell in row if not cell.startswith("'")] == []


def test_other_cells_are_as_they_were():
    """Numbers, ids and text with a sign inside it."""
    (row,) = csv.reader(
        io.StringIO(csv_lines([[-1, "m-1", "a=b", None, "", "tea, please"]]).decode())
    )

    assert row == ["-1", "m-1", "a=b", "", "", "tea, please"]

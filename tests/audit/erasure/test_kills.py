"""
An erasure that is killed at any moment is found again by the person's id, and ends with a receipt.

The moments are counted, not listed: before and after each transaction of the trail, each time that
its files are rid of what was deleted, each answer of a store, and the receipt itself.
"""

from __future__ import annotations

from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from mnemoscope.audit import AuditLog, UnknownSubjectError
from mnemoscope.audit.bundle.verify import check
from mnemoscope.audit.erasure.receipt import write_receipt
from mnemoscope.audit.erasure.run import ErasureRun
from mnemoscope.audit.store.person_lookup import CustomerQuery, find_person
from mnemoscope.audit.store.tables import LogTables
from mnemoscope.audit.verification.whole import verify
from mnemoscope.memory.api import Erased, OperationClass, Redacted, SubjectRecord

IDS, TENANT, TEXT = ("ada", "a@example.com"), "acme", "her grandmother's marzipan recipe"
MOST_MOMENTS = 100


class Killed(BaseException):
    """What no handler of an exception meets."""


@dataclass
class Moments:
    """Counts moments, and ends the process at one of them."""

    last: int | None = None
    passed: int = 0

    def __call__(self) -> None:
        self.passed += 1
        if self.passed == self.last:
            raise Killed


@dataclass
class Place:
    """A store that keeps one text in a file, and everything else an application has."""

    path: Path
    moment: Moments
    name: str = "notes"
    title: str = "Notes"
    store: str = "mem0"
    unavailable: str | None = None
    nothing: tuple[Any, ...] = ()
    none: dict[str, Any] = field(default_factory=dict)

    def records(self):
        lines = self.path.read_text().splitlines()
        return (SubjectRecord(kind="memory", id="note-1", content=line) for line in lines)

    def erase(self):
        self.moment()
        count = len(self.path.read_text().splitlines())
        self.path.write_text("")
        self.moment()
        return Erased(count)

    def files(self):
        return (self.path,)


@dataclass
class Everywhere:
    """An application with that store."""

    place: Place

    def settle(self):
        return ()

    def stores(self, _subject):
        return [self.place]

    def erase_pseudonyms(self):
        return None

    def files(self):
        return {}

    def sealed(self):
        return {}


def killing(monkeypatch, moment):
    """Have *moment* called around each transaction, and each time that files are rid of rows."""
    writing, scrub = LogTables.writing, LogTables.scrub

    @contextmanager
    def watched_writing(self):
        moment()
        with writing(self) as given:
            yield given
            moment()  # nothing of it is stored
        moment()

    def watched_scrub(self):
        moment()
        scrub(self)
        moment()

    monkeypatch.setattr(LogTables, "writing", watched_writing)
    monkeypatch.setattr(LogTables, "scrub", watched_scrub)


def erase(log, folder, moment, ids):
    """Do what ``audit erase`` does, up to the receipt."""
    receipt = folder / "receipt.zip"
    with log.reading() as snapshot:
        person = find_person(snapshot, CustomerQuery(customer=ids[0], tenant=TENANT, also=ids[1:]))
    first, *others = person.identities

    def leave(erasure):
        moment()
        names = [each.customer for each in person.identities]
        write_receipt(receipt, log, erasure, identities=names, tenant=TENANT)
        moment()
        return True

    return ErasureRun(
        log,
        Everywhere(Place(folder / "notes.txt", moment)),
        customer=first.customer,
        tenant=first.tenant,
        others=others,
        leave=leave,
    ).run()


def remembered(url, keys, event_factory, folder):
    """Return a log that knows one person by two ids, and somebody else."""
    log = AuditLog(url, keys)
    for name in (*IDS, "bob"):
        content = Redacted({"text": TEXT if name != "bob" else "tea"})
        log.append(
            [event_factory(customer=name, op_class=OperationClass.REMEMBER, content=content)]
        )
    (folder / "notes.txt").write_text(TEXT + "\n")
    return log


def ended(log, folder, ids):
    """Return whether the erasure is over, once it was run again by *ids*."""
    receipt = folder / "receipt.zip"
    try:
        found = erase(log, folder, Moments(), ids)
    except UnknownSubjectError:
        return receipt.exists()
    return found.complete and receipt.exists()


def _close_as_killed(log, folder):
    """Close a log and leave its files as a killed process does: the write-ahead log is whole."""
    left = {path: path.read_bytes() for path in folder.glob("audit.db*")}
    log.tables.close()
    for path, content in left.items():
        path.write_bytes(content)


def run_killed(url_of, keys, event_factory, tmp_path, monkeypatch, moments, ids):
    """Return the moments of *moments* after which an erasure cannot be ended."""
    wrong = []
    for last in moments:
        folder = tmp_path / f"{last}-{len(ids)}"
        folder.mkdir()
        log = remembered(url_of(folder), keys, event_factory, folder)
        moment = Moments(last)
        with monkeypatch.context() as patch:
            killing(patch, moment)
            with suppress(Killed):
                erase(log, folder, moment, IDS)
        _close_as_killed(log, folder)
        if not ended(log, folder, ids) or verify(log).counts["tampered"]:
            wrong.append(last)
        with log.reading() as snapshot:
            left = snapshot.execute(
                "SELECT (SELECT count(*) FROM audit_erasure), (SELECT count(*) FROM "
                "audit_subject_alias), (SELECT count(dek_wrapped) FROM audit_subject)"
            ).fetchone()
        if left != (0, 1, 1) or check(folder / "receipt.zip").problem:
            wrong.append((last, left))
        log.close()
        if moment.passed < last:
            return wrong, moment.passed
    raise AssertionError("an erasure has more moments than were tried")


@pytest.mark.parametrize("ids", [IDS, IDS[::-1]], ids=["as before", "the other way round"])
@pytest.mark.long
def test_whenever_it_is_killed_it_is_found_again(
    ids, tmp_path, subject_keys, event_factory, monkeypatch
):
    """By the ids that were given, in any order: nobody of that name is known, and it goes on."""
    wrong, moments = run_killed(
        lambda folder: folder / "audit.db",
        *(subject_keys, event_factory, tmp_path, monkeypatch, range(1, MOST_MOMENTS), ids),
    )

    assert wrong == []
    assert moments > 15


@pytest.mark.xdist_group("postgres")
@pytest.mark.long
def test_nor_is_it_lost_in_postgresql(postgres, tmp_path, subject_keys, event_factory, monkeypatch):
    """At its last moments: when the person is not known any more."""
    moments = range(13, MOST_MOMENTS, 5)
    wrong, _moments = run_killed(
        lambda _folder: postgres.new_database(),
        *(subject_keys, event_factory, tmp_path, monkeypatch, moments, IDS),
    )

    assert wrong == []


def test_a_receipt_that_cannot_be_written_keeps_the_request(log, event_factory, tmp_path):
    """The next run writes it; and what is kept until then goes with it."""
    log.append([event_factory(customer="ada")])
    (tmp_path / "notes.txt").write_text(TEXT + "\n")
    place = Everywhere(Place(tmp_path / "notes.txt", Moments()))
    given = {"customer": "ada", "tenant": TENANT}
    first = ErasureRun(log, place, **given, leave=lambda _erasure: False).run()
    second = ErasureRun(log, place, **given, leave=lambda _erasure: True).run()

    assert (first.complete, second.complete, second.resumed) == (True, True, True)
    assert second.request == first.request
    with pytest.raises(UnknownSubjectError):
        log.person("ada")

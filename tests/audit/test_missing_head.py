"""
Nobody takes a log whose head was taken away for a log in which nothing is.

The head is one row, which says how many events there are. Whatever reads a log is found here, by
what it takes, and called with a log that is sound, and then with one whose head is gone.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from contextlib import AbstractContextManager, closing
from functools import partial
from pkgutil import resolve_name
from typing import Any

import pytest

from mnemoscope.audit import AuditError, AuditLog
from mnemoscope.memory.api import OperationClass, Redacted

PACKAGES = ("mnemoscope.audit", "mnemoscope.adapters.customer_requests")
MODULES = ("mnemoscope.adapters.deciding", "mnemoscope.adapters.cli.recorded_recalls")
US = 1_700_000_000_000_000
SAMPLES: dict[str, Any] = {
    "age_us": 1,
    "approval": "a-1",
    "case": "c-1",
    "customer": "ada@example.com",
    "first_seq": 0,
    "gate": "tone",
    "ids": ("m-1",),
    "kind": "customer",
    "memory_id": "m-1",
    "moment_us": 2 * US,
    "most": 10,
    "most_age_s": 0.0,
    "name": "verify.ran",
    "names": ("n-1",),
    "now_us": 2 * US,
    "before_us": US - 1,
    "since_us": US,
    "until_us": 2 * US,
    "unused_days": 30,
    "nears": False,
    "collection": None,
    "run": "r-1",
    "seq": 1,
    "store": "mem0",
    "tags": ("t-1",),
    "tenant": "acme",
    "text": "ada@example.com",
    "version": "1",
    "window": 10,
    "writer_id": "00000000000000ab",
}
"""What a reader is given, by the name of its parameter."""

WRITERS = {
    *("AuditLog.append", "AuditLog.append_about", "AuditLog.append_log_event", "AuditLog.record"),
    *("AuditLog.checkpoint", "AuditLog.checkpoint_now", "AuditLog.prune", "AuditLog.scrub"),
    *("AuditLog.close", "Customers.erase", "Customers.erase_unnamed", "Customers.link"),
    *("Customers.merge", "AuditedDecisions.record", "WriteHistory.note"),
}
NOT_ANSWERS = {
    "AuditLog.now_us": "a clock",
    "WriteHistory.now_us": "a clock",
    "AuditLog.shards": "its logs",
    "AuditLog.verdicts": "its logs",
    "AuditLog.parts_of": "its logs, and a person who was found",
    "AuditLog.subjects": "the customers: tested for themselves",
    "AuditLog.find": "takes a query: `AuditLog.person` makes it",
    "verify": "says what was changed",
    "verify_shards": "says what was changed",
    "report_of": "says what was changed",
    "check_notes": "says what was changed",
    "what_waits": "says what is in no log, and of a log that it cannot be read",
    "recalls": "of rows that were read",
    "recipients_of": "of a person who was found",
    "export_from_log": "of a person who was found",
    "examine_person": "of a person who was found",
    "only_part": "of a person who was found",
    "person_in_log": "takes a query: `AuditLog.person` makes it",
    "withdraw": "of memories that were found",
    "data_subject": "of a person who was found",
    "decide": "seals what `held_of` has found",
    "cosign": "signs first",
    "stamp": "signs first: `tests/adapters/cli/test_audit_timestamp.py`",
    "ship": "needs a target: `tests/audit/stream`",
    "customers_by_number": "of cases that were read",
}
"""What takes a log and answers nothing by itself from its events, and why."""


def methods(cls):
    """Yield the public methods and properties of a class that its instances answer by."""
    for name, of in inspect.getmembers(cls):
        if not name.startswith("_") and (inspect.isfunction(of) or isinstance(of, property)):
            yield f"{cls.__name__}.{name}", of


def modules():
    """Yield the modules in which something may take a log."""
    for package in PACKAGES:
        path = importlib.import_module(package).__path__
        yield from (each.name for each in pkgutil.walk_packages(path, f"{package}."))
    yield from MODULES


def functions():
    """Yield the public functions of the packages that take a log first."""
    for found in modules():
        module = importlib.import_module(found)
        for name, of in vars(module).items():
            is_own = inspect.isfunction(of) and of.__module__ == found
            if is_own and not name.startswith("_") and _takes_log(of):
                yield name, of


def _takes_log(function):
    first = next(iter(inspect.signature(function).parameters.values()), None)
    return first is not None and first.annotation in {"AuditLog", "SnapshotSource"}


CLASSES = {
    "mnemoscope.audit.log:AuditLog": lambda log, _cls: log,
    "mnemoscope.audit.write_history:WriteHistory": lambda log, cls: cls(log),
    "mnemoscope.audit.decisions:AuditedDecisions": lambda log, cls: cls(log),
    "mnemoscope.audit.store.customers:Customers": lambda log, _cls: log.subjects,
    "mnemoscope.adapters.console.inbox:Inbox": lambda log, cls: cls(log, None),
}
"""What answers from a log, and how one is made of it."""


def classes():
    """Yield the classes, each with what makes one of a log."""
    for place, make in CLASSES.items():
        cls = resolve_name(place)
        yield cls, partial(_made, make, cls)


def _made(make, cls, log):
    return make(log, cls)


def readers():
    """Return whatever answers from a log: of its name, a call that takes the log."""
    found = {}
    for cls, make in classes():
        for name, of in methods(cls):
            if name not in WRITERS | NOT_ANSWERS.keys():
                found[name] = partial(_answer_of_method, make, of)
    for name, of in functions():
        if name not in NOT_ANSWERS:
            found[name] = partial(_answer, of)
    return found


def _answer_of_method(make, of, log):
    return _answer(of, make(log))


def _answer(of, first):
    """Return all that a reader answers: of a context or an iterator, what is in it."""
    given = list(inspect.signature(of).parameters.values())[1:]
    needed = [each for each in given if each.default is inspect.Parameter.empty]
    needed = [each for each in needed if each.kind is not inspect.Parameter.VAR_KEYWORD]
    answer = of(first, **{each.name: SAMPLES[each.name] for each in needed})
    if isinstance(answer, AbstractContextManager):
        with answer as inside:
            return inside
    return list(answer) if hasattr(answer, "__next__") else answer


READERS = readers()


@pytest.fixture(params=["sqlite", "postgres"])
def log(request, tmp_path, subject_keys, event_factory):
    """Return a log of Ada's, in each database."""
    is_file = request.param == "sqlite"
    url = tmp_path / "audit.db" if is_file else request.getfixturevalue("postgres_url")
    clock = iter(range(US * 1_000, 2 * US * 1_000))
    with closing(AuditLog(url, subject_keys, clock_ns=lambda: next(clock))) as log:
        content = Redacted({"text": "tea"})
        ours = {"memory_ids": ("m-1",), "content": content, "run": "r-1"}
        log.append([event_factory(op_class=OperationClass.REMEMBER, **ours)])
        log.append([event_factory(**ours)])
        log.close()
        yield log


def behead(log):
    """Remove the row that counts, as whoever can write to the database can."""
    with log.tables.database.writing() as connection:
        connection.execute("DELETE FROM audit_log")
    log.close()


@pytest.mark.long_but_each(4)
@pytest.mark.parametrize("name", READERS)
def test_reader_says_that_the_head_is_gone(log, name):
    """Its answer would be of a log in which nothing is."""
    read = READERS[name]
    try:
        read(log)  # of a sound one: it is called as it should be
    except AuditError as exc:
        pytest.fail(f"{name} does not answer of a sound log: {type(exc).__name__}")
    behead(log)

    with pytest.raises(AuditError, match="the head that counts them was taken away"):
        read(log)


def test_head_of_no_events_is_the_same(log):
    """A head that says that there are none is no better than no head."""
    with log.tables.database.writing() as connection:
        connection.execute("UPDATE audit_log SET size = 0")
    log.close()

    with pytest.raises(AuditError, match="the head that counts"), log.begun():
        pass


def test_log_without_events_is_none_whose_head_is_gone(tmp_path, subject_keys):
    """Of one that was never written, and of one whose tables alone are there."""
    with closing(AuditLog(tmp_path / "audit.db", subject_keys)) as log:
        with log.begun() as before:
            assert before is None
        with log.tables.database.writing():
            pass
        with log.begun() as made:
            assert made is None


def test_verification_says_so_beside_whatever_else_it_finds(log):
    """It reads the log as it is: to tell what was changed is its task."""
    behead(log)
    found = resolve_name("mnemoscope.audit.verification.whole:verify")(log)

    assert found.state == "tampered"
    assert found.origin == ""


def test_all_that_takes_a_log_is_known_here():
    """What answers, what writes and what does neither are named, and none that is not there."""
    there = {name for cls, _make in classes() for name, _of in methods(cls)}
    there |= {name for name, _of in functions()}

    assert {*WRITERS, *NOT_ANSWERS} <= there

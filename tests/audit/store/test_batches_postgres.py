"""What a batch costs on a PostgreSQL, in answers that are waited for: the same on any network."""

from __future__ import annotations

import sys
import tempfile
from collections import Counter
from itertools import count

import pytest

from mnemoscope.audit import AuditLog
from mnemoscope.memory.api import Subject

pytestmark = [
    pytest.mark.xdist_group("postgres"),
    pytest.mark.skipif(sys.platform != "linux", reason="libpq tells its messages on Linux alone"),
]

SEEN = {"memory_ids": ("m-1",), "scores": (0.5,), "run": "r", "collection": "c"}
_WAITED_FOR = ("ReadyForQuery", "CopyInResponse")
"""What a server says that a client cannot go on without."""


@pytest.fixture
def log(postgres_url, subject_keys):
    log = AuditLog(postgres_url, subject_keys)
    yield log
    log.close()


@pytest.fixture
def messages(log, event_factory, subject_keys):
    """Return what counts the messages of a batch with so many new customers, once all is warm."""
    log.append([event_factory(**SEEN) for _ in range(256)])
    connection = log.tables._writer._database._connection
    numbers = count()

    def counted(size, new):
        batch = [event_factory(**SEEN) for _ in range(size - new)]
        batch += [
            event_factory(
                **SEEN, subject=Subject(f"c-{next(numbers)}", tenant="acme", keys=subject_keys)
            )
            for _ in range(new)
        ]
        with tempfile.TemporaryFile("r+") as trace:
            connection.pgconn.trace(trace.fileno())
            log.append(batch)
            connection.pgconn.untrace()
            trace.seek(0)
            told = (
                line.rstrip().split("\t") for line in trace
            )  # what a statement says has lines as well
            return Counter(each[3] for each in told if each[1:2] in (["F"], ["B"]))

    return counted


def answers(found):
    return sum(found[each] for each in _WAITED_FOR)


@pytest.mark.parametrize("size", [1, 64, 200])
def test_answers_that_are_waited_for_do_not_grow_with_the_batch(messages, size):
    """The head of the log, what was recorded before, and the end with all that was written."""
    assert answers(messages(size, new=0)) == 3


@pytest.mark.parametrize("new", [1, 5, 64])
def test_answers_do_not_grow_with_the_new_customers(messages, new):
    """All are looked for by one query, and travel with the events."""
    assert answers(messages(64, new)) == 4


@pytest.mark.parametrize("new", [1, 5, 64])
def test_statements_do_not_grow_with_the_new_customers(messages, new):
    """One for each table, those of customers and of their aliases, the head and its note."""
    assert messages(64, new)["Parse"] <= 12

"""When a relay is started for applications, and when it ends."""

from __future__ import annotations

import fcntl
import logging
import os

import pytest

from mnemoscope.telemetry.relay import starter
from tests.kit.children import exit_code_of_child
from tests.kit.patience import until

from .test_relay import fill

HOUR_NS = 3_600_000_000_000


class Behind:
    """A feed that is so far behind."""

    def __init__(self, behind_bytes: int) -> None:
        self.bytes = behind_bytes

    def behind_bytes(self) -> int:
        return self.bytes


@pytest.fixture
def lock(driven):
    """Return the lock of the folder, which a relay has."""
    return driven().lock


@pytest.fixture
def joined(folder):
    """Return a function that begins the presence of an application."""
    made = []

    def join() -> starter.RelayStarter:
        folder.mkdir(mode=0o700, exist_ok=True)
        made.append(starter.RelayStarter(folder, b"{}", {"PATH": os.environ["PATH"]}))
        return made[-1]

    yield join
    for each in made:
        each.close()


def is_free(folder) -> bool:
    """Return whether no relay has the folder."""
    with (folder / "relay.lock").open() as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
    return True


def test_it_ends_where_nobody_is_and_nothing_is_left(folder, lock):
    """And is no relay any more from then on, so that the next application starts another one."""
    over = starter.Attendance(folder, lock).is_over([Behind(0)], 0.0)

    assert (over, is_free(folder)) == (True, True)


def test_it_stays_while_an_application_lives(folder, lock, joined):
    """Whether that has done anything or not."""
    application = joined()
    attendance = starter.Attendance(folder, lock)
    while_it_lives = attendance.is_over([], 10 * starter.PATIENCE_S)
    application.close()

    assert while_it_lives is False
    assert attendance.is_over([], 10 * starter.PATIENCE_S)


def test_it_stays_while_something_is_left(folder, lock, writers, event_factory):
    """Until nothing has moved for a minute: then it leaves the files to the next relay."""
    fill(writers(), event_factory, [1])
    attendance, feed = starter.Attendance(folder, lock), Behind(500)
    first = attendance.is_over([feed], 0.0)
    before = attendance.is_over([feed], starter.PATIENCE_S - 1.0)
    feed.bytes = 400
    moved = attendance.is_over([feed], starter.PATIENCE_S + 1.0)
    after = attendance.is_over([feed], 2 * starter.PATIENCE_S)

    assert [first, before, moved, after] == [False] * 4
    assert not is_free(folder)
    assert attendance.is_over([feed], 2 * starter.PATIENCE_S + 1.0)
    assert len([*folder.glob("*.events")]) == 1


def test_its_patience_begins_when_the_last_application_goes(folder, lock, joined, writers):
    """A back end may have been away for long by then."""
    writer, application = writers(), joined()
    attendance = starter.Attendance(folder, lock)
    attendance.is_over([], 0.0)
    application.close()
    (folder / "left.events").touch()
    found = attendance.is_over([], 10 * starter.PATIENCE_S)
    writer.close()

    assert found is False


def test_a_child_that_is_forked_counts_as_an_application(folder, lock, joined):
    """It needs the relay for as long as it lives, and ends its own part alone."""
    application = joined()
    attendance = starter.Attendance(folder, lock)

    def ends_its_part() -> bool:
        application.close()
        return True

    assert exit_code_of_child(ends_its_part) == 0
    assert not attendance.is_over([], 0.0)


def test_a_relay_that_died_is_started_again_and_said_once(folder, joined, caplog):
    """By an application that has something to deliver; these die at once, of their settings."""
    with caplog.at_level(logging.WARNING, "mnemoscope.relay"):
        application = joined()
        assert until(lambda: is_free(folder))
        application.look(0)  # not yet
        too_early = len(caplog.records)
        application.look(4 * 10**18)
        assert until(lambda: len(caplog.records) == 1)
        assert until(lambda: is_free(folder))
        application.look(4 * 10**18 + HOUR_NS)
        until(lambda: not is_free(folder))

    assert (too_early, len(caplog.records)) == (0, 1)
    assert "has died" in caplog.text

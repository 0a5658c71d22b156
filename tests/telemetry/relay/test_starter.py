"""When a relay is started for applications, and when it ends."""

from __future__ import annotations

import fcntl
import json
import logging
import os
import sys
import time
from itertools import count

import pytest

from mnemoscope.telemetry.relay import starter
from tests.kit.children import exit_code_of_child
from tests.kit.patience import until

from .test_relay import fill

HOUR_NS = 3_600_000_000_000

ENDING_RELAY = """
import os

def serve(_said, folder, _lock_fd):
    open(f"{folder}/started-{os.getpid()}", "w").close()
"""


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


def test_its_patience_begins_when_the_last_application_goes(folder, lock, joined):
    """A back end may have been away for long by then."""
    (folder / "left.events").touch()
    attendance = starter.Attendance(folder, lock)
    attendance.is_over([], 0.0)
    application = joined()
    attendance.is_over([], starter.PATIENCE_S - 1.0)
    application.close()

    assert not attendance.is_over([], starter.PATIENCE_S + 1.0)
    assert attendance.is_over([], 2 * starter.PATIENCE_S + 1.0)


def test_a_child_that_is_forked_counts_as_an_application(folder, lock, joined):
    """It needs the relay for as long as it lives, and ends its own part alone."""
    application = joined()
    attendance = starter.Attendance(folder, lock)

    def ends_its_part() -> bool:
        application.close()
        return True

    assert exit_code_of_child(ends_its_part) == 0
    assert not attendance.is_over([], 0.0)


def test_a_relay_that_died_is_started_again_and_said_once(folder, tmp_path, caplog):
    """By an application that has something to deliver. These relays end as soon as they begin."""
    package = tmp_path / "modules" / "mnemoscope" / "memory"
    package.mkdir(parents=True)
    for each in (package, package.parent):
        (each / "__init__.py").touch()
    (package / "relay_process.py").write_text(ENDING_RELAY)
    message = json.dumps({"path": [*sys.path, str(tmp_path / "modules")][::-1]}).encode()
    folder.mkdir(mode=0o700)
    now = count(4 * 10**18, HOUR_NS)

    def started(times: int, application: starter.RelayStarter) -> bool:
        if len([*folder.glob("started-*")]) < times:
            application.look(next(now))
        return len([*folder.glob("started-*")]) >= times

    with caplog.at_level(logging.WARNING, "mnemoscope.relay"):
        application = starter.RelayStarter(folder, message, {"PATH": os.environ["PATH"]})
        assert until(lambda: len([*folder.glob("started-*")]) == 1)
        application.look(time.time_ns())  # not yet
        too_early = len(caplog.records)
        assert until(lambda: started(2, application))
        assert until(lambda: started(3, application))
        now = count(10**18, -HOUR_NS)  # the clock was set back, and goes back at each look
        assert until(lambda: started(4, application))
        application.close()

    assert (too_early, len(caplog.records)) == (0, 1)
    assert "has died" in caplog.text

"""The lock that forks respect."""

from __future__ import annotations

import os
import threading
import time

import pytest

from mnemoscope.telemetry.process.fork_lock import ForkLock, SqliteLock
from tests.kit.children import exit_code_of_child, somebody_inside
from tests.kit.patience import GIVE_UP_S

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs os.fork")


def test_a_fork_waits_for_whoever_is_inside():
    """A child never begins in the middle of what the guard protects."""
    guard, entered, state = ForkLock(), threading.Event(), ["outside"]

    def work():
        with guard:
            state[0] = "inside"
            entered.set()
            threading.Event().wait(0.05)
            state[0] = "done"

    thread = threading.Thread(target=work)
    thread.start()
    entered.wait()
    code = exit_code_of_child(lambda: state[0] == "done")
    thread.join()

    assert code == 0


def test_a_fork_waits_for_a_moment_only():
    """A host is not held up by a thread that stays inside; the child is free, and is told."""
    guard, free = ForkLock(0.01), ForkLock(0.01)

    def enter():
        with guard, free:
            return guard.is_torn and not free.is_torn

    with somebody_inside(guard):
        code = exit_code_of_child(enter)

    assert code == 0
    assert not guard.is_torn


def test_sqlite_is_torn_by_whoever_uses_it():
    """A lock that is held by a thread that has begun nothing leaves nothing behind."""
    used, held = SqliteLock(), SqliteLock()
    used.patience_s = held.patience_s = 0.01

    with somebody_inside(used, held._lock):
        code = exit_code_of_child(lambda: used.is_torn and not held.is_torn)

    assert code == 0


def test_locks_are_waited_for_together():
    """However many are held: no longer than for the most patient of them."""
    guards = [ForkLock(0.5) for _ in range(1_000)]

    with somebody_inside(*guards):
        began_s = time.monotonic()
        code = exit_code_of_child(lambda: all(each.is_torn for each in guards))
        waited_s = time.monotonic() - began_s

    assert code == 0
    assert waited_s < 1_000 * 0.5 / 2  # one by one it would be all of it


def test_a_thread_may_go_from_one_lock_into_another():
    """A fork holds none of them while it waits for one: it would wait for itself."""
    outer, inner = ForkLock(GIVE_UP_S), ForkLock(GIVE_UP_S)
    entered, go_on = threading.Event(), threading.Event()

    def work():
        with outer:
            entered.set()
            go_on.wait()
            with inner:
                pass

    thread = threading.Thread(target=work)
    thread.start()
    entered.wait()
    threading.Timer(0.05, go_on.set).start()
    code = exit_code_of_child(lambda: not outer.is_torn and not inner.is_torn)
    thread.join()

    assert code == 0


def test_the_parent_goes_on_after_a_fork():
    """The guard is free again when the fork is done."""
    guard = ForkLock()
    code = exit_code_of_child(lambda: True)

    with guard:
        assert code == 0

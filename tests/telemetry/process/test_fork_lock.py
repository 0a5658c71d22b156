"""The lock that forks respect."""

from __future__ import annotations

import os
import threading

import pytest

from mnemoscope.telemetry.process.fork_lock import ForkLock
from tests.kit.children import exit_code_of_child

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


def test_a_fork_waits_for_a_moment_only(monkeypatch):
    """A host that forks is not held up by somebody who stays inside; the child is free anyway."""
    monkeypatch.setattr("mnemoscope.telemetry.process.fork_lock.PATIENCE_S", 0.01)
    guard = ForkLock()

    def enter():
        with guard:
            return True

    with guard:
        code = exit_code_of_child(enter)

    assert code == 0


def test_the_parent_goes_on_after_a_fork():
    """The guard is free again when the fork is done."""
    guard = ForkLock()
    code = exit_code_of_child(lambda: True)

    with guard:
        assert code == 0

"""The lock that forks respect."""

from __future__ import annotations

import os
import threading
import warnings

import pytest

from mnemoscope.telemetry.fork_guard import ForkGuard

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs os.fork")


def exit_code_of_child(work):
    """Fork, and return what *work* returns in the child."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if not child:
        os._exit(work())
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def test_a_fork_waits_for_whoever_is_inside():
    """A child never begins in the middle of what the guard protects."""
    guard, entered, state = ForkGuard(), threading.Event(), ["outside"]

    def work():
        with guard:
            state[0] = "inside"
            entered.set()
            threading.Event().wait(0.05)
            state[0] = "done"

    thread = threading.Thread(target=work)
    thread.start()
    entered.wait()
    code = exit_code_of_child(lambda: int(state[0] != "done"))
    thread.join()

    assert code == 0


def test_a_fork_waits_for_a_moment_only(monkeypatch):
    """A host that forks is not held up by somebody who stays inside; the child is free anyway."""
    monkeypatch.setattr("mnemoscope.telemetry.fork_guard.PATIENCE_S", 0.01)
    guard = ForkGuard()

    def enter():
        with guard:
            return 7

    with guard:
        code = exit_code_of_child(enter)

    assert code == 7


def test_the_parent_goes_on_after_a_fork():
    """The guard is free again when the fork is done."""
    guard = ForkGuard()
    code = exit_code_of_child(lambda: 0)

    with guard:
        assert code == 0

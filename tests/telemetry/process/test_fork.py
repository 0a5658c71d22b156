"""What a forked child must forget."""

from __future__ import annotations

import gc
import os

from mnemoscope.telemetry.process import fork
from mnemoscope.telemetry.process.fork import reset_after_fork
from tests.kit.children import exit_code_of_child


class Thing:
    """
    Something that counts its forks.

    Attributes:
        pid: The process it belongs to.
    """

    def __init__(self, *, fails=False):
        self.pid = os.getpid()
        self.fails = fails
        reset_after_fork(self)

    def forked(self):
        """Note the new process."""
        if self.fails:
            raise RuntimeError
        self.pid = os.getpid()


def in_child(work) -> bool:
    """Return whether *work* returned true in a forked child."""
    return exit_code_of_child(lambda: bool(work())) == 0


def test_everything_alive_starts_anew():
    """In the child, before any code there; the parent is not touched."""
    things = [Thing() for _ in range(10)]
    parent = os.getpid()

    assert in_child(lambda: all(thing.pid == os.getpid() != parent for thing in things))
    assert all(thing.pid == parent for thing in things)


def test_one_that_fails_does_not_keep_the_others():
    """They would have locks that nobody will ever release."""
    things = [Thing(fails=n == 5) for n in range(10)]

    assert in_child(lambda: sum(thing.pid == os.getpid() for thing in things) == 9)


def test_children_of_children_start_anew():
    """As under a server that forks twice to become a daemon."""
    thing = Thing()

    assert in_child(lambda: in_child(lambda: thing.pid == os.getpid()))


def test_nothing_is_kept_alive():
    """What is gone needs no reset."""
    gc.collect()
    before = len(fork._living)
    for _ in range(100):
        Thing()
    gc.collect()

    assert len(fork._living) <= before

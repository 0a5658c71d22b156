"""Forked children of a test process, and threads that are inside something meanwhile."""

from __future__ import annotations

import os
import signal
import threading
import warnings
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import Any

from tests.kit.patience import GIVE_UP_S


def exit_code_of_child(work: Callable[[], object]) -> int:
    """
    Fork, do *work* in the child, and return how that ended.

    Returns:
        0: done. 1: it raised. 2: it returned False. -14: it took longer than anything takes.
    """
    with warnings.catch_warnings(action="ignore", category=DeprecationWarning):
        child = os.fork()  # that the process has threads is what is tested
    if child == 0:
        code = 1
        try:
            # The handler of a test's own time limit raises, here too.
            signal.signal(signal.SIGALRM, signal.SIG_DFL)
            signal.alarm(int(GIVE_UP_S))
            code = 2 if work() is False else 0
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


@contextmanager
def somebody_inside(*bodies: AbstractContextManager[Any]) -> Generator[None]:
    """Have a thread inside of all *bodies*, locks or writes, during this one."""
    entered, end = threading.Event(), threading.Event()

    def stay() -> None:
        with ExitStack() as stack:
            for each in bodies:
                stack.enter_context(each)
            entered.set()
            end.wait()

    thread = threading.Thread(target=stay)
    thread.start()
    entered.wait()
    try:
        yield
    finally:
        end.set()
        thread.join()

"""Processes that are killed at any moment, and what they had said by then."""

from __future__ import annotations

import os
import select
import signal
import time
import warnings
from collections.abc import Callable, Iterable

FIRST_S = 60.0
"""Seconds within which one of them says something, on a machine however slow."""


def said_by_killed(
    names: Iterable[str], work: Callable[[str, int], None], life_s: float, *, is_begun: bool
) -> dict[str, bytes]:
    """
    Have processes work for a while, kill them together, and return what each had said.

    Args:
        names: One for each process.
        work: Called with a name and a descriptor to write to.
        life_s: Seconds from their start until they are killed.
        is_begun: From the time that one of them says something instead.
    """
    lives = {name: _begun(name, work) for name in names}
    if is_begun:
        select.select([pipe for _child, pipe in lives.values()], [], [], FIRST_S)
    time.sleep(life_s)
    for child, _pipe in lives.values():
        os.kill(child, signal.SIGKILL)
    said = {}
    for name, (child, pipe) in lives.items():
        os.waitpid(child, 0)
        with open(pipe, "rb") as told:  # noqa: PTH123 - a descriptor
            said[name] = told.read()
    return said


def _begun(name: str, work: Callable[[str, int], None]) -> tuple[int, int]:
    reading, writing = os.pipe()
    with warnings.catch_warnings(action="ignore"):  # threads of other tests are not ours
        child = os.fork()
    if child:
        os.close(writing)
        return child, reading
    try:
        os.close(reading)
        work(name, writing)
    finally:
        os._exit(1)

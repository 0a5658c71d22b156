"""The folder of a relay: the right to read it, and the sign of life of whoever does."""

from __future__ import annotations

import os
import secrets
import time
from collections.abc import Callable
from pathlib import Path

import msgspec

from ..files.file_lock import FileLock, try_lock
from ..queue.folder import files_in, open_folder

LOCK_NAME = "relay"
_BEAT = "beat.json"
SILENT_AFTER_S = 10.0
"""Seconds without a sign of life after which a relay is not there."""

BEHIND_AFTER_S = 60.0
"""Age of the oldest event that a sink has not taken from which the relay is called behind."""


class Beat(msgspec.Struct, frozen=True, kw_only=True):
    """
    A relay's sign of life.

    Attributes:
        at: When, seconds since 1970.
        behind_bytes: What the slowest of its sinks has not taken.
        lag_s: Age of the oldest event in that.
    """

    pid: int
    at: float
    behind_bytes: int = 0
    lag_s: float = 0.0
    slowest: str = ""


class FolderTakenError(Exception):
    """Another relay reads the folder. One line: which."""


def take_folder(path: Path) -> FileLock:
    """
    Make *path* the folder of this process's relay, until that is released.

    Raises:
        OSError: It cannot be used.
        FolderTakenError: Another relay reads it.
    """
    open_folder(path)
    lock = try_lock(path / LOCK_NAME)
    if lock is None:
        found = last_beat(path)
        holder = f"process {found.pid}" if found is not None else "another process"
        raise FolderTakenError(f"{holder} reads {path} already: a folder has one relay")
    beat(path, Beat(pid=os.getpid(), at=time.time()))
    return lock


def beat(folder: Path, said: Beat) -> None:
    """
    Give a sign of life.

    Raises:
        OSError: It cannot be given.
    """
    draft = folder / f".{_BEAT}.{secrets.token_hex(4)}"
    draft.write_bytes(msgspec.json.encode(said))
    draft.chmod(0o600)
    # Renamed into place, so that nobody reads half of it.
    draft.replace(folder / _BEAT)


def last_beat(folder: Path) -> Beat | None:
    """Return the latest sign of life; None: there never was one, or it cannot be read."""
    try:
        return msgspec.json.decode((folder / _BEAT).read_bytes(), type=Beat)
    except (OSError, msgspec.MsgspecError):
        return None


def silent_s(folder: Path, clock: Callable[[], float] = time.time) -> float | None:
    """
    Return the seconds since the latest sign of life; None: there never was one.

    Of a sign from a time that is to come it is not known when it was given: as long ago, at least,
    as clocks disagree, since whoever lives soon gives another by the clock as it is now.
    """
    try:
        return abs(clock() - (folder / _BEAT).stat().st_mtime)
    except OSError:
        return None


class RelayState(msgspec.Struct, frozen=True, kw_only=True):
    """
    How a folder and its relay are.

    Attributes:
        problem: What is wrong; None: nothing is.
        is_alive: Whether a relay reads it.
    """

    problem: str | None
    is_alive: bool
    detail: str


def standing(folder: Path, clock: Callable[[], float] = time.time) -> RelayState:
    """Return how *folder* and its relay are. Changes nothing."""
    found, waiting = last_beat(folder), f"{_size_of(folder):,} bytes in {folder}"
    start = f"start `mnemoscope relay {folder}`"
    if found is None:
        said = f"no relay reads {folder}: {start}"
        return RelayState(problem=said, is_alive=False, detail=f"{said}; {waiting}")
    age_s = abs(clock() - found.at)  # see `silent_s`
    if age_s > SILENT_AFTER_S:
        said = f"the relay of {folder} was last seen {age_s:,.0f} s ago: {start}"
        return RelayState(problem=said, is_alive=False, detail=f"{said}; {waiting}")
    detail = f"process {found.pid} reads {folder}, {found.behind_bytes:,} bytes behind"
    if found.lag_s > BEHIND_AFTER_S:
        said = f"{detail}: {found.slowest} has not taken events of {found.lag_s:,.0f} s ago"
        return RelayState(problem=said, is_alive=True, detail=said)
    return RelayState(problem=None, is_alive=True, detail=detail)


def _size_of(folder: Path) -> int:
    try:
        return sum(each.stat().st_blocks * 512 for each in files_in(folder))
    except OSError:  # one was removed meanwhile
        return 0

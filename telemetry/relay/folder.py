"""The folder of a relay: its files, whose they may be, and the relay's sign of life."""

from __future__ import annotations

import os
import secrets
import stat
import time
from collections.abc import Callable
from pathlib import Path

import msgspec

from ..event.subject import SubjectKeys
from ..files.file_lock import FileLock, try_lock
from .event_file import SUFFIX

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
        pid: Its process.
        at: When, seconds since 1970.
        behind_bytes: What the slowest of its sinks has not taken.
        lag_s: Age of the oldest event in that.
        slowest: That sink.
    """

    pid: int
    at: float
    behind_bytes: int = 0
    lag_s: float = 0.0
    slowest: str = ""


def open_folder(path: Path) -> None:
    """
    Make the folder, for its owner alone, if it is missing.

    Raises:
        OSError: It cannot be made, or others may look into it.
    """
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    problem = folder_problem(path)
    if problem is not None:
        raise PermissionError(f"{path} {problem}")


def folder_problem(path: Path) -> str | None:
    """
    Return why *path* is unfit, to follow its name in a message; None if it is fit.

    Raises:
        OSError: It is not there, or cannot be looked at.
    """
    found = path.stat()
    if not stat.S_ISDIR(found.st_mode):
        return "is not a folder"
    if found.st_uid != os.geteuid():
        return f"belongs to user {found.st_uid}, and this process runs as {os.geteuid()}"
    if found.st_mode & (stat.S_IRWXG | stat.S_IRWXO):
        return (
            f"is open to other users (mode {stat.S_IMODE(found.st_mode):04o}): run `chmod 700` on "
            "it, or name a folder that does not exist yet"
        )
    return None


def refusal(path: Path) -> str | None:
    """Return in a line why no process can leave events in *path*; None: nothing speaks against."""
    try:
        problem = folder_problem(path)
    except FileNotFoundError:
        if path.is_symlink():
            return f"{path} is a link to what is not there"
        parent = next(each for each in path.absolute().parents if each.exists())
        usable = parent.is_dir() and os.access(parent, os.W_OK | os.X_OK)
        problem = None if usable else f"cannot be made in {parent}"
    except OSError as exc:
        problem = f"cannot be looked at: {exc.strerror}"
    else:
        if problem is None and not os.access(path, os.W_OK | os.X_OK):
            problem = "cannot be written"
    return None if problem is None else f"{path} {problem}"


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


def file_name(writer_id: str, number: int) -> str:
    """Return the name of a writer's file with that number."""
    return f"{writer_id}-{number:08d}{SUFFIX}"


def writer_of(path: Path) -> str:
    """Return whose file that is."""
    return path.name.partition("-")[0]


def files_in(folder: Path) -> list[Path]:
    """Return the files of events, the older ones of each writer first."""
    return sorted(folder.glob(f"*{SUFFIX}"))


def key_id(keys: SubjectKeys) -> str:
    """Return what tells by which keys a file was written, and nothing else of them."""
    return keys.key("relay/key-id").hex()[:16]


def writer_key(keys: SubjectKeys, salt: str) -> bytes:
    """Return the key of one writer's records."""
    return keys.key(f"relay/{salt}")


def beat(folder: Path, said: Beat) -> None:
    """
    Give a sign of life.

    Raises:
        OSError: It cannot be given.
    """
    draft = folder / f".{_BEAT}.{secrets.token_hex(4)}"
    draft.write_bytes(msgspec.json.encode(said))
    draft.chmod(0o600)
    draft.replace(folder / _BEAT)


def last_beat(folder: Path) -> Beat | None:
    """Return the latest sign of life; None: there never was one, or it cannot be read."""
    try:
        return msgspec.json.decode((folder / _BEAT).read_bytes(), type=Beat)
    except (OSError, msgspec.MsgspecError):
        return None


def silent_s(folder: Path, clock: Callable[[], float] = time.time) -> float | None:
    """Return the seconds since the latest sign of life; None: there never was one."""
    try:
        return max(0.0, clock() - (folder / _BEAT).stat().st_mtime)
    except OSError:
        return None


class Standing(msgspec.Struct, frozen=True, kw_only=True):
    """
    How a folder and its relay are.

    Attributes:
        problem: What is wrong; None: nothing is.
        is_alive: Whether a relay reads it.
        detail: In a line.
    """

    problem: str | None
    is_alive: bool
    detail: str


def standing(folder: Path, clock: Callable[[], float] = time.time) -> Standing:
    """Return how *folder* and its relay are. Changes nothing."""
    found, waiting = last_beat(folder), f"{_size_of(folder):,} bytes in {folder}"
    start = f"start `mnemoscope relay {folder}`"
    if found is None:
        said = f"no relay reads {folder}: {start}"
        return Standing(problem=said, is_alive=False, detail=f"{said}; {waiting}")
    age_s = max(0.0, clock() - found.at)
    if age_s > SILENT_AFTER_S:
        said = f"the relay of {folder} was last seen {age_s:,.0f} s ago: {start}"
        return Standing(problem=said, is_alive=False, detail=f"{said}; {waiting}")
    detail = f"process {found.pid} reads {folder}, {found.behind_bytes:,} bytes behind"
    if found.lag_s > BEHIND_AFTER_S:
        said = f"{detail}: {found.slowest} has not taken events of {found.lag_s:,.0f} s ago"
        return Standing(problem=said, is_alive=True, detail=said)
    return Standing(problem=None, is_alive=True, detail=detail)


def _size_of(folder: Path) -> int:
    try:
        return sum(each.stat().st_blocks * 512 for each in files_in(folder))
    except OSError:  # one was removed meanwhile
        return 0

"""The folder of a queue: whose it may be, its files and their keys."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from ..event.subject import SubjectKeys
from .event_file import SUFFIX


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


def file_name(writer_id: str, number: int) -> str:
    """Return the name of a writer's file with that number."""
    return f"{writer_id}-{number:08d}{SUFFIX}"


def writer_of(path: Path) -> str:
    """Return the writer in the name of a file."""
    return path.name.partition("-")[0]


def files_in(folder: Path) -> list[Path]:
    """Return the files of events, the older ones of each writer first."""
    # Numbers in names have eight digits, so that they sort as text.
    return sorted(folder.glob(f"*{SUFFIX}"))


def key_id(keys: SubjectKeys) -> str:
    """Return what tells by which keys a file was written, and nothing else of them."""
    # Derived, so that it can stand in clear in the file's head.
    return keys.key("relay/key-id").hex()[:16]


def writer_key(keys: SubjectKeys, salt: str) -> bytes:
    """Return the key of one writer's records."""
    return keys.key(f"relay/{salt}")

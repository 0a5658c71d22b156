"""Files with a secret: made for their owner alone, and checked to be so."""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from pathlib import Path


def create_private(path: Path) -> None:
    """
    Create *path*, and its folder, for their owner alone, if they are missing.

    A file that is there is not opened: closing a descriptor of a live database would drop this
    process's locks on it.

    Raises:
        OSError: It cannot be created.
    """
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with suppress(FileExistsError):
        # With its mode from the first moment: between a creation and a `chmod` anybody could open
        # it.
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))


def permission_problem(path: Path) -> str | None:
    """
    Return why *path* is unfit for a secret, to follow its name in a message; None if it is fit.

    Raises:
        OSError: It is not there, or cannot be looked at.
    """
    mode = path.stat().st_mode
    if not stat.S_ISREG(mode):
        return "is not a file"
    # Of its group, too: who is in that changes, and nobody looks here then.
    if mode & (stat.S_IRWXG | stat.S_IRWXO):
        return (
            f"is open to other users (mode {stat.S_IMODE(mode):04o}): run `chmod 600` on it, and "
            "think about who has read it"
        )
    return None

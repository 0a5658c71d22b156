"""A check that a file with a secret is accessible to its owner alone."""

from __future__ import annotations

import stat
from pathlib import Path


def permission_problem(path: Path) -> str | None:
    """
    Return why *path* is unfit for a secret, to follow its name in a message; None if it is fit.

    Raises:
        OSError: It is not there, or cannot be looked at.
    """
    mode = path.stat().st_mode
    if not stat.S_ISREG(mode):
        return "is not a file"
    if mode & (stat.S_IRWXG | stat.S_IRWXO):
        return (
            f"is open to other users (mode {stat.S_IMODE(mode):04o}): run `chmod 600` on it, and "
            "think about who has read it"
        )
    return None

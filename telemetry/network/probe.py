"""Checks that a back end can be reached, which send no data of ours."""

from __future__ import annotations

import errno
import os
import socket
from ipaddress import ip_address
from pathlib import Path
from tempfile import TemporaryFile
from typing import Final

from ..delivery.sink import DeliveryError
from ..process.late_imports import LATE_IMPORTS
from .timeouts import time_limit

_PROBE: Final = bytes(4_096)
"""Enough for a full disk to refuse."""


def connect(host: str, port: int, timeout_s: float) -> None:
    """
    Connect and hang up.

    Raises:
        DeliveryError: Nobody listens there.
    """
    try:
        socket.create_connection((host, port), timeout_s).close()
    # A host name with an empty or too long label raises UnicodeError while it is encoded.
    except (OSError, UnicodeError) as exc:
        reason = getattr(exc, "strerror", None) or "no answer in time"
        raise DeliveryError(f"nobody listens at {host}:{port} ({reason.lower()})") from exc


def is_loopback(host: str) -> bool:
    """Return whether who listens at *host* is heard on this machine alone."""
    # Not `name.localhost`: a table of hosts may lead it elsewhere.
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def is_this_machine(host: str) -> bool:
    """Return whether *host* is a name or an address of the loopback interface."""
    return is_loopback(host) or host.endswith(".localhost")


def status_of(url: str, timeout_s: float) -> int | None:
    """Return the HTTP status that *url* answers a GET with, or None where nobody does."""
    with LATE_IMPORTS:
        import requests  # noqa: PLC0415 - only for sinks that speak HTTP

        from .http import BoundedSession  # noqa: PLC0415 - see above

    try:
        with time_limit(timeout_s), BoundedSession() as session:
            return session.get(url).status_code
    except (requests.RequestException, OSError, ValueError):
        return None


def try_writing(path: Path) -> None:
    """
    Try whether *path* can be written or created, and leave nothing behind.

    A file that is there is not opened, since closing it would drop this process's locks on it if it
    is a database: it is judged by its permissions. Where there is none, another one is made in the
    nearest folder, and removed.

    Raises:
        OSError: It cannot.
    """
    # The nearest that exists: missing folders are made with the first write.
    existing = next(each for each in (path.absolute(), *path.absolute().parents) if each.exists())
    if existing == path.absolute() and existing.is_dir():
        raise _refusal(errno.EISDIR)
    if existing != path.absolute() and not existing.is_dir():
        raise _refusal(errno.ENOTDIR)
    # First, and for the file itself: a folder that takes new files may hold one that is read-only.
    if not os.access(existing, os.W_OK):
        raise _refusal(errno.EROFS if _is_read_only(existing) else errno.EACCES)
    if existing != path.absolute():
        # `access` says yes of a full disk and of a quota that is used up.
        with TemporaryFile(dir=existing, buffering=0) as file:
            file.write(_PROBE)


def _is_read_only(path: Path) -> bool:
    return bool(os.statvfs(path).f_flag & os.ST_RDONLY)


def _refusal(code: int) -> OSError:
    return OSError(code, os.strerror(code))

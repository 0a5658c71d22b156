"""
Addresses of databases, for adapters that tell what a client writes to.

Two databases that are taken for one would have one's writes made in the other. So an address is
told where it is certain; where it is not, the database is None, and its user may name it.
"""

from __future__ import annotations

import ctypes
import os
import struct
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import TypeVar
from urllib.parse import quote, urlsplit

from ...memory.database import Database

T = TypeVar("T")

PORTS = {"http": 80, "https": 443}

_HERE, _BIRTH = -100, 0x800
"""Of statx(2): relative to the working directory; the time of birth."""
_STATX_BYTES = 256
_BIRTH_AT = 80


def result_or_none(tell: Callable[[], T | None]) -> T | None:
    """Return the result of *tell*, or None if *tell* raises."""
    try:
        return tell()
    except Exception:  # noqa: BLE001 - a client of another make or version: it is not known
        return None


def in_file(kind: str, path: str | Path) -> Database | None:
    """
    Return the database that is the file or folder at *path*. None: its system tells too little.

    Its device and inode, since one file has many paths. Its birth, since the inode of a file that
    was deleted is the next one's.

    Raises:
        OSError: There is no such file.
    """
    found = Path(path).stat()
    # An inode is given out again, to another file: with the time of birth it is one file's alone.
    born_ns = _born_ns(path, found)
    if born_ns is None:
        return None
    return Database(kind, f"file {found.st_dev}:{found.st_ino}:{born_ns}")


def _born_ns(path: str | Path, found: os.stat_result) -> int | None:
    told_s: float | None = getattr(found, "st_birthtime", None)
    if told_s is not None:
        return int(getattr(found, "st_birthtime_ns", told_s * 1e9))
    statx = _statx()
    if statx is None:
        return None
    answer = ctypes.create_string_buffer(_STATX_BYTES)
    if statx(_HERE, os.fsencode(path), 0, _BIRTH, answer) != 0:
        return None
    (known,) = struct.unpack_from("=I", answer)
    seconds, nanoseconds = struct.unpack_from("=qI", answer, _BIRTH_AT)
    return int(seconds * 1_000_000_000 + nanoseconds) if known & _BIRTH else None


@lru_cache(maxsize=1)
def _statx() -> Callable[..., int] | None:
    """Return Linux's statx(2), which `os.stat` does not ask. None: there is none here."""
    here = os.name == "posix"
    found: Callable[..., int] | None = getattr(ctypes.CDLL(None), "statx", None) if here else None
    return found


def server_address(url: str) -> str | None:
    """
    Return host, port and path of *url*, whoever logs in and however encrypted. None: it has more.

    Raises:
        KeyError: It names no port, and its scheme none either.
    """
    parts = urlsplit(url)
    # What more an address says may lead elsewhere.
    if not parts.hostname or parts.query or parts.fragment:
        return None
    port = parts.port or PORTS[parts.scheme]
    return f"{part(parts.hostname)}:{port}{parts.path.rstrip('/')}"


def part(name: str) -> str:
    """Return *name* as a part of an address, which no other part can run into."""
    return quote(name, safe="")

"""
A scan of files for texts of what was erased.

A store that answers that it has nothing may still have it in its files. The longest texts are
chosen: they are the least likely to be anybody else's too. A text that two customers share is found
again, and said to be found: that is a question for a person. What redaction put into a text is
ours, and everybody's: it is never looked for.
"""

from __future__ import annotations

import bz2
import gzip
import heapq
import json
import lzma
import os
import re
import zlib
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from stat import S_ISDIR, S_ISREG
from typing import IO, Any

from ...telemetry.event.sink_pseudonyms import PSEUDONYM
from ..queries.text_extraction import texts

Needle = tuple[bytes, ...]
"""A text in each of the forms in which it may be written."""

MAX_TEXTS = 24
"""Texts that one run adds to those that are looked for, at most."""

MAX_IDS = 1_000
_ID = re.compile(r"[0-9a-f-]{32,64}")
"""What no other record has by chance: a UUID or a digest, and no key such as ``profile``."""

_LEAST_CHARS = 12
_MOST_CHARS = 64
_PLAIN = re.compile(rf'[^\x00-\x1f"\\]{{{_LEAST_CHARS},}}')
"""What is the same in a database and in JSON, but for letters that JSON may escape."""

_SQLITE = b"SQLite format 3\0"
_OURS = re.compile(rf"{PSEUDONYM.pattern}|<[A-Z][A-Z0-9_]{{1,63}}>|\*{{8}}|\[REDACTED:\w+\]")
"""What redaction writes: pseudonyms and digests, tags, masks, and what could not be redacted."""

_TELLING = re.compile(r"[\s\d]")
"""A sentence has spaces, an id has digits; ``last-message`` is a key that every customer has."""

_BLOCK_BYTES = 1 << 20

_COMPRESSED: Mapping[str, Callable[..., Any] | None] = {
    ".gz": gzip.open,
    ".bz2": bz2.open,
    ".xz": lzma.open,
    **dict.fromkeys((".zst", ".zip", ".lz4", ".7z", ".br")),
}
"""What opens a log that was rotated and compressed. None: it cannot be read here."""


class ResidueTexts:
    """
    The longest of the texts that were offered, and those that runs before looked for.

    Args:
        kept: Those. They stay, whatever else is offered.
    """

    def __init__(self, kept: Iterable[str] = ()) -> None:
        self._kept = frozenset(kept)
        self._heap: list[tuple[int, str]] = []
        self._known: set[str] = set()
        for each in self._kept:
            self._push(each)

    def offer(self, content: Any) -> None:
        """Add the texts in *content*, of JSON types, if they are among the longest."""
        for text in texts(content):
            for part in _OURS.split(text):
                for piece in _PLAIN.findall(part):
                    # The beginning of a long one is enough to find it, and fits into one block's
                    # overlap.
                    self._take(piece.strip()[:_MOST_CHARS])

    def _take(self, piece: str) -> None:
        if len(piece) >= _LEAST_CHARS and piece not in self._known and _TELLING.search(piece):
            self._push(piece)

    def _push(self, piece: str) -> None:
        self._known.add(piece)
        heapq.heappush(self._heap, (len(piece), piece))
        # The shortest goes: it is the most likely to be in somebody else's records, too.
        if len(self._heap) > MAX_TEXTS:
            self._known.discard(heapq.heappop(self._heap)[1])

    def __len__(self) -> int:
        """Return how many there are."""
        return len(self.texts())

    def texts(self) -> frozenset[str]:
        """Return the kept and the longest pieces of text, to search files for."""
        return self._kept | {piece for _length, piece in self._heap}

    def needles(self) -> list[Needle]:
        """Return each as it may be written: in UTF-8, and as JSON with its letters escaped."""
        return [_written(piece) for piece in sorted(self.texts())]


def _written(piece: str) -> Needle:
    # A lone surrogate is stored so by SQLite and JSON alike, and must not end the search.
    plain = piece.encode("utf-8", "surrogatepass")
    return tuple(dict.fromkeys((plain, json.dumps(piece)[1:-1].encode())))


@dataclass(frozen=True, slots=True)
class Search:
    """
    The result of a search of files.

    Attributes:
        traces: How many of the texts are in them.
        where: Names of the files that have one.
        unread: Names of the files that could not be read.
    """

    traces: int = 0
    where: tuple[str, ...] = ()
    unread: tuple[str, ...] = ()


def search(needles: Iterable[Needle], paths: Iterable[Path]) -> Search:
    """Look for *needles* in the files at or under *paths*."""
    wanted = list(needles)
    found: set[int] = set()
    where: list[str] = []
    unread: list[str] = []
    for path in files_under(paths, unread.append):
        try:
            here = _found_in(path, wanted)
        except (OSError, EOFError, lzma.LZMAError, zlib.error, _UnreadableError):
            unread.append(path.name)
            continue
        found |= here
        if here:
            where.append(path.name)
    return Search(len(found), tuple(where), tuple(unread))


def ids_in_files(ids: Iterable[str], paths: Iterable[Path]) -> tuple[int, tuple[str, ...]]:
    """Return how many of *ids* are in files, as in `search`, and which of these were not read."""
    telling = [(each.encode(),) for each in ids if _ID.fullmatch(each)]
    found = search(telling[:MAX_IDS], paths)
    return found.traces, found.unread


class _UnreadableError(Exception):
    """A file is compressed in a way that cannot be read here."""


def _found_in(path: Path, wanted: Sequence[Needle]) -> set[int]:
    found: set[int] = set()
    for block in _blocks(path):
        found |= {
            number
            for number, forms in enumerate(wanted)
            # Once is enough: what is counted is texts, not places.
            if number not in found and any(form in block for form in forms)
        }
    return found


def files_under(paths: Iterable[Path], unread: Callable[[str], object]) -> Iterator[Path]:
    """
    Yield the files at or under *paths*; what is gone by then is nowhere.

    What cannot be looked into is told to *unread*, by its name.
    """
    for path in paths:
        try:
            mode = path.stat().st_mode
        except FileNotFoundError:
            continue
        except OSError:
            unread(path.name)
            continue
        if S_ISREG(mode):
            yield path
        elif S_ISDIR(mode):
            for folder, _folders, names in os.walk(path, onerror=lambda exc: unread(_name(exc))):
                # Opening a pipe to read waits until somebody writes to it.
                inside = [Path(folder) / name for name in sorted(names)]
                yield from (each for each in inside if not each.is_fifo() and not each.is_socket())


def _name(exc: OSError) -> str:
    return Path(str(exc.filename)).name


def _blocks(path: Path) -> Iterator[bytes]:
    with suppress(FileNotFoundError), _reading(path) as read:
        before = b""
        while block := read(_BLOCK_BYTES):
            yield before + block
            # A text may begin in one block and end in the next; none is as long as this.
            before = block[-_BLOCK_BYTES // 256 :]


@contextmanager
def _reading(path: Path) -> Generator[Callable[[int], bytes]]:
    fd = _kept_open(path)
    if fd is None:
        with _opened(path) as file:
            yield file.read
        return
    places = count(0, _BLOCK_BYTES)
    yield lambda size: os.pread(fd, size, next(places))


_databases: dict[tuple[int, int], int] = {}
"""Descriptors of the databases that were read in this process, by device and inode."""


def _kept_open(path: Path) -> int | None:
    """Return a descriptor of a SQLite database, which stays open; None: it is another file."""
    found = path.stat()
    known = _databases.get((found.st_dev, found.st_ino))
    if known is not None:
        return known
    fd = os.open(path, os.O_RDONLY)
    if os.pread(fd, len(_SQLITE), 0) != _SQLITE:
        os.close(fd)
        return None
    for place, each in [*_databases.items()]:
        if not os.fstat(each).st_nlink:  # nobody can open it any more
            os.close(_databases.pop(place))
    # To close one descriptor of a file gives up every lock that the process has on it. Then another
    # process takes itself for the database's last reader, and removes the log that is written here.
    _databases[found.st_dev, found.st_ino] = fd
    return fd


def _opened(path: Path) -> IO[bytes]:
    opened = _COMPRESSED.get(path.suffix, open)
    # Said to be unread, rather than searched as it is: compressed text is found nowhere.
    if opened is None:
        raise _UnreadableError
    file: IO[bytes] = opened(path, "rb")
    return file

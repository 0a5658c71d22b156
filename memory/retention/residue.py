"""The look for ids of removed records in the files of a store on this machine."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

MOST_IDS: Final = 1_000
_BLOCK_BYTES: Final = 1 << 20
_TELLING = re.compile(r"[0-9a-f-]{32,64}")
"""What no other record has by chance: a UUID or a digest, and no key such as ``profile``."""


def ids_in_files(ids: Sequence[str], files: Sequence[Path]) -> int:
    """Return how many of the first ids that can be told apart stand in *files*, or below them."""
    wanted = [each.encode() for each in ids if _TELLING.fullmatch(each)][:MOST_IDS]
    if not wanted:
        return 0
    pattern = re.compile(b"|".join(map(re.escape, wanted)))
    found: set[bytes] = set()
    for path in _paths(files):
        found.update(_found(path, pattern, overlap=max(map(len, wanted))))
    return len(found)


def _paths(files: Sequence[Path]) -> Iterator[Path]:
    for path in files:
        yield from (each for each in (path, *path.rglob("*")) if each.is_file())


def _found(path: Path, pattern: re.Pattern[bytes], *, overlap: int) -> Iterator[bytes]:
    try:
        with path.open("rb") as opened:
            before = b""
            while block := opened.read(_BLOCK_BYTES):
                yield from pattern.findall(before + block)
                before = block[-overlap:]
    except FileNotFoundError:  # a log that its database has emptied meanwhile
        return

"""Whether something is still in the files of a store, byte by byte."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path


def found_in(paths: Iterable[Path], *words: str) -> set[str]:
    """Return those of *words* that some file under *paths* has in it."""
    folders = [*paths]
    while True:
        with suppress(FileNotFoundError):  # a live store has replaced one meanwhile: look again
            contents = [each.read_bytes() for each in _files(folders) if each.is_file()]
            return {word for word in words if any(word.encode() in each for each in contents)}


def _files(paths: Iterable[Path]) -> list[Path]:
    return [each for path in paths for each in ([path] if path.is_file() else path.rglob("*"))]

"""Whether something is still in the files of a store, byte by byte."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path


def found_in(paths: Iterable[Path], *words: str) -> set[str]:
    """Return those of *words* that some file under *paths* has in it."""
    files = [each for path in paths for each in ([path] if path.is_file() else path.rglob("*"))]
    contents = [each.read_bytes() for each in files if each.is_file()]
    return {word for word in words if any(word.encode() in content for content in contents)}

"""Overlapping chunks of a long text, for models and patterns that cannot take it whole."""

from __future__ import annotations

from collections.abc import Iterator


def split_into_chunks(
    text: str, *, size: int = 2_000, overlap: int = 120
) -> Iterator[tuple[int, str]]:
    """Yield the offset and text of each chunk, which ends after a space where possible."""
    start = 0
    while len(text) - start > size:
        end = start + size
        space = max(text.rfind(" ", end - overlap, end), text.rfind("\n", end - overlap, end))
        end = space + 1 if space != -1 else end
        yield start, text[start:end]
        start = end - overlap
    yield start, text[start:]

"""Long texts in overlapping pieces, for models and patterns that cannot take them whole."""

from __future__ import annotations

from collections.abc import Iterator


def chunks(text: str, *, size: int = 2_000, overlap: int = 120) -> Iterator[tuple[int, str]]:
    """Yield where each piece of *text* begins, and the piece. It ends after a space if it can."""
    start = 0
    while len(text) - start > size:
        end = start + size
        space = max(text.rfind(" ", end - overlap, end), text.rfind("\n", end - overlap, end))
        end = space + 1 if space != -1 else end
        yield start, text[start:end]
        start = end - overlap
    yield start, text[start:]

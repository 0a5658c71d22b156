"""
Redaction of text that arrives in pieces.

Each part is held back until no later piece can change it. The text is cut into segments, each
redacted by itself. The cuts depend on the text alone and not on how it arrived: after a sentence,
after a paragraph, or, where neither ends for long, between two words that no identifier joins. A
part that cannot be cut so is replaced.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from ..detectors.lazy_pattern import compile_later
from .content import FAILED
from .operators import OVERSIZE

HELD_CHARS = 600
"""Characters that are held back at most while no sentence ends."""

KEY_CHARS = 24_576
"""The same while a private key is open: it has no sentences and must not be cut."""

WHOLE_CHARS = 65_536
"""The same for a text that is held back until its end."""

_END = compile_later(
    r"(?<![\w'\u2019.-])(?!(?:prof|capt|dept|univ|corp|blvd|approx|assn|asst|phone|mobile|apartment)\.)"
    r"[a-z]{4,}[.!?][\"')\]”]*[ \n]+(?=[^\W\d]|[\"'(\[“*_#-])"
    r"|\n[ \t]*\n\s*(?=\S)"
    r"|[\u3002\uff01\uff1f]\s*(?=[^\s\d])"
)
_OPEN_KEY = compile_later(r"-----BEGIN (?!.*-----END )", re.DOTALL)
_CANDIDATES = 4
_TAIL = 80
"""Characters that must follow a forced cut: they may belong to what comes before it."""


class StreamingText:
    """
    One text that arrives in pieces. Not thread-safe.

    Args:
        redact: Redacts a segment.
        whole: Hold the text back until its end, as for JSON.
        failed: Called with the error of *redact*; the segment is replaced.
    """

    def __init__(
        self,
        redact: Callable[[str], str],
        *,
        whole: bool = False,
        failed: Callable[[Exception], None] | None = None,
    ) -> None:
        self._redact = redact
        self._whole = whole
        self._failed = failed
        self._held = ""
        self._in_word = False
        self._dropping = False

    def __repr__(self) -> str:
        """Show the length only: the text is not redacted yet."""
        return f"StreamingText({len(self._held)} characters held)"

    def feed(self, piece: str) -> str:
        """Add the next piece and return the redacted text that is ready."""
        if self._dropping:
            return ""
        self._held += self._after_word(piece)
        return "".join(self._ready())

    def end(self) -> str:
        """Return the redacted rest of the text."""
        held, self._held = self._held, ""
        return self._safe(held) if held else ""

    def _after_word(self, piece: str) -> str:
        """Return *piece* without the rest of a word whose beginning was replaced."""
        if not self._in_word:
            return piece
        space = re.search(r"\s", piece)
        self._in_word = space is None
        return piece[space.start() :] if space else ""

    def _ready(self) -> Iterator[str]:
        if self._whole:
            if len(self._held) > WHOLE_CHARS:
                yield self._give_up()
            return
        while (cut := self._cut()) is not None:
            if cut == 0:
                yield self._unsearchable()
                continue
            segment, self._held = self._held[:cut], self._held[cut:]
            yield self._safe(segment)

    def _cut(self) -> int | None:
        """Return where to cut the held text. None: not yet; 0: nowhere."""
        limit = KEY_CHARS if _OPEN_KEY.search(self._held[:HELD_CHARS]) else HELD_CHARS
        window = self._held[:limit]
        for match in _END.finditer(window):
            if not _OPEN_KEY.search(window[: match.end()]):
                return match.end()
        return self._between_words(window) if len(self._held) >= limit else None

    def _between_words(self, window: str) -> int:
        """Return the last cut at which *window* is redacted the same in two parts as in one."""
        if _OPEN_KEY.search(window):
            return 0
        whole = self._safe(window)
        middle, last = len(window) // 2, len(window) - _TAIL
        for mark in ("\n", " "):
            cut = last
            for _ in range(_CANDIDATES):
                cut = window.rfind(mark, middle, cut)
                if cut == -1:
                    break
                if self._safe(window[: cut + 1]) + self._safe(window[cut + 1 :]) == whole:
                    return cut + 1
        return 0

    def _unsearchable(self) -> str:
        """Replace text that cannot be cut, to the end of its last word."""
        if _OPEN_KEY.search(self._held):
            return self._give_up()
        rest, self._held, self._in_word = self._held[HELD_CHARS:], "", True
        self._held = self._after_word(rest)
        return OVERSIZE

    def _give_up(self) -> str:
        self._held, self._dropping = "", True
        return OVERSIZE

    def _safe(self, segment: str) -> str:
        try:
            return self._redact(segment)
        except Exception as exc:  # noqa: BLE001 - fails closed: replaced, never passed
            if self._failed is not None:
                self._failed(exc)
            return FAILED


def redact_streamed(
    text: str,
    redact: Callable[[str], str],
    *,
    failed: Callable[[Exception], None] | None = None,
) -> str:
    """Return *text* redacted as if it had arrived in pieces; see `StreamingText`."""
    segments = StreamingText(redact, failed=failed)
    return segments.feed(text) + segments.end()

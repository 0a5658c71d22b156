"""
Text that arrives in pieces, redacted as it comes: held back until no piece to come can change it.

A text is cut into segments, each redacted as a text of its own. Where it is cut depends on the text
alone and not on how it arrived: after a sentence, after a paragraph, or, where neither ends for
long, between two words that no identifier joins. What cannot be cut so is replaced.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from .content import FAILED
from .operators import OVERSIZE

HELD_CHARS = 600
"""Characters that are held back at most, while there is no end of a sentence."""

KEY_CHARS = 24_576
"""Likewise while a private key is open: it has no sentences, and must not be cut."""

WHOLE_CHARS = 65_536
"""Characters of a text that is held back until its end."""

_END = re.compile(
    r"(?<![\w'\u2019.-])(?!(?:prof|capt|dept|univ|corp|blvd|approx|assn|asst|phone|mobile|apartment)\.)"
    r"[a-z]{4,}[.!?][\"')\]”]*[ \n]+(?=[^\W\d]|[\"'(\[“*_#-])"
    r"|\n[ \t]*\n\s*(?=\S)"
    r"|[\u3002\uff01\uff1f]\s*(?=[^\s\d])"
)
_OPEN_KEY = re.compile(r"-----BEGIN (?!.*-----END )", re.DOTALL)
_CANDIDATES = 4
_TAIL = 80
"""Characters before a forced cut that must have been seen after it: what announces the next."""


class Segments:
    """
    One text that arrives in pieces. For one thread at a time.

    Args:
        redact: Redacts a segment.
        whole: Hold the text back until its end: for what makes no sense before, as JSON.
        failed: Is told what *redact* raised; the segment is replaced.
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
        """Never what is held back."""
        return f"Segments({len(self._held)} characters held)"

    def feed(self, piece: str) -> str:
        """Take the next piece, and return what is ready of the text, redacted."""
        if self._dropping:
            return ""
        self._held += self._after_word(piece)
        return "".join(self._ripe())

    def end(self) -> str:
        """Return the rest of the text, redacted."""
        held, self._held = self._held, ""
        return self._safe(held) if held else ""

    def _after_word(self, piece: str) -> str:
        """Drop the rest of a word whose beginning was replaced."""
        if not self._in_word:
            return piece
        space = re.search(r"\s", piece)
        self._in_word = space is None
        return piece[space.start() :] if space else ""

    def _ripe(self) -> Iterator[str]:
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
        """Return where to cut what is held: None: not yet, 0: nowhere."""
        limit = KEY_CHARS if _OPEN_KEY.search(self._held[:HELD_CHARS]) else HELD_CHARS
        window = self._held[:limit]
        for match in _END.finditer(window):
            if not _OPEN_KEY.search(window[: match.end()]):
                return match.end()
        return self._between_words(window) if len(self._held) >= limit else None

    def _between_words(self, window: str) -> int:
        """Return the last place where *window* reads the same in two parts as in one."""
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
        """Replace what cannot be cut, to the end of its last word."""
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
        except Exception as exc:  # noqa: BLE001 - closed on confidentiality: replaced, never passed
            if self._failed is not None:
                self._failed(exc)
            return FAILED


def redacted_in_segments(
    text: str,
    redact: Callable[[str], str],
    *,
    failed: Callable[[Exception], None] | None = None,
) -> str:
    """Return *text* redacted as if it had arrived in pieces; see `Segments`."""
    segments = Segments(redact, failed=failed)
    return segments.feed(text) + segments.end()

"""
Text as it is densely encoded: without what stands for personal data.

To an embedder a pseudonym is a dozen tokens, so any two texts that hold one look alike, and a tag
draws all texts with a tag together. Left out, they cost nothing: what is asked and what is
remembered meet by what they say. Whom they are about is matched by words, where stand-ins stay.
"""

from __future__ import annotations

import re

from ..detectors.lazy_pattern import compile_later

_EMPTY_PAIR = compile_later(r"[ \t]?(?:\(\)|\[\]|\{\}|\"\"|\u201c\u201d|\u2018\u2019|\u00ab\u00bb)")
_COMMA_BEFORE_STOP = compile_later(r"(?:[ \t]?,){1,8}(?=[ \t]?[.,;:!?])")


class EmbeddedText:
    """
    Returns texts as they are to be densely encoded.

    Args:
        stand_ins: Regular expression of what redaction writes.
    """

    def __init__(self, stand_ins: str) -> None:
        one = rf"(?:{stand_ins})(?:['\u2019]s\b)?"
        self._removed = compile_later(
            rf"^[ \t]{{0,4}}(?:{one}[ \t,;:.!?]{{0,4}})+"
            rf"|[ \t]?{one}(?=[\s,.;:!?)\]}}\"\u2019\u201d]|\Z)"
            rf"|{one}",
            re.MULTILINE,
        )

    def of(self, text: str) -> str:
        """
        Return *text* without stand-ins, and without what they leave behind: spaces, brackets, 's.

        Where nothing with a letter or digit would be left, the text is returned as it is.
        """
        left, count = self._removed.subn("", text)
        if not count:
            return text
        left = _COMMA_BEFORE_STOP.sub("", _EMPTY_PAIR.sub("", left)).strip()
        return left if any(map(str.isalnum, left)) else text

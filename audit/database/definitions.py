"""The words of a definition in SQL, by which two are compared: comments and space tell nothing."""

from __future__ import annotations

import re

_WORD = re.compile(
    r"""
      [ \t\n\f\r]+ | --[^\n]* | /\*.*?(?:\*/|\Z)
    | (?P<word>
        [xX]?'(?:[^']|'')*' | "(?:[^"]|"")*" | `(?:[^`]|``)*` | \[[^\]]*\]
      | [\w$]+ | .)
    """,
    re.VERBOSE | re.DOTALL,
)


def words_of(sql: str) -> tuple[str, ...]:
    """Return the words of *sql*: what is in quotes is one word, to the letter."""
    found = (match["word"] for match in _WORD.finditer(sql))
    # SQLite keeps a definition as it was typed, so that releases differ in spaces and comments
    # alone.
    return tuple(word for word in found if word is not None)

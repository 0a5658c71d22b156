"""
What a text says once its disguises are off, with the way back to the original's offsets.

Full-width letters, invisible characters, percent-, HTML- and JSON-escapes, and ``name at host dot
com`` hide an identifier from patterns, not from a reader or a browser. Detection looks at a view
in which they are undone; replacement happens in the original. Plain ASCII text is its own view.
"""

from __future__ import annotations

import base64
import binascii
import html
import re
import unicodedata
from array import array
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import NamedTuple
from urllib.parse import unquote_to_bytes

_OBFUSCATION = re.compile(
    r"(?P<percent>(?:%[0-9A-Fa-f]{2})+)"
    r"|(?P<html>&(?:\#[0-9]{1,7}|\#[xX][0-9A-Fa-f]{1,6}|[A-Za-z]{2,8});)"
    r"|(?P<json>\\(?:u[0-9A-Fa-f]{4}|x[0-9A-Fa-f]{2}|[nrt\"/\\]))"
    r"|(?P<at>[ ]?[(\[{][ ]?(?:at|AT|At|@)[ ]?[)\]}][ ]?|(?<=\w)[ ]at[ ](?=[\w-]{1,63}[ ](?:dot"
    r"|DOT|punkt)[ ]\w))"
    r"|(?P<dot>[ ]?[(\[{][ ]?(?:dot|DOT|Dot|\.)[ ]?[)\]}][ ]?|(?<=\w)[ ](?:dot|DOT)[ ](?=\w))"
    r"|(?P<odd>[^\x00-\x7f][\u0300-\u036f]*|[\x00-\x7f][\u0300-\u036f]+)"
)
_ESCAPED = re.compile(
    r"%[0-9A-Fa-f]{2}|&(?:\#|[A-Za-z]{2,8};)|\\(?:u[0-9A-Fa-f]{4}|x[0-9A-Fa-f]{2}|[nrt\"/\\])"
)
_SPELLED_OUT = re.compile(r"[(\[{] ?(?:at|AT|At|@|dot|DOT|Dot|\.)| (?:dot|DOT) ")
_JSON_SHORT = {"n": "\n", "r": "\r", "t": "\t", '"': '"', "/": "/", "\\": "\\"}
_BASE64 = re.compile(
    r"[A-Za-z0-9+/_-](?<![A-Za-z0-9+/_=-].)[A-Za-z0-9+/_-]{15,4095}={0,2}(?![A-Za-z0-9+/_=-])"
)


class NormalizedText(NamedTuple):
    """
    A text with its obfuscations undone, and where each character came from.

    Attributes:
        text: The text that the detectors search.
        starts: For each character, the offset in the original where it starts. None: the text is
            the original.
        ends: For each character, the offset in the original where it ends.
    """

    text: str
    starts: array[int] | None = None
    ends: array[int] | None = None

    def __repr__(self) -> str:
        """Show the length only: the text may hold personal data."""
        return f"NormalizedText({len(self.text)} characters)"

    def original_span(self, start: int, end: int) -> tuple[int, int]:
        """Return the span of the original that a non-empty span of this text stands for."""
        if self.starts is None or self.ends is None:
            return start, end
        return self.starts[start], self.ends[end - 1]


def normalize_text(text: str) -> NormalizedText:
    """Return *text* with its obfuscations undone."""
    plain = text.isascii() or (unicodedata.is_normalized("NFKC", text) and not _has_invisible(text))
    if plain and not _may_be_obfuscated(text):
        return NormalizedText(text)
    return _undo(text) if _OBFUSCATION.search(text) else NormalizedText(text)


def decode_base64_parts(text: str) -> Iterator[tuple[int, int, str]]:
    """Yield the spans of base64 in *text* that decode to readable text, and that text."""
    for match in _BASE64.finditer(text):
        if decoded := _decoded(match.group()):
            yield match.start(), match.end(), decoded


def _may_be_obfuscated(text: str) -> bool:
    escaped = "%" in text or "&" in text or "\\" in text
    # Cheaper than the pattern, which looks at every character.
    spelt = "(" in text or "[" in text or "{" in text or " dot " in text or " DOT " in text
    return bool((escaped and _ESCAPED.search(text)) or (spelt and _SPELLED_OUT.search(text)))


def _undo(text: str) -> NormalizedText:
    pieces: list[str] = []
    starts, ends = array("l"), array("l")

    def put(piece: str, start: int, end: int) -> None:
        pieces.append(piece)
        for _ in piece:
            starts.append(start)
            ends.append(end)

    def copy(start: int, end: int) -> None:
        pieces.append(text[start:end])
        starts.extend(range(start, end))
        ends.extend(range(start + 1, end + 1))

    done = 0
    for match in _OBFUSCATION.finditer(text):
        found, (start, end) = match.group(), match.span()
        undone = _UNDO[match.lastgroup or "odd"](found)
        if undone == found:
            continue
        if done < start:
            copy(done, start)
        put(undone, start, end)
        done = end
    copy(done, len(text))
    return NormalizedText("".join(pieces), starts, ends)


def _has_invisible(text: str) -> bool:
    return any(unicodedata.category(char) == "Cf" for char in set(text))


def _from_percent(escaped: str) -> str:
    return unquote_to_bytes(escaped).decode("utf-8", "replace")


def _from_json(escaped: str) -> str:
    short = _JSON_SHORT.get(escaped[1])
    return short if short is not None else _from_odd(chr(int(escaped.lstrip("\\ux"), base=16)))


def _from_odd(char: str) -> str:
    return _plain(char) if len(char) < _CACHED_CHARS else _composed(char)


def _composed(char: str) -> str:
    if unicodedata.category(char[0]) in {"Cf", "Cc"}:
        return ""
    return unicodedata.normalize("NFKC", char)


_CACHED_CHARS = 3
_plain = lru_cache(maxsize=4_096)(_composed)
"""Caches single characters only, which tell nothing of a text."""

_UNDO: dict[str, Callable[[str], str]] = {
    "percent": _from_percent,
    "html": html.unescape,
    "json": _from_json,
    "at": lambda _: "@",
    "dot": lambda _: ".",
    "odd": _from_odd,
}


def _decoded(token: str) -> str | None:
    if token.isalpha() and (token.islower() or token.isupper()):
        return None
    try:
        raw = base64.b64decode(
            token.rstrip("=") + "=" * (-len(token.rstrip("=")) % 4),
            b"-_" if "-" in token or "_" in token else b"+/",
        )
        text = raw.decode()
    except (binascii.Error, UnicodeDecodeError):
        return None
    return text if text.isprintable() or text.replace("\n", "").isprintable() else None

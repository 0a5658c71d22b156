"""
What a text says once its disguises are off, with the way back to the original's offsets.

Full-width letters, other scripts' digits, invisible characters, percent-, HTML- and JSON-escapes,
and ``name at host dot com`` hide an identifier from patterns, not from a reader or a browser.
Detection looks at a view in which they are undone; replacement happens in the original. A text
without disguises is its own view.
"""

from __future__ import annotations

import base64
import binascii
import html
import unicodedata
from array import array
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from typing import NamedTuple
from urllib.parse import unquote_to_bytes

from .disguises import Edit, find_disguises, may_spell_disguise
from .lazy_pattern import compile_later
from .prefilter import TextFeatures

_ESCAPED = compile_later(
    r"(?P<percent>(?:%[0-9A-Fa-f]{2})+)"
    r"|(?P<html>&(?:\#[0-9]{1,7}|\#[xX][0-9A-Fa-f]{1,6}|[A-Za-z]{2,8});)"
    r"|(?P<json>\\(?:u[0-9A-Fa-f]{4}|x[0-9A-Fa-f]{2}|[nrt\"/\\]))"
)
_ODD = compile_later(r"[^\x00-\x7f][\u0300-\u036f]*|[\x00-\x7f][\u0300-\u036f]+")
_JSON_SHORT = {"n": "\n", "r": "\r", "t": "\t", '"': '"', "/": "/", "\\": "\\"}
_BASE64 = compile_later(
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


_MARK = compile_later(r"[%&\\@(\[{<]")


def may_be_disguised(text: str, features: TextFeatures) -> bool:
    """Return whether `normalize_text` may change *text*: most texts are what they look like."""
    return (
        features.has_digit
        or not text.isascii()
        or _MARK.search(text) is not None
        or may_spell_disguise(text, features.words)
    )


def normalize_text(text: str) -> NormalizedText:
    """Return *text* with its obfuscations undone."""
    view = NormalizedText(text)
    if "%" in text or "&" in text or "\\" in text:
        view = _edited(view, _escapes(text))
    if not view.text.isascii():
        view = _with_plain_characters(view)
    disguises = find_disguises(view.text)
    return _edited(view, disguises) if disguises else view


def decode_base64_parts(text: str) -> Iterator[tuple[int, int, str]]:
    """Yield the spans of base64 in *text* that decode to readable text, and that text."""
    for match in _BASE64.finditer(text):
        if decoded := _decoded(match.group()):
            yield match.start(), match.end(), decoded


def _edited(view: NormalizedText, edits: Iterable[Edit]) -> NormalizedText:
    """Return *view* with each of the ordered *edits* made."""
    pieces: list[str] = []
    starts, ends = array("l"), array("l")
    done = 0

    def copy(start: int, end: int) -> None:
        pieces.append(view.text[start:end])
        starts.extend(range(start, end) if view.starts is None else view.starts[start:end])
        ends.extend(range(start + 1, end + 1) if view.ends is None else view.ends[start:end])

    for start, end, instead in edits:
        copy(done, start)
        original_start, original_end = view.original_span(start, end)
        pieces.append(instead)
        starts.extend([original_start] * len(instead))
        ends.extend([original_end] * len(instead))
        done = end
    if not done:
        return view
    copy(done, len(view.text))
    return NormalizedText("".join(pieces), starts, ends)


def _escapes(text: str) -> Iterator[Edit]:
    for match in _ESCAPED.finditer(text):
        escaped = match.group()
        undone = _UNDO[match.lastgroup or "html"](escaped)
        if undone != escaped:
            yield *match.span(), undone


def _with_plain_characters(view: NormalizedText) -> NormalizedText:
    """Return *view* with compatible forms of characters as one, and without invisible ones."""
    chars = set(view.text) - _ASCII
    odd = {ord(char): plain for char in chars if (plain := _plain(char)) != char}
    if _COMBINING.isdisjoint(chars):
        if all(len(plain) == 1 for plain in odd.values()):
            return view._replace(text=view.text.translate(odd)) if odd else view
    elif not odd and unicodedata.is_normalized("NFC", view.text):
        return view
    return _edited(view, _odd_characters(view.text))


def _odd_characters(text: str) -> Iterator[Edit]:
    for match in _ODD.finditer(text):
        odd = match.group()
        plain = _from_odd(odd)
        if plain != odd:
            yield *match.span(), plain


def _from_percent(escaped: str) -> str:
    return unquote_to_bytes(escaped).decode("utf-8", "replace")


def _from_json(escaped: str) -> str:
    short = _JSON_SHORT.get(escaped[1])
    return short if short is not None else _from_odd(chr(int(escaped.lstrip("\\ux"), base=16)))


def _from_odd(char: str) -> str:
    return _plain(char) if len(char) < _CACHED_CHARS else _composed(char)


def _composed(char: str) -> str:
    category = unicodedata.category(char[0])
    if category in {"Cf", "Cc"}:
        return ""
    if category == "Nd":
        return str(unicodedata.decimal(char[0])) + char[1:]
    return _OTHER_FORMS.get(char) or unicodedata.normalize("NFKC", char)


_CACHED_CHARS = 3
_plain = lru_cache(maxsize=4_096)(_composed)
"""Caches single characters only, which tell nothing of a text."""

_UNDO: dict[str, Callable[[str], str]] = {
    "percent": _from_percent,
    "html": html.unescape,
    "json": _from_json,
}
_ASCII = frozenset(map(chr, range(128)))
_COMBINING = frozenset(map(chr, range(0x300, 0x370)))
_OTHER_FORMS = {
    "\u066b": ".", "\u066c": ",", "\u2010": "-", "\u2011": "-", "\u2012": "-", "\u2013": "-",
    "\u2212": "-", "\u0e33": "\u0e33", "\u0eb3": "\u0eb3",
}  # fmt: skip
"""Signs of numbers, and two vowels that are one letter to a reader of Thai or Lao."""


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

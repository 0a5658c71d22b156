"""
The sentences of a page, and those that a colon, a semicolon or a dash makes two of.

What is counted, so that a page cannot pass by its layout:

* Each paragraph, also of a list or a quote, is a text. A sentence ends at ``.``, ``!`` or ``?``
  before a capital, or with its text.
* So is each cell of a table with eight words or more: prose does not become none by standing in a
  table. Shorter ones are labels.
* Headings, code blocks and the lines that the site's build replaces are none. Code in a line is one
  word, and a link is its text: what they hold is no punctuation.
* A label in code, bold type or a link that begins an item of a list is layout with its colon, as
  the first cell of a row is.
* A sentence has three words or more: pieces of sentences make no page better.
* A dash between spaces counts as the colon that it would replace. One colon does not count: that at
  the end of a text, before the code, list or table that it introduces.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from markdown_it import MarkdownIt
from markdown_it.token import Token

_LEAST_WORDS = 3
_LEAST_CELL_WORDS = 8
_REPLACED = re.compile(r"^(:::|--8<--)")
_LABEL = re.compile(
    r"((?:`[^`]{1,60}`(?:, | and )?){1,4}|\*\*[^*:]{1,60}\*\*|\[[^]:]{1,60}\]\([^)]*\)):\s"
)
_URL = re.compile(r"\bhttps?://\S+")
_ABBREVIATION = re.compile(r"\b(e\.g|i\.e|etc|vs|cf|Art|No|approx)\.(?=\s)")
_END = re.compile(r"(?<=[.!?])[)\"]*\s+(?=[\"(]*[A-Z\d])")
_WORD = re.compile(r"[^\W\d_][\w'-]*")
_MARK = re.compile(r"[:;\uff1a\uff1b](?!\w)|\s[-\u2013]\s|\u2014")
_INTRODUCED = frozenset({"bullet_list_open", "ordered_list_open", "table_open", "fence"})
_READER = MarkdownIt("commonmark").enable("table")


class Sentence(NamedTuple):
    """A sentence, and whether a colon, semicolon or dash joins it of two."""

    text: str
    is_joined: bool


def sentences_of(page: str, *, with_tables: bool = True) -> list[Sentence]:
    """Return the sentences of a page of Markdown, in order."""
    tokens = _READER.parse(page)
    return [each for text in _texts_of(tokens, with_tables) for each in _split(text)]


def share_of(sentences: Sequence[Sentence]) -> float:
    """Return the share of joined sentences, 0 to 1."""
    return sum(each.is_joined for each in sentences) / max(1, len(sentences))


def _texts_of(tokens: Sequence[Token], with_tables: bool) -> Iterator[str]:
    for number, token in enumerate(tokens):
        holder = tokens[number - 1].type
        if token.type != "inline" or holder == "heading_open" or _REPLACED.match(token.content):
            continue
        text = _plain(token.children or ())
        if number > 1 and tokens[number - 2].type == "list_item_open":
            text = _without_label(token.content, text)
        if holder == "paragraph_open":
            after = tokens[number + 2].type if number + 2 < len(tokens) else ""
            yield text.rstrip().removesuffix(":") if after in _INTRODUCED else text
        elif with_tables and len(_WORD.findall(text)) >= _LEAST_CELL_WORDS:
            yield text


def _without_label(source: str, text: str) -> str:
    return text.partition(":")[2].strip() if _LABEL.match(source) else text


def _plain(children: Sequence[Token]) -> str:
    """Return a text as it is read aloud: each piece of code is a word."""
    said = {"code_inline": "Code", "softbreak": " ", "hardbreak": " "}
    return "".join(
        each.content if each.type == "text" else said.get(each.type, "") for each in children
    )


def _split(text: str) -> Iterator[Sentence]:
    plain = _ABBREVIATION.sub(r"\1", _URL.sub("Address", " ".join(text.split())))
    for each in _END.split(plain):
        if len(_WORD.findall(each)) >= _LEAST_WORDS:
            yield Sentence(each, bool(_MARK.search(each)))

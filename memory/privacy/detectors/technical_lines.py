"""
Lines that machines write or read, told by their form: code, JSON, logs.

Words in them have capitals for other reasons than in prose. What is quoted or commented
there in whole sentences is prose again.
"""

from __future__ import annotations

from .english_words import is_english_word
from .lazy_pattern import compile_later

_LEVELS = ("TRACE", "DEBUG", "INFO", "NOTICE", "WARN", "ERROR", "FATAL", "CRITICAL", "SEVERE")
_LEVEL = compile_later(rf"(?:^|[\s\[|\"])(?:{'|'.join(_LEVELS)})(?:(?<=WARN)ING)?(?:[\s\]|:\"]|$)")
_START = compile_later(
    r"\d+ (?i:silly|verbose|info|notice|warn|http|error|timing) "  # the numbered lines of npm
    r"|\s*(?:#include|#define|//|/\*|\*[ /]|#!|>>>|\$ |--? ?\w+$)"
    r"|\s*(?:import|from|def|class|return|const|let|var|func|fn|public|private|protected|static"
    r"|package|using|namespace|if|for|while|else|elif|try|except|catch|with|raise|throw|async|await"
    r"|export|extern|typedef|struct|enum)\b.*[:{(,\\]$"
    r"|import [\w.]+|from [\w.]+ import\b"
)
_BLOCK_END = compile_later(r"[;{}]\s*(?://.*|/\*.*)?$")
_BY_SIGN = (
    # a log: values by key, a process
    ("=", compile_later(r"\blevel=|(?:^|\s)[a-z_][\w.-]*=[^\s=]+(?:\s.*)?\s[a-z_][\w.-]*=\S")),
    ("[", compile_later(r"[a-z]\[\d+\]:")),
    # JSON
    ('"', compile_later(r"\"[ ]?:[ ]?(?:[\"\[{\d-]|true|false|null)|^\s*\"[\w./-]+\",?$")),
    # code
    (";", _BLOCK_END),
    ("{", _BLOCK_END),
    ("}", _BLOCK_END),
    ("=", compile_later(r"==|!=|=>|^\s*[\w.\[\]]+ = [\w\"'(\[{]")),
    ("(", compile_later(r"\w\(\)|\w\.\w+\(")),
    ("_", compile_later(r"[^\W\d]\w*_\w+[ ]?[=(:,]")),
    ("<", compile_later(r"</?[a-z]+>")),
    ("self.", compile_later(r"\bself\.\w")),
    ("this.", compile_later(r"\bthis\.\w")),
)
"""What one of a line's signs may be part of: a search for the sign alone is fast."""

_SIGNS = ("->", "::", "&&", "||")
_COMMENT = compile_later(r"^\s*(?:#|//|/\*+|\*|--|;)+\s*|(?<=\s)(?:#|//)\s")
_MARK_BY_SIGN = (
    ("`", compile_later(r"`[^`\n]+`")),
    ("(", compile_later(r"\w\(\)")),
    ("--", compile_later(r"(?<!\w)--[a-z]")),
    (".", compile_later(r"\bv?\d+\.\d+\.\d|\w\.[a-z]{1,4}\b(?<!\.[a-z])")),
    ("_", compile_later(r"\w_\w")),
    ("/", compile_later(r"(?<![\w/])/?\w+/\w+/")),
)
_CAMEL = compile_later(r"\b[a-z]+[A-Z]\w+")
_CAPITAL_WITHIN = compile_later(r"[A-Z](?<=[a-z].)")
_ACRONYM = compile_later(r"[A-Z](?<!\w.)[A-Z]{1,4}s?\b")
_QUOTED = compile_later(r"[\"'`]([^\"`]{9,})[\"'`]")
_LINE_CHARS, _WORDS_OF_SENTENCE = 400, 5


def is_technical(line: str) -> bool:
    """Return whether a line is of code, JSON or a log, and no sentence is quoted there."""
    line = line[:_LINE_CHARS]
    if not _has_form(line):
        return False
    comment = _COMMENT.search(line)
    said = [line[comment.end() :]] if comment else _QUOTED.findall(line)
    return not any(map(_is_sentence, said))


def is_about_technology(line: str) -> bool:
    """Return whether code, versions, files or several acronyms stand in a line."""
    line = line[:_LINE_CHARS]
    return (
        "::" in line
        or any(sign in line and mark.search(line) for sign, mark in _MARK_BY_SIGN)
        or bool(_CAPITAL_WITHIN.search(line) and _CAMEL.search(line))
        or _acronyms_in(line) > 1
    )


def _has_form(line: str) -> bool:
    return (
        _START.match(line) is not None
        or any(sign in line for sign in _SIGNS)
        or any(sign in line and form.search(line) for sign, form in _BY_SIGN)
        or bool(any(level in line for level in _LEVELS) and _LEVEL.search(line))
    )


def _acronyms_in(text: str) -> int:
    return sum(not is_english_word(word.lower()) for word in _ACRONYM.findall(text))


def _is_sentence(words: str) -> bool:
    """Return whether *words* are more than a heading: enough, and most of them small."""
    small = [word[0].islower() for word in words.split()]
    return len(small) >= _WORDS_OF_SENTENCE and 2 * sum(small) >= len(small)

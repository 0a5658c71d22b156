"""
Lines that machines write or read, told by their form: code, JSON, logs.

Words in them have capitals for other reasons than in prose. What is quoted or commented
there in whole sentences is prose again.
"""

from __future__ import annotations

from .english_words import is_english_word
from .lazy_pattern import compile_later

_FORM = compile_later(
    # a log: a level, a process, values by key, the numbered lines of npm
    r"(?:^|[\s\[|\"])(?:TRACE|DEBUG|INFO|NOTICE|WARN(?:ING)?|ERROR|FATAL|CRITICAL|SEVERE)(?:[\s\]|:\"]|$)"
    r"|\blevel=|[a-z]\[\d+\]:|^\d+ (?i:silly|verbose|info|notice|warn|http|error|timing) "
    r"|(?:^|\s)[a-z_][\w.-]*=[^\s=]+(?:\s.*)?\s[a-z_][\w.-]*=\S"
    # JSON
    r"|\"[ ]?:[ ]?(?:[\"\[{\d-]|true|false|null)|^\s*\"[\w./-]+\",?$"
    # code
    r"|[;{}]\s*(?://.*|/\*.*)?$|^\s*(?:#include|#define|//|/\*|\*[ /]|#!|>>>|\$ |--? ?\w+$)"
    r"|^\s*(?:import|from|def|class|return|const|let|var|func|fn|public|private|protected|static"
    r"|package|using|namespace|if|for|while|else|elif|try|except|catch|with|raise|throw|async|await"
    r"|export|extern|typedef|struct|enum)\b.*[:{(,\\]$"
    r"|^(?:import [\w.]+|from [\w.]+ import\b)|^\s*[\w.\[\]]+ = [\w\"'(\[{]"
    r"|\w\(\)|\w\.\w+\(|[^\W\d]\w*_\w+[ ]?[=(:,]|[=-]>|::|==|!=|&&|\|\|"
    r"|\b(?:self|this)\.\w|</?[a-z]+>"
)
_SIGN = compile_later(
    r"=|\[|;|\{|\}|_|&|\||<|->|::|\"[ ]?:|\((?<=\w\()|self\.|this\."
    r"|TRACE|DEBUG|INFO|NOTICE|WARN|ERROR|FATAL|CRITICAL|SEVERE"
)
"""One of these is in what `_FORM` finds anywhere; a literal begins each, so that it is fast."""

_FIRST, _LAST = frozenset('#/*>$-"0123456789'), frozenset(":{(,\\\n")
_COMMENT = compile_later(r"^\s*(?:#|//|/\*+|\*|--|;)+\s*|(?<=\s)(?:#|//)\s")
_MARK = compile_later(
    r"`[^`\n]+`|\w\(\)|(?<!\w)--[a-z]|\bv?\d+\.\d+\.\d|\b[a-z]+[A-Z]\w+|\w_\w|\w\.[a-z]{1,4}\b(?<!\.[a-z])"
    r"|(?<![\w/])/?\w+/\w+/|::"
)
_SIGN_OF_MARK = compile_later(r"`|\(\)|--|\.[\da-z]|_|/|::")
_CAPITAL_WITHIN = compile_later(r"[A-Z](?<=[a-z].)")
_ACRONYM = compile_later(r"\b[A-Z]{2,5}s?\b(?<![ ]I)")
_QUOTED = compile_later(r"[\"'`]([^\"`]{9,})[\"'`]")
_LINE_CHARS, _WORDS_OF_SENTENCE = 400, 5


def is_technical(line: str) -> bool:
    """Return whether a line is of code, JSON or a log, and no sentence is quoted there."""
    line = line[:_LINE_CHARS]
    if not _may_have_form(line) or _FORM.search(line) is None:
        return False
    comment = _COMMENT.search(line)
    said = [line[comment.end() :]] if comment else _QUOTED.findall(line)
    return not any(map(_is_sentence, said))


def is_about_technology(line: str) -> bool:
    """Return whether code, versions, files or several acronyms stand in a line."""
    line = line[:_LINE_CHARS]
    has_sign = _SIGN_OF_MARK.search(line) is not None or _CAPITAL_WITHIN.search(line) is not None
    return (has_sign and _MARK.search(line) is not None) or _acronyms_in(line) > 1


def _may_have_form(line: str) -> bool:
    """Return whether what every form begins with, ends with or holds is in a line: cheap."""
    return (
        _SIGN.search(line) is not None
        or line.lstrip()[:1] in _FIRST
        or line[-1:] in _LAST
        or line.startswith(("import ", "from "))
    )


def _acronyms_in(text: str) -> int:
    return sum(not is_english_word(word.lower()) for word in _ACRONYM.findall(text))


def _is_sentence(words: str) -> bool:
    """Return whether *words* are more than a heading: enough, and most of them small."""
    small = [word[0].islower() for word in words.split()]
    return len(small) >= _WORDS_OF_SENTENCE and 2 * sum(small) >= len(small)

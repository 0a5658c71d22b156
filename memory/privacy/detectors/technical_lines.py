"""
Lines that machines write or read, told by their form: code, JSON, logs.

Words in them have capitals for other reasons than in prose, so a name there needs more evidence.
What is quoted or commented there in whole sentences is prose again.
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
_COMMENT = compile_later(r"^\s*(?:#|//|/\*+|\*|--|;)+\s*|(?<=\s)(?:#|//)\s")
_MARK = compile_later(
    r"`[^`\n]+`|\w\(\)|(?<!\w)--[a-z]|\bv?\d+\.\d+\.\d|\b[a-z]+[A-Z]\w+|\w_\w|\w\.[a-z]{1,4}\b(?<!\.[a-z])"
    r"|(?<![\w/])/?\w+/\w+/|::"
)
_ACRONYM = compile_later(r"\b[A-Z]{2,5}s?\b(?<![ ]I)")
_NEAR_CHARS = 100
_LINE_CHARS = 400
_CUT = "\u2026"
_QUOTES = "\"'`"
_WORDS_OF_SENTENCE = 5


def is_technical(text: str, start: int, end: int) -> bool:
    """Return whether a span stands in a line of code, JSON or a log, and in no sentence there."""
    first, line = _line_around(text, start, end)
    if _FORM.search(line) is None:
        return False
    return not _is_in_sentence(line, start - first, end - first)


def _line_around(text: str, start: int, end: int) -> tuple[int, str]:
    """Return the line of a span and where it begins; of a very long one, what is near the span."""
    first = text.rfind("\n", max(0, start - _LINE_CHARS), start) + 1
    last = text.find("\n", end, end + _LINE_CHARS)
    near, far = start - _LINE_CHARS, end + _LINE_CHARS
    opens, closes = not first and near > 0, last == -1 and far < len(text)
    first, last = near if opens else first, far if closes else last if last != -1 else len(text)
    # The mark keeps what is cut from being read as the beginning or the end of a line.
    return first - opens, f"{_CUT * opens}{text[first:last]}{_CUT * closes}"


def is_about_technology(text: str, start: int, end: int) -> bool:
    """Return whether code, versions, files or several acronyms stand near a span."""
    near = f"{text[max(0, start - _NEAR_CHARS) : start]} {text[end : end + _NEAR_CHARS]}"
    return _MARK.search(near) is not None or _acronyms_in(near) > 1


def _acronyms_in(text: str) -> int:
    return sum(not is_english_word(word.lower()) for word in _ACRONYM.findall(text))


def _is_in_sentence(line: str, start: int, end: int) -> bool:
    for quote in _QUOTES:
        before, after = line.rfind(quote, 0, start), line.find(quote, end)
        if before != -1 and after != -1:
            return _is_sentence(line[before + 1 : after])
    comments = [match.end() for match in _COMMENT.finditer(line, 0, start)]
    return bool(comments) and _is_sentence(line[comments[-1] :])


def _is_sentence(words: str) -> bool:
    """Return whether *words* are more than a heading: enough, and most of them small."""
    small = [word[0].islower() for word in words.split()]
    return len(small) >= _WORDS_OF_SENTENCE and 2 * sum(small) >= len(small)

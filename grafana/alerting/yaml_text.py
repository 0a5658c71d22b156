"""
YAML for people, of what rules consist of: mappings, lists, texts, whole numbers and flags.

Texts of several lines are blocks. What could be read as something other than text is quoted.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, cast

_WORD: Final = r"[\w./$-]+(?:[:#][\w./$-]+)*"
_PLAIN: Final = re.compile(rf"(?=[A-Za-z_$/]){_WORD}(?: {_WORD})*", re.ASCII)
_WORDS: Final = frozenset({"true", "false", "yes", "no", "on", "off", "null", "none", "y", "n"})


def yaml_text(document: Mapping[str, Any]) -> str:
    """Return *document* as YAML."""
    return "\n".join(_lines(document)) + "\n"


def _lines(value: Any) -> Iterator[str]:
    if isinstance(value, Mapping):
        for key, each in cast("Mapping[str, Any]", value).items():
            yield from _entry(f"{_scalar(key)}:", each)
    else:
        for each in cast("Sequence[Any]", value):
            yield from _item(each)


def _entry(start: str, value: Any) -> Iterator[str]:
    if isinstance(value, str) and _is_block(value):
        yield f"{start} {'|' if value.endswith(chr(10)) else '|-'}"
        yield from (f"  {line}" if line else "" for line in value.removesuffix("\n").split("\n"))
    elif _is_nested(value):
        yield start
        yield from (f"  {line}" for line in _lines(value))
    else:
        yield f"{start} {_scalar(value)}"


def _item(value: Any) -> Iterator[str]:
    inner = list(_lines(value)) if _is_nested(value) else [_scalar(value)]
    yield f"- {inner[0]}"
    yield from (f"  {line}" if line else "" for line in inner[1:])


def _is_nested(value: Any) -> bool:
    return bool(value) and isinstance(value, (Mapping, list, tuple))


def _is_block(text: str) -> bool:
    """Tell whether *text* reads as a block: whole lines, none of which needs escapes."""
    lines = text.removesuffix("\n").split("\n")
    plain = all(line.isprintable() for line in lines) and not text.startswith((" ", "\n"))
    return "\n" in text and plain and bool(lines[-1])


def _scalar(value: Any) -> str:
    if not isinstance(value, str):
        return json.dumps(value)
    if _PLAIN.fullmatch(value) and value.lower() not in _WORDS:
        return value
    return json.dumps(value, ensure_ascii=not value.isprintable())

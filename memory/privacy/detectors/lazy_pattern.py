"""
Regular expressions compiled on first use.

The detectors have some two hundred, the longest with hundreds of alternatives: compiling all of
them takes a third of the time to configure a scope, and most texts need a few.
"""

from __future__ import annotations

import re
import weakref
from typing import Any, cast

_METHODS = ("finditer", "findall", "fullmatch", "match", "search", "split", "sub", "subn")


class _LazyPattern:
    """Stand-in for a compiled pattern: the first call compiles it and takes over its methods."""

    def __init__(self, source: str, flags: int) -> None:
        self._source = source
        self._flags = flags
        _made.append(weakref.ref(self, _made.remove))

    def __getattr__(self, name: str) -> Any:
        return getattr(self.compile(), name)

    def compile(self) -> re.Pattern[str]:
        compiled = re.compile(self._source, self._flags)
        # Later calls find them as attributes; two threads at once set the same ones.
        vars(self).update({each: getattr(compiled, each) for each in _METHODS})
        return compiled


_made: list[weakref.ref[_LazyPattern]] = []


def compile_later(source: str, flags: int = 0) -> re.Pattern[str]:
    """Return the pattern of *source*; unlike `re.compile`, a wrong one raises on first use."""
    return cast("re.Pattern[str]", _LazyPattern(source, flags))


def compile_now() -> None:
    """Compile all patterns that were made so far and not used yet."""
    for each in _made:
        pattern = each()
        if pattern is not None and _METHODS[0] not in vars(pattern):
            pattern.compile()

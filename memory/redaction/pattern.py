"""
Regular expressions that are compiled when they are first looked for.

There are some sixty, the longest with hundreds of alternatives: to compile them all takes a third
of what it takes to configure a scope, and most texts call for a few of them.
"""

from __future__ import annotations

import re
from typing import Any, cast

_ASKED = ("finditer", "findall", "fullmatch", "match", "search", "sub")


class _Deferred:
    """Stands in for a compiled pattern, whose methods it has once it was asked for one."""

    def __init__(self, source: str, flags: int) -> None:
        self._source = source
        self._flags = flags

    def __getattr__(self, name: str) -> Any:
        compiled = re.compile(self._source, self._flags)
        # From now on they are found without coming here; two threads would find the same.
        vars(self).update({each: getattr(compiled, each) for each in _ASKED})
        return getattr(compiled, name)


def deferred(source: str, flags: int = 0) -> re.Pattern[str]:
    """Return the pattern of *source*, as `re.compile` does, but for a wrong one's error: later."""
    return cast("re.Pattern[str]", _Deferred(source, flags))

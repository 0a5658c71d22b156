"""The selectors of a PromQL expression, as far as dashboards have them: found by their shape."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

_SELECTOR = re.compile(r"(\w+\()?([a-zA-Z_][\w:]*)\{([^}]*)\}(?:\[([^\]]+)\])?")


class Selector(NamedTuple):
    """A metric with matchers; the function that is directly around it, and its range; or empty."""

    metric: str
    matchers: str
    function: str
    interval: str


def selectors_in(expr: str) -> Iterator[Selector]:
    """Yield the selectors with matchers."""
    for function, metric, matchers, interval in _SELECTOR.findall(expr):
        yield Selector(metric, matchers, function.removesuffix("("), interval)


def range_functions_in(expr: str) -> Iterator[tuple[str, str]]:
    """Yield the functions of ranges with their range."""
    yield from re.findall(r"(\w+)\([a-zA-Z_][\w:]*(?:\{[^}]*\})?\[([^\]]+)\]", expr)

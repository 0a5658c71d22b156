"""
Who serves a model, as far as its name and its provider tell.

The same weights cost what their host asks, and nothing on one's own machine. So a prefix is left
off a name only where it is known to leave the vendor's price as it is.
"""

from __future__ import annotations

import json
import re
from functools import cache
from importlib.resources import files
from typing import NamedTuple

LOCAL = "local"
"""Stands for a vendor where a model runs on one's own machine, where nobody asks for a price."""

_OF_BEDROCK = re.compile(r"-v\d+(?::\d+)?$")
_HOSTED = re.compile(r"[-:]cloud$")
"""What Ollama's own service adds to the names of the models that it serves."""


class Served(NamedTuple):
    """
    A model as it is served.

    Attributes:
        name: In lower case, without a prefix that leaves the price as it is.
        vendor: Whose price it has, `LOCAL`, or None where the name does not tell.
    """

    name: str
    vendor: str | None


class _Serving(NamedTuple):
    """Vendors; their prefixes, the longest first; and two sets of providers."""

    vendors: frozenset[str]
    prefixes: tuple[tuple[str, str], ...]
    local: frozenset[str]
    hosts: frozenset[str]


def is_vendor(source: str | None) -> bool:
    """Tell whether *source* is a vendor, whose prices hold only where the vendor's prefix does."""
    return source in _serving().vendors


def served(model: str, provider: str | None = None) -> Served:
    """Return how *model* is served where *provider* says that it serves it."""
    known = _serving()
    name, by = model.lower(), (provider or "").lower()
    # What a provider of this kind serves goes by its name, whatever else is in the model's.
    if by in known.local | known.hosts and not name.startswith(f"{by}/"):
        name = f"{by}/{name}"
    host, _, rest = name.partition("/")
    if rest and host in known.local and not _HOSTED.search(rest):
        return Served(rest, LOCAL)
    for prefix, vendor in known.prefixes:
        if name.startswith(prefix):
            rest = name.removeprefix(prefix)
            # Bedrock's prefixes end with a period, and its names with a version of its own.
            return Served(_OF_BEDROCK.sub("", rest) if prefix.endswith(".") else rest, vendor)
    return Served(name, None)


@cache
def _serving() -> _Serving:
    found = json.loads(files(__package__ or __name__).joinpath("serving.json").read_text("utf-8"))
    prefixes = [(each, vendor) for vendor, all_of in found["prefixes"].items() for each in all_of]
    prefixes.sort(key=lambda each: -len(each[0]))
    vendors = frozenset(found["prefixes"])
    return _Serving(vendors, tuple(prefixes), frozenset(found["local"]), frozenset(found["hosts"]))

"""The versions of wrapped libraries that are known to be unsafe, and unsafe defaults of theirs."""

from __future__ import annotations

import os
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version
from typing import NamedTuple

from packaging.version import InvalidVersion, Version

from ...memory.health.model import Check, State


class KnownHole(NamedTuple):
    """
    A hole of a distribution in all versions before *fixed_in*.

    Attributes:
        distribution: Its name on the package index.
        fixed_in: The first version without it. None: no version is what its name says.
        what: What it lets somebody do.
    """

    distribution: str
    fixed_in: str | None
    what: str


_SQUATTED = "is not spaCy's: somebody else took the name on the package index"
KNOWN_HOLES = (
    KnownHole("langchain-core", "1.2.5", "loads objects out of content (CVE-2025-68664)"),
    KnownHole("langgraph", "1.0.10", "calls what a changed checkpoint names (CVE-2026-28277)"),
    KnownHole("langgraph-checkpoint", "4.0.0", "unpickles cached values (CVE-2026-27794)"),
    KnownHole("langgraph-checkpoint-sqlite", "3.0.1", "puts filter keys in SQL (CVE-2025-67644)"),
    *(
        KnownHole(name, None, _SQUATTED)
        for name in ("de-core-news-md", "ja-core-news-sm", "ru-core-news-sm")
    ),
)

_STRICT = "LANGGRAPH_STRICT_MSGPACK"
_ON = frozenset({"1", "true", "yes"})
"""The values that LangGraph takes for on, in any case."""


def versions_check() -> Check:
    """Return a warning of each hole of what is installed, and of what LangGraph leaves open."""
    found = [*_holes(), *_open_defaults()]
    if found:
        return Check(name="versions", state=State.WARNING, detail="; ".join(found))
    return Check(name="versions", state=State.OK, detail="no library of a version with known holes")


def _holes() -> Iterator[str]:
    for hole in KNOWN_HOLES:
        installed = _installed(hole.distribution)
        if installed is None:
            continue
        if hole.fixed_in is None:
            yield f"{hole.distribution} {hole.what}: uninstall it"
        elif installed < Version(hole.fixed_in):
            yield f"{hole.distribution} {installed} {hole.what}: install {hole.fixed_in} or newer"


def _open_defaults() -> Iterator[str]:
    if _installed("langgraph") and os.environ.get(_STRICT, "").strip().lower() not in _ON:
        yield (
            f"{_STRICT} is off, so that a checkpoint that somebody changed can name what is "
            "called: set it to true, and register types of your own with your saver"
        )


def _installed(distribution: str) -> Version | None:
    try:
        return Version(version(distribution))
    except (PackageNotFoundError, InvalidVersion):
        return None

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
    A hole of a distribution in all versions from *since* on and before *before*.

    Attributes:
        distribution: Its name on the package index.
        before: The first version that is not known to have it.
        what: What it lets somebody do.
        remedy: What to do where no version is without it. Empty: install *before*.
        since: The first version that has it.
    """

    distribution: str
    before: str
    what: str
    remedy: str = ""
    since: str = "0"


KNOWN_HOLES = (
    KnownHole(
        "chromadb",
        "1.5.9.post1",
        "runs code that a request to its Python server names (CVE-2026-45829)",
        "no version was known without it, so serve it by `chroma run` or not at all",
    ),
    KnownHole("fastmcp", "3.2.0", "lets paths of requests lead elsewhere (CVE-2026-32871)"),
    KnownHole("graphiti-core", "0.28.2", "puts labels in Cypher (CVE-2026-32247)"),
    KnownHole("langchain-core", "1.3.3", "loads objects out of content (CVE-2026-44843)"),
    KnownHole("langgraph", "1.0.10", "calls what a changed checkpoint names (CVE-2026-28277)"),
    KnownHole("langgraph-checkpoint", "4.0.0", "unpickles cached values (CVE-2026-27794)"),
    KnownHole("langgraph-checkpoint-sqlite", "3.0.1", "puts filter keys in SQL (CVE-2025-67644)"),
    KnownHole("langgraph-sdk", "0.3.15", "lets ids lead to other paths (CVE-2026-48776)"),
    KnownHole("langsmith", "0.8.18", "uploads files that requests name (GHSA-f4xh-w4cj-qxq8)"),
    KnownHole("mem0ai", "2.0.0b2", "checks its input too little (GHSA-xqxw-r767-67m7)"),
    *(
        KnownHole(name, "1000", "is by somebody else than its name says", "uninstall it", "999")
        for name in (
            *("de-core-news-md", "en-core-sci-md", "en-core-web-trf", "ja-core-news-sm"),
            *("ko-core-news-sm", "ru-core-news-sm", "uk-core-news-md", "uk-core-news-sm"),
            "zh-core-web-sm",
        )
    ),
)
"""Squatters are at 999.9.9 on the package index. spaCy's own models of these names are at 3."""

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
        if installed and Version(hole.since) <= installed < Version(hole.before):
            remedy = hole.remedy or f"install {hole.before} or newer"
            yield f"{hole.distribution} {installed} {hole.what}: {remedy}"


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

"""The runbooks, a section for each alert: their text, and where a link to them leads."""

from __future__ import annotations

import re
from importlib.resources import files
from pathlib import Path
from typing import Final

STACK: Final = "http://localhost:8088/runbooks.md"
"""Where the stack of the repository's folder grafana serves them."""

FILE: Final = "mnemoscope-runbooks.md"
"""Their name beside rules and dashboards that are installed."""

_TO_OTHER_PAGES = re.compile(r"\[([^\]]+)\]\((?!https?:|#)[^)]*\)")


def text() -> str:
    """Return them as Markdown that stands alone: without links to other pages of the docs."""
    page = files(__package__ or "").joinpath("runbooks.md").read_text(encoding="utf-8")
    return _TO_OTHER_PAGES.sub(r"\1", page)


def address_in(folder: Path) -> str:
    """Return the address of the file of theirs in *folder*, on this machine."""
    return (folder.resolve() / FILE).as_uri()

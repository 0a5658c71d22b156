"""The dashboards that are shipped, with links to wherever the runbooks are read."""

from __future__ import annotations

import json
from collections.abc import Mapping
from importlib.resources import files
from typing import Final

NAMES: Final = ("overview", "spend", "privacy", "self", "clickhouse")


def dashboards(runbooks: str) -> Mapping[str, str]:
    """Return the JSON of each dashboard by its name; *runbooks* is the address of the runbooks."""
    folder = files(__package__ or "")
    texts = {name: (folder / f"{name}.json").read_text(encoding="utf-8") for name in NAMES}
    return {name: _linked(text, runbooks) for name, text in texts.items()}


def _linked(text: str, runbooks: str) -> str:
    board = json.loads(text)
    for link in board["links"]:
        if link["title"] == "Runbooks":
            link["url"] = runbooks
    return json.dumps(board, indent=2, sort_keys=True) + "\n"

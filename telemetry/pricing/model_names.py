"""The names that a model goes by: with a vendor's prefix, a snapshot's date, or neither."""

from __future__ import annotations

import re
from functools import lru_cache

_VENDOR = re.compile(r"^(?:[a-z]+\.)+(?=[a-z])")
"""``us.anthropic.`` as in the model names of Bedrock."""

_SNAPSHOT = re.compile(
    r"(?:[-@](?:\d{4}-\d{2}-\d{2}|\d{2}-\d{2}|\d{2}-\d{4}|\d{8}|\d{4}|\d{3}|latest|preview|exp"
    r"|v\d+(?::\d+)?)|:\d+)$"
)
"""One suffix that names a snapshot of a model: ``-2024-11-20``, ``-20250929``, ``-latest``…"""


@lru_cache(maxsize=1_024)
def names_of(model: str) -> tuple[str, ...]:
    """
    Return the names of *model* in lower case, from its own to its family's.

    After the name as it is: without the vendor's prefix (``models/``, ``openai/``,
    ``us.anthropic.``), then without one suffix after the other (``-2024-11-20``, ``-latest``,
    ``-v1:0``).
    """
    own = model.lower()
    name = _VENDOR.sub("", own.rpartition("/")[2])
    names = [own, name]
    # One after the other, since vendors put several: `-20250929-v1:0`.
    while (shorter := _SNAPSHOT.sub("", name)) != name:
        names.append(shorter)
        name = shorter
    return tuple(dict.fromkeys(names))

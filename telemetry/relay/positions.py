"""How far one sink is in each file: kept in a file, and read again by the next relay."""

from __future__ import annotations

from collections.abc import Container, Mapping
from contextlib import suppress
from pathlib import Path
from urllib.parse import quote

import msgspec


class Positions:
    """The positions of one sink. Written by one thread; read by any."""

    def __init__(self, folder: Path, sink: str) -> None:
        self._path = folder / f"position-{quote(sink, safe='')}.json"
        self._draft = folder / f".position-{quote(sink, safe='')}.new"
        self._known: dict[str, int] = {}
        # A position that is lost costs events sent twice, and none that is missing.
        with suppress(OSError, msgspec.MsgspecError):
            self._known = msgspec.json.decode(self._path.read_bytes(), type=dict[str, int])

    def at(self, name: str) -> int:
        """Return how far the sink is in the file of that *name*; 0: at its beginning."""
        return self._known.get(name, 0)

    def advance(self, ends: Mapping[str, int], there: Container[str]) -> None:
        """
        Note that the sink has what is before *ends*, and forget all files but those *there*.

        Raises:
            OSError: It is not noted: the next relay will send it again.
        """
        known = {**self._known, **ends}
        self._known = {name: end for name, end in known.items() if name in there}
        self._draft.write_bytes(msgspec.json.encode(self._known))
        self._draft.chmod(0o600)
        self._draft.replace(self._path)

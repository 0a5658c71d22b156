"""What history providers hold about a person: of those that keep a file for each session."""

from __future__ import annotations

from base64 import b32decode
from pathlib import Path
from typing import Any

from ...memory.api import PAGE_SIZE, DataSubject, Erased, Page, SubjectRecord
from ...memory.subject_data.records import UncertainOwnerError
from ...telemetry.event.spelling import id_text

_NO_OWNER = "customer= was not given, so that no session says whose it is"
_NO_LIST = "cannot tell: this class of history provider lists no sessions"
_UNTOLD = "a file of the history folder does not tell its session's id"
_ENCODED = "~session-"


class HistoryData:
    """
    The provider of a history provider.

    Args:
        client: The bare one.
        owner_of: Returns the owner from a session's id. None: nobody is known.
    """

    store = "agent_framework"
    title = "Conversations with you"

    def __init__(self, client: Any, owner_of: Any) -> None:
        self._client, self._owner_of = client, owner_of
        self._folder: Path | None = getattr(client, "storage_path", None)
        lists = None if self._folder is not None else _NO_LIST
        self.unavailable = lists if owner_of is not None else _NO_OWNER

    def _theirs(self, subject: DataSubject) -> list[tuple[str, Path]]:
        files = [*self._folder.iterdir()] if self._folder is not None else []
        named = sorted((_session_id(each), each) for each in files)
        return [each for each in named if id_text(self._owner_of(each[0])) == subject.customer]

    async def page(self, subject: DataSubject, after: Any | None = None) -> Page:
        """Return the conversations of *subject*, as they are stored."""
        first, found = after or 0, self._theirs(subject)
        records: list[SubjectRecord] = []
        for session_id, _file in found[first : first + PAGE_SIZE]:
            messages = await self._client.get_messages(session_id)
            said = [each.to_dict() for each in messages]
            records.append(SubjectRecord(kind="thread", id=session_id, content=said))
        last = first + PAGE_SIZE
        return Page(tuple(records), last if len(found) > last else None)

    async def erase(self, subject: DataSubject) -> Erased:
        """Remove the files of *subject*'s conversations."""
        found = self._theirs(subject)
        for _session_id, file in found:
            file.unlink()
        return Erased(len(found))

    async def files(self) -> tuple[Path, ...]:
        """Return the folder."""
        return () if self._folder is None else (self._folder,)


def _session_id(file: Path) -> str:
    """
    Return the id of the session that *file* is of.

    Raises:
        UncertainOwnerError: The framework has hashed an id that was too long, or the file is
            another's.
    """
    if not file.stem.startswith("~"):
        return file.stem
    coded = file.stem.removeprefix(_ENCODED).upper()
    try:
        return b32decode(coded + "=" * (-len(coded) % 8)).decode()
    except ValueError:
        raise UncertainOwnerError(_UNTOLD) from None

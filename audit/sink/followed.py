"""The writers whose events a relay records: what the log says of each, as it would by itself."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from ...telemetry.delivery.sink import FollowedWriter, LookAtWriters
from ..log import AuditLog
from .presence import Presence, Said

Words = tuple[Presence, list[Said]]
"""Something to be said, and whoever notes that it was."""

NOBODY = FollowedWriter(0, "")


class FollowedNumbers:
    """
    The identity and the counter of one of them, as of the last look.

    Attributes:
        writer_id: 16 hex digits.
    """

    def __init__(self, writer_id: str, state: FollowedWriter) -> None:
        self.writer_id = writer_id
        self.state = state

    def taken(self) -> int:
        """Return how many events it has counted."""
        return self.state.counter

    def rest(self) -> int:
        """Return the same: its own process asks."""
        return self.state.counter


class FollowedWriters:
    """
    The writers that are there. Not thread-safe.

    Args:
        log: Where their events are recorded.
        clock: Monotonic seconds.
    """

    def __init__(
        self,
        look: LookAtWriters,
        log: AuditLog,
        clock: Callable[[], float],
    ) -> None:
        self._look = look
        self._log = log
        self._clock = clock
        self._known: dict[str, tuple[FollowedNumbers, Presence]] = {}

    def mode(self, writer_id: str) -> str:
        """Return the durability that a writer was asked for; nothing where that is not known."""
        return self._look().get(writer_id, NOBODY).mode

    def with_events(self, writers: Iterable[str]) -> list[Words]:
        """Return what is to be said along with events of *writers* that are recorded now."""
        there = self._note_who_is_there()
        return [(there[each], there[each].with_events()) for each in writers if each in there]

    def without_events(self) -> list[Words]:
        """Return what is to be said of those of whom no event came of late."""
        there = self._note_who_is_there()
        return [(each, said) for each in there.values() if (said := each.without_events())]

    def _note_who_is_there(self) -> dict[str, Presence]:
        """
        Look who is there, and what they have counted.

        Raises:
            AuditError: The log cannot be asked of whom it knows already.
        """
        there = self._look()
        known: dict[str, tuple[FollowedNumbers, Presence]] = {}
        for writer_id, state in there.items():
            # What is no longer there is forgotten, so that a relay which runs for years keeps no
            # list of the dead.
            found = self._known.get(writer_id) or self._met(writer_id, state)
            found[0].state = state
            known[writer_id] = found
        self._known = known
        return {writer_id: presence for writer_id, (_numbers, presence) in known.items()}

    def _met(self, writer_id: str, state: FollowedWriter) -> tuple[FollowedNumbers, Presence]:
        numbers = FollowedNumbers(writer_id, state)
        presence = Presence(
            numbers,
            self._clock,
            mode=state.mode,
            version=lambda: state.version,
        )
        if self._is_recorded(writer_id):
            presence.go_on()  # a relay before this one has said that it began
        return numbers, presence

    def _is_recorded(self, writer_id: str) -> bool:
        with self._log.begun() as snapshot:
            # No log yet, and so nobody is recorded in it.
            if snapshot is None:
                return False
            found = snapshot.execute(
                "SELECT 1 FROM audit_event WHERE kind = 'operation' AND writer_id = ? LIMIT 1",
                (writer_id,),
            )
            return found.fetchone() is not None

"""The declaration of what a writer that is gone had counted, and did not get into the log."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from ..database.database import ReadConnection, WriteConnection, log_events
from ..database.errors import AuditError
from ..record.sequence_gaps import UNDER_WAY, UNKNOWN_END, SequenceGap
from ..record.spool_numbers import outside
from ..record.writer_events import ENDED, STOPPED, about, is_durable
from .tables import LogTables

GAP = "audit.gap"
# Numbers that follow one another differ from their place by the same: a writer may have millions.
_RECORDED = """
    SELECT writer_id, min(writer_seq), max(writer_seq) FROM (
      SELECT writer_id, writer_seq,
        writer_seq - row_number() OVER (PARTITION BY writer_id ORDER BY writer_seq) AS run
      FROM audit_event WHERE kind = 'operation'{}) numbered
    GROUP BY writer_id, run
"""


class UnsettledError(AuditError):
    """What a writer that is gone has lost cannot be told: something of it may be under way."""


class Departed(NamedTuple):
    """
    What a writer that is certainly gone left behind about itself.

    Attributes:
        counter: Events that it is known to have counted.
        at_most: Events that it may have counted.
        mode: The durability that it was asked for.
        ended: Whether it ended in order, but could not say so in the log.
        returned: The last event whose call may be over, in the modes that have calls wait.
    """

    writer: str
    counter: int
    at_most: int
    mode: str
    ended: bool
    returned: int

    @property
    def lost_to(self) -> int:
        """The last event that is lost if it is not recorded; a later one was under way."""
        return self.returned if is_durable(self.mode) and not self.ended else self.counter


def declare_departed(
    tables: LogTables, gone: Departed, elsewhere: Sequence[tuple[int, int]] = ()
) -> int:
    """
    Declare the end of a writer, and the events that are missing of it.

    Args:
        tables: The log's.
        gone: The writer.
        elsewhere: Its numbers, both ends of each range, that are in other logs.

    Returns:
        How many are missing for certain, whose calls may have been over.

    Raises:
        AuditError: None of it was recorded.
    """
    writer = gone.writer
    with tables.writing() as (connection, head):
        lost = ((first, last) for its, first, last in all_declared(connection) if its == writer)
        known = [*lost, *elsewhere]
        missing = _missing(connection, writer, gone.counter, known, from_one=not head.first_seq)
        gaps = [part for each in missing for part in _divided(each, gone.lost_to)]
        end = head
        for each in gaps:
            end = tables.note(connection, end, GAP, each.as_data())
        more = {"mode": gone.mode} if gone.ended else {"mode": gone.mode, "at_most": gone.at_most}
        said = about(STOPPED if gone.ended else ENDED, writer, gone.counter, **more)
        tables.note(connection, end, *said)
    return sum(each.events for each in gaps if each.reason != UNDER_WAY)


def _divided(gap: SequenceGap, lost_to: int) -> Iterator[SequenceGap]:
    """Yield the part of *gap* of which calls may be over, and that whose calls were under way."""
    if gap.first <= lost_to:
        yield gap._replace(last=min(gap.last, lost_to))
    if gap.last > lost_to:
        yield gap._replace(first=max(gap.first, lost_to + 1), reason=UNDER_WAY)


def recorded_ranges(connection: ReadConnection, writer: str) -> list[tuple[int, int]]:
    """Return the numbers of *writer* that are recorded: both ends of each range."""
    found = connection.execute(_RECORDED.format(" AND writer_id = ?"), (writer,)).fetchall()
    return [(first, last) for _writer, first, last in found]


def all_recorded(connection: ReadConnection) -> Iterator[tuple[str, int, int]]:
    """Yield the numbers of every writer that are recorded: both ends of each range."""
    return connection.stream(_RECORDED.format(""))


def _missing(
    connection: WriteConnection,
    writer: str,
    counter: int,
    known: Sequence[tuple[int, int]],
    *,
    from_one: bool,
) -> Iterator[SequenceGap]:
    """
    Yield the numbers of *writer* that are neither recorded nor *known* of otherwise.

    Args:
        connection: The log's.
        writer: Which one.
        counter: The last number.
        known: Those that are in another log, or declared as lost.
        from_one: Whether retention has removed nothing: its first number is 1.
    """
    recorded = recorded_ranges(connection, writer)
    # What retention has removed was recorded, and is no gap.
    first = 1 if from_one or not recorded else min(start for start, _stop in recorded)
    for start, stop in outside(first, counter, [*recorded, *known]):
        yield SequenceGap(writer, start, stop, UNKNOWN_END)


def all_declared(connection: ReadConnection) -> Iterator[tuple[str, int, int]]:
    """Yield the numbers of every writer that are declared as lost, likewise."""
    for _seq, header in log_events(connection, GAP):
        data = header["data"]
        yield data["writer"], data["from_wseq"], data["to_wseq"]

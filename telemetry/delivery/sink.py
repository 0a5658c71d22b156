"""The interface of sinks, and the errors that they raise."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeAlias, runtime_checkable

if TYPE_CHECKING:
    from ..event.event import Event

EXIT_S = 2.0
"""Seconds that all sinks together may hold whoever closes them."""


class DeliveryError(Exception):
    """A back end did not take a batch. The message names a reason, never what was sent."""


class UnavailableError(DeliveryError):
    """
    The back end takes nothing just now: it is away, overloaded or refuses our credentials.

    The lane of an idempotent sink keeps the batch and asks again, less and less often.

    Attributes:
        retry_after_s: Seconds that the back end asked to be left alone, or None.
    """

    def __init__(self, message: str, retry_after_s: float | None = None) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s


class UnacceptableError(DeliveryError):
    """
    The back end refuses this batch because of its content and took nothing of it.

    The lane halves the batch until the event that is to blame stands alone, and loses only that.
    """


class PartialError(DeliveryError):
    """
    The back end took the batch but for some of it, and does not name which.

    The lane counts those as refused, and sends nothing again.

    Attributes:
        refused: Number of events that it did not take.
    """

    def __init__(self, message: str, refused: int) -> None:
        super().__init__(message)
        self.refused = refused


class Sink(Protocol):
    """
    A destination of events.

    Each sink has a lane of its own in the drain: a bounded queue and a daemon thread, started with
    the first event. All methods are called from that thread, so a sink needs neither locks nor an
    async twin, and may block. Raising is allowed: the batch is lost for this sink alone, counted
    and logged; with the other errors of this module less is lost. Opening files, sockets
    and clients belongs in the first `write`, not in the constructor: a process that never remembers
    anything must not pay for a sink.

    Attributes:
        name: One of the five, or the user's own: the metric label of its lane.
        idempotent: Whether a batch that failed may be written again: the sink tells events apart by
            their ids, so that a part which did arrive is not counted twice.
    """

    name: str
    idempotent: bool

    def write(self, batch: Sequence[Event], /) -> None:
        """Deliver *batch*, oldest first. Return when it is delivered, or raise."""
        ...

    def flush(self, timeout_s: float, /) -> bool:
        """Deliver what `write` left buffered. True when nothing is left."""
        ...

    def close(self, timeout_s: float, /) -> None:
        """Flush and let go of files, sockets and threads, within *timeout_s* seconds."""
        ...


class SinkOutput(NamedTuple):
    """
    What a sink passes on, and to what kind of place.

    Attributes:
        kind: The place: ``file``, ``collector``, ``hosted service``…
        content: Whether redacted content is in it.
        subject: How the customer is named in it: ``keyed hash`` or ``none``.
        part: Which events: ``all``, ``abnormal``, ``sampled``, or their ``sums``.
    """

    kind: str
    content: bool
    subject: str = "keyed hash"
    part: str = "all"


@runtime_checkable
class OpeningSink(Protocol):
    """
    A sink whose client takes long to import or to open. Optional.

    What comes in that time goes out together, in the first `Sink.write`: a process that ends soon
    has no time for a second exchange with a distant back end.
    """

    def open_ahead(self) -> None:
        """Open what `write` needs, once. What fails here fails again in `write`, which tells it."""
        ...


@runtime_checkable
class GatheringSink(Protocol):
    """
    A sink whose request costs more than what is in it. Optional.

    Attributes:
        gathers_s: Seconds that events may wait for further ones, unless they fill a batch, somebody
            waits for them, or the process ends.
    """

    gathers_s: float


@runtime_checkable
class InlineSink(Protocol):
    """
    A sink that takes events where they are made, instead of on a thread of its own. Optional.

    Attributes:
        takes_inline: Whether it does.
    """

    takes_inline: bool

    def take(self, event: Event, /) -> str | None:
        """
        Take *event*, on its caller's thread: at once, whatever is the matter.

        Returns:
            None, or the reason why it is lost.
        """
        ...

    def sync(self) -> None:
        """Have what was taken on a disk, whatever becomes of the machine."""
        ...

    def close(self, timeout_s: float, /) -> None:
        """Let go, as of `Sink`."""
        ...


class FollowedWriter(NamedTuple):
    """
    A writer whose events another process delivers.

    Attributes:
        counter: Events that it has counted.
        mode: The durability that it was asked for.
        version: Of this package, in its process. Empty: not known.
    """

    counter: int
    mode: str
    version: str = ""


LookAtWriters: TypeAlias = Callable[[], Mapping[str, FollowedWriter]]
"""Returns the writers that are there, or of whom something is left to be delivered."""


@runtime_checkable
class WriterSink(Protocol):
    """A sink that accounts for the events of each writer. Optional."""

    def follow_writers(self, look: LookAtWriters) -> None:
        """
        Take events of other processes, from any of their numbers on.

        Args:
            look: Returns what is known of them, from any thread.
        """
        ...

    def end_writer(self, writer_id: str, counter: int, *, ended: bool) -> None:
        """
        Declare what is missing of a writer that is gone, all of whose other events were written.

        Args:
            writer_id: Which one.
            counter: The events that it had counted.
            ended: Whether it ended in order.

        Raises:
            DeliveryError: It cannot be declared now.
        """
        ...


@runtime_checkable
class DescribedSink(Protocol):
    """
    A sink that declares which data leaves through it. Optional.

    It is recorded in the audit trail with what the sink has acknowledged, so that a customer can be
    told who received their data. Of a sink that does not say, nobody can tell.
    """

    def output(self) -> SinkOutput:
        """Return what leaves through this sink now. Opens nothing."""
        ...


@runtime_checkable
class RestingSink(Protocol):
    """A sink that notes how its process ends. Optional."""

    def rest(self) -> None:
        """
        Note that the process is at its end, as far as is known: it may not get to `close`.

        Called on the lane's thread, after what was offered was written. Events may follow.
        """
        ...

    def leave(self) -> None:
        """
        Note that the process ends now, although `write` is not through: what it had is kept.

        Called on another thread than `write`, which may be at it: it waits for nothing.
        """
        ...


@runtime_checkable
class SpillingSink(Protocol):
    """
    A sink that keeps events on a disk rather than have its queue drop them. Optional.

    Attributes:
        spills: Whether it does.
    """

    spills: bool

    def spill(self, batch: Sequence[Event], /) -> None:
        """
        Keep *batch* until `write` comes to it, all or none of it, or raise.

        Called from other threads than `write`, while that takes long: when the queue is half full,
        with what is still there at the end, and with a batch that `write` may be at or has given
        up. Whoever has events for a full queue waits for this, so that it is to be fast, and not to
        wait for the disk: what is with the operating system outlives the process. `Sink.flush` is
        where to wait.
        """
        ...


@runtime_checkable
class SelectingSink(Protocol):
    """A sink that is given few of the events, so that its queue holds these alone. Optional."""

    def selects(self, event: Event, /) -> bool:
        """
        Return whether the sink is given *event*.

        Called on whatever thread queues events, a caller's as well: it looks at fields, and raises
        nothing.
        """
        ...


@runtime_checkable
class StoreLinkedSink(Protocol):
    """
    A sink that has to find again, in the stores, what an event is about. Optional.

    The audit trail is one: what it cannot find, it can neither export nor erase. Every other sink
    is given pseudonyms under a key of its own, so that no two can be joined, nor one with a store.

    Attributes:
        keeps_pseudonyms: Whether it is given the pseudonyms that the stores hold.
    """

    keeps_pseudonyms: bool


@runtime_checkable
class Checkable(Protocol):
    """A sink that can check its back end. Optional."""

    def check(self, timeout_s: float, /) -> str:
        """
        Check the back end within *timeout_s* seconds and describe it in a few words.

        Called beside the lane's thread, at any time: it shares nothing with `Sink.write` and
        changes nothing.

        Raises:
            DeliveryError: The back end would take nothing just now. One line, as in `write`.
        """
        ...

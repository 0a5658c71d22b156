"""
The bounded queue and the daemon thread in front of one sink.

The caller's part, `Lane.offer`, appends to a deque and, when the lane sleeps, releases a lock: no
I/O, no wait, no foreign code. ``queue.Queue.put`` and ``Event.set`` are not used there: both take a
lock that a signal handler or finaliser on the same thread would wait for for ever. The lane's own
lock, which few offers take, is re-entrant and held for a few instructions.

A sink that keeps on a disk what a queue has no room for has a second thread, from when the queue is
half full. An offer to a queue that is full nevertheless waits for that thread, as long as it gets
on: whoever makes events faster than they can be kept is slowed down, and nobody waits for a disk
that hangs.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Generator, Iterable, Sequence
from contextvars import ContextVar
from functools import partial
from operator import itemgetter

from opentelemetry.context import (
    _SUPPRESS_INSTRUMENTATION_KEY as SUPPRESS,  # pyright: ignore[reportPrivateUsage] - no other
)
from opentelemetry.context import attach, detach, set_value

from ..event.event import Event
from ..event.sink_pseudonyms import SinkPseudonyms
from ..process.faults import Faults
from ..text import code_class
from .acknowledged import Acknowledged
from .delivery import DELIVERED, Delivery
from .fan_out import LIGHT_BYTES, UNCOUNTED, FanOut
from .lane_stats import FlushRequest, LaneLimits, LaneStats, Weighed, taken_from
from .sink import (
    DescribedSink,
    GatheringSink,
    OpeningSink,
    RestingSink,
    SelectingSink,
    Sink,
    SpillingSink,
    UnacceptableError,
)

_LOOK_S = 0.001
_EVENT_OF, _BYTES_OF = itemgetter(0), itemgetter(1)

_inside: ContextVar[bool] = ContextVar("mnemoscope_inside_sink", default=False)
# Not a `threading.local`: where gevent comes late, all its greenlets share one.

inside_sink: Callable[[], bool] = _inside.get
"""Returns whether this thread is delivering events, which is not observed in turn."""


@contextlib.contextmanager
def delivering() -> Generator[None]:
    """Mark the body, on this thread, as delivery, which no instrumentation observes."""
    outer = _inside.set(True)
    token = attach(set_value(SUPPRESS, True))
    try:
        yield
    finally:
        detach(token)
        _inside.reset(outer)


class Lane:
    """
    The queue and thread of one sink.

    Args:
        sink: Where the events go.
        limits: Bounds.
        faults: Where the sink's errors are noted.
        clock: Monotonic seconds.
        pseudonyms: Makes of an event what the sink may have. None: it is given all of it.
    """

    def __init__(
        self,
        sink: Sink,
        limits: LaneLimits,
        faults: Faults,
        clock: Callable[[], float] = time.monotonic,
        pseudonyms: SinkPseudonyms | None = None,
    ) -> None:
        self._sink = sink
        self._spills = sink if isinstance(sink, SpillingSink) and sink.spills else None
        self._opens = sink if isinstance(sink, OpeningSink) else None
        self._gathers_s = sink.gathers_s if isinstance(sink, GatheringSink) else 0.0
        self._selects = sink.selects if isinstance(sink, SelectingSink) else None
        self._pseudonyms = pseudonyms
        self.acknowledged = Acknowledged(sink.output if isinstance(sink, DescribedSink) else None)
        self._limits = limits
        self._faults = faults
        self._clock = clock
        self._source: FanOut | None = None
        self.forked()

    def forked(self) -> None:
        """Start anew, also in a forked child: the parent delivers what was queued before."""
        self._lock = threading.RLock()
        self._wake = threading.Lock()
        self._wake.acquire()
        self._hurry = threading.Event()
        self._offers: deque[Weighed] = deque()
        self._coming: deque[Weighed] = deque()  # between the two: an interrupt loses nothing
        self._queue: deque[Weighed] = deque()
        self._bytes = 0
        self._writing = self._writing_bytes = 0
        self._writes: Sequence[Event] = ()
        self._spilling = 0
        self._spiller: threading.Thread | None = None
        self._kept_batches = 0
        self._disk_hangs = False
        self._offered = 0
        self._delivered = 0
        self._dropped: Counter[str] = Counter()
        self._lost_before_flush = 0
        self._flushes: deque[FlushRequest] = deque()
        self._thread: threading.Thread | None = None
        self._is_closed = False
        self._closing_at: float | None = None
        self._last_error: str | None = None
        self.acknowledged.forked()
        self._delivery = Delivery(
            self._sink,
            self._limits,
            attempt=self._attempt,
            pause=self._pause,
            is_closing=lambda: self._closing_at is not None,
            acknowledged=self.acknowledged,
            keep=lambda batch: self._kept(batch) == len(batch),
        )

    @property
    def sink_name(self) -> str:
        """The sink's name."""
        return self._sink.name

    @property
    def stats(self) -> LaneStats:
        """The counters, as of now."""
        self._pull()
        with self._lock:
            self._count()
            return LaneStats(
                self._sink.name,
                self._offered,
                self._delivered,
                dict(self._dropped),
                len(self._queue) + self._writing + self._spilling,
                self._bytes,
                self._last_error,
                self._delivery.is_up,
            )

    def is_idle(self) -> bool:
        """Return whether nothing waits, and nothing is being written."""
        return not (self._waiting() or self._writing or self._spilling)

    def _waiting(self) -> int:
        """Return how many events wait, about: what is on its way from one to the next is not."""
        shared = 0 if self._source is None else self._source.waiting
        return shared + len(self._offers) + len(self._queue)

    def is_alive(self) -> bool:
        """Return whether its thread runs."""
        return self._thread is not None

    def is_up(self) -> bool:
        """Return whether the sink's back end takes anything, as far as is known."""
        return self._delivery.is_up

    def is_closing(self) -> bool:
        """Return whether it takes no more events."""
        return self._closing_at is not None

    def follow(self, source: FanOut) -> None:
        """Take what is offered to *source*."""
        self._source = source

    def offer(self, weighed: Weighed) -> None:
        """Queue an event for the sink. O(1); a full lane drops or keeps its oldest event."""
        self.take(weighed)
        self.notice()

    def offer_all(self, offers: Iterable[Weighed]) -> FlushRequest:
        """
        Queue events for the sink; drops or keeps the oldest if the lane is full.

        Returns:
            What is answered once all of them are delivered, or lost.
        """
        self._offers.extend(offers)
        self._admit()
        self._await_room()
        return self._request(float("inf"), flushes=False)

    def take(self, weighed: Weighed) -> None:
        """Queue an event as `offer` does, without rousing the lane."""
        offers = self._offers
        # Atomic. To take the lock for every event would cost more than all else that is done here;
        # so events are counted by whoever holds it next, and small ones wait.
        offers.append(weighed)
        if weighed[1] > LIGHT_BYTES or len(offers) > UNCOUNTED:
            self._admit()

    def notice(self) -> None:
        """Wake this lane's thread, so that it looks at its queue."""
        if self._thread is None:
            if self._source is not None:
                self._source.share_out_now()
            self._admit()
        self._rouse()
        if self._spills is not None and self._is_full():
            self._await_room()

    def settle(self, deadline: float) -> FlushRequest:
        """Ask for everything so far to be delivered, or lost; the request's event tells."""
        return self.flush(deadline)

    def flush(self, deadline: float, *, rests: bool = False, flushes: bool = True) -> FlushRequest:
        """
        Ask for everything so far to be delivered; the request's event is set when it is.

        Args:
            deadline: Until when somebody waits for it.
            rests: Whether the sink is to note that the process is at its end.
            flushes: Whether the sink is to flush, too.
        """
        return self._request(deadline, flushes=flushes, rests=rests)

    def _request(self, deadline: float, *, flushes: bool, rests: bool = False) -> FlushRequest:
        # Not under the lock: whoever shares out holds the fan-out's lock and takes each lane's, and
        # the other order could lock both for ever.
        self._pull()
        with self._lock:
            self._count()
            request = FlushRequest(
                self._offered, deadline, threading.Event(), flushes=flushes, rests=rests
            )
            if self._thread is None:
                self._answer(request, complete=True)
                return request
            while self._flushes and self._flushes[0].deadline < self._clock():
                self._flushes.popleft()  # nobody waits for it any more
            self._flushes.append(request)
        self._hurry.set()
        self._rouse()
        return request

    def close(self, deadline: float) -> None:
        """Take no more events and let the thread end by *deadline*. Does not wait."""
        self._pull()
        with self._lock:
            self._count()
            if self._closing_at is not None:
                return
            self._closing_at = deadline
        self._hurry.set()
        self._rouse()

    def join(self, deadline: float) -> None:
        """Wait for the thread until *deadline*; what still waits then is counted as lost."""
        thread = self._thread
        # A sink may close the drain from this very thread, which cannot wait for itself.
        if thread is not None and thread is not threading.current_thread():
            # Not yet started where a signal handler closes in the middle of `_start`.
            with contextlib.suppress(RuntimeError):
                thread.join(max(0.0, deadline - self._clock()))
        self._pull()
        self._keep_all("exit")
        if isinstance(self._sink, RestingSink) and thread is not None and not self._is_closed:
            self._attempt(self._sink.leave)
        if thread is None and not self._is_closed:
            self._end()  # no event has come, and so no thread that would

    # -- on the caller's thread ------------------------------------------------------------------

    def _pull(self) -> None:
        """Have what was offered to all lanes shared out. The lock is not held."""
        if self._source is not None:
            self._source.share_out()

    def _admit(self) -> None:
        with self._lock:
            self._count()
            if self._thread is None and self._closing_at is None:
                self._start()

    def _count(self) -> None:
        """Move offered events into the queue and count them. The lock is held."""
        coming = self._coming
        offers: Iterable[Weighed] = taken_from(self._offers)
        if (selects := self._selects) is not None:
            offers = (each for each in offers if selects(each[0]))
        coming.extend(offers)
        if not coming:
            return
        self._offered += len(coming)
        if self._closing_at is not None:
            self._dropped["closed"] += len(coming)
            coming.clear()
            return
        self._bytes += sum(map(_BYTES_OF, coming))
        self._queue.extend(coming)
        coming.clear()
        if self._spills is None:
            self._shed()
        elif self._spiller is None and self._is_half_full():
            self._start_spilling()

    def _is_half_full(self) -> bool:
        limits = self._limits
        return 2 * len(self._queue) > limits.items or 2 * self._bytes > limits.size_bytes

    def _is_full(self) -> bool:
        limits = self._limits
        return len(self._queue) > limits.items or self._bytes > limits.size_bytes

    def _shed(self) -> None:
        while self._queue and self._is_full():
            self._drop_oldest("overflow")

    def _await_room(self) -> None:
        """Wait until the thread that spills has made room, as long as it gets on."""
        if self._spills is None or inside_sink():
            return
        looks = seen = 0
        while self._queue and self._is_full():
            self._admit()  # which starts the thread if there is none
            if self._spiller is None and (batch := self._take_half()):
                self._keep(batch, "overflow")  # there is none to be had
            if seen != self._kept_batches:
                looks, seen = 0, self._kept_batches
            if self._disk_hangs or looks * _LOOK_S >= self._limits.spill_patience_s:
                self._disk_hangs = True
                with self._lock:
                    self._shed()
                return
            looks += 1
            time.sleep(_LOOK_S)

    def _drop_oldest(self, reason: str) -> None:
        _event, size = self._queue.popleft()
        self._bytes -= size
        self._dropped[reason] += 1

    def _keep_all(self, reason: str) -> None:
        """Keep what waits and what is being written; what cannot be kept is lost for *reason*."""
        self._kept(self._writes)
        while batch := self._take_oldest():
            self._keep(batch, reason)

    def _start(self) -> None:
        name = f"mnemoscope-{self._sink.name}"
        thread = threading.Thread(target=self._run, name=name, daemon=True)
        if self._thread is not None:
            return  # a signal handler offered an event while this one was made
        # Noted before it starts: a signal handler that offers meanwhile must not start a second.
        self._thread = thread
        try:
            thread.start()
        except RuntimeError as exc:
            # No thread to be had (limits, or the interpreter is on its way out): shed what is
            # there and try again with the next event.
            self._thread = None
            self._faults.note("lane.start", exc)
            self._keep_all("thread")
            self._await_offer()

    def _start_spilling(self) -> None:
        name = f"mnemoscope-{self._sink.name}-spill"
        thread = self._spiller = threading.Thread(target=self._spill, name=name, daemon=True)
        try:
            thread.start()
        except RuntimeError as exc:
            self._spiller = None  # the next event tries again, and what there is no room for goes
            self._faults.note("lane.spill", exc)

    def _rouse(self) -> None:
        # A lock as a binary semaphore: unlike Event.set, release() takes no second lock.
        if self._wake.locked():
            try:  # noqa: SIM105 - `suppress` is three functions, of each lane for an event
                self._wake.release()
            except RuntimeError:  # somebody else has
                pass

    # -- on the lane's thread --------------------------------------------------------------------

    def _run(self) -> None:
        try:
            with delivering():
                self._serve()
        except Exception as exc:  # noqa: BLE001 - out of memory, say: the next event starts anew
            self._faults.note("lane.run", exc)
        finally:
            self._leave()

    def _serve(self) -> None:
        closing = False
        while not closing:
            self._await()
            if self._opens is not None:
                with contextlib.suppress(BaseException):  # which the write meets, too
                    self._opens.open_ahead()
            # Read before emptying: what was offered before the end was known is delivered.
            closing = self._closing_at is not None
            self._empty()
        while self._spilling:  # what the sink does not yet know of, it would call lost
            time.sleep(_LOOK_S)
        self._end()

    def _await(self) -> None:
        """Wait for work, and a little longer, so that a batch gathers."""
        limits = self._limits
        watched_s = 0.0
        while watched_s < limits.watch_s:
            self._hurry.wait(limits.linger_s)
            if self._wake.acquire(blocking=False):
                self._gather(limits.linger_s)
                return
            watched_s += limits.linger_s or limits.watch_s
        self._wake.acquire()
        self._gather(0.0)

    def _gather(self, waited_s: float) -> None:
        """Wait until what there is makes a batch, or has waited as long as it may."""
        limits = self._limits
        wait_s = max(limits.linger_s, self._gathers_s)
        look_s = limits.linger_s or wait_s
        # In a trickle to look often costs more than what comes: a few dozen events wake the lane.
        may_sleep = limits.batch > UNCOUNTED
        while waited_s < wait_s and self._waiting() < limits.batch and not self._hurry.is_set():
            if 4 * self._bytes > limits.size_bytes:
                break
            if may_sleep and not self._wake.acquire(timeout=wait_s - waited_s):
                break
            may_sleep = False
            self._hurry.wait(look_s)
            waited_s += look_s
        self._await_offer()

    def _await_offer(self) -> None:
        """Have this lane told of what comes from now on. What there is, it looks at next."""
        if self._source is not None:
            self._source.await_offer()

    def _end(self) -> None:
        self._is_closed = True
        self._attempt(lambda: self._sink.close(self._left_s(self._closing_at)))

    def _leave(self) -> None:
        with self._lock:
            self._thread = None
            if self._writing:
                self._dropped["error"] += self._writing
                self._settle()
            while self._flushes:
                self._answer(self._flushes.popleft(), complete=not self._queue)
        self._await_offer()

    def _empty(self) -> None:
        while batch := self._take():
            self._deliver(batch)
            self._answer_flushes()
        self._hurry.clear()
        self._answer_flushes()

    def _take(self) -> list[Event]:
        limits, queue = self._limits, self._queue
        self._pull()
        with self._lock:
            self._count()
            taken = [queue.popleft() for _ in range(min(len(queue), limits.batch))]
            size_bytes = sum(map(_BYTES_OF, taken))
            while size_bytes > limits.size_bytes // 4 and len(taken) > 1:
                queue.appendleft(last := taken.pop())
                size_bytes -= last[1]
            self._writing, self._writing_bytes = len(taken), size_bytes
        return [*map(_EVENT_OF, taken)]

    def _deliver(self, batch: Sequence[Event]) -> None:
        if self._pseudonyms is not None:
            batch = [*map(self._pseudonyms.event, batch)]
        self._writes = batch
        outcome = self._delivery.deliver(batch)
        with self._lock:
            self._writes = ()
            self._delivered += outcome.pop(DELIVERED, 0)
            self._dropped.update(outcome)
            self._settle()

    # -- on the thread that spills ---------------------------------------------------------------

    def _spill(self) -> None:
        try:
            with delivering():
                while batch := self._take_half():
                    self._keep(batch, "overflow")
        finally:
            self._spiller = None
            self._hurry.set()
            self._rouse()  # a flush may wait for what was kept

    def _take_half(self) -> list[Weighed]:
        with self._lock:
            self._count()
            return self._take_oldest() if self._is_half_full() else []

    # -- on any thread ---------------------------------------------------------------------------

    def _take_oldest(self) -> list[Weighed]:
        """Take a batch out of the queue, to be kept or dropped."""
        with self._lock:
            self._count()
            # Many at a time: each call of the system gives the interpreter's lock away.
            most = min(len(self._queue), max(self._limits.batch, self._limits.items // 2))
            batch = [self._queue.popleft() for _ in range(most)]
            self._spilling += most
        return batch

    def _keep(self, batch: Sequence[Weighed], reason: str) -> None:
        events = [event for event, _size in batch]
        if self._pseudonyms is not None:
            events = [*map(self._pseudonyms.event, events)]
        kept = 0
        try:
            kept = self._kept(events)
        finally:
            with self._lock:
                self._delivered += kept
                if kept < len(batch):
                    self._dropped[reason] += len(batch) - kept
                self._bytes -= sum(size for _event, size in batch)
                self._spilling -= len(batch)
                self._kept_batches += 1
                self._disk_hangs = False

    def _kept(self, events: Sequence[Event]) -> int:
        """Have the sink keep *events* on its disk, and return how many it has."""
        sink = self._spills
        if sink is None or not events:
            return 0
        try:
            sink.spill(events)
        except Exception as exc:  # noqa: BLE001 - a sink may fail in any way
            if isinstance(exc, UnacceptableError) and len(events) > 1:
                return sum(self._kept([each]) for each in events)
            self._note(exc)
            return 0
        return len(events)

    # -- on the lane's thread again --------------------------------------------------------------

    def _settle(self) -> None:
        self._bytes -= self._writing_bytes
        self._writing = self._writing_bytes = 0

    def _pause(self, seconds: float) -> None:
        self._hurry.wait(seconds)
        # Else the pauses after it would be none at all.
        self._hurry.clear()

    def _answer_flushes(self) -> None:
        while self._flushes and self._settled() >= self._flushes[0].target:
            request = self._flushes.popleft()
            flush = partial(self._sink.flush, self._left_s(request.deadline))
            complete = not request.flushes or self._succeeds(flush)
            if request.rests and isinstance(self._sink, RestingSink):
                self._attempt(self._sink.rest)
            self._answer(request, complete=complete, is_refused=not complete)

    def _answer(self, request: FlushRequest, *, complete: bool, is_refused: bool = False) -> None:
        with self._lock:
            lost = sum(self._dropped.values())
            request.complete = complete and lost == self._lost_before_flush
            request.is_refused = is_refused and lost == self._lost_before_flush
            self._lost_before_flush = lost
        request.done.set()

    def _settled(self) -> int:
        with self._lock:
            return self._delivered + sum(self._dropped.values())

    def _left_s(self, deadline: float | None) -> float:
        return max(0.0, (deadline or 0.0) - self._clock())

    def _succeeds(self, step: Callable[[], bool]) -> bool:
        results: list[bool] = []
        return self._attempt(lambda: results.append(step())) is None and results[0]

    def _attempt(self, step: Callable[[], object]) -> BaseException | None:
        try:
            step()
        except BaseException as exc:  # noqa: BLE001 - this thread is ours: no caller is above
            self._note(exc)
            return exc
        return None

    def _note(self, exc: BaseException) -> None:
        self._last_error = code_class(type(exc)).__qualname__
        self._faults.note(f"sink.{self._sink.name}", exc)

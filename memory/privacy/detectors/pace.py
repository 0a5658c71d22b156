"""
The pace of a redaction: where it may take long, and where it lets other threads work.

A pattern holds the interpreter's lock while it searches, so the thread of an event loop redacts
short texts only, and the thread that redacts long ones lets the others work between two pieces.
"""

from __future__ import annotations

import sys
import threading
import time
from typing import TYPE_CHECKING, Protocol

from ...errors import RedactionError

if TYPE_CHECKING:
    import asyncio

_BRIEF_CHARS = 256
"""Characters of a text whose search no loop notices."""

_TURN_CHARS = 4_096
"""Characters of longer texts that are searched in one turn of an event loop."""


class LongRedaction(BaseException):
    """The rest takes long: begin anew on another thread. No adapter takes it for a failure."""


class AbandonedError(RedactionError):
    """Nobody waits for this redaction any more."""


class Pace(Protocol):
    """
    Callbacks of a redaction at work, for the caller's deadline.

    Attributes:
        waits_for_model_s: Seconds that it may wait while other threads use the language model.
    """

    waits_for_model_s: float

    def model_is_busy(self) -> None:
        """Note that the redaction has waited `waits_for_model_s` for the language model."""
        ...

    def before_slow_work(self) -> None:
        """Note that a language model, or code of the user's, is about to be called."""
        ...

    def between_pieces(self) -> None:
        """Note that one piece of a long text is done, or some of many."""
        ...

    def before_search(self, characters: int, /) -> None:
        """Note that a text of so many characters, which was not seen before, is to be searched."""
        ...


class _Turn(threading.local):
    """What is left of the turn of this thread's event loop; no loop: a new one begins."""

    def __init__(self) -> None:
        self.loop: asyncio.AbstractEventLoop | None = None
        self.left = 0

    def end(self) -> None:
        """Begin another turn with the next text."""
        self.loop = None


class LoopPace:
    """
    The pace on the thread of an event loop, or of a caller for whom nothing is loaded yet.

    A thousand tasks that are begun at once all run in the loop's next turn. Each text of theirs is
    short, and together they take seconds: after the first, others of that turn go to workers.
    """

    waits_for_model_s = 0.0

    def __init__(self) -> None:
        self._turn = _Turn()

    def before_search(self, characters: int) -> None:
        """Leave the thread, if other texts were searched in this turn of its loop."""
        if characters <= _BRIEF_CHARS:
            return
        loop = running_loop()
        if loop is None:
            return
        turn = self._turn
        if turn.loop is not loop:
            turn.loop, turn.left = loop, _TURN_CHARS
            loop.call_soon(turn.end)
        turn.left -= characters
        if turn.left < 0:
            raise LongRedaction

    def model_is_busy(self) -> None:
        """Leave the thread."""
        raise LongRedaction

    def before_slow_work(self) -> None:
        """Leave the thread."""
        raise LongRedaction

    def between_pieces(self) -> None:
        """Go on: the text is short."""


def running_loop() -> asyncio.AbstractEventLoop | None:
    """Return the event loop of this thread. None: it has none, or one of another kind."""
    # Whoever has a loop has imported it, and for others its import would take 20 ms.
    loops = sys.modules.get("asyncio")
    # Another thread may be importing it: then nobody has one yet.
    found = getattr(loops, "get_running_loop", None)
    try:
        return None if found is None else found()
    except RuntimeError:
        return None


class CallerPace:
    """The pace on the thread of a caller that has a deadline, for short texts."""

    waits_for_model_s = 0.05

    def before_search(self, _characters: int) -> None:
        """Go on: the caller has nothing else to do."""

    def model_is_busy(self) -> None:
        """Leave the thread: the deadline holds for what is done on a worker."""
        raise LongRedaction

    def before_slow_work(self) -> None:
        """Go on: all is loaded."""

    def between_pieces(self) -> None:
        """Go on: the text is short."""


class ThreadPace:
    """
    The pace on a thread of its own, for a caller that may go away.

    Attributes:
        is_abandoned: The caller has gone: the work ends at the next piece.
    """

    waits_for_model_s = 30.0

    def __init__(self) -> None:
        self.is_abandoned = False

    def before_search(self, _characters: int) -> None:
        """Let other threads work."""
        self.between_pieces()

    def model_is_busy(self) -> None:
        """Fail: the caller will have gone."""

    def before_slow_work(self) -> None:
        """Let other threads work."""
        self.between_pieces()

    def between_pieces(self) -> None:
        """Let other threads work; an event loop would wait for 5 ms otherwise."""
        if self.is_abandoned:
            raise AbandonedError("the caller has gone")
        time.sleep(0)

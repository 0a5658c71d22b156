"""
The pace of a redaction: where it may take long, and where it lets other threads work.

A pattern holds the interpreter's lock while it searches, so the thread of an event loop redacts
short texts only, and the thread that redacts long ones lets the others work between two pieces.
"""

from __future__ import annotations

import time
from typing import Protocol

from ...errors import RedactionError


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
        """Note that one piece of a long text is done, or one text of many."""
        ...


class LoopPace:
    """The pace on the thread of an event loop, or of a caller for whom nothing is loaded yet."""

    waits_for_model_s = 0.0

    def model_is_busy(self) -> None:
        """Leave the thread."""
        raise LongRedaction

    def before_slow_work(self) -> None:
        """Leave the thread."""
        raise LongRedaction

    def between_pieces(self) -> None:
        """Go on: the text is short."""


class CallerPace:
    """The pace on the thread of a caller that has a deadline, for short texts."""

    waits_for_model_s = 0.05

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

"""
The user's own recognizers (Presidio's `EntityRecognizer`), under a time limit.

A recognizer that raises, hangs or returns an invalid result fails the redaction, and with it the
write: skipping it would let through the data that it was added for.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Protocol

from ...errors import RedactionError
from ..detectors.chunks import split_into_chunks
from ..detectors.finding import Finding

MAX_TIMEOUTS = 4


class Recognizer(Protocol):
    """The part of Presidio's `EntityRecognizer` that is used."""

    supported_entities: list[str]

    def analyze(self, text: str, entities: list[str], nlp_artifacts: Any) -> Iterable[Any]:
        """Return results with ``start``, ``end``, ``entity_type`` and ``score``."""
        ...


class CustomRecognizers:
    """
    The user's recognizers, with one time limit for each text.

    Args:
        recognizers: Run on every text.
        timeout_s: Seconds that all of them together may take for one text.
    """

    def __init__(self, recognizers: Sequence[Recognizer], *, timeout_s: float) -> None:
        self._recognizers = tuple(recognizers)
        self._timeout_s = timeout_s
        self._timeouts = 0

    def __bool__(self) -> bool:
        """Return whether there are any."""
        return bool(self._recognizers)

    def find(self, text: str) -> list[Finding]:
        """
        Return the findings of all of them.

        Raises:
            RedactionError: One raised, took too long or returned an invalid result.
        """
        return self._within_time(lambda: list(self._run_recognizers(text)))

    def _run_recognizers(self, text: str) -> Iterator[Finding]:
        for recognizer in self._recognizers:
            for start, piece in split_into_chunks(text):
                for result in recognizer.analyze(piece, recognizer.supported_entities, None) or ():
                    yield _to_finding(result, start, len(piece))

    def _within_time(self, work: Callable[[], list[Finding]]) -> list[Finding]:
        # Not an executor: its threads are joined at exit, so a hanging one would block the exit.
        if self._timeouts >= MAX_TIMEOUTS:
            raise RedactionError(
                f"the recognizers timed out {MAX_TIMEOUTS} times and no longer run: fix or remove "
                "the one that hangs, and restart"
            )
        answer: list[list[Finding] | BaseException] = []
        thread = threading.Thread(target=_run_into, args=(work, answer), daemon=True)
        thread.start()
        thread.join(self._timeout_s)
        if not answer:
            self._timeouts += 1
            raise RedactionError(f"the recognizers took longer than {self._timeout_s:g} s")
        if isinstance(answer[0], BaseException):
            raise RedactionError(f"a recognizer raised {type(answer[0]).__qualname__}")
        return answer[0]


def _run_into(
    work: Callable[[], list[Finding]], answer: list[list[Finding] | BaseException]
) -> None:
    try:
        answer.append(work())
    except BaseException as error:  # noqa: BLE001 - handed to the waiting thread
        answer.append(error)


def _to_finding(result: Any, offset: int, length: int) -> Finding:
    start, end, entity = result.start, result.end, result.entity_type
    if type(start) is not int or type(end) is not int or not 0 <= start < end <= length:
        raise RedactionError("a recognizer returned a span that is not in the text")
    if not isinstance(entity, str) or not entity.replace("_", "").isalnum():
        raise RedactionError("a recognizer returned an entity that is not a name")
    return Finding(
        offset + start,
        offset + end,
        entity.upper(),
        float(result.score),
        "a recognizer of the user's",
    )

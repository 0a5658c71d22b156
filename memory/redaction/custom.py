"""
Recognizers of the user's: Presidio's `EntityRecognizer`, trusted with text but not with time.

What raises, hangs or answers nonsense fails the redaction, and with it the write: a recognizer that
is skipped would let through what it was added for.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Protocol

from ..errors import RedactionError
from .finding import Finding
from .pieces import chunks

STUCK_LIMIT = 4


class Recognizer(Protocol):
    """What is used of Presidio's `EntityRecognizer`."""

    supported_entities: list[str]

    def analyze(self, text: str, entities: list[str], nlp_artifacts: Any) -> Iterable[Any]:
        """Return results with ``start``, ``end``, ``entity_type`` and ``score``."""
        ...


class CustomRecognizers:
    """
    The user's recognizers, each call under a time limit.

    Args:
        recognizers: Asked about every text.
        timeout_s: Seconds that all of them together may take for one text.
    """

    def __init__(self, recognizers: Sequence[Recognizer], *, timeout_s: float) -> None:
        self._recognizers = tuple(recognizers)
        self._timeout_s = timeout_s
        self._stuck = 0

    def __bool__(self) -> bool:
        """True when there are any."""
        return bool(self._recognizers)

    @property
    def entities(self) -> frozenset[str]:
        """What they say they find."""
        return frozenset(entity for each in self._recognizers for entity in each.supported_entities)

    def find(self, text: str) -> list[Finding]:
        """Ask all of them."""
        return self._within_time(lambda: list(self._ask(text)))

    def _ask(self, text: str) -> Iterator[Finding]:
        for recognizer in self._recognizers:
            for start, piece in chunks(text):
                for result in recognizer.analyze(piece, recognizer.supported_entities, None) or ():
                    yield _checked(result, start, len(piece))

    def _within_time(self, work: Callable[[], list[Finding]]) -> list[Finding]:
        # Not an executor: its threads are joined at exit, and one that hangs would hang the exit.
        if self._stuck >= STUCK_LIMIT:
            raise RedactionError("recognizers hang: none is asked any more")
        answer: list[list[Finding] | BaseException] = []
        thread = threading.Thread(target=_answer, args=(work, answer), daemon=True)
        thread.start()
        thread.join(self._timeout_s)
        if not answer:
            self._stuck += 1
            raise RedactionError(f"recognizers took longer than {self._timeout_s:g} s")
        if isinstance(answer[0], BaseException):
            raise RedactionError(f"a recognizer raised {type(answer[0]).__qualname__}")
        return answer[0]


def _answer(work: Callable[[], list[Finding]], answer: list[list[Finding] | BaseException]) -> None:
    try:
        answer.append(work())
    except BaseException as error:  # noqa: BLE001 - this thread has nobody else to tell
        answer.append(error)


def _checked(result: Any, offset: int, length: int) -> Finding:
    start, end, entity = result.start, result.end, result.entity_type
    if type(start) is not int or type(end) is not int or not 0 <= start < end <= length:
        raise RedactionError("a recognizer answered a span that is not in the text")
    if not isinstance(entity, str) or not entity.replace("_", "").isalnum():
        raise RedactionError("a recognizer answered an entity that is no name")
    return Finding(
        offset + start,
        offset + end,
        entity.upper(),
        float(result.score),
        "a recognizer of the user's",
    )

"""The health of a scope: one check for each thing that can go wrong."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import RenderableType


class State(StrEnum):
    """
    The result of a check.

    Attributes:
        OK: As it should be.
        WARNING: It works, and somebody should look.
        FAILED: It does not work.
        OFF: It is not wanted.
    """

    OK = "ok"
    WARNING = "warning"
    FAILED = "failed"
    OFF = "off"


GRAVITY = (State.OFF, State.OK, State.WARNING, State.FAILED)
"""The states, the gravest last."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """
    One check with its result.

    Attributes:
        name: Which: ``sink.otlp``, ``store.mem0``, ``journal``…
        state: What it came to.
        detail: Why, in a line. Addresses, paths, numbers; nobody's data.
    """

    name: str
    state: State
    detail: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Health:
    """
    The results of all checks of a scope.

    Attributes:
        checks: One for each thing, in the order of reading.
    """

    checks: tuple[Check, ...]

    @property
    def ok(self) -> bool:
        """True where nothing failed. Warnings do not count."""
        return all(check.state is not State.FAILED for check in self.checks)

    def __str__(self) -> str:
        """Return the screen of ``mnemoscope doctor``."""
        from .screen import health_text  # noqa: PLC0415 - rich, for who looks at it

        return health_text(self._rows())

    def __rich__(self) -> RenderableType:
        """Return the same for a terminal, in its width and with colours."""
        from .screen import health_screen  # noqa: PLC0415 - rich, for who looks at it

        return health_screen(self._rows())

    def _rows(self) -> list[tuple[str, str, str]]:
        return [(each.state.value, each.name, each.detail) for each in self.checks]

    def with_checks(self, *checks: Check) -> Health:
        """Return this with *checks* in place of those of the same names, or added."""
        found = {each.name: each for each in (*self.checks, *checks)}
        return Health(checks=tuple(found.values()))

    def as_document(self) -> dict[str, Any]:
        """Return this in JSON types."""
        checks = [
            {"name": each.name, "state": each.state.value, "detail": each.detail}
            for each in self.checks
        ]
        return {"ok": self.ok, "checks": checks}


Question = Callable[[], Check]


def ask(questions: Mapping[str, Question], timeout_s: float) -> Health:
    """
    Ask all *questions* side by side, and return the answers within *timeout_s* seconds.

    A question that raises, or is not answered in time, is answered by a failed check. None of them
    can hold up the others, or the exit of the process.
    """
    deadline = time.monotonic() + timeout_s
    running = [(name, *_started(name, question)) for name, question in questions.items()]
    for _name, thread, _answers in running:
        # One that could not be started cannot be joined either.
        if thread.ident is not None:
            thread.join(max(0.0, deadline - time.monotonic()))
    late = f"no answer within {timeout_s:g} s"
    return Health(
        checks=tuple(answers[0] if answers else failed(name, late) for name, _, answers in running)
    )


def failed(name: str, detail: str) -> Check:
    """Return a failed check."""
    return Check(name=name, state=State.FAILED, detail=detail)


def _started(name: str, question: Question) -> tuple[threading.Thread, list[Check]]:
    answers: list[Check] = []

    def answer() -> None:
        answers.append(_answered(name, question))

    thread = threading.Thread(target=answer, name=f"mnemoscope-check-{name}", daemon=True)
    try:
        thread.start()
    except RuntimeError:
        answers.append(failed(name, "there is no thread left to look with"))
    return thread, answers


def _answered(name: str, question: Question) -> Check:
    try:
        return question()
    except BaseException as exc:  # noqa: BLE001 - on a thread of ours; its message may quote anything
        return failed(name, f"could not be looked at ({type(exc).__qualname__})")

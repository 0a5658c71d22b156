"""What an adapter says of the writes of its client, so that they can be kept and made again."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from ..operation import Arguments, Method
from .values import Values


class Question(NamedTuple):
    """
    A call of the client that tells whether it has a write already.

    Attributes:
        method: Its name.
        arguments: What with.
    """

    method: str
    arguments: Arguments


class Once(Protocol):
    """For stores that take the same write twice: how to know one again. All of it is pure."""

    def marked(self, method: str, arguments: Arguments, write_id: str, /) -> Arguments:
        """Return *arguments* with the id in them, where the store keeps it and finds it again."""
        ...

    def question(self, method: str, arguments: Arguments, write_id: str, /) -> Question | None:
        """Return how to ask for what carries the id. None: *method* may be made twice."""
        ...

    def left(self, method: str, arguments: Arguments, answer: object, /) -> Arguments | None:
        """Return what of *arguments* is still to be written, by the answer. None: nothing."""
        ...


def _all(arguments: Arguments) -> Arguments:
    return arguments


@dataclass(frozen=True, slots=True, kw_only=True)
class Writes:
    """
    How the writes of one client are kept, and made again.

    Attributes:
        client: Whom to call.
        row: Returns what a call is, by the method's name and the arguments.
        methods: Names of the methods whose writes are kept, as the adapter's table has them.
        values: Turns their arguments into text and back.
        part: Returns what of the arguments is a write, where a call may be more than that.
        twin: What the name of an asynchronous twin begins with, where the client has both.
        once: None: a write that is made twice leaves what it leaves when it is made once.
    """

    client: object
    row: Callable[[str, Arguments], Method]
    methods: frozenset[str]
    values: Values
    part: Callable[[Arguments], Arguments] = _all
    twin: str = ""
    once: Once | None = None

"""Declarations of an adapter about its client's writes, so that they can be kept and made again."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol, TypeAlias

from .operation import Arguments, Method
from .touches import UNTOLD, Touches


class Lookup(NamedTuple):
    """
    A call of the client that finds out whether the store has a write. Its `repr` has no ids.

    Attributes:
        method: Name of the method.
        arguments: Its arguments.
    """

    method: str
    arguments: Arguments

    def __repr__(self) -> str:
        """Show which method it is, and nothing of its arguments."""
        return f"Lookup({self.method})"


class Deduplication(Protocol):
    """Recognition of a write in stores that would take it twice. All of it is pure."""

    def marked(self, method: str, arguments: Arguments, write_id: str, /) -> Arguments:
        """Return *arguments* with the id in them, where the store keeps it and finds it again."""
        ...

    def question(self, method: str, arguments: Arguments, write_id: str, /) -> Lookup | None:
        """Return the call that looks for the id. None: *method* may be made twice."""
        ...

    def left(self, method: str, arguments: Arguments, answer: object, /) -> Arguments | None:
        """Return the part of *arguments* that is still to be written. None: nothing."""
        ...


def _all(arguments: Arguments) -> Arguments:
    return arguments


TouchesOf: TypeAlias = Callable[[str, Arguments], Touches]
"""Returns what a call touches, by the method's name and the arguments. Never raises."""


def untold(_method: str, _arguments: Arguments) -> Touches:
    """Return `UNTOLD`: the method's table does not name the keys that a write touches."""
    return UNTOLD


@dataclass(frozen=True, slots=True, kw_only=True)
class JournalledWrites:
    """
    The writes of one client that can be kept in the journal.

    Attributes:
        client: The client to call.
        row: Returns the row of a call, by the method's name and the arguments.
        methods: Names of the methods whose writes are kept, as the adapter's table has them.
        models: Pydantic models, enums and named tuples that may be among their arguments, by name.
            Besides these only values of the standard library and arrays of numpy are kept.
        part: Returns the part of the arguments that is a write, where a call may be more.
        twin: Prefix of the names of asynchronous twins, where the client has both.
        once: Recognises a write that the store has already. None: a write that is made twice
            leaves what it leaves when it is made once.
        touches: ``touches(method, arguments)`` returns what a write writes, or a deletion of the
            client's deletes. Never raises.
        method: Returns a method of the client, by its name, that takes the arguments by the names
            that they are kept under.
    """

    client: object
    row: Callable[[str, Arguments], Method]
    methods: frozenset[str]
    models: Mapping[str, type[Any]] = field(default_factory=dict[str, type[Any]])
    part: Callable[[Arguments], Arguments] = _all
    twin: str = ""
    once: Deduplication | None = None
    touches: TouchesOf = untold
    method: Callable[[object, str], Callable[..., object]] = getattr

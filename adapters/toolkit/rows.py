"""Choice of a method's row by the arguments of a call."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ...memory.api import Arguments, Method, Row


def row_finder(table: Mapping[str, Row]) -> Callable[[str, Arguments], Method]:
    """Return a function that finds the row of a call in *table*, by its name and arguments."""

    def find(name: str, arguments: Arguments) -> Method:
        row = table[name]
        return row if isinstance(row, Method) else row(arguments)

    return find

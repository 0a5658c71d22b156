"""
The ``OTEL_*`` variables as they were when the scope was configured.

OpenTelemetry's SDK and exporters read the environment as they are made, which is with the first
event. By then the host may have changed it, or a library of its. Settings hold from the moment that
they are read, so the exporters are shown the variables of that moment.
"""

from __future__ import annotations

import os
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from typing import Any, Final, cast

from ..process.fork_lock import ForkLock

_PREFIX: Final = "OTEL_"
_lock = ForkLock()


class SavedVariables:
    """The variables of the moment at which this is made."""

    def __init__(self) -> None:
        self._saved = _read()

    @contextmanager
    def applied(self) -> Generator[None]:
        """
        Show the saved variables in place of the present ones, where they differ, for the body.

        To Python's code alone: `os.putenv` is not safe while other threads run.
        """
        with _lock:
            present = _read()
            if present == self._saved:
                yield
                return
            _show(self._saved)
            try:
                yield
            finally:
                _show(present)


def _read() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name.startswith(_PREFIX)}


def _show(variables: Mapping[str, str]) -> None:
    environment = cast("Any", os.environ)
    # os.putenv is not thread-safe in C: getenv of another thread may read freed memory.
    data: dict[Any, Any] = environment._data  # noqa: SLF001 - all else calls `os.putenv`
    for name in _read().keys() - variables.keys():
        data.pop(environment.encodekey(name), None)
    for name, value in variables.items():
        data[environment.encodekey(name)] = environment.encodevalue(value)

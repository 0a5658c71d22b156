"""
A rotated log file, through a loguru logger apart from the host's.

loguru's public module makes one logger for everybody; copying that one, as its documentation
suggests, copies the host's handlers too. So its classes are used directly: the logger, and the file
behind it, since only with that one at hand can a failed write be cleaned up.
"""

from __future__ import annotations

import os
from contextlib import suppress
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..delivery.sink import DeliveryError
from ..network.probe import may_write

if TYPE_CHECKING:
    from loguru import Logger


class LogFile:
    """
    Appends lines to a file, which is opened with the first of them.

    Args:
        path: Where. Missing folders are made.
        rotation: When the file is rotated, in loguru's terms.
        retention: Rotated files kept.
    """

    def __init__(self, path: Path, *, rotation: str, retention: int) -> None:
        self._path = path
        self._rotation = rotation
        self._retention = retention
        self._logger: Logger | None = None
        self._file: Any = None
        self._torn = False

    def append(self, lines: str) -> None:
        """Write *lines*, each with its line feed. Raises `OSError`; some may be written then."""
        if self._logger is None:
            self._open()
        if self._torn:
            lines = self._line_feed() + lines
        assert self._logger is not None  # noqa: S101 - opened above
        try:
            # Raw, and one record for all lines: loguru takes tens of microseconds a record.
            self._logger.opt(raw=True).info(lines)
        except OSError:
            self._discard()
            raise
        self._torn = False

    def check(self) -> str:
        """
        Check that the file can be written and return a description. Creates nothing.

        Raises:
            DeliveryError: They would not.
        """
        try:
            may_write(self._path)
        except OSError as exc:
            reason = (exc.strerror or type(exc).__name__).lower()
            raise DeliveryError(f"{self._path} cannot be written: {reason}") from exc
        return f"writes to {self._path}"

    def close(self) -> None:
        """Close the file. A later `append` opens it again."""
        logger, self._logger, self._file = self._logger, None, None
        if logger is not None:
            logger.remove()

    def _open(self) -> None:
        machinery = import_module("loguru._logger")
        self._file = machinery.FileSink(
            str(self._path).replace("{", "{{").replace("}", "}}"),
            rotation=self._rotation,
            retention=self._retention,
            watch=True,
            delay=True,
            encoding="utf-8",
            opener=partial(os.open, mode=0o640),
        )
        self._logger = _logger_of(machinery)
        # A full disk is the lane's to count, not standard error's: hence no catching.
        self._logger.add(self._file, level=0, format="{message}", colorize=False, catch=False)

    def _discard(self) -> None:
        # Python keeps what it could not write and would try again on closing, and complain on
        # standard error. The lane counts these lines as lost, so lost they must be.
        file = getattr(self._file, "_file", None)
        if file is not None:
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, file.fileno(), inheritable=False)
            os.close(nowhere)
        with suppress(OSError):
            self.close()
        self._torn = True

    def _line_feed(self) -> str:
        with suppress(OSError), self._path.open("rb") as file:
            file.seek(-1, os.SEEK_END)
            return "" if file.read(1) == b"\n" else "\n"
        return ""


def _logger_of(machinery: Any) -> Logger:
    logger: Logger = machinery.Logger(
        core=machinery.Core(),
        exception=None,
        depth=0,
        record=False,
        lazy=False,
        colors=False,
        raw=False,
        capture=True,
        patchers=[],
        extra={},
    )
    return logger

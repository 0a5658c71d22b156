"""Relays as processes: what ``relay="auto"`` starts, and what `mnemoscope relay` shares with it."""

from __future__ import annotations

import logging
import os
import signal
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..telemetry.files.file_lock import FileLock
from ..telemetry.relay.folder import LOCK_NAME
from ..telemetry.relay.relay import collect_seldom
from ..telemetry.relay.starter import Attendance
from .building.relay import build_relay
from .settings import load_settings

if TYPE_CHECKING:
    from ..telemetry.relay.relay import Relay


def serve(said: Mapping[str, Any], directory: str, lock_fd: int) -> None:
    """Deliver for the applications of a folder, whose lock is held, until the last has gone."""
    os.umask(0o077)
    os.dup2(1, 0)  # which leads nowhere, and the pipe to the application is closed
    os.environ.update(said["variables"])
    folder = Path(directory)
    logger = logging.getLogger("mnemoscope")
    logger.addHandler(logging.FileHandler(folder / "relay.log", mode="w", delay=True))
    lock = FileLock(folder / LOCK_NAME, lock_fd)
    try:
        relay = build_relay(load_settings(**said["settings"]), folder, lock)
        deliver(relay, Attendance(folder, lock))
    except Exception as exc:
        logger.error("the relay has ended: %s", type(exc).__name__)  # noqa: TRY400 - one line
        raise


def deliver(relay: Relay, attendance: Attendance | None = None) -> None:
    """Have *relay* work until SIGTERM or Ctrl-C comes, or its applications have gone."""
    collect_seldom()
    stopping = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        # No more than that: a handler runs between any two steps of the relay.
        signal.signal(number, lambda _number, _frame: stopping.set())
    relay.run(stopping, attendance)

"""
The events by which a writer says in the log that it began, how far it is, and that it ended.

A writer is one process incarnation. It says how many events it has counted along with those that it
records, so that one which falls silent leaves behind how far it had come. One that has nothing more
to record says so once, and then nothing until the next event.
"""

from __future__ import annotations

from typing import Any

STARTED = "writer.started"
HEARTBEAT = "writer.heartbeat"
STOPPED = "writer.stopped"
ENDED = "writer.ended"
"""It was found to be gone without having said so, by another process of its machine."""

ABOUT_WRITERS = frozenset({STARTED, HEARTBEAT, STOPPED, ENDED})

HEARTBEAT_S = 5.0
"""Seconds between two heartbeats of a writer that has events to record."""

IDLE_AFTER_S = 30.0
"""Seconds without an event after which a writer says that it is idle."""

IDLE_EVERY_S = 86_400.0
"""Seconds after which an idle writer says so again: a log that lives on shows that time passes."""

SILENT_AFTER_S = 60.0
"""Seconds without a heartbeat after which a writer that did not say so is no longer there."""


def about(name: str, writer_id: str, counter: int, **more: Any) -> tuple[str, dict[str, Any]]:
    """
    Return name and data of an event about a writer.

    Args:
        name: One of `ABOUT_WRITERS`.
        writer_id: Which writer.
        counter: Events that it has counted.
        more: What else there is to say.
    """
    return name, {"writer": writer_id, "counter": counter, **more}


def is_durable(mode: str | None) -> bool:
    """Return whether calls returned once their event was on a disk of the writer's machine."""
    return mode in {"durable", "strict"}

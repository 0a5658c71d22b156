"""The factory of the log sink."""

from __future__ import annotations

from ..delivery.registry import SinkContext
from .sink import LogSink


def build(context: SinkContext) -> LogSink:
    """Build the sink: to a file if one is set, else to the host's logging."""
    settings = context.settings
    return LogSink(
        file=settings["log_file"],
        host=settings["log_to"],
        content=context.content,
        most_bytes=settings["log_file_bytes"],
        kept=settings["log_files_kept"],
    )

"""The factory of the log sink."""

from __future__ import annotations

import logging

from ..delivery.registry import SinkContext
from ..delivery.sink import DeliveryError
from .sink import LogSink

logger = logging.getLogger("mnemoscope")


def build(context: SinkContext) -> LogSink:
    """Build the sink: to a file if one is set, else to the host's logging. Warn of one in vain."""
    settings = context.settings
    sink = LogSink(
        file=settings["log_file"],
        host=settings["log_to"],
        content=context.content,
        most_bytes=settings["log_file_bytes"],
        kept=settings["log_files_kept"],
        log_format=settings["log_format"],
    )
    try:
        sink.check(0)
    except DeliveryError as exc:
        logger.warning("MNEMOSCOPE_LOG_FILE: %s. Until it can be, no operation is logged", exc)
    return sink

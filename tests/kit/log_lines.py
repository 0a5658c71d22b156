"""Events as the lines of a log file, read back."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from mnemoscope.memory.api import Event
from mnemoscope.telemetry.logs.sink import LogSink


def logged(events: Iterable[Event], **options: Any) -> list[dict[str, Any]]:
    """Return the lines that a log sink with *options* writes of *events*."""
    with TemporaryDirectory() as folder:
        file = Path(folder, "log.jsonl")
        sink = LogSink(file=file, **options)
        sink.write([*events])
        sink.close(1.0)
        # Not by splitlines: a name may hold what ends a line elsewhere than in JSON.
        return [json.loads(line) for line in file.read_text(encoding="utf-8").split("\n") if line]

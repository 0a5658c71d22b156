"""A sink that writes events as Parquet files, one for each batch."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from mnemoscope.memory.api import (
    Event,
    SinkContext,
    SinkOutput,
    UnacceptableError,
    UnavailableError,
)

TEXTS = ("event_id", "store", "operation", "method", "status", "subject", "tenant", "feature")
NUMBERS = {"duration_s": pa.float64(), "hits": pa.int64(), "cost_usd": pa.float64()}
COLUMNS = {"started": pa.timestamp("us", tz="UTC"), **dict.fromkeys(TEXTS, pa.string()), **NUMBERS}
SCHEMA = pa.schema(COLUMNS)


class ParquetSink:
    """Writes each batch to a file of its own in *folder*, which is made with the first."""

    name = "parquet"
    idempotent = True

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def write(self, batch: Sequence[Event], /) -> None:
        """Write *batch* as a file, named after its first event."""
        if not batch:
            return
        path = self._folder / f"{batch[0].event_id}.parquet"
        draft = path.with_suffix(".draft")
        try:
            table = pa.Table.from_pylist([_row(each) for each in batch], SCHEMA)
        except (pa.ArrowException, ValueError, OverflowError) as exc:
            raise UnacceptableError("an event has a value that Parquet cannot hold") from exc
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            pq.write_table(table, draft)
            draft.replace(path)
        except OSError as exc:
            raise UnavailableError(f"{self._folder} cannot be written") from exc

    def flush(self, _timeout_s: float, /) -> bool:
        """Return True: nothing is buffered."""
        return True

    def output(self) -> SinkOutput:
        """Return what leaves through this sink: none of its columns holds content."""
        return SinkOutput("file", content=False)

    def close(self, _timeout_s: float, /) -> None:
        """Do nothing: no file is open between two batches."""


def _row(event: Event) -> dict[str, Any]:
    row = {name: getattr(event, name, None) for name in COLUMNS}
    subject, usage = event.subject, event.usage
    return row | {
        "started": event.started_ns // 1_000,
        "subject": subject.hashed(ParquetSink.name) if subject else None,
        "cost_usd": usage.cost_usd if usage else None,
    }


def build(context: SinkContext) -> ParquetSink:
    """Build the sink, whose folder is ``MNEMOSCOPE_PARQUET_FOLDER``."""
    default = context.data_folder / "parquet"
    return ParquetSink(Path(os.environ.get("MNEMOSCOPE_PARQUET_FOLDER", default)))

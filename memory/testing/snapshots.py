"""Golden traces in files, a test each, by syrupy."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
from syrupy.assertion import SnapshotAssertion
from syrupy.extensions.single_file import SingleFileSnapshotExtension, WriteMode

from .golden import GoldenTrace


class GoldenTraceExtension(SingleFileSnapshotExtension):
    """Keeps a trace as JSON, and matches within what a run may differ by."""

    _write_mode = WriteMode.TEXT
    file_extension = "json"

    def serialize(self, data: Any, **_options: Any) -> str:
        """Return a trace as text."""
        return msgspec.json.format(msgspec.json.encode(data), indent=1).decode() + "\n"

    def matches(self, *, serialized_data: Any, snapshot_data: Any) -> bool:
        """Tell whether a trace is that of the snapshot."""
        return not _differences(serialized_data, snapshot_data)

    def diff_lines(self, serialized_data: Any, snapshot_data: Any) -> Iterator[str]:
        """Yield what differs, in words."""
        # Without a snapshot there is nothing to compare, and syrupy says so itself.
        yield from _differences(serialized_data, snapshot_data) if snapshot_data else ()


def check_trace(trace: GoldenTrace, snapshot: SnapshotAssertion) -> None:
    """
    Hold *trace* against the snapshot of the test, or write it under ``--snapshot-update``.

    Raises:
        AssertionError: They differ, or there is no snapshot. A line for each difference.
    """
    __tracebackhide__ = True  # pytest shows the test's own line
    golden = snapshot.use_extension(GoldenTraceExtension)
    if golden != trace:
        lines = golden.get_assert_diff()
        heading = "the memory operations are not those of the snapshot"
        raise AssertionError("\n  ".join((heading, *lines, "meant? run with --snapshot-update")))


def _differences(trace: str, snapshot: str) -> list[str]:
    read = msgspec.json.Decoder(GoldenTrace).decode
    return read(trace).differences(read(snapshot))

"""What the tests of every adapter use: a runtime, and the events that came out of it."""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from mnemoscope.adapters.proxy import guard_of
from mnemoscope.memory.journal.journal import Journal
from mnemoscope.memory.journal.journalled import JournalledGuard
from mnemoscope.memory.redaction.redactor import Redactor, build_redactor
from mnemoscope.memory.runtime import Runtime
from mnemoscope.telemetry.drain import Drain
from mnemoscope.telemetry.event import Event
from mnemoscope.telemetry.subject import SubjectKeys

# mem0 reads both as it is imported, and makes the folder.
os.environ["MEM0_TELEMETRY"] = "False"
if "MEM0_DIR" not in os.environ:
    os.environ["MEM0_DIR"] = tempfile.mkdtemp(prefix="mem0-")
    atexit.register(shutil.rmtree, os.environ["MEM0_DIR"], ignore_errors=True)


class Collector:
    """A sink that keeps what it is given."""

    name = "collector"
    idempotent = False

    def __init__(self) -> None:
        self.collected: list[Event] = []

    def write(self, batch: Sequence[Event], /) -> None:
        self.collected.extend(batch)

    def flush(self, timeout_s: float, /) -> bool:
        return True

    def close(self, timeout_s: float, /) -> None:
        return


@pytest.fixture(scope="session")
def redactor() -> Redactor:
    """Return the real redactor, with patterns only: no language model to wait for."""
    return build_redactor(model="none", keys=SubjectKeys(b"sixteen bytes or more"))


@pytest.fixture
def collector() -> Collector:
    """Return the one sink of `runtime`."""
    return Collector()


@pytest.fixture
def runtime(
    redactor: Redactor, subject_keys: SubjectKeys, collector: Collector
) -> Iterator[Runtime]:
    """Return what guards share: everything real, one sink."""
    built = Runtime(redactor=redactor, drain=Drain([collector]), keys=subject_keys)
    yield built
    built.drain.close(2)


@pytest.fixture
def events(runtime: Runtime, collector: Collector) -> Callable[[], list[Event]]:
    """Return a function that waits for the drain and returns all events so far."""

    def settled() -> list[Event]:
        assert runtime.drain.flush(5)
        return collector.collected

    return settled


class NoThread:
    """In place of the journal's thread: a test says when writes are made again."""

    def watch(self, guard: Any) -> None:
        return

    def close(self, timeout_s: float) -> None:
        return


@pytest.fixture
def journal(runtime: Runtime, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Journal]:
    """Give `runtime` a journal; `replay` makes the writes in it again, and nobody else does."""
    monkeypatch.setattr(JournalledGuard, "_begin_task", lambda _self, _kept: None)
    runtime.journal = Journal(tmp_path / "journal", faults=runtime.faults)
    runtime.replayer = NoThread()  # type: ignore[assignment]  # as much of it as is used
    runtime.journal.open()
    yield runtime.journal
    runtime.journal.close()


@pytest.fixture
def replay() -> Callable[..., Awaitable[bool]]:
    """Return a function that makes the writes of a guarded client again; True: none waits now."""

    async def replayed(client: Any, *, is_async: bool) -> bool:
        guard: Any = guard_of(client)
        guard._kept.queue.not_before = 0.0
        return await guard.areplay() if is_async else guard.replay()

    return replayed


@pytest.fixture
def eventually() -> Callable[[Callable[[], bool]], bool]:
    """Return a function that waits, for 10 seconds at most, until something is so."""

    def wait(is_so: Callable[[], bool]) -> bool:
        until = time.monotonic() + 10
        while not (so := is_so()) and time.monotonic() < until:
            time.sleep(0.005)
        return so

    return wait

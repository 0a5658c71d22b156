"""What the tests of every adapter use: a bench, and the events that came out of it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from mnemoscope.adapters.toolkit.proxy import guard_of
from mnemoscope.memory.journal.journal import Journal
from mnemoscope.memory.privacy.engine.redactor import Redactor, build_redactor
from mnemoscope.telemetry.delivery.drain import Drain
from mnemoscope.telemetry.event.event import Event
from mnemoscope.telemetry.event.subject import SubjectKeys
from mnemoscope.telemetry.process.faults import Faults
from tests.kit.bench import Bench, journalling
from tests.kit.customer_records import async_postgres_pool_at, postgres_pool_at
from tests.kit.patience import GIVE_UP_S, UNHURRIED


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


@pytest.fixture
def unhurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have scopes wait for their store, however slow the machine is."""
    for name, value in UNHURRIED.items():
        monkeypatch.setenv(name, value)


@pytest.fixture(scope="session")
def redactor() -> Redactor:
    """Return the real redactor, with patterns only: no language model to wait for."""
    return build_redactor(model="none", keys=SubjectKeys(b"sixteen bytes or more"))


@pytest.fixture(scope="session")
def no_certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder in which there are no authorities."""
    return tmp_path_factory.mktemp("no certificates")


@pytest.fixture(autouse=True)
def trust_nobody(no_certificates: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have HTTP clients, of which mem0 makes two, read no authorities: it takes longest of all."""
    monkeypatch.delenv("SSL_CERT_FILE", raising=False)
    monkeypatch.setenv("SSL_CERT_DIR", str(no_certificates))


@pytest.fixture
def collector() -> Collector:
    """Return the one sink of `bench`."""
    return Collector()


@pytest.fixture
def bench(redactor: Redactor, subject_keys: SubjectKeys, collector: Collector) -> Iterator[Bench]:
    """Return the parts of a scope: everything real, one sink."""
    faults = Faults()
    drain = Drain([collector], faults=faults)
    yield Bench(redactor=redactor, drain=drain, keys=subject_keys, faults=faults)
    drain.close(GIVE_UP_S)


@pytest.fixture
def events(bench: Bench, collector: Collector) -> Callable[[], list[Event]]:
    """Return a function that waits for the drain and returns all events so far."""

    def settled() -> list[Event]:
        assert bench.drain.flush(GIVE_UP_S)
        return collector.collected

    return settled


class NoThread:
    """In place of the journal's thread: a test says when writes are made again."""

    def watch(self, guard: Any) -> None:
        return

    def watch_always(self, guard: Any) -> None:
        return

    def close(self, timeout_s: float) -> None:
        return


@pytest.fixture
def journal(bench: Bench, tmp_path: Path) -> Iterator[Journal]:
    """Give `bench` a journal; `replay` makes the writes in it again, and nobody else does."""
    bench.journal = Journal(tmp_path / "journal", key=bytes(32), faults=bench.faults)
    bench.replayer = NoThread()
    bench.journal.open()
    yield bench.journal
    bench.journal.close()


@pytest.fixture
def replay() -> Callable[..., Awaitable[bool]]:
    """Return a function that makes the writes of a guarded client again; True: none waits now."""

    async def replayed(client: Any, *, is_async: bool) -> bool:
        guard = guard_of(client)
        assert guard is not None
        waiting = journalling(guard).replay
        waiting.queue.not_before = 0.0
        return await waiting.adrain() if is_async else waiting.drain()

    return replayed


@pytest.fixture
def pool(request: pytest.FixtureRequest) -> Iterator[Any]:
    """Return a function that returns a pool of connections, to a server that starts for it."""
    with ExitStack() as exits:

        def made(*, is_async: bool = False) -> Any:
            url = request.getfixturevalue("postgres_url")
            if is_async:
                return async_postgres_pool_at(url)
            return exits.enter_context(postgres_pool_at(url))

        yield made

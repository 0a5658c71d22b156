"""A Redis server with search, of this process."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest

from tests.kit.redis_cases import IndexServer


@pytest.fixture(scope="session")
def redis_server():
    """Return a server on a socket of its own. Tests that kill it start it again."""
    with tempfile.TemporaryDirectory(prefix="rd-", ignore_cleanup_errors=True) as folder:
        server = IndexServer(Path(folder))
        yield server
        server.stop()

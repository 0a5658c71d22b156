"""A Chroma server of this process."""

from __future__ import annotations

import pytest

from tests.kit.chroma_cases import ChromaServer


@pytest.fixture(scope="session")
def chroma_server(tmp_path_factory):
    """Return a server on a port of this machine. Tests that kill it start it again."""
    server = ChromaServer(tmp_path_factory.mktemp("chroma"))
    yield server
    server.kill()

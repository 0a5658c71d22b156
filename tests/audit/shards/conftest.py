"""A trail of several shards."""

from __future__ import annotations

import pytest

from tests.kit.sharded_trails import ShardedTrail


@pytest.fixture
def sharded(tmp_path, monkeypatch):
    """Return a trail in files, which commands of this process have as well."""
    trail = ShardedTrail(tmp_path)
    for name, value in trail.environment().items():
        monkeypatch.setenv(name, value)
    return trail

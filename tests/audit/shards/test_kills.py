"""A shard is added while writers of the old number and of the new one are killed."""

from __future__ import annotations

import pytest

from tests.kit.shard_kills import kill_writers

pytestmark = [pytest.mark.long, pytest.mark.forks_often]


def test_nothing_that_was_acknowledged_is_lost(sharded, monkeypatch):
    """Each shard verifies, and all that calls waited for is in one of them."""
    monkeypatch.delenv("MNEMOSCOPE_AUDIT_SHARDS")

    tally = kill_writers(sharded, rounds=2)

    assert tally.is_good, tally

"""Writers are killed while a shard is added, and exports and erasures of what is in several."""

from __future__ import annotations

import pytest

from tests.kit.shard_kills import kill_requests, kill_writers

pytestmark = [pytest.mark.long, pytest.mark.forks_often]


def test_nothing_that_was_acknowledged_is_lost(sharded, monkeypatch):
    """Each shard verifies, and all that calls waited for is in one of them."""
    monkeypatch.delenv("MNEMOSCOPE_AUDIT_SHARDS")

    tally = kill_writers(sharded, rounds=2)

    assert tally.is_good, tally


def test_an_export_and_an_erasure_that_were_killed_are_done_again(sharded, monkeypatch):
    """No bundle is damaged, nothing of the customer is left, and nothing of others is missing."""
    monkeypatch.delenv("MNEMOSCOPE_AUDIT_SHARDS")

    tally = kill_requests(sharded, kills=2)

    assert tally.is_good, tally

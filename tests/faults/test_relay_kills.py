"""Kill -9 of an application, its relay, or both: no call that had returned is lost to any sink."""

from __future__ import annotations

import pytest

from tests.kit.relay_kills import VICTIMS, run, run_any

pytestmark = pytest.mark.forks_often


@pytest.mark.parametrize("victim", VICTIMS)
@pytest.mark.long
def test_no_finished_call_is_lost(victim, tmp_path):
    """Each is in the audit trail once, and in logs, traces and runs at least once."""
    tally = run(tmp_path, victim, rounds=1)

    assert tally.finished
    assert tally.lost == {"audit": 0, "logs": 0, "otlp": 0, "langsmith": 0}
    assert tally.duplicates == 0


@pytest.mark.long
def test_no_finished_call_of_applications_that_start_their_relay_is_lost(tmp_path):
    """Whichever of them is killed, while a back end refuses everything at times."""
    tally = run_any(tmp_path, rounds=3)

    assert tally.finished
    assert tally.lost == {"audit": 0, "logs": 0, "otlp": 0, "langsmith": 0}
    assert tally.duplicates == 0

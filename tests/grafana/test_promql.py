"""The pieces that rules and panels share."""

import pytest

from mnemoscope.alerting.promql import RuleSpeed, counted


def test_a_counter_that_is_born_counts():
    """What was not there before the window counts in full, what was counts by its increase."""
    assert counted("refused_total", "15m", by="store") == (
        "sum by (store) ((refused_total unless refused_total offset 15m)"
        " or increase(refused_total[15m]))"
    )


def test_rules_are_shipped_at_the_pace_they_were_written_at():
    """Durations are as they read."""
    assert RuleSpeed()("5m") == "5m"


@pytest.mark.parametrize(
    ("duration", "fast"), [("5m", "5s"), ("1h", "60s"), ("1d", "1440s"), ("30s", "2s")]
)
def test_a_pace_divides_durations(duration, fast):
    """By its speed, and never to less than two seconds, which no scrape would fit in."""
    assert RuleSpeed(60)(duration) == fast


def test_a_duration_is_one():
    """A typing error is told, and not taken for no time at all."""
    with pytest.raises(ValueError, match="'5 min' is not a duration such as 5m"):
        RuleSpeed(60)("5 min")

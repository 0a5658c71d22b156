"""What the tests of telemetry share."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from mnemoscope.telemetry.event import Event


@pytest.fixture
def make_event(event_factory: Callable[..., Event]) -> Callable[..., Event]:
    """Return a factory of events whose times are easy to add up."""
    return lambda **overrides: event_factory(**({"duration_s": 0.25, "waited_s": 0.01} | overrides))

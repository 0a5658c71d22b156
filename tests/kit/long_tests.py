"""The marks of tests that ``make test`` leaves to ``make test-long``."""

from __future__ import annotations

import pytest


def pytest_configure(config: pytest.Config) -> None:
    """Register the markers."""
    config.addinivalue_line("markers", "long: takes seconds by itself; see `make test-long`")
    config.addinivalue_line("markers", "short: a case that `make test` runs of a long test")
    config.addinivalue_line("markers", "sampled: tries more examples in `make test-long`")
    config.addinivalue_line("markers", "long_but(*ids): all its cases are long, but for these")


@pytest.hookimpl(tryfirst=True)  # before those that were not asked for are left out
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the cases of tests that keep a few of them for a short run."""
    for each in items:
        kept = each.get_closest_marker("long_but")
        if kept is not None and isinstance(each, pytest.Function):
            each.add_marker("short" if each.callspec.id in kept.args else "long")

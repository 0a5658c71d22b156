"""Hands tests to xdist's workers, a function with all of its parameters at a time."""

from __future__ import annotations

from typing import Any

import pytest


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """
    Return a scheduler of groups and functions, if groups were asked for.

    xdist's own hands out test by test, and looks at all that it ever gave a worker whenever a test
    ends: with 14,000 of them that takes longer than many a folder of tests.
    """
    if config.option.dist != "loadgroup":
        return None
    from xdist.scheduler import LoadGroupScheduling

    config.option.loadscopereorder = False  # the order is that of tests/conftest.py

    class Functions(LoadGroupScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return super()._split_scope(nodeid).partition("[")[0]

    return Functions(config, log)

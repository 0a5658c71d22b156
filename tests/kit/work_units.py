"""What a worker of xdist gets at a time: a function with its parameters, or a shared fixture."""

from __future__ import annotations

from typing import Any

import pytest


@pytest.hookimpl(tryfirst=True)  # xdist reads the groups in the same hook
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Keep the tests of a module's fixture together: each worker would make it anew."""
    for each in items:
        if isinstance(each, pytest.Function) and each.get_closest_marker("xdist_group") is None:
            fixtures = each._fixtureinfo.name2fixturedefs.values()
            if any(fixture[-1].scope == "module" for fixture in fixtures):
                each.add_marker(pytest.mark.xdist_group(each.path.stem))


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

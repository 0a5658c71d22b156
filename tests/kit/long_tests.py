"""The marks of tests that ``make test`` leaves to ``make test-long``, and a share of them."""

from __future__ import annotations

import zlib
from collections import Counter

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option that leaves out all tests but one share of them."""
    parser.addoption(
        "--share",
        type=read_share,
        metavar="I/N",
        help="run the Ith of N shares of the tests, counted from 0: 1/3",
    )


def read_share(text: str) -> tuple[int, int]:
    """Return which share of how many *text* names. Raises ValueError if there is no such share."""
    share, shares = (int(each) for each in text.split("/"))
    if not 0 <= share < shares:
        raise ValueError(text)
    return share, shares


def pytest_configure(config: pytest.Config) -> None:
    """Register the markers."""
    config.addinivalue_line("markers", "long: takes seconds by itself; see `make test-long`")
    config.addinivalue_line("markers", "short: a case that `make test` runs of a long test")
    config.addinivalue_line("markers", "sampled: tries more examples in `make test-long`")
    config.addinivalue_line("markers", "long_but(*ids): all its cases are long, but for these")
    config.addinivalue_line("markers", "long_but_each(nth): all are long, but for each nth of them")


@pytest.hookimpl(tryfirst=True)  # before those that were not asked for are left out
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark the cases of tests that keep a few of them for a short run, and keep one share."""
    met = Counter[str]()
    for each in items:
        if not isinstance(each, pytest.Function):
            continue
        if kept := each.get_closest_marker("long_but"):
            each.add_marker("short" if each.callspec.id in kept.args else "long")
        elif kept := each.get_closest_marker("long_but_each"):
            test = each.nodeid.partition("[")[0]
            each.add_marker("long" if met[test] % kept.args[0] else "short")
            met[test] += 1
    if given := config.getoption("share"):
        share, shares = given
        # By its name, so that each of pytest's processes leaves out the same tests.
        left_out = [each for each in items if zlib.crc32(each.nodeid.encode()) % shares != share]
        items[:] = [each for each in items if zlib.crc32(each.nodeid.encode()) % shares == share]
        config.hook.pytest_deselected(items=left_out)

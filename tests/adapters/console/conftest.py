"""A console over a real log, and browsers at it."""

from __future__ import annotations

import pytest

from mnemoscope.adapters.console import Entrance, OneTimeToken, Sessions, Site, build_console
from mnemoscope.audit import AuditLog
from tests.kit.console_browser import ORIGIN, Browser
from tests.kit.still_clock import Clock


@pytest.fixture
def clock():
    return Clock(1_000.0)


@pytest.fixture
def log(tmp_path, subject_keys):
    made = AuditLog(tmp_path / "audit.db", subject_keys)
    yield made
    made.close()


@pytest.fixture
def tokens():
    """The one-time tokens that were printed."""
    return []


@pytest.fixture
def site(log, tokens, clock):
    entrance = Entrance(
        origins=frozenset({ORIGIN}),
        who="grace@example.com",
        token=OneTimeToken(tokens.append),
    )
    return Site(log=log, entrance=entrance, sessions=Sessions(clock), look_step_s=0.0)


@pytest.fixture
def stranger(site):
    """A browser that has not signed in."""
    with Browser(build_console(site)) as browser:
        yield browser


@pytest.fixture
def browser(site, tokens):
    """A browser that has signed in by the token."""
    with Browser(build_console(site)) as browser:
        browser.get("/sign-in", params={"token": tokens[-1]})
        yield browser

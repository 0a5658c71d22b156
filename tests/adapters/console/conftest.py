"""A console over a real log, and browsers at it."""

from __future__ import annotations

import pytest

from mnemoscope.adapters.console import Entrance, OneTimeToken, Sessions, Site, build_console
from mnemoscope.memory import Mnemoscope, load_settings, open_audit
from tests.kit.console_browser import ORIGIN, Browser
from tests.kit.still_clock import Clock


@pytest.fixture
def clock():
    return Clock(1_000.0)


@pytest.fixture
def settings(tmp_path):
    """The settings of an application and of the console beside it."""
    return {
        "audit_url": f"sqlite:///{tmp_path}/audit.db",
        "audit_pseudonym_key": "ab" * 32,
        "audit_spool": tmp_path / "spool",
    }


@pytest.fixture
def log(settings):
    made = open_audit(**settings)
    yield made
    made.close()


@pytest.fixture
def scoped(settings):
    """Return a maker of scopes, by their rules, which write the console's trail."""
    scopes = []

    def make(*rules):
        known = load_settings(**settings, sinks="audit", pii_model="none")
        scopes.append(Mnemoscope(known, rules=list(rules)))
        return scopes[-1]

    yield make
    for each in scopes:
        each.close()


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

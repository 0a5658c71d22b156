"""A console that is served, with something waiting, and Chromium in front of it."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from tests.kit.console_world import let_wait
from tests.kit.served_console import served, variables_of

# A browser and thousands of requests take their time: these run by `make test-console` alone.
collect_ignore_glob = [] if os.environ.get("CONSOLE_TESTS") else ["test_*.py"]

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")


@pytest.fixture(scope="session")
def axe():
    """The source of axe-core, which `make test-console` has fetched."""
    path = os.environ.get("AXE", "")
    if not path or not Path(path).is_file():
        pytest.skip("no axe-core: run make test-console, which fetches it by npm")
    return Path(path).read_text(encoding="utf-8")


@pytest.fixture(scope="session")
def chromium():
    """Chromium, driven by Playwright."""
    program = next(filter(None, map(shutil.which, BROWSERS)), None)
    if program is None:
        pytest.skip(f"no Chromium on the PATH: none of {', '.join(BROWSERS)}")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        # Without its sandbox, which root has none of; the pages are our own.
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture(params=["sqlite", "postgres"])
def trail(request, tmp_path):
    """The settings of an audit trail that an application and a console share."""
    is_sqlite = request.param == "sqlite"
    url = f"sqlite:///{tmp_path}/audit.db" if is_sqlite else request.getfixturevalue("postgres_url")
    return {
        "audit_url": url,
        "audit_pseudonym_key": "ab" * 32,
        "audit_spool": tmp_path / "spool",
    }


@pytest.fixture
def console(trail):
    """A console in a process of its own, where things wait."""
    let_wait(trail)
    with served(env=variables_of(trail)) as found:
        yield found

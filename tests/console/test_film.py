"""One request in Chromium, from the look-up to the receipt; pictures of it where one asks."""

from __future__ import annotations

import json
import os
from pathlib import Path
from zipfile import ZipFile

import pytest

from tests.kit.console_application import ADDRESS, FOLDER, TEXTS, remember, store_of
from tests.kit.patience import GIVE_UP_S
from tests.kit.served_console import served, variables_of

WIDTHS = (360, 768, 1280)
PICTURES = os.environ.get("CONSOLE_FILM")
"""A folder for a picture of each step at each width: make test-console CONSOLE_FILM=build/film."""


@pytest.fixture
def console(trail, tmp_path):
    """A console with an application's stores, in which somebody is remembered."""
    remember(tmp_path, **trail)
    env = {**variables_of(trail), FOLDER: str(tmp_path)}
    with served("--scope", ADDRESS, env=env) as found:
        yield found


class Film:
    """A page that is looked at step by step, by axe-core and at three widths."""

    def __init__(self, page, axe):
        self.page, self._axe = page, axe
        self.wrong, self._steps = [], 0

    def shot(self, name):
        """Look at the page as it is."""
        self._steps += 1
        for width in WIDTHS:
            self.page.set_viewport_size({"width": width, "height": 860})
            if self._axe:
                self.page.evaluate(self._axe)
                found = self.page.evaluate("async () => (await axe.run()).violations")
                self.wrong += [f"{name} at {width}: {each['id']}" for each in found]
                if self.page.evaluate("document.documentElement.scrollWidth") > width:
                    self.wrong.append(f"{name} at {width}: wider than the screen")
            if PICTURES:
                Path(PICTURES).mkdir(parents=True, exist_ok=True)
                place = Path(PICTURES) / f"{self._steps:02}-{name}-{width}.png"
                self.page.screenshot(path=place, full_page=True)


def follow(page, role, name):
    """Press Enter on a link or button, and be on the page behind it."""
    with page.expect_navigation():
        page.get_by_role(role, name=name).press("Enter")


def type_in(page, label, text):
    """Type into a field, press Enter, and be on the page behind it."""
    page.get_by_label(label).focus()
    page.keyboard.type(text)
    with page.expect_navigation():
        page.keyboard.press("Enter")


def download(page, folder):
    """Wait until the work has ended, and return the file that it has made."""
    link = page.get_by_role("link", name="Download")
    link.wait_for(timeout=1e3 * GIVE_UP_S)
    with page.expect_download() as begun:
        link.press("Enter")
    path = folder / begun.value.suggested_filename
    begun.value.save_as(path)
    return path


@pytest.mark.parametrize("script", [True, False], ids=["script", "no script"])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_request_from_look_up_to_receipt(chromium, console, axe, tmp_path, script, scheme):
    """Look up, look at, export, erase, take the receipt; with scripts off as well."""
    context = chromium.new_context(java_script_enabled=script, color_scheme=scheme)
    page = context.new_page()
    film = Film(page, axe if script else None)
    page.goto(console.sign_in)
    follow(page, "link", "A person")
    film.shot("look-up")
    type_in(page, "Customer id", "c-42")
    remembered = page.locator("main").inner_text()
    film.shot("remembered")
    follow(page, "link", "History")
    film.shot("history")
    follow(page, "link", "Recipients")
    film.shot("recipients")
    follow(page, "link", "Remembered")
    follow(page, "button", "Export")
    bundle = download(page, tmp_path)
    film.shot("export")
    follow(page, "link", "Back")
    follow(page, "link", "Erase")
    film.shot("erase")
    type_in(page, "Type erase c-42", "erase c-42")
    receipt = download(page, tmp_path)
    film.shot("receipt")
    follow(page, "link", "A person")
    type_in(page, "Customer id", "c-42")
    film.shot("nobody")

    assert all(each in remembered for each in TEXTS)
    assert page.get_by_role("alert").inner_text().startswith("Nobody is known by that id here.")
    assert film.wrong == []
    assert len(store_of(tmp_path).search(("profile",))) == 1
    with ZipFile(bundle) as opened:
        assert TEXTS[0] in opened.read("memories.jsonl").decode()
    with ZipFile(receipt) as opened:
        assert json.loads(opened.read("manifest.json"))["complete"]
    context.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_run_and_the_reach_of_its_memory(chromium, console, axe, scheme):
    """Found, looked at, followed and withdrawn, by keyboard."""
    context = chromium.new_context(color_scheme=scheme)
    page = context.new_page()
    film = Film(page, axe)
    page.goto(console.sign_in)
    follow(page, "link", "Runs")
    film.shot("runs")
    follow(page, "link", "thread-6")
    film.shot("run")
    follow(page, "button", "Blast radius of m1")
    film.shot("radius")
    type_in(page, "Type withdraw 1 memory", "withdraw 1 memory")
    page.get_by_text("Withdrawn: none is left.").wait_for(timeout=1e3 * GIVE_UP_S)
    film.shot("withdrawn")
    follow(page, "link", "Health")
    film.shot("health")

    assert film.wrong == []
    context.close()

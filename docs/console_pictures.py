"""
Draw the console's pages for the docs, each at three widths: make console-pictures.

The people are invented; the console is a real one, in a process of its own, over a real trail. It
needs Chromium on the PATH.
"""

from __future__ import annotations

import base64
import shutil
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from langgraph.store.memory import InMemoryStore
from playwright.sync_api import Page, sync_playwright

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from mnemoscope.memory import Mnemoscope, context, load_settings  # noqa: E402
from tests.kit.console_world import let_wait  # noqa: E402 - the folder is no package
from tests.kit.served_console import served  # noqa: E402

IMAGES = Path(__file__).with_name("images")
WIDTHS, HEIGHT = (360, 768, 1280), 860
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")
MEMORIES = (
    "Prefers the window seat, and a table away from the door",
    "Eats no nuts since 2024",
    "Wants e-mail, no calls",
    "Pays by invoice, thirty days",
)


def remember(settings: dict[str, Any]) -> None:
    """Have a customer's memories be written, and recalled in two runs."""
    scope = Mnemoscope(load_settings(**settings, sinks="audit", pii_model="none"))
    store = scope.store(InMemoryStore())
    for number, text in enumerate(MEMORIES):
        with context(
            tenant="acme", customer="c-42", agent="concierge", run="thread-5", feature="intake"
        ):
            store.put(("profile", "c-42"), f"m{number}", {"text": text})
    for run in ("thread-6", "thread-7"):
        with context(
            tenant="acme", customer="c-42", agent="concierge", run=run, feature="reply-draft"
        ):
            store.search(("profile", "c-42"), query="where to sit")
    scope.close()


def look_up(page: Page) -> None:
    """Look the customer up."""
    page.get_by_label("Customer id").fill("c-42")
    page.get_by_role("button", name="Look up").click()


def export(page: Page) -> None:
    """Look the customer up, and export what is held about them."""
    look_up(page)
    page.get_by_role("button", name="Export").click()
    page.get_by_role("link", name="Download").wait_for(timeout=60_000)


def open_run(page: Page) -> None:
    """Open a run that recalled something."""
    page.get_by_role("link", name="thread-6").click()


PAGES: dict[str, tuple[str, Callable[[Page], None]]] = {
    "waiting": ("/", lambda _page: None),
    "person": ("/person", look_up),
    "export": ("/person", export),
    "runs": ("/runs", lambda _page: None),
    "run": ("/runs", open_run),
    "health": ("/health", lambda _page: None),
}


def draw(page: Page, name: str, origin: str, scheme: str) -> None:
    """Draw one page at all widths, side by side, into one picture."""
    path, act = PAGES[name]
    page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
    page.goto(origin + path)
    act(page)
    shots = []
    for width in WIDTHS:
        page.set_viewport_size({"width": width, "height": HEIGHT})
        shots.append(base64.b64encode(page.screenshot()).decode())
    images = "".join(f'<img src="data:image/png;base64,{each}" height="430">' for each in shots)
    blank = page.context.browser.new_page(  # type: ignore[union-attr]
        viewport={"width": sum(WIDTHS) // 2 + 80, "height": 470}, device_scale_factor=1.5
    )
    blank.set_content(
        "<style>body{margin:20px;display:flex;gap:20px;background:#8a929b}</style>" + images
    )
    suffix = "" if scheme == "light" else f"-{scheme}"
    blank.screenshot(path=IMAGES / f"console-{name}{suffix}.png")
    blank.close()


def main() -> None:
    """Draw the pages that are named, or all."""
    program = next(filter(None, map(shutil.which, BROWSERS)), None)
    if program is None:
        sys.exit(f"no Chromium on the PATH: none of {', '.join(BROWSERS)}")
    with tempfile.TemporaryDirectory() as folder:
        settings = {
            "audit_url": f"sqlite:///{folder}/audit.db",
            "audit_pseudonym_key": "ab" * 32,
            "audit_spool": Path(folder) / "spool",
        }
        remember(settings)
        let_wait(settings)
        env = {f"MNEMOSCOPE_{name.upper()}": str(value) for name, value in settings.items()}
        with served(env=env) as console, sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
            page = browser.new_page()
            page.goto(console.sign_in)
            for name in sys.argv[1:] or PAGES:
                draw(page, name, console.origin, "light")
            draw(page, "waiting", console.origin, "dark")
            browser.close()


if __name__ == "__main__":
    main()

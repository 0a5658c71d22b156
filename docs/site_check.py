"""
Try the built site in Chromium as its readers do: make docs-check.

Each symptom's first words, typed into the search, lead to its section first, and each of its links
to a section that is there. No page is wider than a phone, or than a laptop.
"""

from __future__ import annotations

import re
import shutil
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from playwright.sync_api import Page, sync_playwright

ROOT = Path(__file__).parents[1]
SITE = ROOT / "build/site"
WIDTHS_PX = (360, 1_280)
_SETTLED_MS = 600
_FIRST_HIT = """() => {
    const found = [];
    const walk = root => root.querySelectorAll('*').forEach(each => {
        if (each.tagName === 'A' && each.href.includes('?h=')) found.push(each.href);
        if (each.shadowRoot) walk(each.shadowRoot);
    });
    walk(document);
    return found[0] || '';
}"""
_OVERFLOW_PX = "document.documentElement.scrollWidth - window.innerWidth"


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_args: Any) -> None:
        """Say nothing: what is wrong is said at the end."""


@contextmanager
def served() -> Iterator[str]:
    """Serve the site on a free port of this machine and yield its address."""
    handler = partial(_Quiet, directory=SITE)
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


def lost_symptoms(page: Page, address: str) -> Iterator[str]:
    """Yield each symptom that the search does not find first."""
    page.goto(address, wait_until="networkidle")
    page.keyboard.press("Control+k")
    page.wait_for_timeout(_SETTLED_MS)
    text = (ROOT / "docs/symptoms.md").read_text(encoding="utf-8")
    for heading in re.findall(r"^### (.+)$", text, re.MULTILINE):
        words = re.sub(r"[`<>]", "", heading.partition(",")[0])
        page.keyboard.press("Control+a")
        page.keyboard.type(words)
        page.wait_for_timeout(_SETTLED_MS)
        hit = page.evaluate(_FIRST_HIT)
        slug = re.sub(r"\W+", "-", heading.lower().replace("'", "")).strip("-")[:20]
        if "/symptoms/" not in hit or slug not in hit:
            yield f"{words!r} is not found first, but {hit or 'nothing'}"


def broken_links(page: Page, address: str) -> Iterator[str]:
    """Yield each link of the symptoms to a section that is not there."""
    page.goto(f"{address}symptoms/")
    links = page.evaluate("[...document.querySelectorAll('article a')].map(each => each.href)")
    for link in sorted({each for each in links if "#" in each and "/symptoms/" not in each}):
        target, _hash, section = link.partition("#")
        file = SITE / target.removeprefix(address) / "index.html"
        if not file.is_file() or f'id="{section}"' not in file.read_text(encoding="utf-8"):
            yield f"{link.removeprefix(address)} leads nowhere"


def wide_pages(page: Page, address: str) -> Iterator[str]:
    """Yield each page that has to be moved sideways to be read."""
    pages = sorted(each.parent.relative_to(SITE) for each in SITE.rglob("index.html"))
    for width_px in WIDTHS_PX:
        page.set_viewport_size({"width": width_px, "height": 800})
        for each in pages:
            page.goto(f"{address}{each}/")
            over_px = page.evaluate(_OVERFLOW_PX)
            if over_px > 0:
                yield f"{each} is {over_px} px wider than {width_px}"


def main() -> int:
    """Return 1 if anything is wrong, after saying what."""
    with served() as address, sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox"]
        )
        page = browser.new_page(viewport={"width": 1_280, "height": 900})
        wrong = [
            each
            for check in (lost_symptoms, broken_links, wide_pages)
            for each in check(page, address)
        ]
        browser.close()
    said = "\n".join(wrong) or "the search finds each symptom, and every page fits"
    sys.stdout.write(f"{said}\n")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())

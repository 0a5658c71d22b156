"""Every Python block of the README and the docs runs, page by page, as it is written there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from own_process import run_python

ROOT = Path(__file__).parents[1]
PAGES = sorted(
    page
    for page in (ROOT / "README.md", *(ROOT / "docs").glob("*.md"))
    if "```python" in page.read_text(encoding="utf-8")
)
RUN = """
import sys
import re
from pathlib import Path
from sybil import Sybil
from sybil.parsers.markdown import PythonCodeBlockParser, SkipParser

document = Sybil([PythonCodeBlockParser(), SkipParser()]).parse(Path(sys.argv[1]))
ran = 0
for example in document.examples():
    example.evaluate()
    ran += 1
print(ran)
"""


def test_the_readme_and_the_quick_start_have_code():
    """The list of pages is not empty by mistake."""
    assert {"README.md", "index.md", "testing.md"} <= {page.name for page in PAGES}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_code_of_a_page_runs(page, tmp_path):
    """In order, in one namespace, in an empty folder; blocks in HTML comments set the scene."""
    mem0 = {"MEM0_TELEMETRY": "False", "MEM0_DIR": str(tmp_path / "mem0")}
    ended = run_python("-c", RUN, str(page), folder=tmp_path, **mem0)

    assert int(ended.stdout.split()[-1]) > 0


README = (ROOT / "README.md").read_text(encoding="utf-8")


def found(directory: str, files: str, pattern: str) -> list[str]:
    """Return what *pattern* finds in files of a folder."""
    texts = (path.read_text(encoding="utf-8") for path in (ROOT / directory).glob(files))
    return [each for text in texts for each in re.findall(pattern, text, re.MULTILINE)]


def test_the_readme_counts_right():
    """Dashboards, alerts, faults, lines and settings are as many as it says."""
    dashboards = len(list((ROOT / "grafana/dashboards").glob("*.json")))
    alerts = len(found("grafana/alerts", "*.yaml", r"^ *- alert:"))
    faults = len(set(found("docs", "faults.md", r"^\| (\d+) \|")))
    (code,) = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    lines = [line for line in code.splitlines() if line.strip()]
    rows = re.findall(r"^\| `MNEMOSCOPE_", README, re.MULTILINE)

    assert (dashboards, len(lines), len(rows)) == (4, 8, 10)
    assert f"four dashboards, {alerts} alerts" in README
    assert f"injects {faults} faults" in README


@pytest.mark.parametrize("page", [*sorted((ROOT / "docs").glob("*.md")), ROOT / "README.md"])
def test_what_a_page_links_to_is_there(page):
    """Files of the repository, and headings of pages."""
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    links = re.findall(r"\]\((?!https?:)([^)\s#]*)(?:#([^)\s]+))?\)", text)
    missing = [
        f"{target}#{heading}" if heading else target
        for target, heading in links
        if not (there := page.parent / target if target else page).exists()
        or (heading and heading not in headings(there))
    ]

    assert missing == []


def headings(page: Path) -> set[str]:
    """Return the anchors of a page's headings, as GitHub and the site make them."""
    told = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    plain = (re.sub(r"[^\w\- ]", "", each.lower()) for each in told)
    return {each.strip().replace(" ", "-") for each in plain}

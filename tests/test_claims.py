"""What the README counts, and what pages link to, is there in the source tree."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def found(directory: str, files: str, pattern: str) -> list[str]:
    """Return what *pattern* finds in files of a folder."""
    texts = (path.read_text(encoding="utf-8") for path in (ROOT / directory).glob(files))
    return [each for text in texts for each in re.findall(pattern, text, re.MULTILINE)]


def test_the_readme_counts_right():
    """Dashboards, alerts and faults are as many as it says."""
    dashboards = len(list((ROOT / "grafana/dashboards").glob("*.json")))
    alerts = len(found("grafana/alerts", "*.yaml", r"^ *- alert:"))
    faults = len(set(found("docs", "faults.md", r"^\| (\d+) \| ✓ \|")))

    assert dashboards == 5
    assert f"five dashboards, {alerts} alerts" in README
    assert f"injects {faults} faults" in README


def test_the_readme_can_be_read_at_once():
    """It has at most 700 words, without its blocks of code and the addresses of its links."""
    prose = re.sub(r"^```.*?^```$", "", README, flags=re.DOTALL | re.MULTILINE)
    words = re.sub(r"\]\([^)]*\)", "]", prose).split()

    assert len(words) <= 700


def test_what_is_told_to_be_made_is_a_target_once():
    """Of pages and of continuous integration. A second recipe would silently replace the first."""
    targets = re.findall(r"^([a-z][a-z-]*):(?!=)", (ROOT / "Makefile").read_text(), re.MULTILINE)
    pages = [*(ROOT / "docs").rglob("*.md"), *ROOT.glob("*.md")]
    told = {
        name
        for page in pages
        for name in re.findall(r"(?:`|\$ )make ([a-z][a-z-]+)", page.read_text())
    }
    told |= set(re.findall(r"^make ([a-z-]+)$", (ROOT / ".ci/run").read_text(), re.MULTILINE))

    assert sorted(set(targets)) == sorted(targets)
    assert told - set(targets) == set()


BOUNDS = (ROOT / "pyproject.toml").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("row", "package"),
    [
        ("mem0 | ", "mem0ai"),
        ("qdrant-client ", "qdrant-client"),
        ("LangGraph | ", "langgraph"),
        ("langchain-core ", "langchain-core"),
        ("`create_agent` of LangChain ", "langchain"),
        ("OpenTelemetry | ", "opentelemetry-sdk"),
        ("PostgreSQL by psycopg ", "psycopg[binary,pool]"),
    ],
)
def test_the_lowest_versions_of_the_page_are_the_bounds(row, package):
    """The bounds are what `make test-lowest` installs."""
    page = (ROOT / "docs/faq.md").read_text(encoding="utf-8")
    (said,) = re.findall(rf"{re.escape(row)}(\d[\d.]*\d)", page)

    found = re.findall(rf'"{re.escape(package)}>=([\d.]+)', BOUNDS)
    assert min(found, key=lambda bound: [*map(int, bound.split("."))]) == said


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


def test_the_collector_of_a_page_is_whole():
    """Its pipelines use what it defines, all of it, and nothing else."""
    yaml = pytest.importorskip("yaml", reason="extra rules")
    page = (ROOT / "docs/beside_others.md").read_text(encoding="utf-8")
    (told,) = re.findall(r"^```yaml\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)
    collector = yaml.safe_load(told)
    pipelines = collector["service"]["pipelines"]

    assert set(collector) == {"receivers", "processors", "exporters", "service"}
    for part in ("receivers", "processors", "exporters"):
        used = {name for pipeline in pipelines.values() for name in pipeline[part]}
        assert used == set(collector[part])

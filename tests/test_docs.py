"""Every Python block of the README and the docs runs, page by page, as it is written there."""

from __future__ import annotations

from pathlib import Path

import pytest
from own_process import run_python

ROOT = Path(__file__).parents[1]
PAGES = sorted(
    page
    for page in (ROOT / "README.md", *(ROOT / "docs").rglob("*.md"))
    if "```python" in page.read_text(encoding="utf-8")
)
RUN = """
import sys
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

"""What the README's picture is drawn from: a script that nothing else runs."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[3] / "docs" / "export_picture.py"


@pytest.fixture
def script():
    spec = importlib.util.spec_from_file_location("export_picture", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_its_page_is_complete_and_known_throughout(script, tmp_path):
    """Everything is stated and noted: nothing on the picture is missing."""
    page = script.export(tmp_path).read_text(encoding="utf-8")

    assert "This answer is complete" in page
    assert "Cannot tell" not in page
    assert "the conversation was saved 306 times" in page

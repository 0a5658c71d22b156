"""The YAML that rules are written in, read back by PyYAML."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mnemoscope.alerting.yaml_text import yaml_text

yaml = pytest.importorskip("yaml", reason="extra rules")

TEXTS = st.text(st.characters(min_codepoint=9, max_codepoint=0x2FF)) | st.sampled_from(
    ["yes", "No", "1", "1.5", "0x1", "1e3", "~", "null", "a: b", "a #b", "a\nb\n", " a\nb", "a\n\n"]
)
VALUES = st.recursive(
    TEXTS | st.integers() | st.booleans(),
    lambda inner: st.lists(inner) | st.dictionaries(TEXTS, inner),
    max_leaves=12,
)


@given(st.dictionaries(TEXTS, VALUES, min_size=1))
def test_what_is_written_is_what_is_read(document):
    """Whatever a text looks like, it is that text again."""
    assert yaml.safe_load(yaml_text(document)) == document


def test_it_reads_as_people_write_it():
    """Queries are blocks, and names are not quoted."""
    rule = {"alert": "Slow", "expr": "a\n> 1\n", "labels": {"severity": "critical", "n": 1}}

    assert yaml_text({"rules": [rule]}) == (
        "rules:\n"
        "  - alert: Slow\n"
        "    expr: |\n"
        "      a\n"
        "      > 1\n"
        "    labels:\n"
        "      severity: critical\n"
        '      "n": 1\n'
    )

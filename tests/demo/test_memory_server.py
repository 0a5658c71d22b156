"""The demo's ``--mcp``: a memory server changes while an agent is connected to it."""

from __future__ import annotations

import json

import pytest

pytest.importorskip("fastmcp", reason='needs pip install "mnemoscope[mcp]"')

pytestmark = [
    pytest.mark.long,
    pytest.mark.filterwarnings("ignore:unclosed database:ResourceWarning"),
]


def test_a_renamed_parameter_is_blocked_until_a_human_accepts_it(demo, short):
    """The server is asked before the change and after the acceptance, and not between."""
    ran = demo(conversation=short, mcp=True, json=True)
    change = json.loads(ran.said)["mcp"]
    before, blocked, accepted = change["calls"]

    assert ran.code == 0
    assert [each["blocked"] for each in change["calls"]] == [False, True, False]
    assert [each["answered"] for each in change["calls"]] == [1, 1, 2]
    assert before["told"] == accepted["told"] != []
    assert blocked["told"] == [
        "Schema mismatch: expected parameter 'query', found 'search_query'. Tool blocked."
    ]
    assert change["changes"] == ["query: likely renamed to search_query"]
    assert ran.threads == []


def test_the_screen_fits_80_columns_and_blames_no_store(demo, short):
    """A call that the guard denied is no failure of the store's."""
    said = demo(conversation=short, mcp=True).said

    assert max(map(len, said.splitlines())) <= 80
    assert "No call failed." in said
    assert "The sinks agree." in said
    assert "$ mnemoscope mcp accept http://127.0.0.1:" in said

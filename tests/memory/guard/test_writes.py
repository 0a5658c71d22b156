"""Declarations of writes: what is seen of them, and by whom."""

from __future__ import annotations

from mnemoscope.memory.api import Lookup


def test_what_looks_for_a_write_shows_no_id():
    """It holds the customer's, and may be in any traceback or debugger."""
    lookup = Lookup("get_all", {"filters": {"user_id": "ada@example.com"}})

    assert repr(lookup) == "Lookup(get_all)"

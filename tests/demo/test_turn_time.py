"""Where the time of the turns went: each moment counts once."""

from __future__ import annotations

from types import SimpleNamespace

from mnemoscope.demo.turn_time import REST, turn_time


def row(store, since_us, until_us, operation="search_memory"):
    """Return the part of an audit row that is looked at."""
    return SimpleNamespace(
        store=store, operation=operation, occurred_us=since_us, duration_us=until_us - since_us
    )


def test_calls_beside_one_another_are_not_added_up():
    """The turn waited for the first of them; the other counts for what it took alone."""
    rows = [row("mem0", 0, 600_000), row("langgraph.checkpoint", 400_000, 900_000)]

    found = turn_time(rows, [(0, 1_000_000)])

    assert found.total_s == 1.0
    assert found.parts == {"mem0": 0.6, "langgraph.checkpoint": 0.3, REST: 0.1}


def test_the_model_is_what_chat_takes():
    """Runs and nodes around it are of the same class, and are the graph's."""
    rows = [row("graph", 0, 1_000_000, "invoke_agent"), row("model", 0, 250_000, "chat")]

    assert turn_time(rows, [(0, 1_000_000)]).parts == {REST: 0.75, "model": 0.25}


def test_what_happens_between_turns_is_nobodys():
    """Replays and exports are no turn's time."""
    rows = [row("mem0", 0, 5_000_000)]

    found = turn_time(rows, [(1_000_000, 2_000_000), (3_000_000, 4_000_000)])

    assert found.parts == {"mem0": 2.0}


def test_without_turns_there_is_no_time():
    """Every run raised."""
    assert turn_time([], []) == (0.0, {})

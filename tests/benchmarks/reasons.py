"""Why a goal is missed, and what would be tried next: printed below the goals, for those missed."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from tables import Goal

REASONS: Final = {
    "guarded Qdrant query, five sinks, no deadline, median": (
        "one span of OpenTelemetry takes 1.7 times what it took where the goal was set; in spans, "
        "the goal is met. All but 2 µs are there without any sink. Next: the context variables "
        "that a call sets (2 µs), Qdrant's redaction, summary and ids (5 µs)."
    ),
    "the same, 99th percentile": (
        "two cores are shared with the sinks' threads; a span alone has as much. Next: batches "
        "that are fewer and larger, so that those threads wake up less."
    ),
    "the same with a deadline, median": (
        "two hand-overs between threads, each of which waits for the interpreter's lock. Next: a "
        "client's own timeout where it covers the whole call."
    ),
    "guarded mem0 search, five sinks, no deadline, median": (
        "as the first; the text of the query is redacted, and ids and scores are read, besides."
    ),
    "query of 1,536 dimensions: caller's CPU added ÷ that of 64": (
        "a difference of two large figures, which caches and other work move: 1.1 in other runs. "
        "No vector is looked at. Next: more rounds."
    ),
    "redaction, clean, 100 characters": (
        "19.5 µs at its fastest; what is left are 14 regular expressions that must look. Next: one "
        "that says which of them need not."
    ),
    "v3 bridge, one streamed event, all that it adds": (
        "LangChain calls a handler for each chunk, whatever it does there. Next: none for chunks "
        "after the first, where LangChain lets a handler say so."
    ),
    "v3 bridge, share of a run of 201 chunks that take no time": (
        "nodes and calls, not chunks: each is an event with ids, labels and cost for five sinks. A "
        "model that takes time leaves 1 % or less. Next: the code that runs cold for each node; "
        "totals counted once, not twice."
    ),
    "audit append, SQLite, durable batches of 64": (
        "39 µs of CPU an event at its best, 32 in batches of 512: 5 of them header and draft, 11 "
        "place, hashes and encryption, 9 the rows, 6 the pages that a commit writes; rows alone, "
        "with nothing sealed, take 14. Tried, beside one another, in shares of the whole: headers "
        "from a template of what events have in common -6 % (kept); without the trigger that "
        "refuses a replaced row -6 %, one that looks at its place alone -2 to -6 %; without three "
        "indexes that look-ups need -12 %; pages of 16 KiB, no secure_delete within 2 %, a "
        "larger cache -2 to +8 %; 64 or 256 rows a statement 0 to +7 %; HMAC by another call "
        "within 3 %. What is left to win is in larger batches."
    ),
    "audit append, PostgreSQL, durable batches of 64": (
        "as SQLite, with some 20 round trips to a server for each batch, of which three for each "
        "customer who is new. Next: new customers of a batch looked up and added together."
    ),
    "audit verify, headers alone": (
        "6.7 µs of CPU an event on one core, 8.4 before headers were checked 512 at a time: 2.4 "
        "to read the row, 0.8 to hash it, 1.3 to parse it, 0.5 for the tree. From 150,000 events "
        "on, 50,000 with their details, processes share them."
    ),
    "bytes that one queued event takes": "Next: fields that are mostly empty, kept apart.",
    "configure(), four sinks, without NER": (
        "imports: pydantic 100 ms, prometheus_client 63 ms, of which half is its web server. Next: "
        "settings without pydantic."
    ),
}
"""By how the line begins."""


def reasons(goals: Iterable[Goal]) -> str:
    """Return a section of Markdown with a line for each goal that is missed."""
    lines = [
        f"* **{each.what}**: {why}"
        for each in goals
        if not each.is_met
        for what, why in REASONS.items()
        if each.what.startswith(what)
    ]
    return "\n".join(["## Missed, and what next", "", *lines])

"""Why a goal is missed, and what would be tried next: printed below the goals, for those missed."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from tables import Goal

REASONS: Final = {
    "caller, five sinks, no deadline": (
        "most of it is there without any sink: context, ids, labels, the query's redaction. Tried: "
        "ids and texts of an answer read once the caller has it, and one queue in front of all "
        "sinks, 2,293 → 1,897 instructions and 100 → 61 functions of ours a search (kept); the "
        "relay in place of five sinks, with new text each call on a busy machine, 61.9 → 54.2 µs "
        "at the median, 206 → 154 at the 99th percentile (to be chosen by whoever runs it). The "
        "mean and the 99th percentile are the sinks' threads, which share two cores with the "
        "caller."
    ),
    "caller, with a deadline": (
        "two hand-overs between threads, each of which waits for the interpreter's lock. Tried: a "
        "client's own timeout in place of a thread, which ends no call of a server that answers "
        "byte by byte (not taken); stores that cannot hang called without a thread (kept); fewer "
        "hand-overs, 1,185 → 343 µs at the 99th percentile of a mem0 search on a machine with a "
        "load of 28 (kept)."
    ),
    "guarded in-process store": (
        "it runs without a thread; the rest is as for the caller, with a namespace and a key that "
        "are redacted."
    ),
    "graph.invoke with store and saver": (
        "a run of one node is some eight events, of graph, node, store and saver, for five sinks."
    ),
    "CPU of all five sinks": (
        "156 to 168 µs before an event was read once for all sinks, 107 to 109 since, in a relay; "
        "rows of the audit trail are a third of it. Tried: pseudonyms of a sink from a table, 0.9 "
        "→ 0.55 µs each, LangSmith's bodies with less, 24.0 → 21.9 (both kept)."
    ),
    "query of 1,536 dimensions: caller's CPU added ÷ that of 64": (
        "a difference of two large figures, which caches and other work move: 1.1 in other "
        "runs. No vector is looked at. Next: more rounds."
    ),
    "redaction, clean, 100 characters": (
        "19.5 µs at its fastest; what is left are 14 regular expressions that must look. Next: "
        "one that says which of them need not."
    ),
    "v3 bridge, one streamed event, all that it adds": (
        "LangChain calls a handler for each chunk, whatever it does there. Next: none for "
        "chunks after the first, where LangChain lets a handler say so."
    ),
    "v3 bridge, share of a run of 201 chunks that take no time": (
        "nodes and calls, not chunks: each is an event with ids, labels and cost for five "
        "sinks. A model that takes time leaves 1 % or less. Next: the code that runs cold for "
        "each node; totals counted once, not twice."
    ),
    "audit append, SQLite, durable batches of 64": (
        "39 µs of CPU an event at its best, 32 in batches of 512: 5 of them header and draft, "
        "11 place, hashes and encryption, 9 the rows, 6 the pages that a commit writes; rows "
        "alone, with nothing sealed, take 14. Tried, beside one another, in shares of the "
        "whole: headers from a template of what events have in common -6 % (kept); customers of "
        "a batch looked up together, details before headers, drafts as structs -2 to -7 % "
        "(kept); without the trigger that refuses a replaced row -6 %, one that looks at its "
        "place alone -2 to -6 %; without three indexes that look-ups need -12 %; pages of 16 "
        "KiB, no secure_delete within 2 %, a larger cache -2 to +8 %; a checkpoint of the "
        "write-ahead log after 1,000 or 16,000 pages, in place of 4,000, +3 to +7 %; no "
        "collection of garbage +2 to +6 %; 64 or 256 rows a statement 0 to +7 %; HMAC by "
        "another call within 3 %. Reckoned, not built: a header written straight into a text "
        "with places left open, -5 %. What is left to win is in larger batches."
    ),
    "audit append, PostgreSQL, durable batches of 64": (
        "as SQLite, and three answers of a server that a batch waits for, four with new "
        "customers: eleven before, and three more for each of them. Tried in turns, CPU of the "
        "server for an event, on a busy machine: rows by COPY 27 µs, as arrays 35, as arrays "
        "with a prepared statement 30, which a pooler forbids, as one array of rows 35 and 4 "
        "more here. COPY cannot travel with other statements: six answers more. Next: headers "
        "of one batch while the server stores the one before."
    ),
    "audit verify, headers alone": (
        "6.7 µs of CPU an event on one core, 8.4 before headers were checked 512 at a time: 2.4 "
        "to read the row, 0.8 to hash it, 1.3 to parse it, 0.5 for the tree. Tried in turns: "
        "columns compared by C alone -2 to 0 % (kept); columns as one text of JSON, a quarter "
        "less to read and as much more to compare, within 1 %; the file mapped into memory, "
        "texts as bytes, within 3 % of the reading; the other SHA-256 of Python 3.4 times as "
        "long. The 14 columns beside header and hash take two thirds of the reading, one by "
        "one. From 150,000 events on, 50,000 with their details, processes share them."
    ),
    "bytes that one queued event takes": "Next: fields that are mostly empty, kept apart.",
    "configure(), four sinks, without NER": (
        "imports: prometheus_client, of which half is its web server, and msgspec."
    ),
}
"""By how the line begins."""


def reasons(goals: Iterable[Goal]) -> str:
    """Return a section of Markdown with a line for each reason why goals are missed."""
    missed = [each.what for each in goals if not each.is_met]
    lines = [
        f"* **{what}**: {why}"
        for what, why in REASONS.items()
        if any(each.startswith(what) for each in missed)
    ]
    return "\n".join(["## Missed, and what next", "", *lines])

"""Why a goal is missed, and what would be tried next: printed below the goals, for those missed."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from benchmarks.tables import Goal

REASONS: Final = {
    "caller, no sink": (
        "most of it is there without any sink, as context, ids, labels, the query's redaction. "
        "Tried were ids and texts of an answer read once the caller has it, and one queue in "
        "front of all sinks, 2,293 → 1,897 instructions and 100 → 61 functions of ours a search "
        "(kept); the relay in place of five sinks, with new text each call on a busy machine, "
        "61.9 → 54.2 µs at the median, 206 → 154 at the 99th percentile (to be chosen by whoever "
        "runs it). The 99th percentile of blocks of 100 calls is the first call of a block, "
        "after a pause and a full collection of garbage, 239 µs, of which 177 without a sink. An "
        "OpenTelemetry span alone takes 161. Without it, in blocks of 2,000 on a machine with a "
        "load of 9, it is 97 µs, which is 5.8 spans, 3.8 without a sink, 2.8 for a span. The "
        "rest are the sinks' threads, which share two cores and one interpreter with the caller. "
        "Alone, a batch of 512 holds the interpreter's lock for 5 to 17 ms at a time unless it "
        "is asked for, and for 48 with all five. Tried beside it, in turns, none taken: threads "
        "that begin 0.5 s after an event, not 0.05, 97 → 88 µs and the mean 49 → 31; 0.2 s, 134 "
        "→ 116 and 129 → 58 with a load of 12 (a kill loses what waits, and the queue is full at "
        "41,000 events/s); slices of 32 events with the lock given away between, within 1 µs, "
        "and with pauses of 0.5 ms 108, for 80 % more CPU of the sinks; one sink at a time, 118, "
        "where a slow sink would delay the others; batches of 64, 134 → 122, which hold the lock "
        "for 12 ms, for 45 % more CPU."
    ),
    "caller, five sinks, default settings": (
        "two hand-overs between threads, each of which waits for the interpreter's lock. Tried "
        "were a client's own timeout in place of a thread, which ends no call of a server that "
        "answers byte by byte (not taken); each read and write with what the whole call has left, "
        "for requests by REST and for PostgreSQL by a pool (kept, `python -m benchmarks."
        "deadlines`); stores "
        "that cannot hang called without a thread (kept); fewer hand-overs, 1,185 → 343 µs at the "
        "99th percentile of a mem0 search on a machine with a load of 28 (kept)."
    ),
    "mem0 search": (
        "a deadline, which others do not keep. A mem0 in this process cannot break a call off, "
        "since its models sleep between attempts, so it has a thread. Its two hand-overs are 52 of "
        "the 76 µs: 16 · 19 · 74 µs without a deadline, 69 · 71 · 132 with one (median, mean, 99th "
        "percentile, `python -m benchmarks.deadlines` on a quiet machine). The best of the others "
        "is openlit on the empty body, loongsuite on the real one. Next would be a door for "
        "clients that another thread can end."
    ),
    "SqliteSaver": (
        "two hand-overs to a thread that can be given up. Tried was its caller's thread, with the "
        "saver's lock, a locked database and, by SQLite's progress handler, a statement ended by "
        "the time that is left: put 221 · 256 · 969 → 199 · 224 · 461 µs, get_tuple 91 · 99 · 176 "
        "→ 47 · 52 · 110, of which 187 · 213 · 562 and 40 · 47 · 116 are there without a deadline. "
        "Taken back: the handler waits for the interpreter's lock inside SQLite, and whoever uses "
        "the connection beside it waits for SQLite with that lock, for ever. `interrupt` from a "
        "watchdog was not built, since it ends whatever else runs on the connection."
    ),
    "guarded in-process store": (
        "it runs without a thread, and takes 16.5 µs, less than a span, where all is warm, and "
        "twice that after a pause, when nothing is in the caches. Tried, in instructions of "
        "1,775 and 18.1 µs, were a namespace looked up as a whole, not label by label, -57; the "
        "other arguments without a function for each, -10; the content of a get from its key "
        "alone, -25; a good call noted with the breaker, and a call that is no batch told, with "
        "less, -21 (all kept, 1,650). Of those left 225 make the event, 147 the content for the "
        "audit trail, 97 bind the arguments, 150 are the store's own. Next would be what comes "
        "to the same in each call of a method, its event's collection, content and class, made "
        "once."
    ),
    "graph.invoke with store and saver": (
        "a run of one node is seven to eight events, of graph, node, store and saver, for five "
        "sinks. That is 28,900 instructions of its caller above 29,600 of LangGraph's. Redaction "
        "takes 9,300 of them, 3,500 for the id of a thread that is new in each run. Tried were "
        "ids of a config without a generator for each, 1,262 → 630 (kept); the queues of five "
        "sinks, 833 → 255 an event (kept). The other threads take 137,500, four times as many "
        "for an event as in large batches. A block is five runs, and each flush of it makes "
        "three requests, of 17,000 instructions and 460 µs each, whatever is in them. Tried were "
        "the search for proxies in the environment, made for each request, left out, 460 → 385 "
        "µs (not taken: a host may change them). Metrics go by their interval alone since, so that "
        "a flush makes two (kept). Next would be the events of a run made in fewer instructions."
    ),
    "CPU of all sinks together": (
        "156 to 168 µs before an event was read once for all sinks, 107 to 109 since, in a "
        "relay. Rows of the audit trail are a third of it. Tried were pseudonyms of a sink from "
        "a table, 0.9 → 0.55 µs each, LangSmith's bodies with less, 24.0 → 21.9 (both kept); a "
        "batch queued, weighed and acknowledged at once, not event by event, 142 → 22 "
        "instructions an event and sink, and questions that all sinks ask of an event in half as "
        "many: 5,175 → 4,410 for five sinks in a relay, 112 → 108 µs on a busy machine (kept); "
        "the weight of an event from other expressions, 23 → 25 (not taken). Of those left OTLP "
        "takes 780, LangSmith 440, logs 330, Prometheus 590 with its library, the audit trail "
        "710. In a trickle of fifty events a second requests took most, 460 µs each. OTLP and "
        "LangSmith gather half a second of events since, 483 → 86 and 445 → 81 µs of CPU an "
        "event, 1,747 → 1,064 with the caller's (kept). Prometheus does since. Audit trail and "
        "logs did as well, 1,064 → 430, and that was taken back: uvicorn ends a process by the "
        "signal that it got, without a handler of exits, and the trail of a short life was not "
        "even begun. A lane that gathers is woken by a few dozen events and looks no more every "
        "50 ms, 302 to 388 → 266 by threads (kept, on a machine with a load of 19). Next would "
        "be weights and pseudonyms once for all sinks."
    ),
    "query of 1,536 dimensions: caller's CPU added ÷ that of 64": (
        "a difference of two large figures, which caches and other work move: 1.1 in other runs. "
        "No vector is looked at. Next would be more rounds."
    ),
    "redaction, new text with personal data, 100 characters": (
        "677 µs in 0.2. Our detectors are one recognizer of Presidio's engine, 39 → 20 for its "
        "part (kept); a text is searched once for all customers, 340 → 79 for those after the "
        "first (kept). Of 218 are 75 the names, 50 of them the model's input, 60 the other "
        "detectors, 20 Presidio, 10 the normal form, 40 replacements and caches. Next would be the "
        "input of the model by word, added up in place of strings."
    ),
    "redaction, clean, 100 characters": (
        "19.5 µs at its fastest. What is left are 14 regular expressions that must look. Next "
        "would be one that says which of them need not."
    ),
    "v3 bridge, one streamed event, all that it adds": (
        "LangChain calls a handler for each chunk, whatever it does there, 1.09 µs for one that "
        "does nothing, of 1.28 that ours takes alone. In a run it is a difference of two long "
        "runs, and was 0.0 to 5.6 on a busy machine. Tried were whose LangGraph's work is set "
        "without two functions of ours, 0.36 → 0.17 µs; whether a handler ignores an event as an "
        "attribute, not a property, 1.15 → 1.11 (both kept); sinks' threads that begin only when "
        "all runs have ended, within the noise (not taken); a handler for the first chunk alone, "
        "which is not to be had, as LangChain asks with one and the same attribute whether it "
        "may tell of a chunk and of the end. Next would be that LangChain lets a handler say so."
    ),
    "v3 bridge, share of a run of 201 chunks that take no time": (
        "half of it are nodes and calls, not chunks. Each is an event with ids, labels and cost "
        "for five sinks. In instructions it is 4 %, which is 15,800 above 69,100 for a run with "
        "one chunk, 70 above 3,060 for each further one. The rest of the time is code that runs "
        "cold, and threads. Tried were two functions fewer for each chunk, 90 → 70 (kept); "
        "sinks' threads that begin a second later, 7 → 10 % on a busy machine (not taken). A "
        "function in C in place of the transformer's would save 5, by the profile. A model that "
        "takes time leaves 1 % or less. Next would be the code that runs cold for each node, and "
        "totals counted once, not twice."
    ),
    "audit append, SQLite, durable batches of 64": (
        "39 µs of CPU an event at its best, 32 in batches of 512. Of these are 5 of them header "
        "and draft, 11 place, hashes and encryption, 9 the rows, 6 the pages that a commit "
        "writes. Rows alone, with nothing sealed, take 14. Tried, beside one another, in shares "
        "of the whole, were headers from a template of what events have in common -6 % (kept); "
        "customers of a batch looked up together, details before headers, drafts as structs -2 "
        "to -7 % (kept); without the trigger that refuses a replaced row -6 %, one that looks at "
        "its place alone -2 to -6 %; without three indexes that look-ups need -12 %; pages of 16 "
        "KiB, no secure_delete within 2 %, a larger cache -2 to +8 %; a checkpoint of the "
        "write-ahead log after 1,000 or 16,000 pages, in place of 4,000, +3 to +7 %; no "
        "collection of garbage +2 to +6 %; 64 or 256 rows a statement 0 to +7 %; HMAC by another "
        "call within 3 %. The header as the one record, which readers would parse, no columns, "
        "no indexes of them and no trigger, was 41.4 → 40.3 µs of CPU at the median of five rounds "
        "in turns, 38.4 → 35.3 at best, beside 7.1 of bare rows of that size, one statement a "
        "batch 48, both 45 (not taken, a load of 48). Reckoned and not built is a header written "
        "straight into a text with places left open, -5 %. What is left to win is in larger "
        "batches."
    ),
    "audit append, PostgreSQL, durable batches of 64": (
        "as SQLite, and three answers of a server that a batch waits for, four with new "
        "customers. There were eleven before, and three more for each of them. Tried in turns, "
        "CPU of the server for an event, on a busy machine, were rows by COPY 27 µs, as arrays "
        "35, as arrays with a prepared statement 30, which a pooler forbids, as one array of "
        "rows 35 and 4 more here. COPY cannot travel with other statements, for six answers "
        "more. Next would be headers of one batch while the server stores the one before."
    ),
    "audit verify, headers alone": (
        "6.7 µs of CPU an event on one core, 8.4 before headers were checked 512 at a time. It "
        "takes 2.4 to read the row, 0.8 to hash it, 1.3 to parse it, 0.5 for the tree. Tried in "
        "turns were columns compared by C alone -2 to 0 % (kept); columns as one text of JSON, a "
        "quarter less to read and as much more to compare, within 1 %; the file mapped into "
        "memory, texts as bytes, within 3 % of the reading; the other SHA-256 of Python 3.4 "
        "times as long. The 14 columns beside header and hash take two thirds of the reading, "
        "one by one. From 150,000 events on, 50,000 with their details, processes share them."
    ),
    "bytes that one queued event takes": "Next would be fields that are mostly empty, kept apart.",
    "configure(), four sinks, without NER": (
        "`make bench-start` has one sink, logs, and measures CPU time. Here are four, and the "
        "time that passes, with whatever waits for the disk. Above one sink, on a quiet machine, "
        "Prometheus takes 35 ms, of which its client's web server is 28, the audit trail 36 and "
        "OTLP 8. Tried were records as structs, not dataclasses, which are compiled at each "
        "import, 186 → 177 ms of CPU time (kept for eleven of fifty; the others take 28); types "
        "of an event's fields looked up by whoever reads the first, 3.9 → 0.6 (kept); no "
        "collection of garbage meanwhile, 210 → 183 (not taken: the collector is the host's). "
        "Next would be the other dataclasses; Prometheus's client imported with its first event."
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

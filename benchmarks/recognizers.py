"""
Ablation of recognizers: what each adds to the others on labelled text, and what it finds wrongly.

    make bench-recognizers FILES="DATA/forms_es.jsonl DATA/mixed_pl.jsonl" ARGS="--rules Identifier"

Each file holds one JSON object a line: ``text`` and ``spans`` of ``start``, ``end`` and ``label``.
A recognizer, or one of its rules, adds the labelled spans that all of the others together leave
visible in part. Wrong is a find that overlaps no label, of whatever kind. No language model reads.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

from rich.console import Console
from rich.table import Table

from mnemoscope.memory.privacy.detectors.finding import DIRECT, Finding
from mnemoscope.memory.privacy.detectors.normalized_text import normalize_text
from mnemoscope.memory.privacy.detectors.prefilter import extract_features
from mnemoscope.memory.privacy.engine.gate import DETECTORS
from tests.kit.redaction_scores import QUASI_LABELS, read_corpus
from tests.privacy.corpora.document import Document, Span

COLUMNS = ("found", "added", "wrong", "wrong alone")


def find(text: str) -> Iterator[tuple[str, str, Finding]]:
    """Yield the recognizer, the rule and the find, of all that recognizers find in *text*."""
    text = normalize_text(text).text
    features = extract_features(text)
    for each in DETECTORS:
        if each.applies(text, features):
            for found in each.find(text, features):
                if found.entity in DIRECT:
                    yield each.name, found.why, found


def count(document: Document, ruled: frozenset[str], counts: dict[str, Counter[str]]) -> None:
    """Add what each recognizer does to *document*, and each rule of those in *ruled*."""
    by_name: dict[str, list[Finding]] = {}
    for name, rule, found in find(document.text):
        by_name.setdefault(f"{name}: {rule}" if name in ruled else name, []).append(found)
    wanted = [each for each in document.spans if each.label.upper() not in QUASI_LABELS]
    for name, finds in by_name.items():
        others = [each for other, some in by_name.items() if other != name for each in some]
        row = counts.setdefault(name, Counter())
        for span in wanted:
            row["found"] += _covers(finds, span.start, span.end)
            if not _covers(others, span.start, span.end):
                row["added"] += _covers((*finds, *others), span.start, span.end)
        for each in finds:
            if not _overlaps(each, document.spans):
                row["wrong"] += 1
                row["wrong alone"] += not _overlaps(each, others)


def _covers(finds: Iterable[Finding], start: int, end: int) -> bool:
    left = set(range(start, end))
    for each in finds:
        left.difference_update(range(each.start, each.end))
    return not left


def _overlaps(found: Finding, spans: Iterable[Finding | Span]) -> bool:
    return any(found.start < each.end and each.start < found.end for each in spans)


def main() -> None:
    """Print a row for each recognizer, and each rule of those that are named."""
    parser = argparse.ArgumentParser(description="Show what each recognizer adds to the others.")
    parser.add_argument("files", type=Path, nargs="+", help="JSON lines with text and spans")
    parser.add_argument("--rules", default="", help="recognizers whose rules have a row each")
    chosen = parser.parse_args()
    counts: dict[str, Counter[str]] = {}
    for file in chosen.files:
        for document in read_corpus(file):
            count(document, frozenset(chosen.rules.split(",")), counts)
    table = Table("", *COLUMNS, title=", ".join(each.stem for each in chosen.files))
    for column in table.columns[1:]:
        column.justify = "right"
    heard = {name.partition(":")[0] for name in counts}
    silent = [each.name for each in DETECTORS if each.name not in heard]
    for name, row in sorted(counts.items(), key=lambda each: (-each[1]["added"], each[0])):
        table.add_row(name, *(str(row[column]) for column in COLUMNS))
    Console(width=100).print(table, f"find nothing: {', '.join(silent)}")


if __name__ == "__main__":
    main()

"""
Scores redaction on a labelled corpus, beside stock Presidio with the same language model.

    make bench-pii FILE=… ARGS="[--model NAME] [--limit N] [--show LABEL] [--no-stock]"

FILE holds one JSON object a line: ``text`` and ``spans`` of ``start``, ``end`` and ``label``. A
span is found when every character of it is replaced, by whatever entity. Labels of
quasi-identifiers, which are kept by default, are not asked for; replacing one is no mistake
either, since it is labelled. Both engines see each document in turn, in one process, caches off.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path

from rich.console import Console
from rich.table import Table

from tests.kit.redaction_scores import Score, ours, read_corpus, stock


def report(console: Console, scores: dict[str, Score], documents: int) -> None:
    """Print the scores side by side."""
    first = next(iter(scores.values()))
    wanted = {row: first.share("recall", row) for row in first.rows("recall")}
    counted = sorted(
        ((share.whole, row) for row, share in wanted.items() if share and "entity" in row),
        reverse=True,
    )
    direct = int(sum(whole for whole, _ in counted))
    table = Table("", *scores, title=f"{documents} documents, {direct} direct identifiers")
    for column in table.columns[1:]:
        column.justify = "right"
    for whole, row in counted:
        name = row.removeprefix("entity ")
        table.add_row(f"recall {name} ({whole:.0f})", *_cells(scores, "recall", row))
    table.add_section()
    table.add_row("recall, all", *_cells(scores, "recall", "all"))
    table.add_row("precision by character", *_cells(scores, "precision", "all"))
    table.add_row("precision of PERSON", *_cells(scores, "person precision", "all"))
    table.add_row("documents that leak", *_cells(scores, "leak", "all"))
    table.add_row(
        "ms p50 / p99",
        *(f"{s.quantile_ms(0.5):.2f} / {s.quantile_ms(0.99):.2f}" for s in scores.values()),
    )
    console.print(table)


def main() -> None:
    """Score a corpus and print a table of at most 80 columns."""
    parser = argparse.ArgumentParser(description="Score redaction on a labelled corpus.")
    parser.add_argument("file", type=Path, help="JSON lines with text and spans")
    parser.add_argument(
        "--model", help="spaCy package or path, or none; default: the best installed"
    )
    parser.add_argument("--limit", type=int, help="score only so many documents")
    parser.add_argument(
        "--show", help="list what was missed of a label, or WRONG for what should have stayed"
    )
    parser.add_argument("--no-stock", action="store_true", help="leave Presidio as it comes out")
    chosen = parser.parse_args()
    engines = {"mnemoscope": ours(chosen.model)}
    if not chosen.no_stock:
        engines["stock Presidio"] = stock(chosen.model)
    scores = {name: Score() for name in engines}
    documents = 0
    for document in read_corpus(chosen.file, chosen.limit):
        documents += 1
        for name, engine in engines.items():
            scores[name].take(engine, document, is_negative=False)
    console = Console(width=80)
    report(console, scores, documents)
    for line in next(iter(scores.values())).shown(chosen.show):
        console.print(line, highlight=False, markup=False)


def _cells(scores: dict[str, Score], figure: str, row: str) -> Iterator[str]:
    for score in scores.values():
        share = score.share(figure, row)
        yield f"{share.value:.3f}" if share else ""


if __name__ == "__main__":
    main()

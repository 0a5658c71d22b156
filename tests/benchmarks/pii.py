"""
Scores redaction on a labelled corpus, beside stock Presidio with the same language model.

    python tests/benchmarks/pii.py FILE [--model NAME] [--limit N] [--show LABEL] [--no-stock]

FILE holds one JSON object a line: ``text`` and ``spans`` of ``start``, ``end`` and ``label``. A
span is found when every character of it is replaced, by whatever entity. Labels of
quasi-identifiers, which are kept by default, are not asked for; replacing one is no mistake
either, since it is labelled. Both engines see each document in turn, in one process, caches off.
"""

from __future__ import annotations

import argparse
import json
import secrets
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from mnemoscope.memory.privacy.engine.redactor import build_redactor
from mnemoscope.memory.privacy.models.name_model import NameModel, find_source
from mnemoscope.telemetry.event.subject import SubjectKeys

Span = tuple[int, int]

_KEPT = """
GPE LOCATION LOC CITY STATE COUNTY COUNTRY REGION NEARBYGPSCOORDINATE COORDINATE ORGANIZATION
ORG COMPANY COMPANYNAME COMPANY_NAME FAC DATE_TIME DATE TIME DOB DATEOFBIRTH DATE_OF_BIRTH AGE
NRP NORP NATIONALITY TITLE PREFIX JOBTITLE JOBAREA JOBTYPE JOB_TITLE OCCUPATION GENDER SEX
SEXTYPE ZIP_CODE ZIPCODE ZIP POSTCODE DOMAIN_NAME URL CURRENCY CURRENCYCODE CURRENCYNAME
CURRENCYSYMBOL AMOUNT HEIGHT EYECOLOR ORDINALDIRECTION ETHNICITY RELIGION USERAGENT
CREDITCARDISSUER BLOOD_TYPE LANGUAGE EDUCATION
"""

QUASI_LABELS = frozenset(_KEPT.split())
"""Labels that corpora use for what is kept by default."""


@dataclass(slots=True)
class Score:
    """What one engine did to a corpus."""

    wanted: Counter[str] = field(default_factory=Counter[str])
    found: Counter[str] = field(default_factory=Counter[str])
    missed: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    replaced: int = 0
    right: int = 0
    wrong: list[str] = field(default_factory=list[str])
    leaking: int = 0
    seconds: list[float] = field(default_factory=list[float])

    @property
    def recall(self) -> float:
        """Share of the direct identifiers that were replaced as a whole."""
        return self.found.total() / max(1, self.wanted.total())

    @property
    def precision(self) -> float:
        """Share of the replaced characters that are labelled."""
        return self.right / max(1, self.replaced)

    def quantile_ms(self, share: float) -> float:
        """Milliseconds within which *share* of the documents were done."""
        ordered = sorted(self.seconds)
        return ordered[min(len(ordered) - 1, int(len(ordered) * share))] * 1e3


def take(score: Score, document: dict[str, Any], spans: Iterable[Span]) -> None:
    """Add what was replaced in one document to *score*."""
    text = document["text"]
    covered = _characters(spans)
    labelled = _characters((span["start"], span["end"]) for span in document["spans"])
    visible = {index for index in covered if not text[index].isspace()}
    score.replaced += len(visible)
    score.right += len(visible & labelled)
    score.wrong += [text[a:b] for a, b in spans if not labelled.intersection(range(a, b))]
    leaks = False
    for span in document["spans"]:
        if span["label"].upper() in QUASI_LABELS:
            continue
        score.wanted[span["label"]] += 1
        if covered.issuperset(range(span["start"], span["end"])):
            score.found[span["label"]] += 1
        else:
            leaks = True
            score.missed.append((span["label"], _around(text, span["start"], span["end"])))
    score.leaking += leaks


def timed(find: Callable[[str], list[Span]], text: str, score: Score) -> list[Span]:
    """Return what *find* finds in *text* and note how long it took."""
    started = time.perf_counter()
    spans = find(text)
    score.seconds.append(time.perf_counter() - started)
    return spans


def ours(model: str | None) -> Callable[[str], list[Span]]:
    """Return this library's engine, default policy."""
    redactor = build_redactor(model=model, keys=SubjectKeys(secrets.token_bytes(32)))
    redactor.prepare()
    return lambda text: [(each.start, each.end) for each in redactor.explain(text)]


def stock(model: str | None) -> Callable[[str], list[Span]]:
    """Return Presidio as it comes: its registry, its defaults, the same language model."""
    import tldextract.tldextract as domains
    from presidio_analyzer import AnalyzerEngine
    from presidio_analyzer.nlp_engine import NlpEngineProvider

    domains.TLD_EXTRACTOR = domains.TLDExtract(suffix_list_urls=())
    models = [{"lang_code": "en", "model_name": find_source(model) or "none"}]
    name = "no_op" if NameModel(model).state == "off" else "spacy"
    provider = NlpEngineProvider(nlp_configuration={"nlp_engine_name": name, "models": models})
    analyzer = AnalyzerEngine(nlp_engine=provider.create_engine())
    return lambda text: [(each.start, each.end) for each in analyzer.analyze(text, language="en")]


def read(path: Path, limit: int | None) -> Iterator[dict[str, Any]]:
    """Yield the documents of a corpus."""
    with path.open(encoding="utf-8") as lines:
        for index, line in enumerate(lines):
            if limit is not None and index >= limit:
                return
            yield json.loads(line)


def report(console: Console, scores: dict[str, Score], documents: int) -> None:
    """Print the scores side by side."""
    direct = next(iter(scores.values())).wanted.total()
    table = Table("", *scores, title=f"{documents} documents, {direct} direct identifiers")
    for column in table.columns[1:]:
        column.justify = "right"
    first = next(iter(scores.values()))
    for label, wanted in first.wanted.most_common():
        table.add_row(
            f"recall {label} ({wanted})",
            *(f"{s.found[label] / wanted:.3f}" for s in scores.values()),
        )
    table.add_section()
    table.add_row("recall, all", *(f"{s.recall:.3f}" for s in scores.values()))
    table.add_row("precision by character", *(f"{s.precision:.3f}" for s in scores.values()))
    table.add_row(
        "documents that leak",
        *(f"{s.leaking} ({s.leaking / documents:.1%})" for s in scores.values()),
    )
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
    for document in read(chosen.file, chosen.limit):
        documents += 1
        for name, find in engines.items():
            take(scores[name], document, timed(find, document["text"], scores[name]))
    console = Console(width=80)
    report(console, scores, documents)
    _show(console, next(iter(scores.values())), chosen.show)


def _show(console: Console, score: Score, label: str | None) -> None:
    if label == "WRONG":
        lines = [f"{count}x {text!r}" for text, count in Counter(score.wrong).most_common(60)]
    else:
        lines = [repr(around) for missed, around in score.missed if missed == label]
    for line in lines:
        console.print(line, highlight=False, markup=False)


def _characters(spans: Iterable[Span]) -> set[int]:
    return {index for start, end in spans for index in range(start, end)}


def _around(text: str, start: int, end: int) -> str:
    return f"{text[max(0, start - 40) : start]}[[{text[start:end]}]]{text[end : end + 30]}"


if __name__ == "__main__":
    main()

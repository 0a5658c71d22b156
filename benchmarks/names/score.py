"""
What the models of names find in text that they have not learned from.

    python -m benchmarks.names.score DATA TEXTS MODELS [--with-model] [--show ROW]

MODELS is a folder that `train` wrote with ``--leave-out reported``. A name is found if all its
letters are covered; a find is right if it overlaps a name.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from random import Random

from rich.console import Console

from benchmarks.names.nobody import texts as of_packages
from benchmarks.names.sentences import Part, Sentence, Spans, of_corpus, read
from benchmarks.names.weigh import readings
from mnemoscope.memory.privacy.detectors.prefilter import extract_features
from mnemoscope.memory.privacy.names import find
from mnemoscope.memory.privacy.names.tagger import Tagger
from mnemoscope.memory.privacy.names.weighing import LanguageReading
from tests.privacy.corpora import languages, negatives, running_text
from tests.privacy.corpora.document import Half

_FILES = ("running_text", "presidio_synth_v2", "forms_es", "mixed_pl")


def held_out(data: Path, texts: Path) -> Iterator[tuple[str, Sentence]]:
    """Yield the held-out texts, each with the row that it counts in."""
    for name in _FILES:
        for each in read(data / f"{name}.jsonl"):
            if each.part is Part.REPORTED:
                yield f"running {each.language}" if name == "running_text" else name, each
    for each in read(data / "train_names.jsonl.gz"):
        if each.part is Part.REPORTED:
            yield f"training {each.language}", each
    for each in of_corpus(languages.documents(Half.EVALUATION, per_template=1)):
        yield f"own {each.language}", each
    for each in of_corpus(running_text.documents(Half.EVALUATION, per_template=2)):
        yield f"own running {each.language}", each
    for document in negatives.documents(Half.EVALUATION, per_template=1):
        yield f"nobody: {document.genre}", Sentence(document.text, [], document.language, "")
    yield from _held_out_packages(texts)


def _held_out_packages(texts: Path) -> Iterator[tuple[str, Sentence]]:
    for each in of_packages(texts, Random(1)):  # noqa: S311 - the same in every run
        if each.part is Part.REPORTED:
            yield f"nobody, packages: {each.key.split()[0]}", each


def found_in(text: str, reading: LanguageReading | None) -> Spans:
    """Return where names are found."""
    features = extract_features(text)
    if not find.may_hold_person(text, features):
        return []
    return [(each.start, each.end) for each in find.find_persons(text, features, reading)]


def main() -> None:
    """Print the figures by row."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path)
    parser.add_argument("texts", type=Path)
    parser.add_argument("models", type=Path)
    parser.add_argument("--with-model", action="store_true")
    parser.add_argument("--show", default="")
    args = parser.parse_args()
    find.load = cache(lambda name: Tagger((args.models / f"{name}.crf.gz").read_bytes()))
    rows = list(held_out(args.data, args.texts))
    if args.with_model:
        rows = [each for each in rows if each[1].language in {"en", ""}]
    read_in = readings([each for _, each in rows]) if args.with_model else iter([None] * len(rows))
    counts: dict[str, Counter[str]] = {}
    console = Console(highlight=False, markup=False, width=120)
    for (row, sentence), reading in zip(rows, read_in, strict=True):
        text, found = sentence.text, found_in(sentence.text, reading)
        covered = {at for span in found for at in range(*span)}
        hits = [
            all(at in covered or not text[at].isalnum() for at in range(*s)) for s in sentence.spans
        ]
        right = [any(a < e and s < b for a, b in sentence.spans) for s, e in found]
        counts.setdefault(row, Counter()).update(
            names=len(hits),
            hits=sum(hits),
            found=len(found),
            right=sum(right),
            words=len(text.split()),
        )
        if row == args.show:
            missed = [s for s, is_hit in zip(sentence.spans, hits, strict=True) if not is_hit]
            wrong = [s for s, is_right in zip(found, right, strict=True) if not is_right]
            for kind, spans in (("missed", missed), ("wrong", wrong)):
                for start, end in spans:
                    console.print(
                        kind,
                        repr(text[max(0, start - 30) : start]),
                        text[start:end],
                        repr(text[end : end + 20]),
                    )
    for row, each in sorted(counts.items()):
        if each["names"]:
            precision = each["right"] / max(1, each["found"])
            recall = each["hits"] / each["names"]
            console.print(f"{row:28} R {recall:.3f} P {precision:.3f} of {each['names']}")
        elif row.startswith("nobody"):
            console.print(f"{row:28} {1000 * each['found'] / each['words']:.2f} in 1,000 words")


if __name__ == "__main__":
    main()

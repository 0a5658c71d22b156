"""What redaction does to texts of a set, counted: found, missed, replaced for nothing, how fast."""

from __future__ import annotations

import json
import secrets
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from random import Random
from statistics import median
from typing import NamedTuple

from mnemoscope.memory.privacy.engine.redactor import build_redactor
from mnemoscope.memory.privacy.models.name_model import NameModel, find_source
from mnemoscope.telemetry.event.subject import SubjectKeys
from tests.privacy.corpora.document import Document, Half, Span

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

LABELLED = "labelled"
"""The row of `Timing` of all texts with labels."""

_RESAMPLES = 400


class Found(NamedTuple):
    """A span that an engine would replace, and what as."""

    start: int
    end: int
    entity: str


Find = Callable[[str], list[Found]]
"""An engine: returns what it finds in a text."""


class Timing(NamedTuple):
    """
    How long a text took.

    Attributes:
        row: ``labelled``, or the row that a text without personal data is counted in.
        seconds: Of the processor, in all threads: a busy machine changes little about that.
        characters: Its length.
    """

    row: str
    seconds: float
    characters: int


class Share(NamedTuple):
    """
    A part of a whole, as it was counted.

    Attributes:
        part: Of spans, characters or findings.
        whole: What it is a part of.
        low: Lower end of the 95 % interval, from drawing the templates anew.
        high: Its upper end.
    """

    part: float
    whole: float
    low: float
    high: float

    @property
    def value(self) -> float:
        """The share."""
        return self.part / self.whole


@dataclass(slots=True)
class Score:
    """
    What one engine did to the texts of a set.

    Attributes:
        missed: Label and surroundings of each span that was not replaced as a whole.
        wrong: Row, entity and text of each finding that overlaps no label.
        timings: How long each text took.
    """

    missed: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    wrong: list[tuple[str, str, str]] = field(default_factory=list[tuple[str, str, str]])
    timings: list[Timing] = field(default_factory=list["Timing"])
    _counts: dict[tuple[str, str], dict[str, list[float]]] = field(
        default_factory=lambda: defaultdict(lambda: defaultdict(lambda: [0.0, 0.0]))
    )

    def take(self, engine: Find, document: Document, *, is_negative: bool) -> None:
        """Have *engine* search a text, and count what it found and how long that took."""
        row = genre_of(document) if is_negative else LABELLED
        started = time.process_time()
        found = engine(document.text)
        self.timings.append(Timing(row, time.process_time() - started, len(document.text)))
        (self.add_negative if is_negative else self.add_labelled)(document, found)

    def add_labelled(self, document: Document, found: Iterable[Found]) -> None:
        """
        Count what was *found* in a text whose personal data is labelled.

        A span is found when all its characters are replaced, by whatever entity. What was found
        as a quasi-identifier counts for that, and is no mistake anywhere.
        """
        found = list(found)
        rows = ("all", f"language {document.language}")
        covered = _characters((each.start, each.end) for each in found)
        leaks = False
        for span in document.spans:
            if span.label.upper() in QUASI_LABELS:
                continue
            hit = covered.issuperset(range(span.start, span.end))
            for row in (*rows, f"entity {span.label}"):
                self._count("recall", row, document, hit)
            if span.label == "PERSON":
                self._count_all("person recall", rows, document, hit)
            if not hit:
                leaks = True
                self.missed.append((span.label, _around(document.text, span.start, span.end)))
        self._count_all("leak", rows, document, leaks)
        self._count_replaced(document, found, rows)

    def add_negative(self, document: Document, found: Iterable[Found]) -> None:
        """Count what was *found* in a text that holds no personal data, in 1,000 tokens."""
        wrong = [each for each in found if each.entity not in QUASI_LABELS]
        row = genre_of(document)
        for each in ("all", row):
            self._count("false", each, document, len(wrong), tokens_in(document.text) / 1000)
        self.wrong += [(row, each.entity, document.text[each.start : each.end]) for each in wrong]

    def add_random_value(self, document: Document, found: Iterable[Found]) -> None:
        """Count whether anything was *found* in a random value, of 100,000 of its kind."""
        hit = any(each.entity not in QUASI_LABELS for each in found)
        for row in ("all", document.genre):
            self._count("values", row, document, hit, 1e-5)
        if hit:
            self.wrong.append((document.genre, "values", document.template))

    def rows(self, figure: str) -> list[str]:
        """Return the rows of *figure*, in order, the one of all first."""
        rows = (row for kind, row in self._counts if kind == figure)
        return sorted(rows, key=lambda row: (row != "all", row.lower()))

    def share(self, figure: str, row: str) -> Share | None:
        """Return a figure; None if there is nothing that it could be a share of."""
        counted = list(self._counts.get((figure, row), {}).values())
        part, whole = (sum(column) for column in zip(*counted, strict=True)) if counted else (0, 0)
        return Share(part, whole, *_interval(counted)) if whole else None

    def quantile_ms(self, share: float) -> float:
        """Milliseconds within which *share* of the texts were done."""
        ordered = sorted(each.seconds for each in self.timings)
        return ordered[min(len(ordered) - 1, int(len(ordered) * share))] * 1e3

    def ms_per_kb(self, row: str | None = None) -> float:
        """Milliseconds for 1,000 characters, over all texts or those of *row*."""
        timed = [each for each in self.timings if row in {None, each.row}]
        characters = sum(each.characters for each in timed)
        return sum(each.seconds for each in timed) * 1e6 / max(1, characters)

    def us_per_100(self) -> float:
        """Median microseconds for 100 characters of a text."""
        return median(each.seconds * 1e8 / max(1, each.characters) for each in self.timings)

    def shown(self, label: str | None) -> list[str]:
        """Return what was missed of *label*; for ``WRONG``, what was found and is labelled none."""
        if label == "WRONG":
            return [f"{count}x {each}" for each, count in Counter(self.wrong).most_common()]
        return [repr(around) for missed, around in self.missed if missed == label]

    def _count_replaced(
        self, document: Document, found: list[Found], rows: tuple[str, ...]
    ) -> None:
        labelled = _characters((each.start, each.end) for each in document.spans)
        persons = _characters(
            (each.start, each.end) for each in document.spans if each.label == "PERSON"
        )
        replaced: set[int] = set()
        for each in found:
            if each.entity in QUASI_LABELS:
                continue
            inside = range(each.start, each.end)
            replaced.update(index for index in inside if not document.text[index].isspace())
            if each.entity == "PERSON":
                right = not persons.isdisjoint(inside)
                self._count_all("person precision", rows, document, right)
            if labelled.isdisjoint(inside):
                text = document.text[each.start : each.end]
                self.wrong.append((document.language, each.entity, text))
        for row in rows:
            self._count("precision", row, document, len(replaced & labelled), len(replaced))

    def _count_all(
        self, figure: str, rows: tuple[str, ...], document: Document, part: float
    ) -> None:
        for row in rows:
            self._count(figure, row, document, part)

    def _count(
        self, figure: str, row: str, document: Document, part: float, whole: float = 1
    ) -> None:
        counted = self._counts[figure, row][document.template]
        counted[0] += part
        counted[1] += whole


@dataclass(frozen=True, slots=True)
class Sets:
    """
    The texts of one half of our own sets.

    Attributes:
        labelled: Texts with personal data. Empty: that set is not here.
        negatives: Texts without.
    """

    labelled: list[Document]
    negatives: list[Document]

    def __iter__(self) -> Iterator[tuple[Document, bool]]:
        """Yield each text, and whether it is one without personal data."""
        yield from ((each, False) for each in self.labelled)
        yield from ((each, True) for each in self.negatives)

    def within(self, characters: int) -> Sets:
        """Return every nth text of each, so that each has at most about so many *characters*."""
        return Sets(_thinned(self.labelled, characters), _thinned(self.negatives, characters))


def read_sets(half: Half, *, per_template: int, languages: Collection[str] | None = None) -> Sets:
    """Return the texts of *half*, of *languages* only if they are given."""
    from tests.privacy.corpora import negatives

    of_languages = _labelled(half, per_template, languages)
    return Sets(list(of_languages), list(negatives.documents(half, per_template=per_template)))


def _thinned(documents: list[Document], characters: int) -> list[Document]:
    length = sum(len(each.text) for each in documents)
    return documents[:: max(1, -(-length // characters))]


def _labelled(
    half: Half, per_template: int, languages: Collection[str] | None
) -> Iterable[Document]:
    try:
        from tests.privacy.corpora import languages as labelled
    except ImportError:
        return ()
    return labelled.documents(half, languages=languages, per_template=per_template)


def read_corpus(path: Path, limit: int | None = None) -> Iterator[Document]:
    """Yield the documents of a labelled file, one JSON object a line."""
    with path.open(encoding="utf-8") as lines:
        for index, line in enumerate(islice(lines, limit)):
            given = json.loads(line)
            spans = (Span(each["start"], each["end"], each["label"]) for each in given["spans"])
            yield Document(
                given["text"], tuple(spans), language="en", genre="", template=str(index)
            )


def ours(model: str | None) -> Find:
    """Return this library's engine, default policy."""
    redactor = build_redactor(model=model, keys=SubjectKeys(secrets.token_bytes(32)))
    redactor.prepare()
    return lambda text: [Found(*each[:3]) for each in redactor.explain(text)]


def stock(model: str | None) -> Find:
    """Return Presidio as it comes: its registry, its defaults, the same language model."""
    import tldextract.tldextract as domains
    from presidio_analyzer import AnalyzerEngine
    from presidio_analyzer.nlp_engine import NlpEngineProvider

    domains.TLD_EXTRACTOR = domains.TLDExtract(suffix_list_urls=())
    models = [{"lang_code": "en", "model_name": find_source(model) or "none"}]
    name = "no_op" if NameModel(model).state == "off" else "spacy"
    provider = NlpEngineProvider(nlp_configuration={"nlp_engine_name": name, "models": models})
    analyzer = AnalyzerEngine(nlp_engine=provider.create_engine())

    def find(text: str) -> list[Found]:
        found = analyzer.analyze(text, language="en")
        return [Found(each.start, each.end, each.entity_type) for each in found]

    return find


def genre_of(document: Document) -> str:
    """Return the row that a text without personal data is counted in."""
    is_other = document.language not in {"", "en"}
    return f"{document.genre}, other languages" if is_other else document.genre


def tokens_in(text: str) -> int:
    """Count what white space separates; in Chinese and Japanese, two characters are a token."""
    unspaced = sum("\u3040" <= each <= "\u9fff" for each in text)
    return len(text.split()) + unspaced // 2


def _interval(counted: list[list[float]]) -> tuple[float, float]:
    """Return the 95 % interval of a ratio of sums, by drawing the templates anew."""
    random = Random(len(counted))  # noqa: S311 - it keeps no secret
    drawn = sorted(_drawn(counted, random))
    if not drawn:
        return (0.0, 0.0)
    return drawn[int(len(drawn) * 0.025)], drawn[int(len(drawn) * 0.975)]


def _drawn(counted: list[list[float]], random: Random) -> Iterator[float]:
    for _ in range(_RESAMPLES):
        chosen = random.choices(counted, k=len(counted))
        whole = sum(each[1] for each in chosen)
        if whole:
            yield sum(each[0] for each in chosen) / whole


def _characters(spans: Iterable[tuple[int, int]]) -> set[int]:
    return {index for start, end in spans for index in range(start, end)}


def _around(text: str, start: int, end: int) -> str:
    return f"{text[max(0, start - 40) : start]}[[{text[start:end]}]]{text[end : end + 30]}"

"""
Presidio's predefined recognizers beside ours, entity by entity.

    make bench-recognizers DATA=FOLDER ARGS="[--every 1] [--page PAGE]"

FOLDER holds labelled JSON lines: ``text``, and ``spans`` of ``start``, ``end`` and ``label``. With
them are searched our own sentences, our texts without personal data, random values, and made-up
national numbers: beside their word, alone, and alone with another last digit. Presidio's finds
count from a score of 0.4 on, with the words around them as its context. A value is found if all of
it is replaced, ours as whatever entity. False is a find that overlaps no label.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from random import Random
from typing import NamedTuple

import presidio_analyzer.predefined_recognizers as predefined
import spacy
import tldextract.tldextract as domains
from presidio_analyzer import EntityRecognizer
from presidio_analyzer.context_aware_enhancers import LemmaContextAwareEnhancer
from presidio_analyzer.nlp_engine import SpacyNlpEngine
from spacy.language import Language
from spacy.tokens import Doc

from benchmarks.tables import Section, show
from tests.kit.identifier_makers import PEOPLE, WALLETS
from tests.kit.redaction_scores import Found, ours, read_corpus, read_sets
from tests.privacy.corpora.document import Document, Half, Span
from tests.privacy.corpora.negatives.random_values import random_values

HEADING = "## Presidio's recognizers beside ours"
"""Of the section of the page that this tool writes, which is the last."""

_LEAST_SCORE = 0.4
_PHONES = "PHONE_NUMBER PHONE NUMERO_TELEFONO NUMERO_FAX"
_PAIRS = {
    "CreditCard": ("CREDIT_CARD", "CREDIT_CARD"),
    "Iban": ("IBAN_CODE", "IBAN_CODE IBAN"),
    "Email": ("EMAIL_ADDRESS", "EMAIL_ADDRESS CORREO_ELECTRONICO"),
    "Phone": ("PHONE_NUMBER", _PHONES),
    "Ip": ("IP_ADDRESS", "IP_ADDRESS"),
    "Crypto": ("CRYPTO", "CRYPTO"),
    "UsSsn": ("US_SSN", "US_SSN"),
    "UsLicense": ("DRIVER_LICENSE", "US_DRIVER_LICENSE"),
    "UsPassport": ("PASSPORT", "PASSPORT"),
    "UsBank": ("BANK_ACCOUNT", "BANK_ACCOUNT"),
    "PlPesel": ("", "PESEL"),
    "EsNif": ("", "ES DNI"),
    "ItFiscalCode": ("", "IT codice fiscale"),
    "ItVatCode": ("", "IT partita IVA"),
    "Nhs": ("", "GB NHS number"),
    "FiPersonalIdentityCode": ("", "FI henkilötunnus"),
    "SePersonnummer": ("", "SE personnummer"),
    "InAadhaar": ("", "IN Aadhaar"),
    "KrRrn": ("", "KR 주민등록번호"),
    "AuTfn": ("", "AU TFN"),
    "AuAbn": ("", "AU ABN"),
    "SgFin": ("", "SG NRIC"),
    "ThTnin": ("", "TH เลขประจำตัวประชาชน"),
    "TrNationalId": ("", "TR T.C. kimlik no"),
    "ZaIdNumber": ("", "ZA South African ID"),
    "CaSin": ("", "CA SIN"),
    "DeTaxId": ("", "DE Steuer-ID"),
    "DeIdCard": ("", "DE Personalausweisnummer"),
}
"""Of each recognizer of Presidio's, our entity, and the labels that both are to find."""

_FORMS = ("{0}: {1}", "{0} {1}, ok", '{{"{0}": "{1}"}}', "({1} {0})")


class Text(NamedTuple):
    """A text, and what it is for: ``labelled``, ``beside``, ``alone`` or ``wrong``."""

    kind: str
    document: Document


def texts(folder: Path, every: int) -> Iterator[Text]:
    """Yield all texts, one of *every* labelled ones."""
    for file in sorted(folder.glob("*.jsonl")):
        yield from (Text("labelled", each) for each in list(read_corpus(file))[::every])
    sets = read_sets(Half.EVALUATION, per_template=1)
    values = random_values(Half.EVALUATION, 300)
    yield from (Text("labelled", each) for each in (*sets.labelled, *sets.negatives, *values))
    for maker in PEOPLE:
        chosen = Random(str(maker))  # noqa: S311 - the same in every run
        for _ in range(20):
            number, label = maker.make(chosen), str(maker)
            for form in _FORMS:
                yield Text("beside", _with(form.format(maker.label, number), number, label))
            yield Text("alone", _with(f"on file {number} since then", number, label))
            other = number[:-1] + {"9": "8", "X": "1", "Z": "A"}.get(number[-1], "9")
            yield Text("wrong", _with(f"on file {other} since then", other, label))
    for name, make in WALLETS.items():
        chosen = Random(name)  # noqa: S311 - as above
        made = [make(chosen) for _ in range(20)]
        yield from (
            Text("alone", _with(f"sent it to {each} today", each, "CRYPTO")) for each in made
        )


def _with(text: str, value: str, label: str) -> Document:
    start = text.index(value)
    return Document(text, (Span(start, start + len(value), label),), "", "", label)


class Theirs:
    """Presidio's recognizers, with a tokenizer alone as their language model."""

    def __init__(self) -> None:
        domains.TLD_EXTRACTOR = domains.TLDExtract(suffix_list_urls=())
        self.recognizers: dict[str, EntityRecognizer] = {
            name: getattr(predefined, f"{name}Recognizer")(supported_language="en")
            for name in _PAIRS
        }
        self._engine = SpacyNlpEngine()
        blank = spacy.blank("xx")
        blank.add_pipe("lemmas_in_small_letters")
        self._engine.nlp = {"en": blank}
        self._enhancer = LemmaContextAwareEnhancer()

    def find(self, text: str) -> Iterator[tuple[str, list[Found]]]:
        """Yield what each recognizer finds."""
        read = self._engine.process_text(text, "en")
        for name, recognizer in self.recognizers.items():
            found = recognizer.analyze(text, recognizer.supported_entities, read)
            found = self._enhancer.enhance_using_context(text, found, read, [recognizer])
            kept = [each for each in found if each.score >= _LEAST_SCORE]
            yield name, [Found(each.start, each.end, each.entity_type) for each in kept]


@Language.component("lemmas_in_small_letters")
def _lemmas(doc: Doc) -> Doc:
    for token in doc:
        token.lemma_ = token.lower_
    return doc


def count(given: Iterable[Text]) -> dict[str, Counter[str]]:
    """Return for each recognizer what there was to find, and what either found."""
    theirs, find = Theirs(), ours("none")
    counts = {name: Counter[str]() for name in _PAIRS}
    for kind, document in given:
        mine = find(document.text)
        for name, found in theirs.find(document.text):
            entity, labels = _PAIRS[name]
            counted = counts[name]
            for span in document.spans:
                if span.label not in ({labels} if not entity else set(labels.split())):
                    continue
                counted[kind] += 1
                counted[f"{kind} ours"] += _is_whole(document.text, span, mine)
                counted[f"{kind} theirs"] += _is_whole(document.text, span, found)
            if kind == "labelled":
                counted["false theirs"] += _false(document, found)
                counted["false ours"] += _false(document, [e for e in mine if e.entity == entity])
    return counts


def _is_whole(text: str, span: Span, found: Iterable[Found]) -> bool:
    left = {at for at in range(span.start, span.end) if text[at].isalnum()}
    return not left.difference(at for each in found for at in range(each.start, each.end))


def _false(document: Document, found: Iterable[Found]) -> int:
    spans = document.spans
    return sum(not any(s.start < f.end and f.start < s.end for s in spans) for f in found)


def main() -> None:
    """Print the table, and write it to a page if asked."""
    parser = argparse.ArgumentParser(description="Presidio's recognizers beside ours.")
    parser.add_argument("folder", type=Path, help="folder of labelled JSON lines")
    parser.add_argument("--every", type=int, default=1, help="of so many labelled texts, one")
    parser.add_argument("--page", type=Path, help="write the last section of this page")
    chosen = parser.parse_args()
    counts = count(texts(chosen.folder, chosen.every))
    kinds = ("labelled", "beside", "alone", "wrong")
    header = ["", *(f"{kind}: ours / theirs" for kind in kinds), "false: ours / theirs"]
    rows = [
        [
            name,
            *(_cell(each, kind) for kind in kinds),
            f"{each['false ours'] if _PAIRS[name][0] else '-'} / {each['false theirs']}",
        ]
        for name, each in counts.items()
    ]
    section = Section(HEADING.strip("# "), _ABOUT, header, rows)
    show(section)
    if chosen.page:
        before = chosen.page.read_text(encoding="utf-8").partition(HEADING)[0].rstrip()
        chosen.page.write_text(f"{before}\n\n{section.markdown()}\n\n{_KEPT}\n", encoding="utf-8")


def _cell(counted: Counter[str], kind: str) -> str:
    if not counted[kind]:
        return ""
    return f"{counted[f'{kind} ours']} / {counted[f'{kind} theirs']} of {counted[kind]}"


_ABOUT = """\
Written by `make bench-recognizers`. Labelled are the sets, our own sentences, our texts without
personal data and random values. Beside, alone and wrong are made-up numbers: beside their word in
four forms, alone in a sentence, and alone with another last digit, where finding it is a mistake.
Presidio's finds count from 0.4 on, with the words around. False is a find that overlaps no label.
For national numbers, of which the sets have few, ours are not told apart by country."""

_KEPT = """\
All are ours. Presidio's are as good for US social security numbers, Spanish and Finnish identity
numbers, Italian tax codes and Aadhaar, which are six rows of a table and one pattern here. Its
import takes a second of the processor, which no call waits for, and the same is to be found before
it is there. Turkish and South African numbers they find alone as well. Two check digits, as the
Turkish have, hold for one in a hundred random numbers. Whoever wants them names them in
`configure(recognizers=…)`."""


if __name__ == "__main__":
    main()

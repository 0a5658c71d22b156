"""
Ablations of redaction: what each detector, rule, heuristic and list adds to all of the others.

    make ablations DATA=FOLDER ARGS="[--every 4] [--only PATTERN] [--lists] [--page PAGE]"

FOLDER holds labelled JSON lines: ``text``, and ``spans`` of ``start``, ``end`` and ``label``. Some
texts of each file are searched, with and without the part, and so are our own sentences in 25
languages and our own texts without personal data, one a template. No language model reads. Off is

* a detector, or one of its rules: its finds are left out;
* a heuristic that drops or changes finds: its function returns what lets everything through, its
  pattern matches nothing; only those texts are searched again in which it was called, or matched;
* a list: nothing but its first entry is left. Each takes a process of its own, so they are opt-in.

Lost are labelled spans of which a character is visible without the part, and gained those that are
replaced only then. Wrong is a find that overlaps no label.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from importlib import import_module
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.tables import Section, say, show
from tests.privacy.corpora.document import Document, Half

HEADING = "## What each part adds"
"""Of the section of the page that this tool writes."""

_PRIVACY = "mnemoscope.memory.privacy"
_NOTHING: tuple[()] = ()
_FEW_LINES = 3
_NEVER = re.compile(r"(?!)")

HEURISTICS: dict[str, object] = {
    "detectors.finding:trim_finding": lambda found, _text: found,
    "names.find:find_repeated_names": _NOTHING,
    "names.find:_with_dot": lambda found, _text: found,
    "names.find:_SURE": 2.0,
    "names.find:_NO_NAMES": frozenset[str](),
    "detectors.technical_lines:is_technical": False,
    "detectors.technical_lines:is_about_technology": False,
    "detectors.english_words:is_english_word": False,
    "detectors.normalized_text:_escapes": _NOTHING,
    "detectors.normalized_text:_with_plain_characters": lambda view: view,
    "detectors.normalized_text:decode_base64_parts": _NOTHING,
    "detectors.phone_numbers:_DATE_FIRST": _NEVER,
    "detectors.phone_numbers:_NOT_PHONE": _NEVER,
    "detectors.phone_numbers:_NOT_BEFORE": _NEVER,
    "detectors.phone_numbers:_LABEL_BEFORE": _NEVER,
    "detectors.phone_numbers:_UNIT_AFTER": _NEVER,
    "detectors.phone_numbers:_CODE_GAP": _NEVER,
    "detectors.phone_numbers:_AFTER": _NEVER,
    "detectors.phone_numbers:_ZEROS_AND_CODE": _NEVER,
    "detectors.network_addresses:_is_version": False,
    "detectors.network_addresses:_is_private": False,
    "detectors.network_addresses:_is_special": False,
    "detectors.network_addresses:_is_called_ip": False,
    "detectors.network_addresses:_DOTTED_MAC": _NEVER,
    "detectors.user_names:_is_code": False,
    "detectors.user_names:_marked": _NOTHING,
    "detectors.contacts:_in_url": False,
    "detectors.contacts:_host_in": lambda host: host,
    "detectors.contacts:_NO_TLDS": frozenset[str](),
    "detectors.contacts:_LATIN_TAIL": _NEVER,
    "detectors.addresses:_is_street": True,
    "detectors.addresses:_is_phrase": False,
    "detectors.addresses:_is_named": True,
    "detectors.addresses:_is_believed": True,
    "detectors.addresses:_without_full_stop": lambda _text, end: end,
    "detectors.addresses:_tail": lambda _text, end, **_: end,
    "detectors.addresses:_compounds": _NOTHING,
    "detectors.addresses:_with_postcode": _NOTHING,
    "detectors.addresses:_announced": _NOTHING,
    "detectors.addresses:find_forms": _NOTHING,
    "detectors.addresses:_ENGLISH": _NEVER,
    "detectors.addresses:_CORNER": _NEVER,
    "detectors.addresses:_FOREIGN_ANNOUNCEMENTS": {},
    "detectors.address_forms:_lower_case_head": 0,
    "detectors.address_forms:_is_named": True,
    "detectors.address_forms:_JAPANESE": _NEVER,
    "detectors.address_forms:_CHINESE": _NEVER,
    "detectors.address_forms:_KOREAN": _NEVER,
    "detectors.address_forms:_THAI": _NEVER,
    "detectors.identifiers.financial_numbers:_OTHER_NUMBER_BEFORE": _NEVER,
    "detectors.identifiers.financial_numbers:_UNIT_AFTER": _NEVER,
    "detectors.identifiers.financial_numbers:_RARE_CARD_SHAPE": _NEVER,
    "detectors.identifiers.financial_numbers:_labelled_iban": None,
    "detectors.identifiers.search:_OTHER_NUMBER": _NEVER,
    "detectors.identifiers.search:_OTHER_VALUE": _NEVER,
    "detectors.identifiers.search:_TIMESTAMP": _NEVER,
    "detectors.identifiers.search:_DATE": _NEVER,
    "detectors.identifiers.search:_is_words": False,
    "detectors.identifiers.search:_spaced": _NOTHING,
    "detectors.identifiers.search:_find_bare": _NOTHING,
    "detectors.identifiers.wallets:_base58": None,
    "detectors.identifiers.wallets:_bech32": None,
    "detectors.identifiers.wallets:_UNCHECKED_SHAPE": _NEVER,
    "detectors.secret_values:is_placeholder": False,
    "detectors.secret_values:is_code": False,
    "detectors.secret_values:is_words": False,
    "detectors.secret_values:is_random": False,
    "detectors.secret_values:is_drawn_letters": False,
    "detectors.secret_words:_is_other": False,
    "detectors.secret_words:_looks_drawn": True,
    "detectors.secret_words:_is_word_secret": False,
    "detectors.secret_shapes:_is_made_up": False,
    "detectors.secret_headers:_find_authorization": _NOTHING,
    "detectors.secret_headers:_find_header_keys": _NOTHING,
    "detectors.secret_headers:_find_keyed": _NOTHING,
    "detectors.secret_headers:_find_cookies": _NOTHING,
    "detectors.secret_headers:_LOGIN_OPTION": _NEVER,
    "detectors.secret_headers:_PASSWORD_OPTION": _NEVER,
    "detectors.secret_headers:_SIGNATURE": _NEVER,
    "detectors.secret_headers:_DATABASE_LOGIN": _NEVER,
    "detectors.secret_headers:_SESSION_ID": _NEVER,
}
"""Functions, patterns and constants by module and name, and what stands there without them."""


class Part(NamedTuple):
    """
    What is off.

    Attributes:
        kind: ``detector``, ``rule``, ``heuristic`` or ``list``; empty: nothing.
        name: Its name.
    """

    kind: str = ""
    name: str = ""


class Counts(NamedTuple):
    """
    What a run found, by the number of the text and the offset.

    Attributes:
        found: Labelled spans that are replaced as a whole.
        wrong: Finds that overlap no label.
    """

    found: frozenset[tuple[int, int]]
    wrong: frozenset[tuple[int, int]]


def read_texts(folder: Path, every: int) -> list[tuple[str, Document]]:
    """Return one of *every* labelled texts of each file, and ours, each with its kind."""
    from tests.kit.redaction_scores import genre_of, read_corpus, read_sets

    found: list[tuple[str, Document]] = []
    for file in sorted(folder.glob("*.jsonl")):
        found += [(file.stem, each) for each in list(read_corpus(file))[::every]]
    for half in Half:
        for document, is_negative in read_sets(half, per_template=1):
            found.append((genre_of(document) if is_negative else "own sentences", document))
    return found


class Search:
    """
    The search of the texts, with parts of it off.

    Args:
        texts: Each with its kind.

    Attributes:
        seen: Parts, with the texts in which they did anything.
        off: The detector or rule whose finds are left out.
    """

    def __init__(self, texts: Sequence[tuple[str, Document]]) -> None:
        from mnemoscope.memory.privacy.engine.redactor import Limits, build_redactor
        from mnemoscope.telemetry.event.subject import SubjectKeys

        self.texts = texts
        self.seen: dict[Part, set[int]] = {}
        self.off: Part | None = None
        self._at = 0
        self._gate: Any = import_module(f"{_PRIVACY}.engine.gate")
        self._find_with = self._gate.find_with
        self._gate.find_with = self._find_without
        # What was found in one text is remembered: never of the one that comes next.
        keys = SubjectKeys(bytes(32))
        self._redactor = build_redactor(model="none", keys=keys, limits=Limits(cached=1))
        self._redactor.prepare()

    def close(self) -> None:
        """Leave the package as it was."""
        self._gate.find_with = self._find_with

    @property
    def detectors(self) -> list[Part]:
        """All detectors."""
        return [Part("detector", each.name) for each in self._gate.DETECTORS]

    def note(self, part: Part) -> None:
        """Note that *part* did something in the text that is searched."""
        self.seen.setdefault(part, set()).add(self._at)

    def _find_without(self, detector: Any, *given: Any) -> Iterator[Any]:
        for each in self._find_with(detector, *given):
            both = Part("detector", detector.name), Part("rule", _rule(detector, each))
            if self.off not in both:
                yield each
            for part in both:
                self.note(part)

    def run(self, some: Iterable[int] | None = None) -> Counts:
        """Search all texts, or *some*."""
        from tests.kit.redaction_scores import QUASI_LABELS

        found: set[tuple[int, int]] = set()
        wrong: set[tuple[int, int]] = set()
        self._redactor.explain("another text")
        for number in range(len(self.texts)) if some is None else sorted(some):
            self._at = number
            document = self.texts[number][1]
            finds = [
                each
                for each in self._redactor.explain(document.text)
                if each.entity not in QUASI_LABELS
            ]
            covered = {at for each in finds for at in range(each.start, each.end)}
            labelled = {at for each in document.spans for at in range(each.start, each.end)}
            found.update(
                (number, span.start)
                for span in document.spans
                if span.label.upper() not in QUASI_LABELS
                and covered.issuperset(range(span.start, span.end))
            )
            for each in finds:
                if labelled.isdisjoint(range(each.start, each.end)):
                    wrong.add((number, each.start))
        return Counts(frozenset(found), frozenset(wrong))


def _rule(detector: Any, found: Any) -> str:
    """Return a rule's name: of a vendor's keys and of a country's numbers, one for all."""
    why = found.why
    if " (" in why:
        why = "by check digits" if why.endswith("digits") else "beside a word"
    return f"{detector.name}: {why.rpartition(': ')[2]}"


class _Watched:
    """A pattern that notes what it matches."""

    def __init__(self, pattern: Any, note: Callable[[], None]) -> None:
        self._pattern = pattern
        self._note = note

    def __getattr__(self, name: str) -> Any:
        real = getattr(self._pattern, name)
        if not callable(real):
            return real

        def call(*given: Any, **named: Any) -> Any:
            answer = real(*given, **named)
            if name == "finditer":
                answer = list(answer)
            if answer:
                self._note()
            return answer

        return call


def _watch(search: Search) -> list[tuple[Any, str, object]]:
    """Have every heuristic note the texts in which it does something, and return what was there."""
    undo: list[tuple[Any, str, object]] = []
    for name in HEURISTICS:
        real, note = _held(name), partial(search.note, Part("heuristic", name))
        if not callable(real):
            instead: Any = _Watched(real, note) if hasattr(real, "finditer") else None
        else:

            def instead(
                *given: Any, real: Any = real, note: Callable[[], None] = note, **named: Any
            ) -> Any:
                note()
                return real(*given, **named)

        if instead is None:  # a constant: it may matter anywhere
            search.seen[Part("heuristic", name)] = set(range(len(search.texts)))
        else:
            undo += _replace(real, instead)
    return undo


def _held(name: str) -> Any:
    module, _, attribute = name.partition(":")
    return getattr(import_module(f"{_PRIVACY}.{module}"), attribute)


def _replace(real: object, instead: object) -> list[tuple[Any, str, object]]:
    """Put *instead* wherever the package has *real*, and return what was there."""
    undo: list[tuple[Any, str, object]] = []
    for name, module in list(sys.modules.items()):
        if name.startswith(_PRIVACY):
            for held, value in list(vars(module).items()):
                if value is real:
                    setattr(module, held, instead)
                    undo.append((module, held, real))
    return undo


def _without(search: Search, part: Part) -> Counts:
    """Return what is found without *part* where it does anything."""
    some = search.seen[part]
    if part.kind != "heuristic":
        search.off = part
        counts = search.run(some)
        search.off = None
        return counts
    real, instead = _held(part.name), HEURISTICS[part.name]
    if callable(real) and not callable(instead):

        def constant(*_given: Any, **_named: Any) -> Any:
            return iter(()) if instead == () else instead

        undo = _replace(real, constant)
    else:
        undo = _replace(real, instead)
    try:
        return search.run(some)
    finally:
        for module, name, value in undo:
            setattr(module, name, value)


def _without_list(name: str, folder: Path, every: int) -> Counts:
    """Return what is found with the first entry alone of one list, in a process of its own."""
    lists: Any = import_module(f"{_PRIVACY}.detectors.word_lists")
    read_lines = lists.read_lines

    def lines(file: Any) -> tuple[str, ...]:
        found: tuple[str, ...] = read_lines(file)
        if file.name.rpartition(".")[0] != name:
            return found
        # Some lists have all their words in a line or two.
        return found[:1] if len(found) > _FEW_LINES else (found[0].split()[0],)

    lists.read_lines = lines
    lists.read_words.cache_clear()
    return Search(read_texts(folder, every)).run()


def _cells(search: Search, base: Counts, counts: Counts, some: set[int] | None) -> list[str]:
    """Return lost and gained spans, fewer and more wrong finds: by kind of text, if there are."""
    cells: list[str] = []
    for before, after in zip(base, counts, strict=True):
        here = {each for each in before if some is None or each[0] in some}
        for gone in (here - after, after - here):
            counted = Counter(search.texts[number][0] for number, _ in gone)
            cells.append(", ".join(f"{kind} {count}" for kind, count in counted.most_common()))
    return cells


def measure(search: Search, wanted: re.Pattern[str]) -> Iterator[tuple[Part, list[str]]]:
    """Yield each part but lists, and the cells of its row: empty where nothing changes."""
    undo = _watch(search)
    base = search.run()
    for module, name, value in undo:
        setattr(module, name, value)
    parts = search.detectors
    parts += sorted(each for each in search.seen if each.kind == "rule")
    parts += [Part("heuristic", each) for each in HEURISTICS]
    for part in parts:
        if not wanted.search(" ".join(part)):
            continue
        some = search.seen.get(part)
        counts = _without(search, part) if some else base
        yield part, _cells(search, base, counts, some)


def main() -> None:
    """Print a row for each part that changes anything, and name those that change nothing."""
    parser = argparse.ArgumentParser(description="Show what each part of redaction adds.")
    parser.add_argument("folder", type=Path, help="folder of labelled JSON lines")
    parser.add_argument("--only", default="", help="parts whose kind and name match this pattern")
    parser.add_argument("--lists", nargs="*", default=(), help="lists to shorten as well")
    parser.add_argument("--every", type=int, default=4, help="of so many labelled texts, one")
    parser.add_argument("--page", type=Path, help="write the last section of this page")
    chosen = parser.parse_args()
    search = Search(read_texts(chosen.folder, chosen.every))
    rows: list[list[str]] = []
    silent: dict[str, list[str]] = {}
    for part, cells in measure(search, re.compile(chosen.only)):
        say(f"{' '.join(part)}: {' / '.join(cells)}")
        if any(cells):
            rows.append([" ".join(part), *cells])
        else:
            silent.setdefault(part.kind, []).append(part.name)
    if chosen.lists:
        base = search.run()
        with ProcessPoolExecutor(1, get_context("spawn"), max_tasks_per_child=1) as pool:
            for name in chosen.lists:
                counts = pool.submit(_without_list, name, chosen.folder, chosen.every).result()
                say(f"list {name}: {' / '.join(_cells(search, base, counts, None))}")
    header = ("off", "lost", "gained", "fewer wrong", "more wrong")
    show(Section(HEADING.strip("# "), "", header, rows))
    for kind, names in silent.items():
        say(f"{kind}: nothing changes without {', '.join(names)}")
    if chosen.page:
        short = [[_as_code(each[0]), *each[1:]] for each in rows if not each[0].startswith("rule")]
        about = _ABOUT.format(labelled=_counted(search), every=chosen.every)
        section = Section(HEADING.strip("# "), about, header, short).markdown()
        told = [_SILENT.format(kind, ", ".join(map(_as_code, silent[kind]))) for kind in silent]
        before, _, behind = chosen.page.read_text(encoding="utf-8").partition(HEADING)
        next_section = behind.partition("\n## ")[2]
        page = "\n\n".join([before.rstrip(), section, *told, _KEPT]) + "\n"
        page += f"\n## {next_section}" if next_section else ""
        chosen.page.write_text(page, encoding="utf-8")


def _as_code(name: str) -> str:
    return f"`{name.removeprefix('heuristic ').removeprefix('detectors.')}`"


def _counted(search: Search) -> str:
    counted = Counter(kind for kind, _ in search.texts)
    return ", ".join(f"{count:,} of {kind}" for kind, count in counted.most_common())


_ABOUT = """\
Written by `make ablations`. Each part is off in turn, without a language model. The texts are one
in {every} of each labelled set, our own sentences and our own texts without personal data:
{labelled}. Lost are labelled spans that then show a character, gained those that are replaced only
then. Wrong is a find that overlaps no label. Spans are seen as wholes: a part that moves the end of
one, or looks at long texts, shows nothing here."""

_SILENT = "Without one of these {}s nothing changes here. {}"
_KEPT = """\
These go next, unless a test of behaviour or a page promises what they do, or the secrets in the
tests of gitleaks' rules need them. `_NO_NAMES` leaves out 31 interjections in two conversations of
LoCoMo. `decode_base64_parts` and `find_repeated_names` look where these texts have nothing.

Lists were off one at a time on 17,552 texts, with LoCoMo, gitleaks' tests and 3,000 sentences of
the training set. Nothing changes without these, which stay for what stands behind them.

* `function_words`, `nicknames`: pseudonyms of one person.
* `language_letters`, `language_words`: the choice of a language model.
* `digit_words`, `email_words`: disguises that the page on privacy promises.
* `not_phone_words`, `measures`: tests have order numbers and distances that would be found.
* `not_places`: the ends of addresses.
* `rare_street_types`: without it 167 of 173 made-up streets stay (*12 Oak Hollow*).
* `phone_words_unspaced`, `session_words`, `secret_code_words`: words that the page promises.
* `user_name_words_joined`, `role_mailboxes`: words that are not enough alone.

Relations and roles before a person went: no floor, no test and no running text needed them."""


if __name__ == "__main__":
    main()

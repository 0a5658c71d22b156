"""
The search of one text: the gate, then Presidio's engine with the recognizers that it calls for.

Every step takes time linear in the text, and a long text is searched chunk by chunk: no clock
decides what is found. Every failure in here is a `RedactionError` that quotes nothing.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from importlib.resources import files
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple

from ...errors import RedactionError
from ..detectors.chunks import split_into_chunks
from ..detectors.finding import (
    Finding,
    exclude_spans,
    merge_findings,
    trim_finding,
)
from ..detectors.identifiers import search as identifiers
from ..detectors.known_identifiers import KnownIdentifiers
from ..detectors.lazy_pattern import compile_later, compile_now
from ..detectors.normalized_text import (
    NormalizedText,
    decode_base64_parts,
    may_be_disguised,
    normalize_text,
)
from ..detectors.pace import Pace
from ..detectors.prefilter import TextFeatures, extract_features
from ..detectors.term_lists import NO_LISTS, TermLists
from ..detectors.word_lists import read_lines, split_words
from ..models.language_models import LanguageModels, ReadingBudget
from ..names.find import ReadNames, find_repeated_names, find_undecided, read_names
from .cache import RedactionCache
from .field_labels import labels_of, names_number, names_person, names_phone
from .gate import PERSONS, UNCHUNKED, DetectorGate, Reading, find_with_all
from .plain_texts import find_plain

if TYPE_CHECKING:
    from .recognizers import Analyzer

_BEHIND = ": "
_PAIR = compile_later(
    r"(?P<quote>[\"'])(?P<key>[^\"'\\\n]{1,48})(?P=quote)[ ]?:[ ]{0,4}"
    r"(?P<end>[\"'])(?P<value>[^\"\\\n]{2,200}?)(?P=end)(?=\s{0,20}[,}\]]|\Z)"
)
"""A key and a text of JSON, or as Python shows a dict."""

_LOST_ZEROS = ("", "0", "00")
_MAY_BEGIN_WITH_ZEROS = frozenset({"US_SSN", "NATIONAL_ID"})
_LEAST_DIGITS = {"SECRET": 3, "PHONE_NUMBER": 8, "BANK_ACCOUNT": 8}
_LEAST_DIGITS_OF_OTHERS = 6
"""Of a number, which is more often a count than a text of digits is."""


class TextView(NamedTuple):
    """
    A text as it is searched for identifiers: made once for all customers whose text it may be.

    Attributes:
        parts: It, without its disguises, and what it holds in base64.
        is_denied: The user's list has something that is in it.
    """

    parts: tuple[tuple[str, TextFeatures], ...]
    is_denied: bool

    def __repr__(self) -> str:
        """Hide the text."""
        return "TextView(...)"


class TextReading:
    """
    What is known of a text, whoever's it may be: worked out once for all customers.

    Args:
        found: As the detectors gave it, with offsets in the text without its disguises.
        chars: Its length.

    Attributes:
        found: As given.
        is_clean: Nothing is replaced in it, unless a customer is named there.
        view: How it is searched for customers. None: it is not clean, or has not been yet.
        chars: As many characters as take the same room.
    """

    __slots__ = ("chars", "found", "is_clean", "view")

    def __init__(self, found: tuple[Finding, ...], chars: int) -> None:
        self.found = found
        self.chars = chars + _FINDING_CHARS * len(found)
        self.is_clean = False
        self.view: TextView | None = None


class HeldReading(NamedTuple):
    """What is known of a text, if it was read before, and the key under which it is kept."""

    key: bytes
    reading: TextReading | None


_FINDING_CHARS = 128
_CHUNK_CHARS, _OVERLAP_CHARS = 4_096, 512
WINDOW_CHARS = 65_536
"""Characters of one text that are searched together; a longer one is searched part by part."""

_WINDOW_OVERLAP_CHARS = 4_096
"""As long as the longest key."""

_PERSON_ONLY = frozenset({"PERSON"})
_UUID_SHAPE = r"[\da-f]{8}-[\da-f]{4}-[1-8][\da-f]{3}-[89ab][\da-f]{3}-[\da-f]{12}"
_MACHINE_ID = compile_later(rf"{_UUID_SHAPE}|(?=\d*[a-f])[\da-f]+", re.IGNORECASE | re.ASCII)
_MACHINE_ID_LENGTHS = frozenset({32, 36, 40, 64})
"""Of UUIDs, and of digests in hexadecimal digits."""

_IDS = compile_later(
    rf"(?:{_UUID_SHAPE}|\d{{1,7}})(?:\n(?:{_UUID_SHAPE}|\d{{1,7}}))*", re.IGNORECASE | re.ASCII
)
"""UUIDs and numbers too short to identify anybody, one a line."""
_NUMBERED = compile_later(
    r"^(?=.{1,24}$)(((?:[a-z]++[_-]?+)*+)\d{1,6}((?:[_-][a-z]++)*+))$", re.MULTILINE | re.ASCII
)
"""Small words about a number too short to identify anybody: the text, what is before, behind it."""

_TEXTS_AT_ONCE = 4_096
_MANY_NUMBERED = 64
_NUMBERS = split_words("0 7 12 90 123 420 999 1984 2024 12345 90210 010190 123456 311299 999999")
"""Numbers of each length: dates, years, postcodes and none of them."""

_UUID_FEATURES = TextFeatures(frozenset(), has_digit_run=True, has_digit=True, has_long_word=False)
_NOBODY = KnownIdentifiers(())
_WARM_UP = files(__package__ or __name__).joinpath("data", "warm_up.txt")


class Engine:
    """
    Finder of personal data in one text. Thread-safe.

    Args:
        models: Read names.
        model_chars: Characters of one text that they are shown.
        lend_analyzer: Returns Presidio's engine with our recognizers and the user's, waiting for it
            where it must. None: it is being imported.
        has_custom: The user has recognizers, which are asked about every text.
        is_replaced: Returns whether an entity is replaced; others are not looked for.
        find_placeholders: Returns the spans of earlier replacements, which are never personal data.
        lists: The user's lists of what is never touched and what is always replaced.
        cached: Texts of which it is remembered what was found.

    Attributes:
        models: As given.
        labels_of: Returns the labels that the keys of a mapping are.
    """

    labels_of = staticmethod(labels_of)

    def __init__(
        self,
        models: LanguageModels,
        *,
        model_chars: int,
        lend_analyzer: Callable[[bool], Analyzer | None],
        has_custom: bool,
        is_replaced: Callable[[str], bool],
        find_placeholders: Callable[[str], list[tuple[int, int]]],
        lists: TermLists = NO_LISTS,
        cached: int = 4_096,
    ) -> None:
        self.models = models
        self._model_chars = model_chars
        self._lend_analyzer = lend_analyzer
        self._has_custom = has_custom
        self._lists = lists
        self._is_replaced = is_replaced
        self._find_placeholders = find_placeholders
        self._gate = DetectorGate(is_replaced)
        self._readings = RedactionCache[TextReading](entries=cached)
        # Otherwise a year is a date, and a model or a recognizer may find anything in a number.
        patterns_suffice = not self._gate.opted_in and models.entities <= _PERSON_ONLY
        self._patterns_only = patterns_suffice and not has_custom and not lists.denied

    def warm_up(self) -> None:
        """Compile every pattern, and search texts that need the lists of words of all languages."""
        compile_now()
        for text in read_lines(_WARM_UP):
            self.find(text, _NOBODY)

    def is_safe_id(self, text: str, known: KnownIdentifiers) -> bool:
        """
        Return whether *text* is a UUID or a digest, and not one of the *known* identifiers.

        Most ids are such; searched as text, one in five hundred UUIDs would be taken for a bank
        account or a card.
        """
        if (
            len(text) not in _MACHINE_ID_LENGTHS
            or self._has_custom
            or self._lists.denied
            or not _MACHINE_ID.fullmatch(text)
        ):
            return False
        return not any(known.find(text, _UUID_FEATURES))

    def look_up(self, text: str) -> HeldReading:
        """Return what is known of *text*, and the key under which it is kept: a keyed hash."""
        key = self._readings.key_of(text)
        return HeldReading(key, self._readings.get(key))

    def is_clean(self, text: str, held: HeldReading, known: KnownIdentifiers) -> bool:
        """
        Return whether *text* was clean for another customer, and does not mention *known*.

        Names of features and collections, and prompts, come with every customer: to search them
        again for each is the largest cost where there are many customers.
        """
        reading = held.reading
        if reading is None or not reading.is_clean:
            return False
        if not known.key:
            return True  # what is denied to everybody is not clean
        view = reading.view
        if view is None:
            view = reading.view = self.view(text)
        return not self.are_mentioned(view, known)

    def are_safe_ids(self, texts: Sequence[str], known: KnownIdentifiers) -> bool:
        """Return whether all of *texts* are UUIDs or short numbers and none is *known*."""
        if not self._patterns_only:
            return False
        lines = "\n".join(texts)
        # A text with line breaks of its own is no id.
        if _IDS.fullmatch(lines) is None or lines.count("\n") >= len(texts):
            return False
        return known.is_empty or not any(known.find(lines, _UUID_FEATURES))

    def find_plain(
        self, texts: Sequence[str], known: KnownIdentifiers, pace: Pace | None = None
    ) -> set[str]:
        """
        Return those of many *texts* that need no search, since nothing would be found in them.

        They are those in which nothing is that a detector waits for, and those that differ in a
        number alone: ``setting_17`` is nobody's unless the words before the number announce one. So
        the words are searched, with a few numbers in its place, and not each text.

        Args:
            texts: Such as the keys of one mapping.
            known: Identifiers of the data subject.
            pace: Lets other threads in.
        """
        plain: set[str] = set()
        if not self._patterns_only:
            return plain
        wordings: dict[tuple[str, str], bool] = {}
        for start in range(0, len(texts), _TEXTS_AT_ONCE):
            if pace is not None:
                pace.between_pieces()
            some = texts[start : start + _TEXTS_AT_ONCE]
            lines = "\n".join(some)
            if not known.is_empty and any(known.find(lines, extract_features(lines))):
                some = [text for text in some if not any(known.find(text, extract_features(text)))]
                lines = "\n".join(some)
            numbered = set(self._find_numbered(lines, wordings, known))
            plain |= numbered
            rest = [text for text in some if text not in numbered] if numbered else some
            plain.update(find_plain(rest, with_model=bool(self.models.entities)))
        return plain

    def _find_numbered(
        self, lines: str, wordings: dict[tuple[str, str], bool], known: KnownIdentifiers
    ) -> Iterator[str]:
        """Yield those *lines* that need no search, of words that many of them have."""
        found = [(text, (before, behind)) for text, before, behind in _NUMBERED.findall(lines)]
        for wording, count in Counter(wording for _, wording in found).items():
            if count >= _MANY_NUMBERED and wording not in wordings:
                wordings[wording] = self._may_be_numbered(*wording, known)
        for text, wording in found:
            if wordings.get(wording):
                yield text

    def _may_be_numbered(self, before: str, behind: str, known: KnownIdentifiers) -> bool:
        """Return whether a short number between two wordings is nobody's, whichever it is."""
        text = f"{before}0{behind}"
        if identifiers.announces(text, extract_features(text)):
            return False
        return not any(self.find(before + number + behind, known) for number in _NUMBERS)

    def mentions(self, text: str, known: KnownIdentifiers) -> bool:
        """
        Return whether what is always replaced is in *text*, plain or in base64.

        That is a *known* identifier, and what the user's list has.
        """
        if not known.key and not self._lists.denied:
            return False
        return self.are_mentioned(self.view(text), known)

    def view(self, text: str) -> TextView:
        """Return *text* as it is searched for identifiers, plain and in base64."""
        text = normalize_text(text).text
        features = extract_features(text)
        decoded = decode_base64_parts(text) if features.has_long_word else ()
        parts = [(part, extract_features(part)) for _start, _end, part in decoded]
        return TextView(((text, features), *parts), any(self._lists.denied.find(text)))

    def are_mentioned(self, view: TextView, known: KnownIdentifiers) -> bool:
        """Return whether what is always replaced is in a text of which there is a *view*."""
        if view.is_denied:
            return True
        return any(
            any(known.find(text, features))
            for text, features in view.parts
            if not known.are_apart_from(features)
        )

    def find(
        self,
        text: str,
        known: KnownIdentifiers,
        pace: Pace | None = None,
        allowed: list[Finding] | None = None,
        held: HeldReading | None = None,
    ) -> list[Finding]:
        """
        Return the personal data in *text*, in order, without overlaps.

        Args:
            text: Any text.
            known: Identifiers of the data subject.
            pace: Lets other threads in.
            allowed: Gets what would be personal data if an allowed term did not hold it.
            held: What `look_up` returned for the text. None: it is looked up.

        Raises:
            RedactionError: A detector failed. The message has its exception's type, not the text.
        """
        try:
            if len(text) > WINDOW_CHARS:
                return self._find_in_windows(text, known, pace, allowed)
            return self._find(text, known, pace, allowed, held or self.look_up(text))
        except RedactionError:
            raise
        except Exception as error:  # noqa: BLE001 - fails closed: the text is refused
            failure = type(error).__qualname__
        # Raised here, without context: the message of the original error may quote the text.
        raise RedactionError(f"redaction failed: {failure}")

    def find_behind(
        self, label: str, value: str, known: KnownIdentifiers, pace: Pace | None = None
    ) -> Iterator[Finding]:
        """Yield the personal data in *value*, read as what stands behind *label* on a form."""
        yield from _in_value(label, self.find(f"{label}{_BEHIND}{value}", known, pace))

    def find_number(
        self, label: str, digits: str, known: KnownIdentifiers, pace: Pace | None = None
    ) -> tuple[str, list[Finding]]:
        """
        Return the digits of a number, and the find that is all of them, behind their *label*.

        The digits are as the label has them: a number has lost the zeros that they began with.
        """
        if names_number(label):
            for value in (zeros + digits for zeros in _LOST_ZEROS):
                behind = merge_findings(list(self.find_behind(label, value, known, pace)))
                if len(behind) == 1 and _is_number(behind[0], value, digits, label):
                    return value, behind
        return digits, []

    def _find_in_windows(
        self,
        text: str,
        known: KnownIdentifiers,
        pace: Pace | None,
        allowed: list[Finding] | None,
    ) -> list[Finding]:
        """Search a very long text part by part: some patterns look at all of what they get."""
        windows = split_into_chunks(text, size=WINDOW_CHARS, overlap=_WINDOW_OVERLAP_CHARS)
        found: list[Finding] = []
        for offset, window in windows:
            kept: list[Finding] = []
            in_window = self._find(window, known, pace, kept, self.look_up(window))
            found += (_moved(each, offset + each.start, offset + each.end) for each in in_window)
            if allowed is not None:
                allowed += (_moved(each, offset + each.start, offset + each.end) for each in kept)
        return merge_findings(found)

    def _find(
        self,
        text: str,
        known: KnownIdentifiers,
        pace: Pace | None,
        allowed: list[Finding] | None,
        held: HeldReading,
    ) -> list[Finding]:
        features = extract_features(text)
        normalized = NormalizedText(text)
        if may_be_disguised(text, features):
            normalized = normalize_text(text)
        if normalized.text is not text:
            features = extract_features(normalized.text)
        encoded: list[tuple[int, int, str]] = []
        key, reading = held
        if features.has_long_word and (reading is None or known.key):
            encoded += decode_base64_parts(normalized.text)
        if reading is None:
            found_here = tuple(self._search(normalized.text, features, encoded, pace))
            reading = TextReading(found_here, len(text))
            self._readings.put(key, reading)
        named = [*known.find(normalized.text, features)]
        for start, end, decoded in encoded if known.key else ():
            named += (
                _moved(each, start, end) for each in known.find(decoded, extract_features(decoded))
            )
        found = [*named, *reading.found]
        if not found:
            reading.is_clean = True
            return found
        replaced = [each for each in found if self._is_reported(each)]
        if self._lists.allowed:
            replaced, kept = self._split_allowed(replaced, normalized.text)
            if allowed is not None:
                allowed += (
                    _moved(each, *normalized.original_span(each.start, each.end)) for each in kept
                )
        if normalized.starts is not None:
            replaced = [
                _moved(each, *normalized.original_span(each.start, each.end)) for each in replaced
            ]
        visible = exclude_spans(merge_findings(replaced), self._find_placeholders(text))
        trimmed = [each for found in visible if (each := trim_finding(found, text))]
        reading.is_clean = reading.is_clean or not (trimmed or named)
        return trimmed

    def _split_allowed(
        self, found: list[Finding], text: str
    ) -> tuple[list[Finding], list[Finding]]:
        """Return those of *found* that are replaced, and those within an allowed term."""
        terms = merge_findings(self._lists.allowed.find(text))
        starts = [term.start for term in terms]
        replaced: list[Finding] = []
        kept: list[Finding] = []
        for each in found:
            last = bisect_right(starts, each.start) - 1
            is_held = last >= 0 and each.end <= terms[last].end
            (kept if is_held and not each.is_certain else replaced).append(each)
        return replaced, kept

    def _search(
        self,
        text: str,
        features: TextFeatures,
        encoded: Iterable[tuple[int, int, str]],
        pace: Pace | None,
    ) -> Iterator[Finding]:
        yield from self._ask_in_chunks(text, features, ReadingBudget(self._model_chars), pace)
        yield from self._search_base64(encoded, pace)
        if '":' in text or "':" in text:
            yield from self._search_pairs(text, pace)
        yield from self._lists.denied.find(text)

    def _search_pairs(self, text: str, pace: Pace | None) -> Iterator[Finding]:
        """Yield what the values of JSON within a text are by their keys, as fields are."""
        for pair in _PAIR.finditer(text):
            labels = labels_of((pair["key"],))
            if labels and (label := labels[0]):
                start, value = pair.start("value"), pair["value"]
                line = f"{label}{_BEHIND}{value}"
                behind = _in_value(label, self._ask(line, extract_features(line), None, pace))
                for each in chain(self._ask(value, extract_features(value), None, pace), behind):
                    yield _moved(each, start + each.start, start + each.end)

    def _ask_in_chunks(
        self, text: str, features: TextFeatures, budget: ReadingBudget | None, pace: Pace | None
    ) -> Iterator[Finding]:
        """Ask the recognizers about a text, and about a long one chunk by chunk."""
        if len(text) <= _CHUNK_CHARS:
            yield from self._ask(text, features, budget, pace)
            return
        if UNCHUNKED.applies(text, features):
            yield from UNCHUNKED.find(text, features)
        names: list[Finding] = []
        for offset, chunk in _split_at_words(text):
            if pace is not None:
                pace.between_pieces()
            for each in self._ask(chunk, extract_features(chunk), budget, pace):
                found = _moved(each, offset + each.start, offset + each.end)
                names += [found] if found.entity == "PERSON" else []
                yield found
        yield from find_repeated_names(text, names)

    def _ask(
        self, text: str, features: TextFeatures, budget: ReadingBudget | None, pace: Pace | None
    ) -> Iterable[Finding]:
        """
        Return what Presidio's engine finds in what the gate lets through.

        Until it is imported our detectors are run without it: they find the same.
        """
        detectors = self._gate.choose(text, features)
        reading = Reading()
        if budget is not None and self.models.entities:
            read: ReadNames = read_names(text) if PERSONS in detectors else {}
            of_models = self.models.read(text, budget, pace, find_undecided(read))
            reading = Reading(read, list(of_models))
        if not (detectors or reading.of_models or self._has_custom):
            return ()
        if self._has_custom and pace is not None:
            pace.before_slow_work()
        # Its import takes two seconds, which no deadline of a call has: only what the user brought
        # has to wait for it.
        analyzer = self._lend_analyzer(self._has_custom)
        if analyzer is None:
            return find_with_all(detectors, text, features, reading)
        return analyzer.analyze(text, features, detectors, reading)

    def _search_base64(
        self, encoded: Iterable[tuple[int, int, str]], pace: Pace | None
    ) -> Iterator[Finding]:
        for start, end, decoded in encoded:
            features = extract_features(decoded)
            ours = self._ask_in_chunks(decoded, features, None, pace)
            for each in (*self._lists.denied.find(decoded), *ours):
                why = each.why if each.is_certain else f"{each.why}, in base64"
                yield each._replace(start=start, end=end, why=why)

    def _is_reported(self, found: Finding) -> bool:
        return found.is_certain or self._is_replaced(found.entity)


def _split_at_words(text: str) -> Iterator[tuple[int, str]]:
    """Yield overlapping chunks of *text* that begin with a whole word where possible."""
    for offset, chunk in split_into_chunks(text, size=_CHUNK_CHARS, overlap=_OVERLAP_CHARS):
        space = chunk.find(" ", 0, _OVERLAP_CHARS // 2) + 1 if offset else 0
        yield offset + space, chunk[space:]


def _is_number(found: Finding, value: str, digits: str, label: str) -> bool:
    """Return whether a find is all of *value*, and long enough not to be a count or a row's id."""
    return (
        (found.start, found.end) == (0, len(value))
        and (len(value) == len(digits) or found.entity in _MAY_BEGIN_WITH_ZEROS)
        and len(digits) >= _LEAST_DIGITS.get(found.entity, _LEAST_DIGITS_OF_OTHERS)
        # "number" and "contact" announce a telephone in prose, and anything in a table.
        and (found.entity != "PHONE_NUMBER" or names_phone(label))
    )


def _in_value(label: str, found: Iterable[Finding]) -> Iterator[Finding]:
    """Yield what was *found* in the value behind *label* in a line, by its place in the value."""
    lead = len(label) + len(_BEHIND)
    for each in found:
        if each.end > lead and (each.entity != "PERSON" or names_person(label)):
            yield _moved(each, max(each.start - lead, 0), each.end - lead)


def _moved(found: Finding, start: int, end: int) -> Finding:
    return found._replace(start=start, end=end)

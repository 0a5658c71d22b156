"""
Finds personal data in a text: one pass of cheap clues, then only what they call for.

Every step takes time linear in the text, and a long text is searched piece by piece until its time
is up: the rest is taken for personal data. Whatever goes wrong in here is a `RedactionError` that
quotes nothing.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Sequence

from ..errors import RedactionError
from . import contacts, credentials, labels, national, numbers, persons, quasi
from .addresses import addresses
from .clues import Clues, clues_of, needs_model
from .custom import CustomRecognizers
from .finding import UNSEARCHED, Finding, merged, remaining, trimmed, without
from .known import WHY, Known
from .pieces import chunks
from .presidio import MODEL_ENTITIES, Presidio
from .views import encoded_texts, view_of

Detector = Callable[[str, Clues], Iterator[Finding]]
Gate = Callable[[str, Clues], bool]


def _digits(_text: str, clues: Clues) -> bool:
    return clues.has_digits


def _long(_text: str, clues: Clues) -> bool:
    return clues.has_long_word


def _digits_at_all(_text: str, clues: Clues) -> bool:
    return clues.any_digit


def _words(wanted: frozenset[str]) -> Gate:
    return lambda _text, clues: not clues.words.isdisjoint(wanted)


def _numbered(wanted: frozenset[str]) -> Gate:
    return lambda _text, clues: clues.any_digit and not clues.words.isdisjoint(wanted)


DETECTORS: tuple[tuple[Gate, Detector], ...] = (
    (lambda text, _: "@" in text, contacts.emails),
    (_digits, contacts.phones),
    (_digits, numbers.cards),
    (_digits, numbers.ibans),
    (_digits, numbers.social_security),
    (_digits_at_all, numbers.machines),
    (_long, numbers.wallets),
    (_long, labels.vehicles),
    (credentials.has_token_prefix, credentials.tokens),
    (lambda text, _: "://" in text and "@" in text, credentials.logins_in_urls),
    (_words(credentials.CREDENTIAL_CLUES), credentials.assignments),
    (_numbered(labels.LABEL_CLUES), labels.labelled_numbers),
    (lambda _, clues: clues.any_digit or "corner" in clues.words, addresses),
    (persons.may_be_there, persons.persons),
)
"""Our own detectors, each behind the clue without which it finds nothing."""

_AT_DIGITS = frozenset({_digits, _digits_at_all})

_QUIET: tuple[tuple[Gate, Detector], ...] = (
    (credentials.has_token_prefix, credentials.tokens),
    (persons.may_be_there, persons.persons),
)
"""Those that need no more than words: without digits, an ``@`` or a long word."""

_SPOKEN = credentials.CREDENTIAL_CLUES | {"corner"}
"""Words that others of them wait for."""

ON_DEMAND: tuple[tuple[str, Gate, Detector], ...] = (
    ("DATE_TIME", _digits_at_all, quasi.dates),
    ("AGE", _digits_at_all, quasi.ages),
)
"""Detectors of what is kept by default, by entity: asked only where it is replaced."""


IN_WHOLE: tuple[tuple[Gate, Detector], ...] = ((credentials.has_token_prefix, credentials.tokens),)
"""Detectors of what may be longer than the pieces of a long text overlap."""

_PIECE, _OVERLAP = 4_096, 512
SEARCH_S = 0.09
_PERSONS = frozenset({"PERSON"})
_UUID = re.compile(
    r"[\da-f]{8}-[\da-f]{4}-[1-8][\da-f]{3}-[89ab][\da-f]{3}-[\da-f]{12}",
    re.IGNORECASE | re.ASCII,
)
_UUID_LENGTH = 36
_IDS = re.compile(
    rf"(?:{_UUID.pattern}|\d{{1,7}})(?:\n(?:{_UUID.pattern}|\d{{1,7}}))*", _UUID.flags
)
"""UUIDs and numbers too short to identify anybody, one a line."""
_UUID_CLUES = Clues(frozenset(), has_digits=True, any_digit=True, has_long_word=False)


class Engine:
    """
    Finds personal data.

    Args:
        presidio: For names and national numbers.
        custom: The user's recognizers.
        is_replaced: Says of an entity whether it is replaced; others are not looked for.
        placeholders: Finds what stands where something was replaced: never personal data.
        search_s: Seconds of a processor's time that our own detectors may take for one long text.
        clock: Tells how many of them this thread has had.
    """

    def __init__(  # noqa: PLR0913 - what it works with
        self,
        presidio: Presidio,
        custom: CustomRecognizers,
        *,
        is_replaced: Callable[[str], bool],
        placeholders: Callable[[str], list[tuple[int, int]]],
        search_s: float = SEARCH_S,
        clock: Callable[[], float] = time.thread_time,
    ) -> None:
        self._search_s = search_s
        self._clock = clock
        self.presidio = presidio
        self._custom = custom
        self._is_replaced = is_replaced
        self._placeholders = placeholders
        demanded = tuple((gate, find) for entity, gate, find in ON_DEMAND if is_replaced(entity))
        self._detectors = (*DETECTORS, *demanded)
        self._without_digits = tuple(
            (gate, find) for gate, find in self._detectors if gate not in _AT_DIGITS
        )
        self._model_entities = frozenset(filter(is_replaced, MODEL_ENTITIES))
        # Else a year is a date, and a model or a recognizer may see anything in a number.
        plain = not demanded and self._model_entities <= _PERSONS
        self._patterns_only = plain and not custom

    def passes(self, text: str, known: Known) -> bool:
        """
        True where *text* is a UUID and nobody's: what most ids are, told without a search.

        One in five hundred would else be taken for a bank account or a card.
        """
        if len(text) != _UUID_LENGTH or self._custom or not _UUID.fullmatch(text):
            return False
        return not any(known.find(text, _UUID_CLUES))

    def all_pass(self, texts: Sequence[str], known: Known) -> bool:
        """True where *texts* are what ids of memories mostly are, and nobody's: at one go."""
        if not self._patterns_only:
            return False
        lines = "\n".join(texts)
        # A text that has lines of its own is no id.
        if _IDS.fullmatch(lines) is None or lines.count("\n") >= len(texts):
            return False
        return known.is_nobody or not any(known.find(lines, _UUID_CLUES))

    def knows(self, text: str, known: Known) -> bool:
        """True where *known* is in *text*, in which nothing else is."""
        if not known.key:
            return False
        text = view_of(text).text
        clues = clues_of(text)
        decoded = encoded_texts(text) if clues.has_long_word else ()
        texts = ((text, clues), *((each, clues_of(each)) for _start, _end, each in decoded))
        return any(True for each, its in texts for _ in known.find(each, its))

    def find(self, text: str, known: Known) -> list[Finding]:
        """
        Return the personal data in *text*, in order, without overlaps.

        Raises:
            RedactionError: Something failed. It says what, and nothing of the text.
        """
        try:
            return self._find(text, known)
        except RedactionError:
            raise
        except Exception as error:  # noqa: BLE001 - closed on confidentiality: no error passes text
            failure = type(error).__qualname__
        # Out here, so that the new error has no context: the old one's message may quote the text.
        raise RedactionError(f"redaction failed: {failure}")

    def _find(self, text: str, known: Known) -> list[Finding]:
        view = view_of(text)
        found = list(self._detected(view.text, known))
        if not found:
            return found
        replaced = (each for each in found if self._is_taken(each))
        mapped = (_moved(each, *view.original(each.start, each.end)) for each in replaced)
        visible = without(merged(mapped), self._placeholders(text))
        return [bare for each in visible if (bare := trimmed(each, text))]

    def _detected(self, text: str, known: Known) -> Iterator[Finding]:
        clues = clues_of(text)
        is_long = len(text) > _PIECE
        ends = self._clock() + self._search_s if is_long or clues.has_long_word else 0.0
        ours = self._in_pieces(text, clues, ends) if is_long else self._matched(text, clues)
        found = [*known.find(text, clues), *ours]
        yield from found
        if clues.any_digit and (asked := national.asked(text, clues)):
            yield from self.presidio.identities(text, asked)
        if self._needs_model(text, clues, found):
            yield from self.presidio.named(text, self._model_entities)
        if self._custom:
            yield from self._custom.find(text)
        if clues.has_long_word:
            yield from self._encoded(text, known, ends)

    def _in_pieces(self, text: str, clues: Clues, ends: float) -> Iterator[Finding]:
        """Search a long text until the clock says *ends*, and take the rest for personal data."""
        for gate, detector in IN_WHOLE:
            if gate(text, clues):
                yield from detector(text, clues)
        named: list[Finding] = []
        for offset, piece in _whole_words(text):
            if self._clock() > ends:
                yield Finding(offset, len(text), UNSEARCHED, 1.0, _OUT_OF_TIME)
                break
            for each in self._matched(piece, clues_of(piece)):
                found = _moved(each, offset + each.start, offset + each.end)
                named += [found] if found.entity == "PERSON" else []
                yield found
        yield from persons.again(text, named)

    def _encoded(self, text: str, known: Known, ends: float) -> Iterator[Finding]:
        for start, end, decoded in encoded_texts(text):
            if self._clock() > ends:
                yield Finding(start, len(text), UNSEARCHED, 1.0, _OUT_OF_TIME)
                return
            clues = clues_of(decoded)
            for each in (*known.find(decoded, clues), *self._matched(decoded, clues)):
                yield each._replace(
                    start=start, end=end, why=f"{each.why}, in base64" if each.why != WHY else WHY
                )

    def _is_taken(self, found: Finding) -> bool:
        sure = found.why == WHY or found.entity == UNSEARCHED
        return sure or self._is_replaced(found.entity)

    def _needs_model(self, text: str, clues: Clues, found: list[Finding]) -> bool:
        """True where something that was not found yet could be a name."""
        if not self._model_entities or not self.presidio.model.is_wanted:
            return False
        if self._model_entities != _PERSONS:
            return True
        if not found:
            return needs_model(text, clues)
        rest = remaining(text, merged(found))
        return needs_model(rest, clues_of(rest))

    def _matched(self, text: str, clues: Clues) -> Iterator[Finding]:
        for gate, detector in self._worth_asking(text, clues):
            if gate(text, clues):
                yield from detector(text, clues)

    def _worth_asking(self, text: str, clues: Clues) -> tuple[tuple[Gate, Detector], ...]:
        if clues.any_digit:
            return self._detectors
        if clues.has_long_word or "@" in text or not clues.words.isdisjoint(_SPOKEN):
            return self._without_digits
        return _QUIET


_OUT_OF_TIME = "not searched: the text took too long"


def _whole_words(text: str) -> Iterator[tuple[int, str]]:
    """Yield pieces of *text*, none of which begins in the middle of a word if it can."""
    for offset, piece in chunks(text, size=_PIECE, overlap=_OVERLAP):
        space = piece.find(" ", 0, _OVERLAP // 2) + 1 if offset else 0
        yield offset + space, piece[space:]


def _moved(found: Finding, start: int, end: int) -> Finding:
    return found._replace(start=start, end=end)

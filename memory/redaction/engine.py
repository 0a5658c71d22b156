"""
Finds personal data in a text: one pass of cheap clues, then only what they call for.

Every step takes time linear in the text. Whatever goes wrong in here is a `RedactionError` that
quotes nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from ..errors import RedactionError
from . import contacts, credentials, labels, national, numbers, persons, quasi
from .addresses import addresses
from .clues import Clues, clues_of, needs_model
from .custom import CustomRecognizers
from .finding import Finding, merged, remaining, trimmed, without
from .known import WHY, Known
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

ON_DEMAND: tuple[tuple[str, Gate, Detector], ...] = (
    ("DATE_TIME", _digits_at_all, quasi.dates),
    ("AGE", _digits_at_all, quasi.ages),
)
"""Detectors of what is kept by default, by entity: asked only where it is replaced."""


_PERSONS = frozenset({"PERSON"})
_UUID = re.compile(
    r"[\da-f]{8}-[\da-f]{4}-[1-8][\da-f]{3}-[89ab][\da-f]{3}-[\da-f]{12}",
    re.IGNORECASE | re.ASCII,
)
_UUID_LENGTH = 36
_UUID_CLUES = Clues(frozenset(), has_digits=True, any_digit=True, has_long_word=False)


class Engine:
    """
    Finds personal data.

    Args:
        presidio: For names and national numbers.
        custom: The user's recognizers.
        is_replaced: Says of an entity whether it is replaced; others are not looked for.
        placeholders: Finds what stands where something was replaced: never personal data.
    """

    def __init__(
        self,
        presidio: Presidio,
        custom: CustomRecognizers,
        *,
        is_replaced: Callable[[str], bool],
        placeholders: Callable[[str], list[tuple[int, int]]],
    ) -> None:
        self.presidio = presidio
        self._custom = custom
        self._is_replaced = is_replaced
        self._placeholders = placeholders
        demanded = tuple((gate, find) for entity, gate, find in ON_DEMAND if is_replaced(entity))
        self._detectors = (*DETECTORS, *demanded)
        self._model_entities = frozenset(filter(is_replaced, MODEL_ENTITIES))

    def passes(self, text: str, known: Known) -> bool:
        """
        True where *text* is a UUID and nobody's: what most ids are, told without a search.

        One in five hundred would else be taken for a bank account or a card.
        """
        if len(text) != _UUID_LENGTH or self._custom or not _UUID.fullmatch(text):
            return False
        return not any(known.find(text, _UUID_CLUES))

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
        replaced = (each for each in found if each.why == WHY or self._is_replaced(each.entity))
        mapped = (_moved(each, *view.original(each.start, each.end)) for each in replaced)
        visible = without(merged(mapped), self._placeholders(text))
        return [bare for each in visible if (bare := trimmed(each, text))]

    def _detected(self, text: str, known: Known) -> Iterator[Finding]:
        clues = clues_of(text)
        found = [*known.find(text, clues), *self._matched(text, clues)]
        yield from found
        if clues.any_digit and (asked := national.asked(text, clues)):
            yield from self.presidio.identities(text, asked)
        if self._needs_model(text, clues, found):
            yield from self.presidio.named(text, self._model_entities)
        if self._custom:
            yield from self._custom.find(text)
        if clues.has_long_word:
            yield from self._encoded(text, known)

    def _encoded(self, text: str, known: Known) -> Iterator[Finding]:
        for start, end, decoded in encoded_texts(text):
            clues = clues_of(decoded)
            for each in (*known.find(decoded, clues), *self._matched(decoded, clues)):
                yield each._replace(
                    start=start, end=end, why=f"{each.why}, in base64" if each.why != WHY else WHY
                )

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
        for gate, detector in self._detectors:
            if gate(text, clues):
                yield from detector(text, clues)


def _moved(found: Finding, start: int, end: int) -> Finding:
    return found._replace(start=start, end=end)

"""
The redaction of one call: replaces personal data in text and values, and counts replacements.

It builds new objects and never changes the caller's. Numbers, booleans and None pass; an unknown
type raises `RedactionError`, since it might hold text.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeGuard

import msgspec

from ....telemetry.event.event import Redacted
from ....telemetry.text import code_class, one_line
from ...errors import ContentTooLargeError, RedactionError
from ..detectors.known_identifiers import KnownIdentifiers
from ..detectors.lazy_pattern import compile_later
from ..detectors.pace import LongRedaction, Pace
from .cache import RedactedText
from .content import to_content
from .operators import OVERSIZE, cut_text
from .value_redaction import Formats, Labels, Rebuild, ValueRedactor

if TYPE_CHECKING:
    from .numbers import Number

_MACHINE_ID = compile_later(
    r"(?:(?:lc_run|run|call|tool|toolu|msg|resp|chatcmpl|task|thread)(?:--?|_|:))?"
    r"(?:[\da-f]{8}-[\da-f]{4}-[1-8][\da-f]{3}-[89ab][\da-f]{3}-[\da-f]{12}"
    r"|(?=\d*[a-f])[\da-f]{32})",
    re.ASCII,
)
"""A UUID or a hash, alone or behind a word that frameworks put before their ids."""

SHORT_CHARS = 4_096
"""Characters of a call that are redacted on the thread that makes it."""

TEXT_CHARS = 8
"""Characters that each text counts for besides its own."""

FIELD_CHARS = 256
"""Characters of a value that is read behind its label: a longer one is prose, and speaks itself."""

MANY_TEXTS = 1_024
"""From so many on, the texts of one value are looked at together first."""

_UNLIMITED = sys.maxsize
_UNKNOWN: Any = object()


@dataclass(frozen=True, slots=True)
class CallBound:
    """
    The bound of the text in one call.

    Attributes:
        most_characters: Characters of all texts together.
        cuts: Replace what is beyond by ``<OVERSIZE>``. False: refuse the call.
    """

    most_characters: int = 2_000_000
    cuts: bool = False


class TextRole(StrEnum):
    """
    The role of a text, which selects how findings in it are replaced.

    Attributes:
        TEXT: Free text: by operator.
        VALUE: By operator, but by a pseudonym if the whole text is one identifier.
        KEY: Always by pseudonyms, so that different keys stay different.
        NUMBER: The digits of a number: as a VALUE if its label calls it personal, else not.
    """

    TEXT = "text"
    VALUE = "value"
    KEY = "key"
    NUMBER = "number"


class PseudonymStore(Protocol):
    """The vault of one customer, to a redaction. No method waits or fails."""

    def store(self, pseudonym: str, original: str, entity: str) -> None:
        """Store that *pseudonym* stands for *original*."""
        ...

    def holds(self, pseudonyms: Iterable[str]) -> bool:
        """Return whether all of *pseudonyms* were stored recently."""
        ...


class TextRedactor(Protocol):
    """Redactor of one string: the process's `Redactor`."""

    def redact(
        self,
        text: str,
        *,
        known: KnownIdentifiers,
        tenant: str | None,
        role: TextRole,
        vault: PseudonymStore | None = None,
        pace: Pace | None = None,
        label: str = "",
    ) -> RedactedText:
        """Return *text* redacted, as what stands behind a *label*, and the replacements."""
        ...

    @property
    def known_labels(self) -> Mapping[tuple[Any, ...], Labels]:
        """The labels that were asked for, by keys."""
        ...

    def labels_of(self, keys: tuple[Any, ...], pace: Pace | None = None) -> Labels:
        """Return the labels that *keys* of a mapping are: see `ValueTexts`."""
        ...

    def are_safe_ids(self, texts: Sequence[str], known: KnownIdentifiers) -> bool:
        """Return whether all of *texts* are UUIDs or short numbers and none is *known*."""
        ...

    def find_plain(
        self, texts: Sequence[str], known: KnownIdentifiers, pace: Pace | None = None
    ) -> set[str]:
        """Return those of many *texts* that need no search: nothing would be found in them."""
        ...

    def mentions(self, text: str, known: KnownIdentifiers) -> bool:
        """Return whether a *known* identifier is in *text*."""
        ...

    def text_to_embed(self, text: str) -> str:
        """Return a redacted *text* as it is to be densely encoded."""
        ...


class Extent(NamedTuple):
    """
    How much text a call may carry.

    Attributes:
        left: Characters.
        bound: Cuts or refuses what is beyond. None: `LongRedaction` is raised there.
        pace: Asked between the pieces of long texts.
    """

    left: int
    bound: CallBound | None = None
    pace: Pace | None = None


UNLIMITED = Extent(_UNLIMITED)


def short(pace: Pace | None) -> Extent:
    """Raise `LongRedaction` as soon as there is more text than may be redacted here."""
    return Extent(SHORT_CHARS, None, pace)


def within(bound: CallBound, pace: Pace | None = None) -> Extent:
    """Cut or refuse what is beyond *bound*."""
    return Extent(bound.most_characters, bound, pace)


class KeptIds:
    """
    The ids that one call hands to the stores below it as they are: they are its store's keys.

    mem0 finds a user's memories in Qdrant by the user's id, under a key that it gives that meaning
    to. A stand-in there would be another user's. What is kept is a pair, of such a key and an id
    that the call named, or that the store below answered with under that key: the same id anywhere
    else is redacted.

    Args:
        keys: Names that the call's store keeps ids under.
    """

    def __init__(self, keys: frozenset[str]) -> None:
        self._keys = keys
        self._known: set[tuple[str, str]] = set()

    def __repr__(self) -> str:
        """Hide the ids."""
        return "KeptIds(...)"

    def learn(self, value: Any) -> None:
        """Add the ids in *value*, at any depth of dicts and lists."""
        for key, text in self._pairs(value):
            self._known.update({(key, text), (key, text.strip())})

    def keeps(self, key: Any, value: Any) -> bool:
        """Return whether *value* stays as it is under *key*, or under a path that ends in it."""
        if not (isinstance(key, str) and isinstance(value, str)):
            return False
        return (key.rpartition(".")[2], value) in self._known

    def _pairs(self, value: Any) -> Iterator[tuple[str, str]]:
        if _is_mapping(value):
            for key, held in value.items():
                if key in self._keys:
                    yield from ((key, text) for text in _texts(held))
                else:
                    yield from self._pairs(held)
        elif _is_series(value):
            for each in value:
                yield from self._pairs(each)


def _texts(value: Any) -> Iterator[str]:
    """Yield the ids in a condition: one, or several, or such by operator."""
    if isinstance(value, (str, int)):
        yield str(value)
    elif _is_mapping(value):
        yield from _texts([*value.values()])
    elif _is_series(value):
        for each in value:
            yield from _texts(each)


def _is_mapping(value: Any) -> TypeGuard[Mapping[Any, Any]]:
    """Tell whether *value* is a mapping."""
    return isinstance(value, Mapping)


def _is_series(value: Any) -> TypeGuard[Collection[Any]]:
    """Tell whether *value* holds others without a name."""
    return isinstance(value, (list, tuple, set, frozenset))


class Redaction(msgspec.Struct, eq=False):
    """
    The redaction of one call, as adapters use it. Not thread-safe.

    Attributes:
        counts: Number of replacements so far, by entity (``EMAIL_ADDRESS``, ``PERSON``…).
        ids: What stays as it is, since a store hands it to the store below as its key. None:
            nothing does.
        has_kept_ids: Some did, so that what was redacted is not for sinks.
    """

    _redactor: TextRedactor
    _tenant: str | None
    _known: KnownIdentifiers
    _rebuild: Mapping[type, Rebuild]
    _vault: PseudonymStore | None
    _left: int = _UNLIMITED
    _bound: CallBound | None = None
    _pace: Pace | None = None
    counts: dict[str, int] = msgspec.field(default_factory=dict[str, int])
    ids: KeptIds | None = None
    has_kept_ids: bool = False

    def __repr__(self) -> str:
        """Return a constant: the known identifiers are a person's."""
        return "Redaction(...)"

    def end_call(self) -> None:
        """Count no further: what comes now is labels, and items as the store pulls them."""
        self._left, self._pace, self.ids = _UNLIMITED, None, None

    def text(self, text: str, /) -> str:
        """Return *text* with personal data replaced. Free text: messages, queries, documents."""
        return self._redact_text(text, TextRole.TEXT)

    def text_to_embed(self, text: str, /) -> str:
        """Return a redacted *text* as it is to be densely encoded: without what stands for data."""
        return self._redactor.text_to_embed(text)

    def value(self, value: Any, /) -> Any:
        """
        Return a redacted copy of *value*.

        It may be a dict (keys are redacted too), list, tuple, set, str, number, date, UUID, enum,
        bytes, pydantic model or dataclass, at any depth.

        A string that is one identifier as a whole (``"ada@example.com"``) becomes a keyed
        pseudonym, stable within the tenant, rather than a tag: equality filters and dict keys keep
        their meaning and two customers never fall together.
        """
        return self._value_redactor().redact(value)

    def value_of(self, key: str, value: Any, /) -> Any:
        """Return a redacted copy of *value* as `value` does of what a mapping has under *key*."""
        return self._value_redactor().redact_under(key, value)

    def iterate(self, items: Iterable[Any], /) -> Iterator[Any]:
        """Return an iterator that redacts each item as the store pulls it."""
        return map(self._value_redactor().redact, items)

    def label(self, text: str, /) -> str:
        """Return a name or id (collection, key) redacted for sinks: one line; see `value`."""
        # What is known to be clean is one line: see `KnownIdentifiers.mark_clean`.
        if text in self._known.clean:
            return text
        text = self._redact_text(text, TextRole.KEY)
        return text if text.isprintable() else one_line(text)

    def identifier(self, text: str, /) -> str:
        """
        Return an id as it is if a machine made it, else as a `label`: the same in every place.

        Searched as text, one in five hundred UUIDs with a prefix would be taken for an account.
        """
        if _MACHINE_ID.fullmatch(text) and not self._redactor.mentions(text, self._known):
            return text
        return self.label(text)

    def labels(self, texts: tuple[str, ...], /) -> tuple[str, ...]:
        """Return names or ids redacted for sinks, as `label` does one by one."""
        if not texts or self._redactor.are_safe_ids(texts, self._known):
            return texts
        return tuple(map(self.label, texts))

    def content(self, value: Any, /) -> Redacted:
        """Return *value*, redacted already, as JSON types for sinks, bounded in depth and size."""
        return to_content(value)

    def keeps_id(self, key: Any, value: Any, /) -> bool:
        """Return whether *value* stays as it is under *key*: see `KeptIds`."""
        if self.ids is None or not self.ids.keeps(key, value):
            return False
        self.has_kept_ids = True
        return True

    def walker(self, formats: Formats, content: ValueRedactor | None = None) -> ValueRedactor:
        """
        Return a redactor of values that looks into objects of any class.

        Args:
            formats: Finds the formats of types that have one.
            content: Redacts what a format calls content. None: the same.
        """
        return ValueRedactor(
            text=self._value,
            key=self._key,
            texts=self,
            rebuild=self._rebuild,
            formats=formats,
            content=content,
            objects=True,
        )

    def _value_redactor(self) -> ValueRedactor:
        # Not kept as an attribute: the reference cycle would need the garbage collector.
        return ValueRedactor(
            keeps=None if self.ids is None else self.keeps_id,
            text=self._value,
            key=self._key,
            texts=self,
            rebuild=self._rebuild,
        )

    def _value(self, text: str) -> str:
        return self._redact_text(text, TextRole.VALUE)

    def field(self, text: str, label: str, /) -> str:
        """See `ValueTexts`."""
        return self._redact_text(text, TextRole.VALUE, label if len(text) <= FIELD_CHARS else "")

    def number(self, number: Number, label: str, /) -> Number | str:
        """See `ValueTexts`."""
        from .numbers import stand_in, text_of  # noqa: PLC0415 - few records hold such a number

        digits = text_of(number)
        if digits is None:
            return number
        redacted = self._redact_text(digits, TextRole.NUMBER, label)
        return number if redacted == digits else stand_in(number, redacted)

    def labels_of(self, keys: tuple[Any, ...], /) -> Labels:
        """See `ValueTexts`."""
        labels = self._redactor.known_labels.get(keys, _UNKNOWN)
        return self._redactor.labels_of(keys, self._pace) if labels is _UNKNOWN else labels

    def _key(self, text: str) -> str:
        return self._redact_text(text, TextRole.KEY)

    def find_plain(self, texts: Iterator[str], /) -> Collection[str]:
        """
        Return those of *texts* that need no search, if there are very many.

        They do not count as text of the call either.
        """
        most = _UNLIMITED - 1 if self._bound is not None else self._left // TEXT_CHARS
        many = list(islice(texts, most + 1))
        if len(many) > most:
            raise LongRedaction
        if len(many) < MANY_TEXTS:
            return ()
        return self._redactor.find_plain(many, self._known, self._pace)

    def _redact_text(self, text: str, role: TextRole, label: str = "") -> str:
        if type(text) is not str and role is not TextRole.NUMBER:
            text = _exact_text(text)
        self._left -= len(text) + TEXT_CHARS
        if self._left < 0:
            return self._redact_excess(text, role)
        if not label and text in self._known.clean:
            return text
        result = self._redactor.redact(
            text,
            known=self._known,
            tenant=self._tenant,
            role=role,
            vault=self._vault,
            pace=self._pace,
            label=label,
        )
        if result.counts:
            self._count(result.counts)
        return result.text

    def _count(self, counts: Iterable[tuple[str, int]]) -> None:
        for entity, count in counts:
            if entity == _OVERSIZE and self._bound is not None and not self._bound.cuts:
                raise ContentTooLargeError("a text is too long to redact")
            self.counts[entity] = self.counts.get(entity, 0) + count

    def _redact_excess(self, text: str, role: TextRole) -> str:
        """Redact *text* as far as it is within the call's bound, and replace the rest."""
        bound = self._bound
        if bound is None:
            raise LongRedaction
        if not bound.cuts or role is TextRole.KEY:
            raise ContentTooLargeError(f"more than {bound.most_characters:,} characters of text")
        head = cut_text(text, max(0, len(text) + self._left))
        self._left = len(head) + TEXT_CHARS
        redacted = self._redact_text(head, role) if head else ""
        self._left = 0
        self._count([(_OVERSIZE, 1)])
        return redacted + OVERSIZE


def _exact_text(text: Any) -> str:
    """
    Return *text*, of a subclass, as it is: no method of the application's says what it is.

    Raises:
        RedactionError: It is none.
    """
    if not isinstance(text, str):
        kind = code_class(text.__class__).__qualname__
        raise RedactionError(f"expected text, not a {kind}", kind=kind)
    return str.__str__(text)


_OVERSIZE = "OVERSIZE"

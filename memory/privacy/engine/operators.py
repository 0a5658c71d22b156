"""
Operators: the replacements of personal data.

* ``tag``: ``<EMAIL_ADDRESS>``.
* ``pseudonym``: ``<PERSON_4kq7…>``, keyed and stable in a tenant, so that memories stay linkable.
* ``mask``: ``********``, whatever the length.
* ``drop``: nothing in its place.
* ``keep``: no replacement.

No placeholder holds a ``.``, which LangGraph's namespaces forbid, and none is ever detected again.
"""

from __future__ import annotations

import hmac
import re
from collections.abc import Iterable, Mapping
from enum import StrEnum
from functools import partial
from typing import TYPE_CHECKING

from ....telemetry.event.sink_pseudonyms import DIGEST
from ....telemetry.event.subject import SubjectKeys
from ...errors import ConfigurationError
from ..detectors.finding import DIRECT, QUASI
from ..detectors.lazy_pattern import compile_later
from .embedded_text import EmbeddedText

if TYPE_CHECKING:
    from .mentioned_people import MentionedPeople

MASK = "********"
OVERSIZE = "<OVERSIZE>"
_WORD_LIMIT = 512


def cut_text(text: str, limit: int) -> str:
    """Return the head of *text* up to *limit*, cut between two words."""
    head = text[:limit]
    if len(head) == len(text):
        return text
    # Half an identifier would stay visible at the cut.
    from_ = max(0, limit - _WORD_LIMIT)
    space = max(head.rfind(" ", from_), head.rfind("\n", from_))
    return head[: space + 1 if space != -1 else from_]


"""Replacement of text beyond what is searched."""

PSEUDONYM_BYTES = 8
"""Of an address: a key, or a value that is one identifier. Data is found again by it."""

NUMBER_TYPES = "int|float|Decimal"
"""The word before the pseudonym of a number, which stands in parentheses."""

_PERSON = "PERSON"
_FIRST, _LETTERS = "23456789", "abcdefghijklmnopqrstuvwxyz234567"
_LETTER_BITS, _LETTERS_OF_PERSON = 5, 9
_PERSON_BYTES = 6
"""
Of a person in a text: 48 bits. Among 10,000 people of a tenant two share a pseudonym with a chance
of 1 in 5.6 million, among a million 1 in 560; a vault holds those of one customer.
"""

_SEPARATORS = compile_later(r"[\s().\-/]+")


class Operator(StrEnum):
    """The replacement of an entity; see the module."""

    TAG = "tag"
    PSEUDONYM = "pseudonym"
    MASK = "mask"
    DROP = "drop"
    KEEP = "keep"


class Operators:
    """
    The operator of each entity, and the replacements they make.

    Args:
        chosen: Operator by entity; ``*`` stands for every entity that is replaced by default.
        keys: Derives the pseudonym keys of tenants.
        entities: Entities of the user's recognizers, replaced by default.

    Raises:
        ConfigurationError: An entity or an operator does not exist.
    """

    def __init__(
        self, chosen: Mapping[str, str], *, keys: SubjectKeys, entities: Iterable[str] = ()
    ) -> None:
        self._keys = keys
        _refuse_unknown(chosen, DIRECT.union(QUASI, entities))
        default = _operator("*", chosen.get("*", Operator.TAG))
        self._by_entity = dict.fromkeys(DIRECT.union(entities), default)
        self._by_entity |= {
            entity: _operator(entity, name) for entity, name in chosen.items() if entity != "*"
        }
        names = "|".join(sorted(map(re.escape, {*self._by_entity, *DIRECT, *QUASI})))
        pseudonym = rf"<(?:{names})_{DIGEST}>"
        number = rf"(?:{NUMBER_TYPES})\({pseudonym}\)"
        placeholder = rf"{number}|{pseudonym}|<(?:{names}|OVERSIZE)>|\*{{8}}"
        self._placeholder = compile_later(placeholder)
        self._embedded = EmbeddedText(placeholder)

    def is_replaced(self, entity: str) -> bool:
        """Return whether *entity* is replaced."""
        return self.of(entity) is not Operator.KEEP

    def of(self, entity: str) -> Operator:
        """Return the operator of *entity*."""
        return self._by_entity.get(entity, Operator.KEEP)

    def find_placeholders(self, text: str) -> list[tuple[int, int]]:
        """Return the spans of earlier replacements in *text*."""
        if "<" not in text and MASK not in text:
            return []
        return [match.span() for match in self._placeholder.finditer(text)]

    def text_to_embed(self, text: str) -> str:
        """Return *text* as it is to be densely encoded: without earlier replacements."""
        if "<" not in text and MASK not in text:
            return text
        return self._embedded.of(text)

    def replace(
        self,
        found: str,
        entity: str,
        *,
        tenant: str | None,
        people: MentionedPeople | None = None,
        operator: Operator | None = None,
    ) -> str:
        """Return the replacement of *found* by *operator*. None: by that of *entity*."""
        match operator or self._by_entity.get(entity, Operator.TAG):
            case Operator.PSEUDONYM if entity == _PERSON:
                from .mentioned_people import PersonPseudonyms  # noqa: PLC0415 - reads word lists

                return PersonPseudonyms(partial(self._person, tenant), people).of(found)
            case Operator.PSEUDONYM:
                return self.pseudonymize(found, entity, tenant=tenant)
            case Operator.MASK:
                return MASK
            case Operator.DROP:
                return ""
            case _:
                return f"<{entity}>"

    def replace_whole(
        self,
        found: str,
        entity: str,
        *,
        tenant: str | None,
        people: MentionedPeople | None = None,
        operator: Operator | None = None,
    ) -> str:
        """Return the replacement of a value that is nothing but *found*: a pseudonym, or none."""
        operator = operator or self._by_entity.get(entity)
        if operator is Operator.PSEUDONYM or operator is Operator.DROP:
            return self.replace(found, entity, tenant=tenant, people=people, operator=operator)
        return self.pseudonymize(found, entity, tenant=tenant)

    def pseudonymize(
        self,
        found: str,
        entity: str,
        *,
        tenant: str | None,
        people: MentionedPeople | None = None,  # noqa: ARG002 - as `replace` takes it, as the next
        operator: Operator | None = None,  # noqa: ARG002
    ) -> str:
        """Return the pseudonym of *found* in *tenant*: the same for ``ADA`` and ``Ada``."""
        digest = self._digest(_canonical(found, entity), entity, tenant)[:PSEUDONYM_BYTES]
        return f"<{entity}_{digest.hex()}>"

    def _person(self, tenant: str | None, canonical: str) -> str:
        digest = self._digest(canonical, _PERSON, tenant)[:_PERSON_BYTES]
        left, letters = int.from_bytes(digest), ""
        for _each in range(_LETTERS_OF_PERSON):
            letters += _LETTERS[left % len(_LETTERS)]
            left >>= _LETTER_BITS
        return f"<{_PERSON}_{_FIRST[left]}{letters}>"

    def _digest(self, canonical: str, entity: str, tenant: str | None) -> bytes:
        key = self._keys.key(f"pseudonym/{tenant or ''}")
        message = f"{entity}\0{canonical}".encode("utf-8", "surrogatepass")
        return hmac.digest(key, message, "sha256")


def _canonical(found: str, entity: str) -> str:
    if entity in {"PHONE_NUMBER", "CREDIT_CARD", "IBAN_CODE", "US_SSN"}:
        return _SEPARATORS.sub("", found).casefold()
    return " ".join(found.split()).casefold()


def _refuse_unknown(chosen: Iterable[str], known: frozenset[str]) -> None:
    unknown = next((each for each in chosen if each not in known and each != "*"), None)
    if unknown is not None:
        raise ConfigurationError(
            f"{unknown} is not an entity that can have an operator: expected * or one of "
            f"{', '.join(sorted(known))}"
        )


def _operator(entity: str, name: str) -> Operator:
    try:
        return Operator(name)
    except ValueError:
        known = ", ".join(Operator)
        raise ConfigurationError(f"the operator of {entity} must be one of {known}") from None

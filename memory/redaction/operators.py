"""
What stands where personal data stood.

* ``tag``: ``<EMAIL_ADDRESS>``.
* ``pseudonym``: ``<PERSON_3f9a…>``, keyed, stable in a tenant, so that memories stay linkable.
* ``mask``: ``********``, whatever the length.
* ``keep``: the text itself.

No placeholder holds a ``.``, which LangGraph's namespaces forbid, and none is ever detected again.
"""

from __future__ import annotations

import hmac
import re
from collections.abc import Iterable, Mapping
from enum import StrEnum

from ...telemetry.subject import SubjectKeys
from ..errors import ConfigurationError
from .finding import DIRECT, QUASI, UNSEARCHED

MASK = "********"
OVERSIZE = "<OVERSIZE>"
"""Stands where text was longer than what is searched."""

PSEUDONYM_BYTES = 8
PSEUDONYM = re.compile(r"<\w{1,64}_[0-9a-f]{16}>")
"""The shape of a pseudonym of any entity."""

_SEPARATORS = re.compile(r"[\s().\-/]+")


class Operator(StrEnum):
    """What happens to an entity."""

    TAG = "tag"
    PSEUDONYM = "pseudonym"
    MASK = "mask"
    KEEP = "keep"


class Operators:
    """
    Which operator each entity gets.

    Args:
        chosen: Operator by entity; ``*`` stands for every entity that is replaced by default.
        keys: Where tenants' pseudonym keys are derived.
        entities: Entities beyond our own, replaced by default: those of the user's recognizers.

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
        names = "|".join(sorted(map(re.escape, {*self._by_entity, *DIRECT})))
        self._placeholder = re.compile(rf"<(?:(?:{names})(?:_[0-9a-f]{{16}})?|OVERSIZE)>|\*{{8}}")

    def is_replaced(self, entity: str) -> bool:
        """True where *entity* is not kept."""
        return self._by_entity.get(entity, Operator.KEEP) is not Operator.KEEP

    def placeholders(self, text: str) -> list[tuple[int, int]]:
        """Return where in *text* something was replaced before."""
        if "<" not in text and MASK not in text:
            return []
        return [match.span() for match in self._placeholder.finditer(text)]

    def replacement(self, found: str, entity: str, *, tenant: str | None) -> str:
        """Return what stands for *found*."""
        if entity == UNSEARCHED:
            return OVERSIZE
        match self._by_entity.get(entity, Operator.TAG):
            case Operator.PSEUDONYM:
                return self.pseudonym(found, entity, tenant=tenant)
            case Operator.MASK:
                return MASK
            case _:
                return f"<{entity}>"

    def pseudonym(self, found: str, entity: str, *, tenant: str | None) -> str:
        """Return the name that *found* has inside *tenant*: the same for ``ADA`` and ``Ada``."""
        if entity == UNSEARCHED:
            return OVERSIZE
        key = self._keys.key(f"pseudonym/{tenant or ''}")
        message = f"{entity}\0{_canonical(found, entity)}".encode("utf-8", "surrogatepass")
        digest = hmac.digest(key, message, "sha256")[:PSEUDONYM_BYTES]
        return f"<{entity}_{digest.hex()}>"


def _canonical(found: str, entity: str) -> str:
    if entity in {"PHONE_NUMBER", "CREDIT_CARD", "IBAN_CODE", "US_SSN"}:
        return _SEPARATORS.sub("", found).casefold()
    return " ".join(found.split()).casefold()


def _refuse_unknown(chosen: Iterable[str], known: frozenset[str]) -> None:
    unknown = next((each for each in chosen if each not in known and each != "*"), None)
    if unknown is not None:
        raise ConfigurationError(
            f"{unknown} has an operator and is no entity: expected * or one of "
            f"{', '.join(sorted(known))}"
        )


def _operator(entity: str, name: str) -> Operator:
    try:
        return Operator(name)
    except ValueError:
        known = ", ".join(Operator)
        raise ConfigurationError(f"the operator of {entity} must be one of {known}") from None

"""The parts of an event: what features say about a call, each in a struct that shows itself."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Self

import msgspec

_WITH_TEXT = frozenset({str, tuple, list, dict})


class EventPart(msgspec.Struct, frozen=True):
    """
    A feature's statement about one call, as part of the call's event.

    A subclass names itself by its tag: ``class Review(EventPart, tag="acme.review", frozen=True)``,
    in other packages with the package before the dot. Its fields are numbers, codes and redacted
    names of JSON types: never content, never a person. Each sink shows it by one of the methods;
    by default it shows nowhere.

    Attributes:
        is_notice: Whether an event with it is a message of mnemoscope's own, and no operation.
    """

    is_notice: ClassVar[bool] = False

    @property
    def name(self) -> str:
        """The tag, or the name of a class without one."""
        tag = self.__struct_config__.tag
        return tag if isinstance(tag, str) else type(self).__qualname__

    def sentence(self) -> str:
        """Return a one-line description for people, of a notice."""
        return self.name

    def fields(self) -> Mapping[str, Any]:
        """Return the fields of log records and of LangSmith's metadata; those of None are left."""
        return {}

    def attributes(self) -> Mapping[str, Any]:
        """Return the attributes of a span: without a method of its own, ``mnemoscope.<field>``."""
        return {f"mnemoscope.{name}": value for name, value in self.fields().items()}

    def measurements(self) -> Mapping[str, float]:
        """Return what Prometheus adds up in ``mnemoscope_event_part_total``, by a few names."""
        return {}

    def sealed(self) -> Any:
        """Return what the audit trail seals for ever, of JSON types and about nobody, or None."""
        return None

    def detail(self) -> Any:
        """Return what the erasable detail of the audit trail has, of JSON types, or None."""
        return None

    def references(self) -> Sequence[tuple[str, float]]:
        """
        Return names under which the audit trail finds the event again, each with a number.

        They are keyed hashes, are kept as long as the detail, and are looked up by
        `FeatureContext.trail`.
        """
        return ()

    def renamed(self, rename: Callable[[Any], Any]) -> Self:
        """Return the part with *rename* applied to the values of fields that may hold text."""
        found = {name: getattr(self, name) for name in self.__struct_fields__}
        texts = {name: rename(of) for name, of in found.items() if of.__class__ in _WITH_TEXT}
        changed = {name: of for name, of in texts.items() if of != found[name]}
        return msgspec.structs.replace(self, **changed) if changed else self


class CarriedPart(EventPart, tag="carried", frozen=True, kw_only=True):
    """
    A part of another package as files carry it: all that it shows.

    So the process that delivers it needs no code of that package.

    Attributes:
        log_fields: Its fields, as the other attributes are what its methods return.
    """

    of: str
    log_fields: dict[str, Any]
    span_attributes: dict[str, Any]
    measured: dict[str, float]
    seals: Any = None
    details: Any = None
    named: tuple[tuple[str, float], ...] = ()

    @classmethod
    def copy_of(cls, part: EventPart) -> CarriedPart:
        """Return all that *part* shows."""
        return cls(
            of=part.name,
            log_fields=dict(part.fields()),
            span_attributes=dict(part.attributes()),
            measured=dict(part.measurements()),
            seals=part.sealed(),
            details=part.detail(),
            named=tuple(part.references()),
        )

    @property
    def name(self) -> str:
        """The part's own name."""
        return self.of

    def fields(self) -> Mapping[str, Any]:
        """Return the fields that it had."""
        return self.log_fields

    def attributes(self) -> Mapping[str, Any]:
        """Return the attributes that it had."""
        return self.span_attributes

    def measurements(self) -> Mapping[str, float]:
        """Return the measurements that it had."""
        return self.measured

    def sealed(self) -> Any:
        """Return what it sealed."""
        return self.seals

    def detail(self) -> Any:
        """Return its detail."""
        return self.details

    def references(self) -> Sequence[tuple[str, float]]:
        """Return the names that it had."""
        return self.named


class UnknownPart(EventPart, tag="unknown", frozen=True):
    """
    A part that a file has and this release does not know. It shows nowhere, and is carried on.

    Attributes:
        encoded: As it stood in the file, of JSON types.
    """

    encoded: Any

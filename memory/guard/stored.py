"""Statements of what a store keeps, as the calls of its client tell them: places and values."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from datetime import timedelta
from decimal import Decimal
from functools import lru_cache, partial
from hashlib import sha256
from operator import methodcaller
from pathlib import PurePath
from re import Pattern
from typing import Any, Final, NamedTuple, TypeAlias

import orjson

Place: TypeAlias = tuple[Any, ...]
"""Where something stands: a kind, and names of JSON types that lead to it."""

Memo: TypeAlias = dict[Any, Any]
"""What an adapter keeps between the calls of one client, bounded by the adapter."""

ABSENT: Final = "absent"
"""Stands for the value of a place at which nothing was found."""


class Value(NamedTuple):
    """
    A value at a place. Its `repr` shows nothing: it is raw.

    Attributes:
        place: Where.
        value: Of JSON types, or `ABSENT`.
        others: Of a write: the forms in which the store may give it back besides.
        roots: Places whose clearing clears it.
        stays: A later write there may leave it as it was.
        made: When, by its own id, in the unit of `Newest.order`. None: that cannot be told.
        is_partial: A part of it is of a type that cannot be compared.
        is_misplaced: What was found names another place than where it was found.
    """

    place: Place
    value: Any
    others: tuple[Any, ...] = ()
    roots: tuple[Place, ...] = ()
    stays: bool = False
    made: float | None = None
    is_partial: bool = False
    is_misplaced: bool = False

    def __repr__(self) -> str:
        """Return a constant: the value is raw."""
        return "Value(...)"


class Members(NamedTuple):
    """
    Names in a set: those that a write adds, or all that an answer has. Shows none.

    Attributes:
        place: The set.
        names: The names.
        roots: Places whose clearing empties it.
        each: Place below which each name stands, by its number there. None: none ever goes.
    """

    place: Place
    names: tuple[str, ...]
    roots: tuple[Place, ...] = ()
    each: Place | None = None

    @property
    def numbered_at(self) -> Place:
        """The place whose numbers the names have."""
        return self.place if self.each is None else self.each

    def __repr__(self) -> str:
        """Return the number of names."""
        return f"Members({len(self.names)})"


class Newest(NamedTuple):
    """
    The newest that a place has.

    Attributes:
        place: Where.
        order: Grows with each: when it was made, in 100 ns since 2020. -1: there is nothing.
        is_whole: Of a read: it gives all that there is, the newest first.
        roots: Places whose clearing clears it.
    """

    place: Place
    order: float
    is_whole: bool = False
    roots: tuple[Place, ...] = ()


class Statements(NamedTuple):
    """
    All that one call says of what its store keeps.

    Attributes:
        values: Written, or found.
        members: Added to sets, or all that is in them.
        newest: Orders of what was written or found.
        cleared: Places of which nothing is left.
        thinned: Places of which some may be gone, or changed, that cannot be told.
    """

    values: tuple[Value, ...] = ()
    members: tuple[Members, ...] = ()
    newest: tuple[Newest, ...] = ()
    cleared: tuple[Place, ...] = ()
    thinned: tuple[Place, ...] = ()


class Sought(NamedTuple):
    """
    What an answer has to have, if it is there. Its `repr` shows no ids.

    Attributes:
        place: The collection. Empty: it is of the call's customer.
        ids: Of the records. None: all that there are.
    """

    place: Any
    ids: tuple[str, ...] | None = None

    def __repr__(self) -> str:
        """Return the number of ids."""
        return f"Sought({'all' if self.ids is None else len(self.ids)})"


class Removed(NamedTuple):
    """
    What a call removes from a store besides what it writes, or changes in ways it does not list.

    Attributes:
        place: The collection, as `Record.place` or `Method.collection` names it.
        ids: Of the records that are gone.
        is_all: All records there are gone; of the call's customer, where there is no collection.
        is_some: So are others, or they have changed, and it cannot be told which.
    """

    place: Any
    ids: tuple[str, ...] = ()
    is_all: bool = False
    is_some: bool = False

    def __repr__(self) -> str:
        """Return the number of ids."""
        return f"Removed({len(self.ids)} ids)"


class Later(NamedTuple):
    """
    Statements that can be made on any thread, of what was taken while nobody could change it.

    Attributes:
        make: Makes them.
        size_bytes: Of what was taken, where it is a copy.
    """

    make: Callable[[], Statements]
    size_bytes: int = 0

    def __repr__(self) -> str:
        """Return a constant: what was taken is raw."""
        return "Later(...)"


Says: TypeAlias = Callable[[Any, dict[str, Any], Memo], Statements | Later]
"""Returns what a call says, from its result and arguments, in the order of the calls."""

_MOST_KEPT_BYTES: Final = 65_536

# Its own way with dataclasses leaves out fields with an underscore, and shows what is no field.
_OPTIONS: Final = (
    orjson.OPT_SORT_KEYS
    | orjson.OPT_NON_STR_KEYS
    | orjson.OPT_SERIALIZE_NUMPY
    | orjson.OPT_PASSTHROUGH_DATACLASS
)


def canonical(value: Any) -> bytes:
    """
    Return *value* in a form that is the same before it is stored and after it was read.

    What serializers change is left out: the order of keys and of sets, tuples for lists, the class
    of an object.

    Raises:
        TypeError: It is, or has in it, of a type that cannot be looked into.
    """
    return orjson.dumps(value, _plain, _OPTIONS)


class CanonicalForm(NamedTuple):
    """
    A value in its canonical form, as it is now: whoever has the value may change it.

    Attributes:
        form: The form; of a large one its hash. None: it has none.
    """

    form: bytes | str | None

    @property
    def digest(self) -> str | None:
        """A hash of the form. None: there is none."""
        return sha256(self.form).hexdigest() if isinstance(self.form, bytes) else self.form

    def __repr__(self) -> str:
        """Return a constant: the form is raw."""
        return "CanonicalForm(...)"


def kept(value: Any) -> CanonicalForm:
    """Return *value* in its canonical form. One that is in it stays so."""
    if isinstance(value, CanonicalForm):
        return value
    try:
        form = canonical(value)
    except (TypeError, RecursionError):
        return CanonicalForm(None)
    if len(form) > _MOST_KEPT_BYTES:
        return CanonicalForm(sha256(form).hexdigest())
    return CanonicalForm(trimmed(form))


def trimmed(form: bytes) -> bytes:
    """Return a copy of what `canonical` has made: orjson's own has room for ten times as much."""
    return bytes(memoryview(form))


def _sorted(value: Any) -> list[str]:
    return sorted(canonical(each).decode() for each in value)


def _hex(value: Any) -> str:
    return bytes(value).hex()


def _pattern(value: Any) -> Any:
    return value.pattern, value.flags


_PLAIN: tuple[tuple[Any, Callable[[Any], Any]], ...] = (
    ((set, frozenset), _sorted),
    ((bytes, bytearray, memoryview), _hex),
    (BaseException, repr),
    ((PurePath, Decimal, timedelta, complex), str),
    (Pattern, _pattern),
    (Mapping, dict),
)
"""What stands for objects of a type that JSON lacks."""


def _plain(value: Any) -> Any:
    return _maker(value.__class__)(value)


@lru_cache(1_024)
def _maker(kind: Any) -> Callable[[Any], Any]:
    """Return what makes JSON types of the objects of a class."""
    if is_dataclass(kind):
        return partial(_fields, [each.name for each in fields(kind)])
    for kinds, make in _PLAIN:
        if issubclass(kind, kinds):
            return make
    if callable(getattr(kind, "tolist", None)):
        return methodcaller("tolist")
    if hasattr(kind, "__iter__") and not kind.__dictoffset__:
        return list
    if hasattr(kind, "__pydantic_extra__"):
        known: Mapping[str, Any] = getattr(kind, "__pydantic_fields__", {})
        names = frozenset(name for name, each in known.items() if not each.exclude)
        computed = frozenset(getattr(kind, "__pydantic_computed_fields__", ()))
        return partial(_of_model, names, computed)
    slots = [each for base in kind.__mro__ for each in _slots(base)]
    return partial(_attributes, [each for each in slots if each[:1] != "_"], slots)


def _fields(names: Sequence[str], value: Any) -> dict[str, Any]:
    return {each: getattr(value, each, None) for each in names}


def _of_model(names: frozenset[str], computed: frozenset[str], value: Any) -> dict[str, Any]:
    """
    Return what pydantic stores of a model: its fields, and what it was given besides.

    Beside the fields stand values that are computed when they are first wanted. A computed field is
    stored, and where others are allowed it comes back as one of those.
    """
    own: dict[str, Any] = value.__dict__
    others: dict[str, Any] | None = value.__pydantic_extra__
    # By their number, which takes half as long: no more than all of them are looked at then.
    if not others and len(own) == len(names):
        return own
    shown = {name: its for name, its in own.items() if name in names}
    return shown | {name: its for name, its in (others or {}).items() if name not in computed}


def _attributes(public: list[str], slots: list[str], value: Any) -> dict[str, Any]:
    """Return the attributes of an object. Those with an underscore are caches, more often."""
    own: dict[str, Any] = getattr(value, "__dict__", {})
    shown = {name: of for name, of in own.items() if name[:1] != "_"}
    shown |= {name: getattr(value, name, None) for name in public}
    names = () if shown else (*own, *slots)
    if not (shown or names):
        raise TypeError
    return shown or {each: getattr(value, each, None) for each in names}


def _slots(kind: type) -> tuple[str, ...]:
    slots: Any = vars(kind).get("__slots__", ())
    return (slots,) if isinstance(slots, str) else tuple(slots)

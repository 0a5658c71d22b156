"""
What has changed between two contracts of a tool, and how grave that is.

The question is always the same: would what was valid by the earlier contract be understood by the
later one? Of results it is asked the other way round: what the server answers now must be what the
agent was told to expect.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from enum import IntEnum, StrEnum
from typing import Any, Final, cast

from .schemas import TEXTS, Schema, alternatives, canonical, encoded, is_accepted


class Severity(IntEnum):
    """
    The gravity of a change.

    Attributes:
        ALLOW: Callers need not know.
        WARN: A human should look at it.
        BREAKING: The tool is blocked until a human accepts it.
    """

    ALLOW = 0
    WARN = 1
    BREAKING = 2


class ChangeKind(StrEnum):
    """The rows of the severity table, and four for what it does not name."""

    REQUIRED_ADDED = "required parameter added"
    REQUIRED_REMOVED = "required parameter removed"
    TYPE_CHANGED = "type changed"
    ENUM_VALUE_REMOVED = "enum value removed"
    LIKELY_RENAME = "likely renamed"
    OPTIONAL_REMOVED = "optional parameter removed"
    OPTIONAL_ADDED = "optional parameter added"
    ENUM_VALUE_ADDED = "enum value added"
    DESCRIPTION_CHANGED = "description changed"
    CONSTRAINT_TIGHTENED = "constraint tightened"
    LOOSENED = "more is accepted"
    TOOL_REMOVED = "tool removed"
    TOOL_ADDED = "tool added"


_ALLOWED: Final = frozenset(
    {
        *(ChangeKind.OPTIONAL_ADDED, ChangeKind.ENUM_VALUE_ADDED),
        *(ChangeKind.LOOSENED, ChangeKind.TOOL_ADDED),
    }
)
_WARNED: Final = frozenset({ChangeKind.OPTIONAL_REMOVED, ChangeKind.DESCRIPTION_CHANGED})


def severity_of(kind: ChangeKind) -> Severity:
    """Return the severity of a change of what a tool takes: what no row allows is breaking."""
    if kind in _ALLOWED:
        return Severity.ALLOW
    return Severity.WARN if kind in _WARNED else Severity.BREAKING


_TURNED: Final[Mapping[ChangeKind, tuple[ChangeKind, Severity]]] = {
    # By the later contract's results against the earlier contract: what was lost comes as added.
    ChangeKind.REQUIRED_ADDED: (ChangeKind.REQUIRED_REMOVED, Severity.BREAKING),
    ChangeKind.REQUIRED_REMOVED: (ChangeKind.REQUIRED_ADDED, Severity.ALLOW),
    ChangeKind.OPTIONAL_REMOVED: (ChangeKind.OPTIONAL_ADDED, Severity.ALLOW),
    ChangeKind.OPTIONAL_ADDED: (ChangeKind.OPTIONAL_REMOVED, Severity.WARN),
    ChangeKind.ENUM_VALUE_REMOVED: (ChangeKind.ENUM_VALUE_ADDED, Severity.WARN),
    ChangeKind.ENUM_VALUE_ADDED: (ChangeKind.ENUM_VALUE_REMOVED, Severity.ALLOW),
}

_ALIKE: Final = 0.6
_MOST: Final = 20_000
"""Pairs of alternatives that a comparison looks at."""

_WORD: Final = re.compile(r"[A-Z]?[a-z]+|[A-Z]+|\d+")
_UPPER: Final = ("maximum", "exclusiveMaximum", "maxLength", "maxItems", "maxProperties")
_LOWER: Final = ("minimum", "exclusiveMinimum", "minLength", "minItems", "minProperties")
_LOOKED_INTO: Final = frozenset(
    {
        *(*TEXTS, *_UPPER, *_LOWER, "type", "enum", "properties", "required"),
        *("items", "additionalProperties", "$defs", "definitions", "$schema", "$id", "format"),
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """
    One change of a contract.

    Attributes:
        kind: Its row of the table.
        severity: Its gravity.
        path: The parameter, dotted: ``filters.limit``; ``[]`` stands for the items of a list.
        now: Of a likely rename, the new name.
        of_result: Whether it is in the output schema.
    """

    kind: ChangeKind
    severity: Severity
    path: str = ""
    now: str = ""
    of_result: bool = False

    def __str__(self) -> str:
        """Return a line for a human."""
        where = f"{'result ' if self.of_result else ''}{self.path or '(tool)'}"
        return f"{where}: {self.kind}{f' to {self.now}' if self.now else ''}"


def changes_of_arguments(old: Schema, new: Schema) -> list[Change]:
    """Return the changes from input schema *old* to *new*, the gravest first."""
    found = _Comparison(old, new).all()
    return sorted(found, key=lambda each: (-each.severity, each.path, each.kind))


def changes_of_results(old: Schema | None, new: Schema | None) -> list[Change]:
    """Return the changes from output schema *old* to *new*; None: the tool declares none."""
    if old is None or new is None:
        lost = ChangeKind.LOOSENED if old is None else ChangeKind.OPTIONAL_REMOVED
        grave = Severity.ALLOW if old is None else Severity.WARN
        return [] if old is new else [Change(kind=lost, severity=grave, of_result=True)]
    turned: list[Change] = []
    for each in _Comparison(new, old).all():
        kind, severity = _TURNED.get(each.kind, (each.kind, each.severity))
        turned.append(replace(each, kind=kind, severity=severity, of_result=True))
    return sorted(turned, key=lambda each: (-each.severity, each.path, each.kind))


def gravest(changes: Iterable[Change]) -> Severity:
    """Return the severity of the gravest change; `Severity.ALLOW` of none."""
    return max((each.severity for each in changes), default=Severity.ALLOW)


class _Comparison:
    """Compares two schemas, each inside its root."""

    def __init__(self, old: Schema, new: Schema) -> None:
        self._old, self._new = old, new
        self._known: dict[tuple[int, int], list[Change]] = {}
        self._held: list[Any] = []
        self._left = _MOST

    def all(self) -> list[Change]:
        """Return the changes, each once."""
        return list(dict.fromkeys(self._compare(self._old, self._new, "")))

    def _compare(self, old: Any, new: Any, path: str) -> list[Change]:
        key = (id(old), id(new))
        if old is new or key in self._known:
            return self._known.get(key, [])
        if isinstance(old, Mapping) and isinstance(new, Mapping):
            self._known[key] = []  # what a schema that holds itself finds inside
        # Pairs are known by ids, and an object that goes leaves its id to another.
        self._held += (old, new)
        befores, afters = list(alternatives(old, self._old)), list(alternatives(new, self._new))
        self._left -= len(befores) * len(afters)
        # A schema of alternatives in alternatives takes for ever: a server may have made it so.
        if self._left < 0:
            return [_change(ChangeKind.CONSTRAINT_TIGHTENED, path)]
        found = self._union(befores, afters, path)
        if key in self._known:
            self._known[key] = found
        return found

    def _union(self, befores: list[Schema], afters: list[Schema], path: str) -> list[Change]:
        found: list[Change] = []
        met: list[Schema] = []
        for old in befores:
            pairs = [(self._alternative(old, each, path), each) for each in afters]
            # The later alternative that an earlier one lives on in is the one that breaks least.
            changes, closest = min(pairs, key=lambda pair: _distance(pair[0], old, pair[1]))
            found += changes if "enum" not in old else self._enum(old, closest, afters, path)
            met.append(closest)
        if any(each not in met for each in afters):
            found.append(_change(ChangeKind.LOOSENED, path))
        return found

    def _enum(
        self, old: Schema, closest: Schema, afters: list[Schema], path: str
    ) -> Iterator[Change]:
        values = old["enum"]
        # Values are few: each is asked for, in place of a comparison of what says the same.
        refused = [
            each for each in values if not any(is_accepted(each, a, self._new) for a in afters)
        ]
        yield from _texts(old, closest, path)
        if refused:
            removed = "enum" in closest and len(refused) < len(values)
            yield _change(
                ChangeKind.ENUM_VALUE_REMOVED if removed else ChangeKind.TYPE_CHANGED, path
            )
        if "enum" not in closest:
            yield _change(ChangeKind.LOOSENED, path)
        elif set(map(encoded, closest["enum"])) - set(map(encoded, values)):
            yield _change(ChangeKind.ENUM_VALUE_ADDED, path)

    def _alternative(self, old: Schema, new: Schema, path: str) -> list[Change]:
        found = list(_texts(old, new, path))
        before, after = old.get("type"), new.get("type")
        if "enum" in old:
            accepted = any(is_accepted(each, new, self._new) for each in old["enum"])
            return found if accepted else [*found, _change(ChangeKind.TYPE_CHANGED, path)]
        if "enum" in new or not (after is None or before == after or _is_number(before, after)):
            return [*found, _change(ChangeKind.TYPE_CHANGED, path)]
        if before != after:
            found.append(_change(ChangeKind.LOOSENED, path))
        return [*found, *_constraints(old, new, path), *self._inner(old, new, path)]

    def _inner(self, old: Schema, new: Schema, path: str) -> Iterator[Change]:
        yield from self._compare(old.get("items", True), new.get("items", True), f"{path}[]")
        # An object that declares properties and takes others is no map: agents send what is
        # declared. One that declares none is a map, whose keys may be anything.
        rest = old.get("additionalProperties", True)
        is_map = rest is not False and (rest is not True or not old.get("properties"))
        if is_map:
            later = new.get("additionalProperties", True)
            yield from self._compare(rest, later, f"{path}.*")
        yield from self._properties(old, new, path, rest if is_map else None)

    def _properties(self, old: Schema, new: Schema, path: str, rest: Any) -> Iterator[Change]:
        before, after = _properties(old), _properties(new)
        needed, needs = set(old.get("required", ())), set(new.get("required", ()))
        gone, come = set(before) - set(after), {*after, *needs} - {*before, *needed}
        for name in sorted(gone):
            # Before the rows of removals: a rename of an optional parameter must block, too.
            at, now = _join(path, name), _renamed(name, come)
            if now is not None:
                come.discard(now)
                yield _change(ChangeKind.LIKELY_RENAME, at, now)
            elif name in needed:
                yield _change(ChangeKind.REQUIRED_REMOVED, at)
            else:
                yield _change(ChangeKind.OPTIONAL_REMOVED, at)
        for name in sorted(come):
            kind = ChangeKind.REQUIRED_ADDED if name in needs else ChangeKind.OPTIONAL_ADDED
            yield _change(kind, _join(path, name))
            if rest is not None:  # of a map: any key may be there already
                yield from self._compare(rest, after.get(name, True), _join(path, name))
        for name in sorted(set(before) & set(after)):
            at = _join(path, name)
            if (name in needs) is not (name in needed):
                yield _change(
                    ChangeKind.REQUIRED_ADDED if name in needs else ChangeKind.LOOSENED, at
                )
            yield from self._compare(before[name], after[name], at)


def _change(kind: ChangeKind, path: str, now: str = "") -> Change:
    return Change(kind=kind, severity=severity_of(kind), path=path, now=now)


def _properties(schema: Schema) -> Schema:
    return cast("Schema", schema.get("properties") or {})


def _join(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def _distance(changes: list[Change], old: Schema, new: Schema) -> tuple[Severity, bool, int]:
    return gravest(changes), old.get("type") != new.get("type"), len(changes)


def _texts(old: Schema, new: Schema, path: str) -> Iterator[Change]:
    for name in TEXTS:
        if canonical(old.get(name), name) != canonical(new.get(name), name):
            yield _change(ChangeKind.DESCRIPTION_CHANGED, path)


def _renamed(name: str, come: set[str]) -> str | None:
    """Return the added parameter that *name* may be called now, whatever its type."""
    # Not by type: whoever renames a parameter may well mend its type with it.
    likeness, now = max(((_likeness(name, each), each) for each in come), default=(0.0, None))
    return now if likeness >= _ALIKE else None


def _likeness(one: str, other: str) -> float:
    """Return how alike two names are, in [0, 1]: one with all words of the other is."""
    words, others = (set(map(str.lower, _WORD.findall(each))) for each in (one, other))
    if words and others and (words <= others or others <= words):
        return 1.0
    return SequenceMatcher(None, one.lower(), other.lower()).ratio()


def _is_number(old: str | None, new: str | None) -> bool:
    return (old, new) == ("integer", "number")


def _constraints(old: Schema, new: Schema, path: str) -> Iterator[Change]:
    for name in (*_UPPER, *_LOWER):
        before, after = old.get(name), new.get(name)
        if before != after:
            tighter = after is not None and (
                before is None or (after < before if name in _UPPER else after > before)
            )
            yield _change(_KINDS[tighter], path)
    # What is not looked into may refuse anything.
    for name in sorted({*old, *new} - _LOOKED_INTO):
        if canonical(old.get(name)) != canonical(new.get(name)):
            yield _change(_KINDS[name in new], path)


_KINDS: Final = {True: ChangeKind.CONSTRAINT_TIGHTENED, False: ChangeKind.LOOSENED}

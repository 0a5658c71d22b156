"""
The policy of retention: a YAML file of periods by purpose, store, class and status.

    purposes:
      support: 30d
      profile: 2y
      "*": 400d
    stores:
      qdrant: {"*": 90d}
    classes:
      checkpoint: {"*": 7d}
    threads:
      failed: {"*": 30d}
    floors: {billing: 6y, "*": 1d}
    keep_latest: 2
    most_per_customer: 10000

A period that names the purpose wins over one of ``*``; among equals the status of the thread, then
the class, then the store, then all stores. What no period covers is kept.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, TypeAlias

from ...telemetry.text import is_a
from ..errors import ConfigurationError
from ..keep_period import DAY_S, HOUR_S, parse_period

Periods: TypeAlias = Mapping[str, int | None]
"""Seconds by purpose. None: for ever."""

ANY: Final = "*"
KINDS: Final = frozenset({"memory", "point", "item", "thread", "checkpoint"})
STATUSES: Final = frozenset({"done", "failed"})
"""Of threads that may go: what waits for an answer or has something to do never does."""

_MOST = 1_000_000_000
_TABLES: Final = ("purposes", "stores", "classes", "threads", "floors")


@dataclass(frozen=True, slots=True, kw_only=True)
class RetentionPolicy:
    """
    How long records are kept.

    Attributes:
        purposes: For all stores.
        stores: By the store's name in events.
        classes: By kind of record.
        threads: By status of a thread.
        floors: What no record is younger than as it goes, by purpose.
        keep_latest: States of each thread's namespaces that stay, the newest.
        most_per_customer: Memories, points or items of a customer in a store. None: any number.
        quiet_s: Seconds without any event since which a thread is not in use.
        unrecorded_s: Age by the store's own word at which records go whose writes the audit trail
            does not have. None: those stay.
        digest: Of the file, in hexadecimal.
    """

    purposes: Periods = field(default_factory=dict[str, int | None])
    stores: Mapping[str, Periods] = field(default_factory=dict[str, Periods])
    classes: Mapping[str, Periods] = field(default_factory=dict[str, Periods])
    threads: Mapping[str, Periods] = field(default_factory=dict[str, Periods])
    floors: Periods = field(default_factory=dict[str, int | None])
    keep_latest: int = 1
    most_per_customer: int | None = None
    quiet_s: int = HOUR_S
    unrecorded_s: int | None = None
    digest: str = ""

    def keep_s(self, store: str, kind: str, status: str | None, purpose: str | None) -> int | None:
        """Return the seconds that a record is kept. None: for ever, or nothing says how long."""
        tables = (
            self.threads.get(status or "", {}),
            self.classes.get(kind, {}),
            self.stores.get(store, {}),
            self.purposes,
        )
        named = [each for each in (purpose, ANY) if each is not None]
        for name in named:
            for table in tables:
                if name in table:
                    return table[name]
        return None

    def floor_s(self, purpose: str | None) -> int:
        """Return the seconds that a record is kept whatever else is said."""
        floor = self.floors.get(purpose or ANY, self.floors.get(ANY, DAY_S))
        return floor or 0

    def covers_failed(self) -> bool:
        """Return whether something says how long threads are kept whose newest task raised."""
        return "failed" in self.threads


def read_policy(path: Path) -> RetentionPolicy:
    """
    Return the policy in the file *path*.

    Raises:
        ConfigurationError: It cannot be read, or says something that is not understood. One line,
            which quotes no value.
    """
    import yaml  # noqa: PLC0415 - few have such a file

    try:
        text = path.read_text(encoding="utf-8")
        document = yaml.safe_load(text)
    except OSError as exc:
        raise ConfigurationError(
            f"{path}: {(exc.strerror or 'it cannot be read').lower()}"
        ) from None
    except (yaml.YAMLError, UnicodeDecodeError):
        raise ConfigurationError(f"{path}: it is no YAML") from None
    try:
        return _policy(document, hashlib.sha256(text.encode()).hexdigest())
    except ValueError as exc:
        raise ConfigurationError(f"{path}: {exc}") from None


def _policy(document: Any, digest: str) -> RetentionPolicy:
    known = _mapping(document, "the file")
    numbers = ("keep_latest", "most_per_customer")
    unknown = known.keys() - {*_TABLES, *numbers, "quiet", "unrecorded"}
    if unknown:
        names = ", ".join((*_TABLES, *numbers, "quiet", "unrecorded"))
        raise ValueError(f"an unknown key: expected some of {names}")
    if "purposes" not in known:
        raise ValueError("purposes is missing: periods by purpose, at least of '*'")
    quiet_s = parse_period(known.get("quiet", "1h"))
    if quiet_s is None:
        raise ValueError("quiet is no length of time")
    unrecorded = known.get("unrecorded", "keep")
    return RetentionPolicy(
        purposes=_periods(known["purposes"], "purposes"),
        stores=_tables(known, "stores", None),
        classes=_tables(known, "classes", KINDS),
        threads=_tables(known, "threads", STATUSES),
        floors=_periods(known.get("floors", {}), "floors"),
        keep_latest=_number(known, "keep_latest") or 1,
        most_per_customer=_number(known, "most_per_customer"),
        quiet_s=quiet_s,
        unrecorded_s=None if unrecorded == "keep" else parse_period(unrecorded),
        digest=digest,
    )


def _tables(
    known: Mapping[str, Any], name: str, names: frozenset[str] | None
) -> dict[str, Periods]:
    tables = _mapping(known.get(name, {}), name)
    if names is not None and (tables.keys() - names):
        raise ValueError(f"{name}: expected some of {', '.join(sorted(names))}")
    return {each: _periods(table, f"{name}.{each}") for each, table in tables.items()}


def _periods(given: Any, place: str) -> Periods:
    try:
        return {name: parse_period(each) for name, each in _mapping(given, place).items()}
    except ValueError as exc:
        raise ValueError(f"{place}: {exc}") from None


def _mapping(given: Any, place: str) -> Mapping[str, Any]:
    if not (is_a(given, Mapping) and all(isinstance(name, str) for name in given)):
        raise ValueError(f"{place} is no mapping, or a name in it is no text: put it in quotes")
    known: Mapping[str, Any] = given
    return known


def _number(known: Mapping[str, Any], name: str) -> int | None:
    given = known.get(name)
    if given is None:
        return None
    if not isinstance(given, int) or isinstance(given, bool) or not 1 <= given <= _MOST:
        raise ValueError(f"{name} is a whole number from 1 on")
    return given

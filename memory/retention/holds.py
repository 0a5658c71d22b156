"""
Legal holds and pins: what stays whatever its age.

Each is kept twice: in a file, and as sealed events of the audit trail. It holds as long as either
has it, so that neither a lost file nor a trail that retention has shortened ends one. Customers,
threads and memories are keyed hashes in both.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec

from ..errors import ConfigurationError
from ..subject_data.keeping import KeptRecord
from ..subject_data.records import SealedWrite
from .trail import RetentionTrail

HELD, RELEASED = "retention.held", "retention.released"
_CHECK: Final = ("check", "holds")

HOLD_KINDS: Final = ("customer", "run", "memory")


class Hold(msgspec.Struct, frozen=True, kw_only=True):
    """
    One hold or pin.

    Attributes:
        number: Random, to release it by.
        kind: ``customer``, ``run`` (a thread), or ``memory``: a pin.
        reference: The keyed hash that the first log of the trail has of what is held.
        beside: Those that further logs had as it was made, by their names.
        subjects: Of a customer: the pseudonyms that the trail had for them.
        case: The operator's name of the matter. Empty: none.
        store: Of a pin.
    """

    number: str
    kind: str
    reference: str
    subjects: tuple[str, ...] = ()
    case: str = ""
    store: str = ""
    beside: dict[str, str] = msgspec.field(default_factory=dict[str, str])


class HoldBook:
    """
    The holds of an application.

    Args:
        path: The file of holds.
        trail: The audit trail.
    """

    def __init__(self, path: Path, trail: RetentionTrail) -> None:
        self._path = path
        self._trail = trail

    def active(self) -> list[Hold]:
        """
        Return what is held.

        Raises:
            ConfigurationError: The file cannot be read, or is of another trail: then nothing may
                be removed.
            Exception: Whatever the trail raises.
        """
        in_file = self._read()
        released = {each["number"] for each in self._trail.notes(RELEASED)}
        in_trail = (_hold(each) for each in self._trail.notes(HELD))
        held = {each.number: each for each in in_trail if each.number not in released}
        return list((held | {each.number: each for each in in_file}).values())

    def add(self, kind: str, text: str, *, case: str = "", store: str = "") -> Hold:
        """
        Hold a customer, a thread or a memory from now on, and return the hold.

        Raises:
            ConfigurationError: The file cannot be read or written.
            Exception: Whatever the trail raises.
        """
        known, references = self._read(), {**self._trail.references(kind, text)}
        hold = Hold(
            number=secrets.token_hex(4),
            kind=kind,
            reference=references.pop(next(iter(references))),
            beside=references,
            subjects=tuple(self._trail.subjects(text)) if kind == "customer" else (),
            case=case,
            store=store,
        )
        # In the file first: sealed it could not be taken back.
        self._write([*known, hold])
        self._trail.note(HELD, msgspec.to_builtins(hold))
        return hold

    def release(self, chosen: Callable[[Hold], bool]) -> list[Hold]:
        """End the holds that are *chosen*, and return them; raises as `add`."""
        ended = [each for each in self.active() if chosen(each)]
        numbers = {each.number for each in ended}
        for each in ended:
            self._trail.note(RELEASED, {"number": each.number, "case": each.case})
        self._write([each for each in self._read() if each.number not in numbers])
        return ended

    def _read(self) -> list[Hold]:
        try:
            document = json.loads(self._path.read_text("utf-8"))
            holds = [_hold(each) for each in document["holds"]]
        except FileNotFoundError:
            return []
        except (OSError, ValueError, KeyError, TypeError):
            raise ConfigurationError(
                f"{self._path}: the holds in it cannot be read; nothing is removed until they are"
            ) from None
        if document.get("check") != _first(self._trail, *_CHECK):
            raise ConfigurationError(
                f"{self._path}: its holds were made with another audit trail, and nobody can tell "
                "whom they hold: make them anew, and remove the file"
            )
        return holds

    def _write(self, holds: Sequence[Hold]) -> None:
        document = {
            "check": _first(self._trail, *_CHECK),
            "holds": [msgspec.to_builtins(each) for each in holds],
        }
        draft = self._path.with_name(f"{self._path.name}.draft")
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            draft.write_text(json.dumps(document, indent=1), "utf-8")
            draft.replace(self._path)
        except OSError as exc:
            reason = (exc.strerror or "it cannot be written").lower()
            raise ConfigurationError(f"{self._path}: {reason}") from None


def _first(trail: RetentionTrail, kind: str, text: str) -> str:
    """Return the keyed hash that the first log has."""
    return next(iter(trail.references(kind, text).values()))


def _hold(given: Mapping[str, Any]) -> Hold:
    return msgspec.convert(given, Hold)


class HeldRecords:
    """
    Tells of records whether they are held, as of one moment.

    Args:
        holds: What is held.
        trail: The audit trail, for keyed hashes.
    """

    def __init__(self, holds: Sequence[Hold], trail: RetentionTrail) -> None:
        self._by_kind = {kind: [e for e in holds if e.kind == kind] for kind in HOLD_KINDS}
        self._subjects = {subject for each in holds for subject in each.subjects}
        self._customers = {each.reference for each in self._by_kind["customer"]}
        runs = self._by_kind["run"]
        self._runs = {its for each in runs for its in (each.reference, *each.beside.values())}
        self._pins = {(each.store, each.reference) for each in self._by_kind["memory"]}
        self._trail = trail
        first = next(iter(trail.references(*_CHECK))) if holds else ""
        # A log that came later has other names for what is held, which nobody can tell from here.
        self._known = {kind: {first} for kind in HOLD_KINDS}
        for kind, its in self._by_kind.items():
            for name in its[0].beside if its else ():
                if all(name in each.beside for each in its):
                    self._known[kind].add(name)

    def why(self, store: str, record: KeptRecord, writes: Sequence[SealedWrite]) -> str | None:
        """Return why *record* stays. None: nothing holds it."""
        if self._pins and (store, _first(self._trail, "memory", record.id)) in self._pins:
            return "pinned"
        if self._runs and self._is_of_held_run(record, writes):
            return "held: its thread"
        if not self._customers:
            return None
        subjects = {each.subject for each in writes}
        if subjects & self._subjects or self._is_of_held_customer(record):
            return "held: its customer"
        # Whose it is neither the store nor the trail says: it may be the one who is held.
        is_nobodys = record.owner is None and not (subjects - {None})
        known = self._known["customer"]
        is_nobodys |= any(each.subject and each.log not in known for each in writes)
        return "its customer is not known, and one is held" if is_nobodys else None

    def _is_of_held_customer(self, record: KeptRecord) -> bool:
        owner = record.owner
        return owner is not None and _first(self._trail, "customer", owner) in self._customers

    def _is_of_held_run(self, record: KeptRecord, writes: Sequence[SealedWrite]) -> bool:
        if any(each.run in self._runs for each in writes):
            return True
        if record.thread is not None:
            return _first(self._trail, "run", record.thread) in self._runs
        return any(each.run and each.log not in self._known["run"] for each in writes)

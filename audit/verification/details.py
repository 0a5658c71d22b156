"""The check of details: each is the one that its header commits to, and its customer's."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import groupby
from operator import itemgetter
from typing import Any

import orjson

from ...telemetry.text import json_text
from ..database.database import blob
from ..database.errors import UNREADABLE, AuditError
from ..record.sealing import SALT_BYTES, USAGE_COLUMNS, commitment
from ..record.subjects import CUSTOMER
from ..store.snapshot import Moment
from .report import Verification

_DETAILS = """
    SELECT d.seq, d.subject_uid, d.expires_us, d.occurred_us, d.run_ref, d.place_ref, d.dek_id,
      d.salt, d.sealed,
      s.dek_id, s.kind, e.occurred_us, e.store, e.header
    FROM audit_detail d
    LEFT JOIN audit_event e ON e.seq = d.seq
    LEFT JOIN audit_subject s ON s.subject_uid = d.subject_uid
    WHERE d.seq >= ? AND d.seq < ? ORDER BY d.seq
"""
_MEMORIES = """
    SELECT seq, rank, memory_ref, score FROM audit_memory
    WHERE seq >= ? AND seq < ? ORDER BY seq, rank
"""
_USAGES = f"""
    SELECT {", ".join(f"u.{each}" for each in USAGE_COLUMNS)}, e.header
    FROM audit_usage u LEFT JOIN audit_event e ON e.seq = u.seq
    WHERE u.seq >= ? AND u.seq < ? ORDER BY u.seq
"""  # noqa: S608 - columns of ours
END = 2**63 - 1
"""Behind whatever there is."""

_FRACTIONS = frozenset({"time_to_first_token_s", "cost_usd"})
_LABEL_LENGTH = 256


class Details:
    """The check of details, and of the tables that repeat them for queries."""

    def __init__(
        self, moment: Moment, report: Verification, progress: Callable[[int], object]
    ) -> None:
        self._moment = moment
        self._references = moment.references
        self._report = report
        self._progress = progress

    def check(self, start: int, stop: int = END) -> None:
        """Check the details of the events ``[start, stop)``."""
        memories = _Memories(self._moment.stream(_MEMORIES, (start, stop)))
        for row in self._moment.stream(_DETAILS, (start, stop)):
            try:
                wrong = self._wrong_with(row, memories)
            except UNREADABLE:
                wrong = "cannot be read"
            self._report.details += 1
            self._report.valid_details += wrong is None
            if wrong is not None:
                self._report.tampered(f"the detail of event {row[0]} {wrong}")
            self._progress(1)
        for seq in (*memories.strays, *memories.rest()):
            self._report.tampered(f"memories are listed for event {seq}, which has no detail")

    def _wrong_with(self, row: Any, memories: _Memories) -> str | None:
        seq, uid, _expires_us, *_columns, sealed, _dek_id, _kind, _at_us, _store, header = row
        # Taken in any case: the two streams go in step.
        listed = memories.of(seq)
        if header is None:
            return "belongs to no event"
        try:
            plaintext = self._moment.plaintext(seq, uid, blob(sealed))
            detail = None if plaintext is None else orjson.loads(plaintext)
        except (AuditError, ValueError):
            return "does not open: it was changed, or is another customer's"
        if plaintext is None or detail is None:
            # An erasure removes the rows with the key: one that came back was put there.
            return "is still there, though its customer was erased"
        wrong = None
        if not self._fits(row, detail, plaintext):
            wrong = self._wrong_outside(row, detail, plaintext)
        return wrong or self._wrong_inside(row, detail, listed)

    def _fits(self, row: Any, detail: dict[str, Any], plaintext: bytes) -> bool:
        """Return whether a header says what it should, without reading all of it."""
        *columns, salt, _sealed, dek_id, kind, at_us, store, header = row
        # No text in JSON has a quote in it that is not escaped.
        says = (
            b'"detail_commit":"%b"' % commitment(salt, plaintext).encode(),
            b'"n_subjects":%d,' % (kind == CUSTOMER),
        )
        return (
            len(salt) == SALT_BYTES
            and all(each in blob(header) for each in says)
            and columns[3:] == self._columns(at_us, store, detail, dek_id)
        )

    def _wrong_outside(self, row: Any, detail: dict[str, Any], plaintext: bytes) -> str | None:
        *columns, salt, _sealed, dek_id, kind, _at_us, _store, header = row
        try:
            known = orjson.loads(blob(header))
        except ValueError:
            return "has a header that cannot be read"
        if (kind == CUSTOMER) != bool(known["n_subjects"]):
            return "names a customer where its header names none, or the reverse"
        expected = self._columns(known["occurred_at"], known["store"], detail, dek_id)
        if [_plain(each) for each in columns[3:]] != expected:
            return "is filed in another place than it belongs"
        # An HMAC takes a key with zeros behind it for the same key.
        is_salt = len(_plain(salt)) == SALT_BYTES
        is_sealed = is_salt and commitment(_plain(salt), plaintext) == known["detail_commit"]
        return None if is_sealed else "is not what was sealed"

    def _wrong_inside(self, row: Any, detail: dict[str, Any], listed: list[Any]) -> str | None:
        memory, (seq, uid, expires_us, *_rest) = self._references.memory, row
        owned = detail.get("owner"), detail.get("expires_us")
        # Details of before have no owner inside.
        if seq >= self._moment.sealed_from and owned != (uid, expires_us):
            return "is another customer's, or is kept for another time, than was sealed"
        known = (*detail["memories"], *detail.get("labels", ()))
        expected = [(rank, memory(each), score) for rank, each, score in known]
        # Compared by == a zero and a negative zero are one, so that a flipped sign bit would pass.
        same = listed == expected and (not listed or _zeros(listed) == _zeros(expected))
        return None if same else "has other memories than are listed for it"

    def _columns(
        self, at_us: int, store: str, detail: dict[str, Any], dek_id: str | None
    ) -> list[Any]:
        """Return what ``occurred_us``, ``run_ref``, ``place_ref`` and ``dek_id`` should be."""
        references = self._references
        place = references.place(f"{store}\n{detail['collection'] or ''}")
        run = None if detail["run"] is None else references.run(detail["run"])
        return [at_us, run, place, dek_id]

    def check_usages(self, start: int, stop: int = END) -> int:
        """Check what the model calls of ``[start, stop)`` consumed, and return how many."""
        found = 0
        for *columns, header in self._moment.stream(_USAGES, (start, stop)):
            found += 1
            if header is None or not _is_usage(blob(header), columns):
                self._report.tampered(f"the usage of event {columns[0]} is not what was sealed")
        return found


class _Memories:
    """The listed memories, event by event, in step with the details."""

    def __init__(self, rows: Iterator[Any]) -> None:
        self._groups = groupby(rows, key=itemgetter(0))
        self._next = self._read()
        self.strays: list[int] = []

    def _read(self) -> tuple[int, list[tuple[Any, ...]]] | None:
        for seq, group in self._groups:
            return seq, [(rank, blob(ref), score) for _seq, rank, ref, score in group]
        return None

    def of(self, seq: int) -> list[tuple[Any, ...]]:
        """Return the memories that are listed for an event; events come in order."""
        while self._next is not None and self._next[0] < seq:
            self.strays.append(self._next[0])
            self._next = self._read()
        if self._next is None or self._next[0] != seq:
            return []
        _, listed = self._next
        self._next = self._read()
        return listed

    def rest(self) -> Iterator[int]:
        """Yield the events behind the last detail."""
        while self._next is not None:
            yield self._next[0]
            self._next = self._read()


def _zeros(listed: list[Any]) -> list[str]:
    """Return the zeros among the scores: one that is negative is equal to one that is not."""
    return [repr(score) for *_rest, score in listed if score == 0]


def _plain(value: Any) -> Any:
    # PostgreSQL's driver may give a view.
    return value if value is None or isinstance(value, (int, str)) else bytes(value)


def _is_usage(header: bytes, columns: list[Any]) -> bool:
    try:
        sealed, listed = _usage(header, columns[0]), _normal(columns)
    except (ValueError, TypeError):
        return False
    # As for scores: a zero may be negative.
    return sealed == listed and repr(sealed) == repr(listed)


def _usage(header: bytes, seq: int) -> list[Any] | None:
    sealed = orjson.loads(blob(header)).get("usage")
    if sealed is None:
        return None
    values: dict[str, Any] = {**sealed, "seq": seq}
    return [
        _fraction(values[each]) if each in _FRACTIONS else values[each] for each in USAGE_COLUMNS
    ]


def _fraction(text: Any) -> float | None:
    return None if text is None else float(text)


def _normal(columns: list[Any]) -> list[Any]:
    values = dict(zip(USAGE_COLUMNS, columns, strict=True))
    labels = orjson.loads(values["namespace"])
    # Text that reads the same is not the same text: a space more is a change.
    if json_text(labels) != values["namespace"]:
        raise ValueError("a namespace is not as it is written")
    return list((values | {"namespace": [each[:_LABEL_LENGTH] for each in labels]}).values())

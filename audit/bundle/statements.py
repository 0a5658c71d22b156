"""
The lines that a bundle's files have of one sealed event.

They are derived from the sealed event alone, so that `verify`, in which this travels to the
customer, writes them again and compares. Hence nothing but Python's own library, from 3.8.
"""

from __future__ import annotations

import csv
import io
import json
import re
from datetime import datetime, timedelta
from functools import lru_cache

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

RECALLS = frozenset({"recall", "resume"})
_BEFORE = (
    *("occurred_at", "purpose", "agent", "feature", "store", "collection", "operation", "status"),
)
_SEEN = ("rank", "memory_id", "score")
ACCESS_COLUMNS = (*_BEFORE, *_SEEN, "seq")

_EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001 - UTC, no zones
_is_formula = re.compile(
    # A sign that begins one, as it is or in a form that a spreadsheet takes for it, behind what it
    # leaves out; or what moves on to another cell.
    "[\\s\\x00-\\x20\ufeff\u00ad\u200b-\u200f\u2028-\u202f\u2060]*"
    "[=+\\-@|%\uff1d\uff0b\uff0d\uff20\ufe66\ufe62\ufe63\ufe6b\u2212\\t\\r\\n]"
).match


@lru_cache(4_096)  # a batch of events was recorded at one moment
def utc(micros: int) -> str:
    """Return microseconds since 1970 as ISO 8601 in UTC."""
    try:
        moment = _EPOCH + timedelta(microseconds=micros)
    except OverflowError:
        moment = datetime.max  # noqa: DTZ901 - likewise
    # Always with six digits: otherwise a whole second is written shorter, and texts no longer sort
    # by time.
    return moment.isoformat(timespec="microseconds") + "Z"


def event_document(
    header: dict[str, Any],
    detail: dict[str, Any] | None,
    withheld: str | None,
    stated: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """
    Return a line of events.jsonl.

    Every key is always there, null where nothing is known, but for ``deletes``: a deletion has it.
    *stated* is what the event itself does not say: ``legal_basis``, ``retention_until`` and
    ``recipients``. Bundles of the first specification have none.
    """
    known = detail or {}
    memories: list[Any] = known.get("memories") or []
    return {
        "seq": header["seq"],
        "event_id": header["event_id"],
        "occurred_at": utc(header["occurred_at"]),
        "recorded_at": utc(header["recorded_at"]),
        **{name: header.get(name) for name in _FROM_HEADER},
        # Older bundles do not have it, and are still to be written again to the byte.
        **({"deletes": header["deletes"]} if "deletes" in header else {}),
        "class": header["op_class"],
        "collection": known.get("collection"),
        "run": known.get("run"),
        "memories": [{"rank": r, "memory_id": i, "score": s} for r, i, s in memories],
        "content": known.get("content"),
        "withheld": withheld,
        **({} if stated is None else _further(header, known, stated)),
    }


def _further(
    header: dict[str, Any], detail: dict[str, Any], stated: dict[str, Any]
) -> dict[str, Any]:
    origin, source = _origin(header["op_class"], detail.get("content"))
    return {
        "origin": origin,
        "source": source,
        "actor_role": "system" if header.get("journal") == "replayed" else "agent",
        "legal_basis": stated["legal_basis"],
        "retention_until": stated["retention_until"],
        "recipients": stated["recipients"],
    }


_BY_ROLE = {
    "user": ("provided", "user_message"),
    "human": ("provided", "user_message"),
    "tool": ("observed", "tool"),
    "function": ("observed", "tool"),
    "assistant": ("inferred", "agent"),
    "ai": ("inferred", "agent"),
}
"""Origin (GDPR Art. 20, WP 242) and source of a message, by who wrote it."""


def _origin(op_class: str, content: Any) -> tuple[str | None, dict[str, Any] | None]:
    """Return whence a write's content came, as far as it says; all else is the use of a service."""
    if op_class != "remember":
        return "observed", None
    messages: Any = content.get("messages") if content.__class__ is dict else None
    if messages.__class__ is str:  # of a user, to whoever takes one without a role
        messages = [{"role": "user"}]
    listed: list[Any] = messages if messages.__class__ is list else []
    roles = [each.get("role") for each in listed if each.__class__ is dict]
    # What the customer said outweighs what was answered: the memory is made of it.
    for role, (origin, kind) in _BY_ROLE.items():
        if role in roles:
            return origin, {"kind": kind}
    return None, None


_FROM_HEADER = (
    *("kind", "operation", "store", "method", "status", "neutral", "late", "journal", "nested"),
    *("error", "duration_us", "agent", "feature", "purpose", "hits", "redactions", "usage"),
    *("trace_id", "data"),
)


def event_line(document: dict[str, Any]) -> bytes:
    """Return *document* as it stands in events.jsonl."""
    # Neither sorted nor by orjson: verify writes the same line with Python's own library, to the
    # byte.
    return _ENCODER.encode(document).encode("utf-8", "replace") + b"\n"


_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))


def access_lines(document: dict[str, Any]) -> bytes:
    """Return the lines of accesses.csv: one for each memory that was seen, or one for none."""
    if document["class"] not in RECALLS or ("origin" in document and document["nested"]):
        return b""  # what is inside another was looked up once; older bundles list it twice
    before = [document[name] for name in _BEFORE]
    memories = [[each[name] for name in _SEEN] for each in document["memories"]]
    return csv_lines([[*before, *seen, document["seq"]] for seen in memories or [[None] * 3]])


def csv_lines(rows: list[list[Any]]) -> bytes:
    """Return *rows* as CSV (RFC 4180). What a spreadsheet would run as a formula is quoted."""
    text = io.StringIO()
    csv.writer(text).writerows(
        # One comprehension: a call for each cell takes longer than all else that is done for it.
        [f"'{cell}" if cell.__class__ is str and _is_formula(cell) else cell for cell in row]
        for row in rows
    )
    return text.getvalue().encode("utf-8", "replace")

"""The memories in mem0's answers and writes, as origin labels and sifts them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ...memory.guard.operation import Arguments, Keep, Record
from ...memory.guard.stored import Memo, Place, Removed, Sought, Statements, Value
from ..toolkit.type_guards import is_dict, is_list
from .scoping import with_options

_PAGE = frozenset({"results", "count", "next", "previous"})
"""Keys of an answer that hold no content besides its memories."""

_OF_CHANGE = frozenset(
    {"id", "memory_id", "user_id", "event", "created_at", "updated_at", "is_deleted"}
    | {"actor_id", "role"}
)
"""Keys of a change in a memory's history that hold no content."""


def sift_list(answer: Any, _arguments: Arguments, keep: Keep) -> Any:
    """Sift the answer of ``search`` and ``get_all``."""
    rows = answer.get("results") if is_dict(answer) else answer
    if not is_list(rows):
        return answer if keep(_unknown(answer)) else {"results": []}
    kept = [each for each in rows if keep(_memory(each))]
    if not is_dict(answer):
        return answer if len(kept) == len(rows) else kept
    others = {
        name: value
        for name, value in answer.items()
        # The service may add fields with text in them, which no label vouches for.
        if name in _PAGE or not value or keep(_unknown(value))
    }
    is_whole = len(kept) == len(rows) and len(others) == len(answer)
    return answer if is_whole else {**others, "results": kept}


def sift_one(answer: Any, _arguments: Arguments, keep: Keep) -> Any:
    """Sift the answer of ``get``: a memory or None."""
    return answer if answer is None or keep(_memory(answer)) else None


def sift_history(answer: Any, arguments: Arguments, keep: Keep) -> Any:
    """Sift the answer of ``history``: changes of one memory."""
    if not is_list(answer):
        return answer if keep(_unknown(answer)) else []
    kept = [each for each in answer if keep(_change(each, arguments.get("memory_id")))]
    return answer if len(kept) == len(answer) else kept


def added(answer: Any, arguments: Arguments) -> Iterator[Record]:
    """Yield the memories in the answer of ``add``."""
    rows = answer.get("results") if is_dict(answer) else answer
    given = with_options(arguments)
    said = [*_metadata(given)]
    if (kind := given.get("memory_type")) is not None:
        said.append(("metadata.memory_type", kind))  # mem0 keeps it there
    for row in rows if is_list(rows) else ():
        if is_dict(row) and isinstance(id_ := row.get("id"), str):
            inner = row.get("data")
            text = row.get("memory", inner.get("memory") if is_dict(inner) else None)
            if isinstance(text, str):
                is_derived = given.get("infer") is not False
                yield Record(id_, (("memory", text), *said), is_derived=is_derived)


def updated(_answer: Any, arguments: Arguments) -> Iterator[Record]:
    """Yield what ``update`` and ``batch_update`` write of memories."""
    records = arguments.get("memories", [with_options(arguments)])
    for each in records if is_list(records) else ():
        if is_dict(each) and isinstance(id_ := each.get("memory_id"), str):
            text = each.get("text", each.get("data"))
            texts = (("memory", text),) if isinstance(text, str) else ()
            yield Record(id_, (*texts, *_metadata(each)))


def changes(answer: Any, arguments: Arguments, _memo: Memo) -> Statements:
    """Return the texts in the answer of ``history``: each was the memory's own once."""
    values: list[Value] = []
    for each in filter(is_dict, answer if is_list(answer) else ()):
        memory_id = str(each.get("memory_id", arguments.get("memory_id")))
        place: Place = ("part", "mem0", "", memory_id, "memory")
        texts = (each.get("old_memory"), each.get("new_memory"))
        values += [Value(place, text, stays=True) for text in texts if text is not None]
    return Statements(tuple(values))


def removed(arguments: Arguments) -> Removed:
    """Return what ``delete`` removes."""
    return Removed("", (str(arguments.get("memory_id")),))


def all_removed(arguments: Arguments) -> Removed:
    """Return what ``delete_all`` and ``reset`` remove: of one customer, or more than is told."""
    given = with_options(arguments)
    is_one = isinstance(given.get("user_id"), str) and not (given.keys() & {"agent_id", "run_id"})
    return Removed("", is_all=is_one or not given, is_some=not is_one)


def expires(arguments: Arguments) -> Removed | None:
    """Return that memories may vanish by themselves, where ``add`` says until when they last."""
    has_end = with_options(arguments).get("expiration_date") is not None
    return Removed("", is_some=True) if has_end else None


def sought_one(_answer: Any, arguments: Arguments) -> Sought:
    """Return the memory that ``get`` is to find."""
    return Sought("", (str(arguments.get("memory_id")),))


def sought_all(answer: Any, arguments: Arguments) -> Sought | None:
    """Return that ``get_all`` has all of a user's, where it names them alone and is not full."""
    given = with_options(arguments)
    filters: dict[str, Any] = given.get("filters") or {}
    owner = filters or given
    rows = answer.get("results") if is_dict(answer) else answer
    named = filters.keys() if filters else given.keys() & {"user_id", "agent_id", "run_id"}
    is_full = not is_list(rows) or len(rows) >= (given.get("top_k") or _MOST_LISTED)
    is_one = isinstance(owner.get("user_id"), str)
    return Sought("") if is_one and set(named) == {"user_id"} and not is_full else None


_MOST_LISTED = 20
"""Memories that ``get_all`` answers with unless it is asked for more."""


def _memory(row: Any) -> Record:
    if not is_dict(row):
        return _unknown(row)
    return Record(str(row.get("id")), (("memory", row.get("memory")), *_metadata(row)))


def _change(row: Any, memory_id: Any) -> Record:
    if not is_dict(row):
        return _unknown(row)
    texts = [("memory", row.get(each)) for each in ("old_memory", "new_memory")]
    others = [(name, row[name]) for name in row.keys() - _OF_CHANGE - {"old_memory", "new_memory"}]
    said = [each for each in (*texts, *others) if each[1] is not None]
    return Record(str(row.get("memory_id", memory_id)), tuple(said))


def _metadata(given: dict[Any, Any]) -> Iterator[tuple[str, Any]]:
    metadata = given.get("metadata")
    for name, value in metadata.items() if is_dict(metadata) else ():
        yield f"metadata.{name}", value


def _unknown(value: Any) -> Record:
    return Record("", (("answer", value),))

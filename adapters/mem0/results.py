"""Summaries of mem0's results, and neutral results for a store that does not answer."""

from __future__ import annotations

from typing import Any

from ...memory.guard.operation import Arguments, Summary
from ..toolkit.type_guards import is_dict, is_list


def summarize_list(result: Any, _arguments: Arguments) -> Summary:
    """Read the answer of ``search``, ``get_all``, ``add`` and ``users``, in place."""
    rows: Any = result.get("results") if is_dict(result) else result
    if not is_list(rows):
        return Summary()
    records = [each for each in rows if is_dict(each)]
    # Lists first: a tuple of a generator costs twice as much, in every recall.
    scores = tuple([at for each in records if isinstance(at := each.get("score"), float)])
    return Summary(
        hits=len(rows),
        memory_ids=tuple([id_ for each in records if isinstance(id_ := each.get("id"), str)]),
        scores=scores if len(scores) == len(records) else (),
        owners=tuple([whose for each in records if isinstance(whose := each.get("user_id"), str)]),
    )


def summarize_one(result: Any, _arguments: Arguments) -> Summary:
    """Read the answer of ``get``: a memory or None."""
    if not is_dict(result):
        return Summary(hits=0)
    records = [result]
    return Summary(hits=1, memory_ids=_texts(records, "id"), owners=_texts(records, "user_id"))


def summarize_history(result: Any, arguments: Arguments) -> Summary:
    """Read the answer of ``history``: changes of one memory."""
    hits = len(result) if is_list(result) else None
    return Summary(hits=hits, memory_ids=_texts([arguments], "memory_id"))


def summarize_change(_result: Any, arguments: Arguments) -> Summary:
    """Return the ids of the memories to be changed."""
    records = arguments.get("memories", [arguments])
    if not is_list(records):
        return Summary()
    return Summary(memory_ids=_texts([each for each in records if is_dict(each)], "memory_id"))


def _texts(records: list[dict[Any, Any]], key: str) -> tuple[str, ...]:
    return tuple([value for each in records if isinstance(value := each.get(key), str)])


def empty_page(_arguments: Arguments) -> dict[str, Any]:
    """Return a last page without memories."""
    return {"count": 0, "next": None, "previous": None, "results": []}


def empty_results(_arguments: Arguments) -> dict[str, Any]:
    """Return an answer without memories."""
    return {"results": []}


def no_memory(_arguments: Arguments) -> None:
    """Return ``get``'s result for a memory that does not exist."""
    return


def empty_history(_arguments: Arguments) -> list[Any]:
    """Return the history of a memory that was never changed."""
    return []


def unconfirmed(_arguments: Arguments) -> dict[str, str]:
    """Return an answer that does not claim success."""
    return {"message": "Not confirmed: the memory store did not answer."}


def failed_profile(arguments: Arguments) -> dict[str, Any]:
    """Return a profile that could not be made, in the service's own words."""
    return {
        "profile": {},
        "status": "failed",
        "entity_type": "user",
        "entity_id": arguments.get("entity_id"),
    }

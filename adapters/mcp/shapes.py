"""The shapes of answers: how many results, how large, of which fields; and what is unusual."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Iterator, Mapping
from statistics import fmean, pstdev
from typing import Any, Final

from ..toolkit.type_guards import is_dict, is_list

_WINDOW: Final = 50
_ENOUGH: Final = 10
_USUAL: Final = 5
_DEVIATIONS: Final = 4.0
_LEAST_SHARE: Final = 0.1
_BAND: Final = (0.5, 2.0)


def answer_of(result: Any) -> Any:
    """Return what a tool has answered, as data: structured, or else its texts, JSON or not."""
    # Most servers declare no output schema, and answer with JSON in a text, or a text a result.
    if result.structured_content is not None:
        return result.structured_content
    texts = [getattr(each, "text", each.type) for each in result.content]
    return _parsed(texts[0]) if len(texts) == 1 else texts


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def results_in(structured: Any) -> int | None:
    """Return the number of results in a structured answer. None: it lists nothing."""
    if is_list(structured):
        return len(structured)
    if not is_dict(structured):
        return None
    lists = [len(each) for each in structured.values() if is_list(each)]
    return max(lists, default=None)


def shape_of(structured: Any) -> dict[str, Any]:
    """Return the shape of an answer: ``results``, ``size_bytes``, and ``fields`` with types."""
    return {
        "results": results_in(structured),
        "size_bytes": len(json.dumps(structured, default=str)),
        "fields": sorted(set(_fields(structured))),
    }


def shape_faults(expected: Mapping[str, Any], found: Mapping[str, Any]) -> list[str]:
    """Return how a canary's answer differs from the recorded one, a sentence each."""
    faults: list[str] = []
    before, after = expected["results"], found["results"]
    if before and (not after or not _BAND[0] <= after / before <= _BAND[1]):
        faults.append(f"{before} results were recorded, {after or 0} were found")
    lost = set(expected["fields"]) - set(found["fields"])
    if lost:
        faults.append(f"fields are missing: {', '.join(sorted(lost))}")
    return faults


class RollingShapes:
    """The sizes of a tool's latest answers."""

    def __init__(self) -> None:
        self._results: deque[int] = deque(maxlen=_WINDOW)
        self._sizes: deque[int] = deque(maxlen=_WINDOW)

    def add(self, structured: Any) -> str | None:
        """Take an answer; return ``emptied`` or ``resized`` if it is unusual, else None."""
        results, size = results_in(structured), len(json.dumps(structured, default=str))
        signal = None
        if results == 0 and self._enough(self._results) and fmean(self._results) >= _USUAL:
            signal = "emptied"
        elif self._enough(self._sizes):
            mean = fmean(self._sizes)
            # Answers that are all alike have no deviation, and any other would be a signal.
            spread = max(pstdev(self._sizes), mean * _LEAST_SHARE)
            signal = "resized" if abs(size - mean) > _DEVIATIONS * spread else None
        if results is not None:
            self._results.append(results)
        self._sizes.append(size)
        return signal

    @staticmethod
    def _enough(seen: deque[int]) -> bool:
        return len(seen) >= _ENOUGH


def _fields(value: Any, path: str = "") -> Iterator[str]:
    if is_dict(value):
        for name, each in value.items():
            yield from _fields(each, f"{path}.{name}" if path else str(name))
    elif is_list(value):
        for each in value[:_WINDOW]:
            yield from _fields(each, f"{path}[]")
    else:
        # The type with the name: a score that became a text is another answer.
        yield f"{path}: {type(value).__name__}"

"""Records in the arguments and answers of a collection."""

from __future__ import annotations

from itertools import zip_longest
from typing import Any

from ...memory.api import Arguments, Keep, Redaction, Summary
from ...memory.errors import RedactionError
from ..toolkit.owned_records import OwnedRecords, VectorRow, many, redacted_texts
from ..toolkit.type_guards import is_list

_VERBATIM = frozenset(
    {"embeddings", "query_embeddings", "n_results", "limit", "offset", "include", "read_level"}
    | {"name", "configuration"}
)
_WRITTEN = ("ids", "documents", "metadatas")
_COLUMNS = (*_WRITTEN, "distances", "embeddings", "uris", "data")


class CollectionRecords(OwnedRecords):
    """Reads and redacts calls of one collection."""

    def written(self, arguments: Arguments, /) -> list[VectorRow]:
        """See `OwnedRecords.written`."""
        if not arguments.keys() & {"documents", "metadatas", "embeddings", "uris"}:
            return []  # ids alone name what is read or deleted
        return [
            VectorRow(*each) for each in zip_longest(*(many(arguments.get(x)) for x in _WRITTEN))
        ]

    def _redacted(self, name: str, value: Any, redaction: Redaction) -> Any:
        if value is None or name in _VERBATIM:
            return value
        match name:
            case "ids" | "documents" | "query_texts" | "where_document":
                replace = redaction.identifier if name == "ids" else redaction.text
                return redacted_texts(value, redaction, replace)
            case "metadatas":
                redacted = [self.metadata(each, redaction) for each in many(value)]
                return redacted if isinstance(value, (list, tuple)) else redacted[0]
            case "where":
                return self.filter(value, redaction)
            case "images" | "query_images":
                raise RedactionError("an image cannot be redacted", kind="image")
            case _:
                return redaction.value(value)

    def answered(self, answer: Any, _arguments: Arguments) -> Summary:
        """Return the summary of an answer; its scores are distances."""
        found = [each for group in _groups(answer) for each in group]
        scores = (each["distances"] for each in found if "distances" in each)
        return self.summary([*map(_row, found)], tuple(scores))

    def sift(self, answer: Any, _arguments: Arguments, keep: Keep) -> Any:
        """Return *answer* with the records that are kept; the same object where all are."""
        groups = _groups(answer)
        kept = [[x for x in group if keep(_row(x).record)] for group in groups]
        if [*map(len, kept)] == [*map(len, groups)]:
            return answer
        sifted = dict(answer)
        for name in (name for name in _COLUMNS if answer.get(name) is not None):
            lists = [[each[name] for each in group] for group in kept]
            sifted[name] = lists if is_list(answer["ids"][0]) else lists[0]
        return sifted


def _row(columns: dict[str, Any]) -> VectorRow:
    return VectorRow(*map(columns.get, _WRITTEN))


def _groups(answer: Any) -> list[list[dict[str, Any]]]:
    """Return the records of an answer, by column: a query has a group for each text."""
    columns = {name: answer[name] for name in _COLUMNS if answer.get(name) is not None}
    is_query = bool(answer["ids"]) and is_list(answer["ids"][0])
    groups = zip(*columns.values(), strict=True) if is_query else [columns.values()]
    return [[dict(zip(columns, row, strict=True)) for row in zip(*x, strict=True)] for x in groups]

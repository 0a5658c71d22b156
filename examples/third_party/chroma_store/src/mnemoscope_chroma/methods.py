"""The methods table of a collection."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any

from mnemoscope.memory.api import (
    Arguments,
    Deletes,
    Method,
    Redaction,
    Scope,
    ScopeError,
    Summary,
    forget,
    method_table,
    recall,
    remember,
)

NOT_GUARDED = {
    **dict.fromkeys(("fork", "fork_count"), "copies what is stored, redacted already"),
    **dict.fromkeys(
        ("attach_function", "get_attached_function", "detach_function"),
        "an operator's business: functions that run in the server",
    ),
    **dict.fromkeys(("get_indexing_status", "get_model"), "tells of the collection, no content"),
}
RAISES = {"modify": "an application must not believe in a name or a setting that is not there"}

_VERBATIM = frozenset(
    {"ids", "embeddings", "query_embeddings", "n_results", "limit", "offset", "include"}
    | {"read_level", "name", "configuration"}
)
_TEXTS = frozenset({"documents", "query_texts", "where_document"})


@lru_cache(maxsize=32)
def table(owner_key: str) -> dict[str, Method]:
    """Return the methods of a collection whose documents say under *owner_key* whose they are."""
    owner = Owner(owner_key)
    told: dict[str, Any] = {"redact": owner.redact, "scope": owner.scope, "content": _content}
    write: dict[str, Any] = {**told, "needs_owner": True, "confine": owner.check}
    read: dict[str, Any] = {"summary": owner.summary, "only": owner.only}
    find: dict[str, Any] = {**told, **read, "needs_owner": True}
    return method_table(
        remember("add", "create_memory", neutral=lambda _: None, **write),
        remember("upsert", neutral=lambda _: None, **write),
        remember("update", "update_memory", neutral=lambda _: None, **write),
        recall("query", neutral=_empty(lambda: [[]], "distances"), confine=owner.narrow, **find),
        recall("get", neutral=_empty(list), confine=owner.narrow, **find),
        recall("peek", neutral=_empty(list), **find),
        recall("search", neutral=_empty(lambda: [[]], "distances"), **told),
        recall("count", neutral=lambda _: 0, **told),
        forget("delete", deletes=Deletes.IDS, needs_owner=True, confine=owner.narrow, **told),
        remember("modify", "update_memory_store", unconfined="changes no document", **told),
    )


def _empty(rows: Callable[[], Any], *more: str) -> Callable[[Arguments], dict[str, Any]]:
    lists, absent = ("ids", "documents", "metadatas", *more), ("embeddings", "uris", "data")
    return lambda _: {**dict.fromkeys(absent), **{each: rows() for each in lists}, "included": []}


def _content(arguments: Arguments) -> dict[str, Any]:
    return {name: arguments[name] for name in arguments if name in _TEXTS}


class Owner:
    """Whose documents they are: the value of a metadata key, which stays as it is."""

    def __init__(self, key: str) -> None:
        self._key = key

    def redact(self, arguments: Arguments, redaction: Redaction) -> Arguments:
        """Return *arguments* with every text replaced but ids, names and owners."""
        redacted: Arguments = {}
        for name, value in arguments.items():
            replace = redaction.text if name in _TEXTS else redaction.value
            redacted[name] = value if name in _VERBATIM else self._walk(value, replace)
        return redacted

    def _walk(self, value: Any, replace: Callable[[Any], Any]) -> Any:
        if isinstance(value, dict):
            kept = {self._key: value[self._key]} if self._key in value else {}
            others = {key: each for key, each in value.items() if key != self._key}
            return {replace(key): self._walk(each, replace) for key, each in others.items()} | kept
        if isinstance(value, (list, tuple)):
            return [self._walk(each, replace) for each in value]
        return value if value is None else replace(value)

    def scope(self, arguments: Arguments) -> Scope:
        """Return the customer that a filter demands, or that all documents written share."""
        named = {*self._demanded(arguments.get("where")), *self._written(arguments)} - {None}
        if not all(isinstance(each, str) and each != "*" for each in named):
            raise ScopeError(f"{self._key!r} must be the id of one customer")
        return Scope(customer=named.pop() if len(named) == 1 else None)

    def _demanded(self, where: Any) -> Iterator[Any]:
        if isinstance(where, dict):
            for each in where.get("$and", ()):
                yield from self._demanded(each)
            found = where.get(self._key)
            yield found.get("$eq") if isinstance(found, dict) else found

    def _written(self, arguments: Arguments) -> Iterator[Any]:
        metadatas = arguments.get("metadatas") or ()
        for each in [metadatas] if isinstance(metadatas, dict) else metadatas:
            yield (each or {}).get(self._key)

    def narrow(self, arguments: Arguments, customer: str) -> Arguments:
        """Return *arguments* that reach this customer's documents only."""
        mine, where = {self._key: customer}, arguments.get("where")
        return {**arguments, "where": {"$and": [where, mine]} if where else mine}

    def check(self, arguments: Arguments, customer: str) -> Arguments:
        """Refuse to write what is not said to be this customer's."""
        if {*self._written(arguments)} != {customer}:
            raise ScopeError(f"each document's {self._key!r} must be the context's customer")
        return arguments

    def summary(self, result: Any, _arguments: Arguments) -> Summary:
        """Read the answer of ``query``, ``get`` or ``peek``, in place."""
        ids = _flat(result["ids"])
        scores, metadatas = (_flat(result.get(name) or ()) for name in ("distances", "metadatas"))
        owners = [each[self._key] for each in metadatas if each and self._key in each]
        return Summary(len(ids), tuple(ids), tuple(scores), tuple(owners))

    def only(self, result: Any, customer: str) -> Any:
        """Return *result*, unless something in it is somebody else's."""
        if set(self.summary(result, {}).owners) <= {customer}:
            return result
        raise ScopeError("the answer holds documents of somebody else")


def _flat(rows: Any) -> list[Any]:
    """Return the items of a list, or of the lists in it: a query has one for each text."""
    return [each for row in rows for each in (row if isinstance(row, list) else [row])]

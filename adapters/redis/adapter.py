"""redisvl's ``SearchIndex`` and ``AsyncSearchIndex`` behind a guard."""

from __future__ import annotations

import re
from copy import copy
from itertools import accumulate
from operator import is_
from pathlib import Path
from typing import Any

import orjson
from redis.exceptions import DataError
from redisvl import query as queries  # type: ignore[import-untyped]  # untyped
from redisvl.exceptions import RedisVLError  # type: ignore[import-untyped]  # untyped
from redisvl.index import index as redisvl  # type: ignore[import-untyped]  # untyped
from redisvl.query import filter as filters  # type: ignore[import-untyped]  # untyped

from ...memory import api
from ...memory.errors import ConfigurationError, RedactionError
from ...memory.subject_data.records import UncertainOwnerError
from ..toolkit import owned_records as owned
from ..toolkit.listed_records import ListedRecords
from ..toolkit.sync_async import resolve
from ..toolkit.type_guards import is_dict, is_list

_QUERIES = ("query", "queries", "filter_expression", "*0")
_VERBATIM = {"id_field", "ttl", "batch_size", "dry_run", "allow_all", "on_progress", "query_params"}
_TELLS = ("exists", "info", "key", "listall", "disconnect", "disconnect_sync")
_ASK = ("query", "batch_query")
_ADDED = {"id", "score", "vector_distance"}
_RAW = ("search", "batch_search", "aggregate", "paginate")
_FILES = (
    "Redis keeps deleted keys in its append-only file and in its snapshot: run `BGREWRITEAOF` and "
    "`BGSAVE`, and mind replicas and backups. Keys that this index does not have were not searched"
)
# A filter is text by the time it is here, and a value in it might close a bracket and add a union:
# only clauses that redisvl's own classes make are narrowed.
_TOKEN = re.compile(
    r"""(?: \* | ismissing\(@\w+\) | (?P<no>\(-)? @(?P<field>\w+): (?:
      \{ (?P<tags> (?:[^{}()\[\]"'\\] | \\.)* ) \} | (?P<open>\()? " (?P<phrase> (?:[^"\\] | \\.)* )
    " (?(open)\)) | \( (?P<words> (?:[^{}()\[\]"\\] | \\.)* ) \) | \[ [\w\s.+(-]* \] ) (?(no)\)))
    | [()|] | \s+""",
    re.VERBOSE | re.DOTALL,
)
_TAG: Any = filters.Tag
_ONE_TAG = re.compile(r"(?:[^|\\]|\\.)+", re.DOTALL)
_FORM = "make filters by redisvl's Tag, Text, Num and Geo, and join them by & and |"
_INVALID = ("syntax error", "error parsing", "unknown argument", "invalid")
_CUT_AT_BYTES = 4_096
_KINDS = (ValueError, TypeError, AttributeError, DataError)


def _is_invalid(error: BaseException) -> bool:
    said = str(cause := error.__cause__).lower()
    return cause is None or isinstance(cause, _KINDS) or any(each in said for each in _INVALID)


def _plain(escaped: str) -> str:
    return re.sub(r"\\(.)", r"\1", escaped, flags=re.DOTALL)


def _filter_of(query: Any) -> str:
    found = query.filter if isinstance(query, queries.BaseQuery) else query
    return "*" if filters.is_match_all_filter(found) else str(found).strip()


def _tokens(text: str) -> list[re.Match[str]]:
    found = [*_TOKEN.finditer(text)]
    depths = [*accumulate({"(": 1, ")": -1}.get(each[0], 0) for each in found)]
    is_whole = "".join(each[0] for each in found) == text and min(depths) >= 0 == depths[-1]
    return found if is_whole else []


def _changed(query: Any, new: str, redaction: api.Redaction | None = None) -> Any:
    if isinstance(query, (str, filters.FilterExpression)):
        return new
    if not isinstance(query, queries.BaseQuery) or str in map(type, query.params.values()):
        raise RedactionError("queries of this class, or with parameters, are refused", kind="query")
    again: Any = copy(query)
    held: dict[str, Any] = again.__dict__
    if redaction is not None and "_text" in held:
        held["_text"] = redaction.text(held["_text"])
    again.set_filter(new)
    return again


class IndexRecords(owned.OwnedRecords):
    """Reads and redacts calls of one *index*, of which *key* is the tag field with owners' ids."""

    def __init__(self, index: Any, key: str | None) -> None:
        super().__init__(key)
        self.index, self._prefix, fields = index, index.key(""), index.schema.fields
        self.vectors = {name for name, each in fields.items() if each.type == "vector"}
        self.numeric = {name for name, each in fields.items() if each.type == "numeric"}
        is_hash = index.schema.index.storage_type.value == "hash"
        self.tags = {x for x, each in fields.items() if is_hash and each.type == "tag"}
        self.tag = fields[key].attrs if key in fields and fields[key].type == "tag" else None

    def is_owner(self, value: Any) -> bool:
        """Tell whether *value* can be one tag: Redis strips and splits them, and cuts long ones."""
        is_word = super().is_owner(value) and value == value.strip() != "" and value.isprintable()
        is_one = is_word and getattr(self.tag, "separator", ",") not in value
        return is_one and len(value.encode()) < _CUT_AT_BYTES

    def _filters(self, arguments: api.Arguments) -> list[Any]:
        return [_filter_of(x) for name in _QUERIES for x in owned.many(arguments.get(name))]

    def _demanded(self, given: Any) -> Any:
        tokens = _tokens(given)
        if "|" not in {each[0] for each in tokens}:
            found = [x["tags"] for x in tokens if x["field"] == self.key and not x["no"]]
            yield from (_plain(x) for x in found if x and len(_ONE_TAG.findall(x)) == 1)

    def written(self, arguments: api.Arguments, /) -> list[owned.VectorRow]:
        """See `OwnedRecords.written`."""
        given = owned.many(arguments.get("data", arguments.get("values")))
        ids = (x.get(arguments.get("id_field")) if is_dict(x) else None for x in given)
        keys = arguments.get("keys") or [x and self._prefix + str(x) for x in ids]
        return [owned.VectorRow(x, None, y) for x, y in zip(keys, given, strict=False)]

    def redact(self, arguments: api.Arguments, redaction: api.Redaction, /) -> api.Arguments:
        """See `OwnedRecords.redact`."""
        id_field = arguments.get("id_field")

        def own(given: str) -> str:
            start = self._prefix if given.startswith(self._prefix) else ""
            return start + redaction.identifier(given.removeprefix(start))

        def fields(given: Any) -> Any:
            if not is_dict(given):
                return redaction.value(given)
            kept = {x: given[x] for x in given if x in self.vectors}
            if isinstance(given.get(id_field), str) and id_field != self.key:
                kept[id_field] = own(given[id_field])
            # A hash holds texts, so that a tag is found by the text of a number.
            texts = {x: str(given[x]) for x in self.tags & {*given} if type(given[x]) is int}
            metadata = {x: texts.get(x, given[x]) for x in {*given} - {*kept}}
            others = self.metadata(metadata, redaction)
            # The server would leave such a record out of the index, and say nothing.
            if any(others[x] != given.get(x) for x in self.numeric & {*others}):
                raise RedactionError("a numeric field is personal data: make it a tag", kind="int")
            return {**others, **kept}

        def replaced(name: str, value: Any) -> Any:
            if value is None or name in _VERBATIM:
                return value
            if name in _QUERIES:
                return owned.for_each(value, lambda query: self._redacted_query(query, redaction))
            if name in {"ids", "id", "keys"}:
                return owned.redacted_texts(value, redaction, own)
            return owned.for_each(value, fields)

        return {name: replaced(name, each) for name, each in arguments.items()}

    def _redacted_query(self, query: Any, redaction: api.Redaction) -> Any:
        def tag(found: re.Match[str], field: str) -> str:
            new = redaction.value_of(field, old := _plain(found[0].strip()))
            return found[0] if new == old else _TAG.escaper.escape(new)

        def clause(found: re.Match[str]) -> str:
            if (old := found["tags"]) and found["field"] != self.key:
                tags = _ONE_TAG.sub(lambda each: tag(each, found["field"]), old)
                return found[0].replace(f"{{{old}}}", f"{{{tags}}}")
            checked(found["phrase"] or found["words"] or "")
            return found[0]

        def checked(text: str) -> str:
            if redaction.text(_plain(text)) != _plain(text):
                raise RedactionError(f"this filter cannot be redacted: {_FORM}", kind="str")
            return text

        text = _filter_of(query)
        return _changed(query, "".join(map(clause, _tokens(text))) or checked(text), redaction)

    def confine_write(self, arguments: api.Arguments, customer: str) -> api.Arguments:
        """Return a call that reaches this customer's records only, and writes none of others."""

        def narrowed(query: Any) -> Any:
            if not _tokens(text := _filter_of(query)):
                raise api.ScopeError(f"tenancy is enforced, this filter is not known: {_FORM}")
            mine = _TAG(self.key or "") == customer
            return _changed(query, str(mine) if text == "*" else f"(({text}) {mine})")

        if not self.is_owner(customer):
            raise api.ScopeError("tenancy is enforced, and this customer's id cannot be one tag")
        changed: dict[str, Any] = {"data": self.owned(arguments, customer)}
        for name in arguments.keys() & {*_QUERIES}:
            changed[name] = owned.for_each(arguments[name], narrowed)
        return {x: changed.get(x, arguments[x]) for x in arguments}

    def there(self, arguments: api.Arguments) -> Any:
        """Return what is under the keys of a write or deletion, or awaitables of it."""
        keys = {*(x.own for x in self.written(arguments)), *owned.many(arguments.get("keys"))}
        keys |= {*map(self.index.key, owned.many(arguments.get("ids")))}
        if any(not each.startswith(self._prefix) for each in keys - {None}):
            raise api.ScopeError("tenancy is enforced, and a key is not one of this index")
        return [self.index.fetch(each.removeprefix(self._prefix)) for each in keys - {None}]

    def only(self, answer: Any, customer: str) -> Any:
        """Return a record that was fetched, unless it is somebody else's."""
        return owned.kept_of(answer, lambda each: self.owner(each) == customer)

    def record(self, row: owned.VectorRow, /) -> api.Record:
        """See `OwnedRecords.record`: a query shows some fields, in the form that Redis has."""
        hidden = {*self.vectors, *_ADDED - {*self.index.schema.fields}}
        shown = ((n, x) for n, x in row.metadata.items() if n not in hidden and x is not None)
        texts = {n: x if isinstance(x, str) else orjson.dumps(x).decode() for n, x in shown}
        return owned.record_of(row.own, texts)

    def sift(self, answer: Any, given: api.Arguments, keep: api.Keep) -> Any:
        """Return the records of an answer that are kept. Of a number nothing is known."""
        if isinstance(answer, int):
            return answer if keep(api.Record("", ())) else 0
        if "queries" in given:
            kept = [self.sift(each, {}, keep) for each in answer]
            return answer if all(map(is_, kept, answer)) else kept
        key = given.get("id") and self.index.key(given["id"])
        return owned.kept_of(answer, lambda each: keep(self.record(_row(each, key))))

    def answered(self, answer: Any, _arguments: api.Arguments) -> api.Summary:
        """Return the summary of an answer; its scores are distances."""
        rows = _rows(answer)
        scores = (x.metadata["vector_distance"] for x in rows if "vector_distance" in x.metadata)
        count = api.Summary(answer) if isinstance(answer, int) else None
        return count or self.summary(rows, tuple(map(float, scores)))


def _rows(answer: Any) -> list[owned.VectorRow]:
    if is_list(answer):
        return [row for each in answer for row in _rows(each)]
    return [_row(answer)] if is_dict(answer) and answer else []


def _row(found: Any, key: Any = None) -> owned.VectorRow:
    return owned.VectorRow(key or found.get("id"), None, found)


class IndexData(ListedRecords):
    """The provider of one index."""

    store, left = "redis", (_FILES,)

    def __init__(self, records: IndexRecords, *, public: bool) -> None:
        unknown = None if records.tag or not records.key else "cannot tell: owner_key is no tag"
        super().__init__(records.key, public=public, unknown=unknown)
        self._records, self._index = records, records.index

    async def _check(self) -> None:
        info = await resolve(self._index.info())
        if int(info["indexing"]) or int(info["hash_indexing_failures"]):
            raise UncertainOwnerError("Redis has not indexed all records: see FT.INFO")

    async def _listed(self, customer: str, offset: int) -> list[owned.VectorRow]:
        if not self._records.is_owner(customer):
            raise UncertainOwnerError("this customer's id cannot be one tag")
        query = queries.FilterQuery(_TAG(self._key or "") == customer)
        rows = _rows(await resolve(self._index.query(query.paging(offset, api.PAGE_SIZE))))
        for row, hidden in ((row, name) for row in rows for name in {"id", *self._records.vectors}):
            row.metadata.pop(hidden, None)
        return rows

    def _remove(self, ids: list[str]) -> Any:
        return self._index.drop_keys(ids)

    async def files(self) -> tuple[Path, ...]:
        """Return the folder of a server on this machine, as it says itself."""
        where = (client := self._index.client).connection_pool.connection_kwargs
        is_here = "path" in where or where.get("host") in {"localhost", "127.0.0.1", "::1"}
        said: dict[Any, Any] = await resolve(client.config_get("dir")) if is_here else {}
        return tuple(folder for each in said.values() if (folder := Path(each)).is_dir())


def _nothing(given: api.Arguments) -> Any:
    if "queries" in given:
        return [redisvl.SearchResults() for _ in given["queries"]]
    return 0 if isinstance(given.get("query"), queries.CountQuery) else redisvl.SearchResults()


def rows_of(of: IndexRecords) -> Any:
    """Return the row of each method of an index."""
    common, write = of.options(of.index.name), of.writes(of.index.name)
    confine, only = (of.confine_write, of.only) if of.key else (None, None)
    some: dict[str, Any] = {**common, "deletes": api.Deletes.IDS, "confine": confine}
    find: dict[str, Any] = {
        **common,
        "confine": confine,
        "keywords": frozenset((*_QUERIES, "query_params")),
    }
    seen: dict[str, Any] = {"summary": of.answered, "sift": of.sift}
    undone = redisvl.BulkResult(0, 0, completed=False)
    return api.method_table(
        api.remember("load", neutral=lambda _: list[Any](), **write),
        api.remember("update_by_filter", "update_memory", neutral=lambda _: undone, **write),
        *(api.recall(x, neutral=_nothing, **seen, **find) for x in _ASK),
        api.recall("fetch", neutral=lambda _: None, only=only, **seen, **common),
        *(api.recall(each, **find) for each in _RAW),
        *(api.forget(f"drop_{each}", **some) for each in ("keys", "documents", "by_filter")),
        api.forget("expire_keys", **some),
        *(api.forget(x, deletes=api.Deletes.EVERYTHING, **common) for x in ("clear", "delete")),
        api.remember("create", "create_memory_store", **common),
    )


def bind(
    index: Any, services: Any, /, *, owner_key: str | None = None, public: Any = False
) -> api.StoreBinding:
    """
    Return the binding of one *index*.

    *owner_key* is the tag field that holds the id of a record's owner, and stays as it is. *public*
    says that its records are nobody's personal data, or names indexes of which that is so.

    Raises:
        ConfigurationError: Both are given, or Redis would take owners for one another.
    """
    of, is_public = IndexRecords(index, owner_key), owned.is_nobodys(public, owner_key, index.name)
    if owner_key and services.policy.enforce_tenancy and not (of.tag and of.tag.case_sensitive):
        raise ConfigurationError("owner_key: expected a tag field with case_sensitive=True")
    check = owned.OwnerCheck(of.there, lambda found: (of.owner(each) for each in found if each))
    parts = {"caller_mistakes": MISTAKES, "subject_data": IndexData(of, public=is_public)}
    return owned.binding_of(of, services, rows_of(of), check, is_public=is_public, **parts)


_ERRORS: Any = (ValueError, TypeError, KeyError, RedisVLError)
_API = ("redisvl.index", "redisvl.query", "redisvl.schema")
MISTAKES = (
    api.CallerMistake(what="invalid", error=_ERRORS, where=_API, how="called", when=_is_invalid),
    api.CallerMistake(what="unknown", error=TypeError, where=("redisvl.utils",), how="beneath"),
)
ADAPTER = api.StoreAdapter(
    store="redis",
    client_types=(redisvl.SearchIndex, redisvl.AsyncSearchIndex),
    db_system="redis",
    bind=bind,
    not_guarded=dict.fromkeys((*_TELLS, "invalidate_sql_schema_cache"), "tells no content"),
    raises=dict.fromkeys((*_RAW, "create"), "there is no neutral answer of Redis itself"),
)

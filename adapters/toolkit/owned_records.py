"""
Records in calls of a vector store: text, and metadata of which one key says whose it is.

Filters are those of Chroma, PGVector and others: ``{key: value}``, ``{key: {"$in": […]}}``, and
lists of filters under ``$and`` and ``$or``.
"""

from __future__ import annotations

from asyncio import to_thread
from collections.abc import Callable, Iterable, Iterator, Mapping
from copy import copy
from inspect import isawaitable
from typing import Any, NamedTuple, cast

from ...memory.api import (
    AdapterServices,
    Arguments,
    AsyncInvoke,
    Invoke,
    OperationClass,
    Record,
    Redaction,
    Row,
    Scope,
    ScopeError,
    StoreBinding,
    Summary,
)
from .public import Public, checked_public, with_public
from .sync_async import resolve
from .type_guards import is_dict, is_list

_JOINS = frozenset(("$and", "$or", "$not", "$nor"))
_ROWS = "*rows"  # no argument can be called that


class VectorRow(NamedTuple):
    """
    One record. Its `repr` shows nothing: it is raw.

    Attributes:
        own: Its id. None: the store makes one, or the call does not say.
        text: Its document. None: it has none.
        metadata: Its metadata. None: it has none.
    """

    own: Any
    text: Any
    metadata: Any

    def __repr__(self) -> str:
        """Return a constant: the record is raw."""
        return "VectorRow(...)"

    @property
    def record(self) -> Record:
        """The same for the guard."""
        return Record(str(self.own), (("text", self.text), ("metadata", self.metadata)))


def redacted_texts(value: Any, redaction: Redaction, replace: Callable[[str], str]) -> Any:
    """Return text, or a list or a filter of texts, replaced by *replace*; others as values."""
    if is_dict(value):
        return {key: redacted_texts(each, redaction, replace) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [redacted_texts(each, redaction, replace) for each in cast("list[Any]", value)]
    return replace(value) if isinstance(value, str) else redaction.value(value)


def many(value: Any) -> list[Any]:
    """Return what a call takes one of, or a list of, as a list."""
    return [] if value is None else [*value] if isinstance(value, (list, tuple)) else [value]


def record_of(own: Any, fields: Mapping[str, Any]) -> Record:
    """Return a record whose fields can be written and shown one by one. Null is no field."""
    return Record(str(own), tuple(each for each in fields.items() if each[1] is not None))


def kept_of(answer: Any, keeps: Callable[[Any], bool]) -> Any:
    """Return what *keeps* keeps of a list, or of one record; the same object where that is all."""
    if not is_list(answer):
        return answer if not answer or keeps(answer) else None
    kept = [each for each in answer if keeps(each)]
    if len(kept) == len(answer):
        return answer
    fewer = copy(answer)  # of its own class, such as one that says whether it is complete
    fewer[:] = kept
    return fewer


def nothing_listed(_arguments: Arguments) -> dict[str, Any]:
    """Return what Chroma answers where nothing is found."""
    absent: dict[str, Any] = dict.fromkeys(("embeddings", "uris", "data"))
    return {"ids": [], **absent, "documents": [], "metadatas": [], "included": []}


def for_each(value: Any, change: Callable[[Any], Any]) -> Any:
    """Return *value*, or each in a list of it, changed."""
    if isinstance(value, (list, tuple)):
        return [change(each) for each in cast("list[Any]", value)]
    return change(value)


class OwnedRecords:
    """
    Reads and redacts the records and filters of a store's calls.

    Args:
        key: Metadata key that holds the owner's id, which stays as it is. None: no key does.
    """

    def __init__(self, key: str | None) -> None:
        self.key = key

    def written(self, arguments: Arguments, /) -> list[VectorRow]:
        """Return the records that a call writes."""
        raise NotImplementedError

    def recorded(self, answer: Any, arguments: Arguments) -> list[Record]:
        """Return what a write wrote, under the ids that the store answers or was given."""
        rows = self._rows(arguments)
        # A part of a write, of one of several owners, has not the ids that are answered.
        if is_list(answer) and len(answer) == len(rows):
            rows = [each._replace(own=own) for own, each in zip(answer, rows, strict=True)]
        return [self.record(each) for each in rows if each.own is not None]

    def record(self, row: VectorRow, /) -> Record:
        """Return *row* as the guard knows it. Of a store that may show less, by `record_of`."""
        return row.record

    def redact(self, arguments: Arguments, redaction: Redaction, /) -> Arguments:
        """Return the arguments of a call with every text replaced, as new objects."""
        return {name: self._redacted(name, each, redaction) for name, each in arguments.items()}

    def _redacted(self, name: str, value: Any, redaction: Redaction, /) -> Any:
        """Return the argument *name* redacted."""
        raise NotImplementedError

    # -- redaction ---------------------------------------------------------------------------------

    def metadata(self, given: Any, redaction: Redaction) -> Any:
        """Return the metadata of a record with every text replaced but the owner's id."""
        if not is_dict(given):
            return redaction.value(given)
        kept: dict[Any, Any] = {key: each for key, each in given.items() if key == self.key}
        return redaction.value(self._others(given)) | kept

    def filter(self, given: Any, redaction: Redaction) -> Any:
        """Return a filter with every text replaced but owners' ids and operators."""
        if is_list(given):
            return [self.filter(each, redaction) for each in given]
        if not is_dict(given):
            return given if callable(given) else redaction.value(given)
        redacted: Arguments = {}
        for key, each in given.items():
            if key == self.key:
                redacted[key] = each
            elif key in _JOINS:
                redacted[key] = self.filter(each, redaction)
            else:
                redacted |= redaction.value({key: each})
        return redacted

    def _others(self, metadata: Any) -> dict[Any, Any]:
        given: dict[Any, Any] = metadata or {}
        return {key: each for key, each in given.items() if key != self.key}

    # -- whose they are ----------------------------------------------------------------------------

    def owner(self, metadata: Any) -> Any:
        """Return the owner that *metadata* names. None: it names nobody."""
        return metadata.get(self.key) if is_dict(metadata) else None

    def scope(self, arguments: Arguments) -> Scope:
        """
        Return the customer that a call's filters demand, or that all records written share.

        Raises:
            ScopeError: An owner's id is no text, or a wildcard.
        """
        if self.key is None:
            return Scope()
        owners = [self.owner(each.metadata) for each in self.written(arguments)]
        demanded = (owner for each in self._filters(arguments) for owner in self._demanded(each))
        named = [each for each in (*owners, *demanded) if each is not None]
        if not all(map(self.is_owner, named)):
            raise ScopeError(f"{self.key!r} must be the id of one customer, as text")
        return Scope(customer=named[0] if len(set(named)) == 1 else None)

    def is_owner(self, value: Any) -> bool:
        """Tell whether *value* can be the id of one customer."""
        return isinstance(value, str) and value != "*"

    def _filters(self, arguments: Arguments) -> list[Any]:
        """Return the filters of a call."""
        return [arguments.get("filter"), arguments.get("where")]

    def _demanded(self, given: Any) -> Iterator[Any]:
        """Yield the owners that everything found by a filter has."""
        if is_dict(given):
            for each in given.get("$and", ()):
                yield from self._demanded(each)
            owner = given.get(self.key)
            yield owner.get("$eq") if is_dict(owner) else owner

    def owned(self, arguments: Arguments, customer: str) -> list[dict[Any, Any]]:
        """
        Return the metadata of what a call writes, each with *customer* as the owner.

        Raises:
            ScopeError: One names somebody else.
        """
        given: list[dict[Any, Any]] = [each.metadata or {} for each in self.written(arguments)]
        if any(self.owner(each) not in {None, customer} for each in given):
            raise ScopeError(f"each record's {self.key!r} must be the context's customer")
        return [{**each, self.key: customer} for each in given]

    def narrow(self, given: Any, customer: str) -> Any:
        """Return a filter for what *given* finds of *customer*'s."""
        mine = {self.key: customer}
        return {"$and": [given, mine]} if given else mine

    def confine_write(self, arguments: Arguments, customer: str) -> Arguments:
        """Return a write whose records all name *customer* as their owner."""
        return {**arguments, "metadatas": self.owned(arguments, customer)}

    # -- what is told of them ----------------------------------------------------------------------

    def summary(self, rows: list[VectorRow], scores: tuple[float, ...] = ()) -> Summary:
        """Return the summary of an answer that has these *rows*."""
        owners = (self.owner(each.metadata) for each in rows)
        ids = tuple(str(each.own) for each in rows if each.own)
        return Summary(len(rows), ids, scores, tuple(x for x in owners if isinstance(x, str)))

    def content(self, arguments: Arguments) -> dict[str, Any]:
        """Return what the trail keeps: the query, or what is written, without owners' ids."""
        rows = self._rows(arguments)
        query = arguments.get("query", arguments.get("query_texts"))
        if not rows:
            return {} if query is None else {"query": query}
        kept = [{"text": each.text, "metadata": self._others(each.metadata)} for each in rows]
        return {"documents": kept}

    def whose(self, arguments: Arguments) -> Iterator[tuple[str | None, Arguments]]:
        """Yield the records of a write by their owner."""
        rows = [(self.owner(each.metadata), each) for each in self._rows(arguments)]
        for owner in dict.fromkeys(owner for owner, _ in rows):
            yield owner, {_ROWS: [row for each, row in rows if each == owner]}

    # -- rows of a table ---------------------------------------------------------------------------

    def options(self, collection: str | None) -> dict[str, Any]:
        """Return the options of a row that all methods of a *collection* have."""

        def named(_arguments: Arguments) -> str | None:
            return collection

        return {
            "redact": self.redact,
            "scope": self.scope,
            "content": self.content,
            "collection": named,
            "needs_owner": self.key is not None,
        }

    def writes(self, collection: str | None) -> dict[str, Any]:
        """Return the options of a row that writes."""
        owned = {} if self.key is None else {"confine": self.confine_write, "whose": self.whose}
        return {**self.options(collection), "written": self.recorded, **owned}

    def narrows(self, name: str) -> dict[str, Any]:
        """Return the options of a row whose filter is the argument *name*."""

        def confine(arguments: Arguments, customer: str) -> Arguments:
            return {**arguments, name: self.narrow(arguments.get(name), customer)}

        return {} if self.key is None else {"confine": confine}

    def _rows(self, arguments: Arguments) -> list[VectorRow]:
        return arguments[_ROWS] if _ROWS in arguments else self.written(arguments)


class OwnerCheck:
    """
    Refuses calls that replace or remove by its id what is somebody else's.

    An `Around` for stores with tenancy enforced, since an id alone says nothing of its owner.

    Args:
        find: Asks the store for what is there under the ids of a write or a deletion. May return
            an awaitable, or a list of them.
        owners: Returns the owners in its answer.
    """

    def __init__(
        self, find: Callable[[Arguments], Any], owners: Callable[[Any], Iterable[Any]]
    ) -> None:
        self._find, self._owners = find, owners

    def wrap(self, call: Any, invoke: Invoke) -> Invoke:
        """Return *invoke* behind a look at what is there."""
        if not _changes(call):
            return invoke

        def called(given: Arguments) -> Any:
            found = self._find(given)
            if any(map(isawaitable, many(found))):  # an asynchronous method that does not say so
                return self._later(found, call, invoke, given)
            self._check(found, call.scope.customer)
            return invoke(given)

        return called

    def awrap(self, call: Any, invoke: AsyncInvoke) -> AsyncInvoke:
        """Return the same of an asynchronous call."""
        if not _changes(call):
            return invoke

        async def called(given: Arguments) -> Any:
            return await self._later(to_thread(self._find, given), call, invoke, given)

        return called

    async def _later(self, found: Any, call: Any, invoke: Any, given: Arguments) -> Any:
        found = await resolve(await resolve(found))
        found = [await resolve(each) for each in found] if is_list(found) else found
        self._check(found, call.scope.customer)
        return await invoke(given)

    def _check(self, found: Any, customer: str) -> None:
        if any(each != customer for each in self._owners(found)):
            raise ScopeError("tenancy is enforced, and a record is somebody else's")


def binding_of(
    of: OwnedRecords,
    services: AdapterServices,
    methods: Mapping[str, Row],
    check: OwnerCheck,
    *,
    is_public: bool,
    **parts: Any,
) -> StoreBinding:
    """Return the binding of a store whose records name their owners: *parts* are its own."""
    enforces = of.key is not None and services.policy.enforce_tenancy
    return StoreBinding(
        methods=with_public(methods, is_public, lambda _: False),
        public=is_public,
        around=(check,) if enforces else (),
        **parts,
    )


def is_nobodys(public: Public, key: str | None, name: str) -> bool:
    """
    Tell whether a collection is nobody's personal data, by its *name* and the option *public*.

    Raises:
        ConfigurationError: It is, and *key* says whose its records are.
    """
    nobodys = checked_public(public, ("owner_key", key))
    return nobodys is True or name in (nobodys or ())


def _changes(call: Any) -> bool:
    return bool(call.scope.customer) and call.method.op_class is not OperationClass.RECALL

"""Documents in the arguments and answers of a vector store, and whose they are."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import zip_longest
from typing import Any, cast

from langchain_core.documents import Document

from ...memory.api import Arguments, Keep, Record, Redaction, Scope, ScopeError, Summary
from ..toolkit.type_guards import is_dict, is_list

VERBATIM = frozenset(
    {"k", "fetch_k", "lambda_mult", "score_threshold", "search_type", "embedding", "embeddings"}
    | {"limit", "offset", "include", "collection_only", "uri"}
)
_JOINS = frozenset(("$and", "$or", "$not", "$nor"))
Narrow = Callable[[Any, str], Any]
"""Returns the filter of a search that finds one customer's documents only, from the given one."""


def _documents(arguments: Arguments) -> list[Any]:
    return [arguments["document"]] if "document" in arguments else arguments.get("documents") or []


def ids_of(arguments: Arguments) -> list[Any]:
    """Return the ids of documents that a call names."""
    given = arguments.get("ids", arguments.get("document_id"))
    listed = [given] if isinstance(given, str) else [*(given or ())]
    return [each for each in listed or [doc.id for doc in _documents(arguments)] if each]


def written(arguments: Arguments) -> list[Document]:
    """Return the documents that a call writes."""
    texts, metadatas = (arguments.get(name) or () for name in ("texts", "metadatas"))
    return [each for each in _documents(arguments) if isinstance(each, Document)] + [
        Document(page_content=text or "", metadata=metadata or {})
        for text, metadata in zip_longest(texts, metadatas)
    ]


def found(answer: Any) -> list[Document]:
    """Return the documents of an answer, with or without scores."""
    return [each[0] if isinstance(each, tuple) else each for each in answer]


def redacted_texts(value: Any, redaction: Redaction) -> Any:
    """Return *value*, text or a filter of texts, with its texts redacted as documents' are."""
    if is_dict(value):
        return {key: redacted_texts(each, redaction) for key, each in value.items()}
    if is_list(value):
        return [redacted_texts(each, redaction) for each in value]
    return redaction.text(value)


def narrow(key: str, given: Any, customer: str) -> Any:
    """Return a filter for what *given* finds of *customer*'s, as Chroma and PGVector have it."""
    return {"$and": [given, {key: customer}]} if given else {key: customer}


def as_function(given: Any) -> Any:
    """Return a filter of equal values as the function that a store in memory takes."""
    if not is_dict(given):
        return given
    pairs = [*given.items()]

    def finds(document: Document) -> bool:
        return all(
            all(as_function(part)(document) for part in each)
            if name == "$and"
            else document.metadata.get(name) == each
            for name, each in pairs
        )

    return finds


class Documents:
    """
    Reads and redacts calls of one store.

    Args:
        key: Metadata key that holds the owner's id, which stays as it is. None: no key does.
        narrow: Narrows filters. None: how the store filters is not known.
    """

    def __init__(self, key: str | None, narrow: Narrow | None) -> None:
        self.key, self.narrow = key, narrow

    def redact(self, arguments: Arguments, redaction: Redaction) -> Arguments:
        """Return *arguments* with every text replaced, as new objects."""
        return {name: self._redacted(name, each, redaction) for name, each in arguments.items()}

    def _redacted(self, name: str, value: Any, redaction: Redaction) -> Any:
        if value is None or name in VERBATIM:
            return value
        if name in {"documents", "metadatas", "ids", "texts"} and isinstance(value, (list, tuple)):
            # A list may have fewer ids, or metadata, than it has documents.
            return [
                self._redacted(name.removesuffix("s"), each, redaction)
                for each in cast("Any", value)
            ]
        match name:
            case "document" | "metadata":
                redacted: Any = self._document(value, redaction)
            case "text" | "query" | "where_document":
                redacted = redacted_texts(value, redaction)
            case "id" | "ids" | "document_id":
                redacted = redaction.identifier(cast("str", value))
            case "filter" | "where":
                redacted = self._filter(value, redaction)
            case _:
                redacted = redaction.value(value)
        return redacted

    def _document(self, given: Any, redaction: Redaction) -> Any:
        if isinstance(given, Document):
            changed = {
                "page_content": redaction.text(given.page_content),
                "metadata": self._document(given.metadata, redaction),
                "id": given.id and redaction.identifier(given.id),
            }
            return given.model_copy(update=changed)
        if not is_dict(given):
            return redaction.value(given)
        kept = {key: each for key, each in given.items() if key == self.key}
        return redaction.value(self._others(given)) | kept

    def _filter(self, given: Any, redaction: Redaction) -> Any:
        if is_list(given):
            return [self._filter(each, redaction) for each in given]
        if not is_dict(given):
            return given if callable(given) else redaction.value(given)
        redacted: Arguments = {}
        for key, each in given.items():
            if key == self.key:
                redacted[key] = each
            elif key in _JOINS:
                redacted[key] = self._filter(each, redaction)
            else:
                redacted |= redaction.value({key: each})
        return redacted

    def scope(self, arguments: Arguments) -> Scope:
        """
        Return the customer that a filter demands, or that all documents written share.

        Raises:
            ScopeError: An owner's id is no text, or a wildcard.
        """
        if self.key is None:
            return Scope()
        filters = (arguments.get("filter"), arguments.get("where"))
        named = [owner for each in filters for owner in self._demanded(each)]
        named = [each for each in (*named, *self.owners(written(arguments))) if each is not None]
        if not all(isinstance(each, str) and each != "*" for each in named):
            raise ScopeError(f"{self.key!r} must be the id of one customer, as text")
        return Scope(customer=named[0] if len(set(named)) == 1 else None)

    def _demanded(self, given: Any) -> Iterator[Any]:
        if is_dict(given):
            for each in given.get("$and", ()):
                yield from self._demanded(each)
            owner = given.get(self.key)
            yield owner.get("$eq") if is_dict(owner) else owner

    def _owner(self, metadata: Any) -> Any:
        return metadata.get(self.key) if is_dict(metadata) else None

    def owners(self, documents: Iterable[Document]) -> tuple[Any, ...]:
        """Return the owners that *documents* name, None for each that names nobody."""
        return tuple(self._owner(each.metadata) for each in documents)

    def narrowed(self, name: str) -> Callable[[Arguments, str], Arguments]:
        """Return the `confine` of a search whose filter is the argument *name*."""

        def confine(arguments: Arguments, customer: str) -> Arguments:
            return {**arguments, name: self._known()(arguments.get(name), customer)}

        return confine

    def _known(self) -> Narrow:
        if self.narrow is None:
            raise ScopeError(
                "tenancy is enforced, and how this store filters is not known: give narrow="
            )
        return self.narrow

    def owned(self, arguments: Arguments, customer: str) -> Arguments:
        """
        Return a write whose documents all name *customer* as their owner.

        Raises:
            ScopeError: One names somebody else.
        """
        self._known()
        documents = written(arguments)
        if any(each not in {None, customer} for each in self.owners(documents)):
            raise ScopeError(f"each document's {self.key!r} must be the context's customer")
        metadatas = [each.metadata | {self.key: customer} for each in documents]
        if "texts" in arguments:
            return {**arguments, "metadatas": metadatas}
        pairs = zip(documents, metadatas, strict=True)
        mine = [each.model_copy(update={"metadata": metadata}) for each, metadata in pairs]
        of_one = {"document": mine[0]} if "document" in arguments else {"documents": mine}
        return {**arguments, **of_one}

    def by_ids(self, arguments: Arguments, customer: str) -> Arguments:
        """Return a call by ids as it is: whose they are is looked up at the store."""
        if arguments.get("where"):
            return self.narrowed("where")(arguments, customer)
        self._known()
        if arguments.get("ids") is None:
            raise ScopeError("tenancy is enforced: name the documents by their ids")
        return arguments

    def only(self, answer: Any, customer: str) -> Any:
        """Return *answer* without documents that are not *customer*'s."""
        owners = self.owners(found(answer))
        if all(each == customer for each in owners):
            return answer
        return [each for each, owner in zip(answer, owners, strict=True) if owner == customer]

    def summary(self, answer: Any, _arguments: Arguments) -> Summary:
        """Return how many documents were found, their ids, scores and owners."""
        documents = found(answer)
        pairs: list[Any] = [each for each in answer if isinstance(each, tuple)]
        scores = tuple(score for _, score in pairs if isinstance(score, float))
        owners = tuple(each for each in self.owners(documents) if isinstance(each, str))
        ids = tuple(str(each.id) for each in documents if each.id)
        return Summary(len(documents), ids, scores, owners)

    def content(self, arguments: Arguments) -> dict[str, Any]:
        """Return what the trail keeps: the query, or what is written, without the owner's id."""
        documents = [
            {"text": each.page_content, "metadata": self._others(each.metadata)}
            for each in written(arguments)
        ]
        query = arguments.get("query")
        return {"documents": documents} if documents else {} if query is None else {"query": query}

    def _others(self, metadata: dict[Any, Any]) -> dict[Any, Any]:
        return {key: each for key, each in metadata.items() if key != self.key}

    def whose(self, arguments: Arguments) -> Iterator[tuple[str | None, Arguments]]:
        """Yield the documents of a write by their owner."""
        documents = written(arguments)
        for owner in dict.fromkeys(self.owners(documents)):
            theirs = [each for each in documents if self._owner(each.metadata) == owner]
            yield owner, {"documents": theirs}


def sift(answer: Any, _arguments: Arguments, keep: Keep) -> Any:
    """Return the documents of *answer* that are kept."""
    shown = zip(answer, found(answer), strict=True)
    kept = [each for each, document in shown if keep(_record(document.id, document))]
    return answer if len(kept) == len(answer) else kept


def _record(own: Any, document: Document) -> Record:
    parts = (("text", document.page_content), ("metadata", document.metadata))
    return Record(str(own), parts)


def records(answer: Any, arguments: Arguments) -> tuple[Record, ...]:
    """Return what a write wrote, under the ids that the store answers or was given."""
    pairs = zip(answer or ids_of(arguments), written(arguments), strict=False)
    return tuple(_record(own, each) for own, each in pairs)

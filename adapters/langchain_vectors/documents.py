"""Documents in the arguments and answers of a vector store, and whose they are."""

from __future__ import annotations

from collections.abc import Callable
from itertools import zip_longest
from typing import Any, cast

from langchain_core.documents import Document

from ...memory.api import Arguments, Keep, Redaction, ScopeError, Summary
from ..toolkit.owned_records import OwnedRecords, VectorRow, kept_of, redacted_texts
from ..toolkit.type_guards import is_dict

VERBATIM = frozenset(
    {"k", "fetch_k", "lambda_mult", "score_threshold", "search_type", "embedding", "embeddings"}
    | {"limit", "offset", "include", "collection_only", "uri"}
)
Narrow = Callable[[Any, str], Any]
"""Returns the filter of a search that finds one customer's documents only, from the given one."""


def ids_of(arguments: Arguments) -> list[Any]:
    """Return the ids of documents that a call names."""
    given = arguments.get("ids", arguments.get("document_id"))
    listed = [given] if isinstance(given, str) else [*(given or ())]
    return [each for each in listed or [each.id for each in _documents(arguments)] if each]


def _documents(arguments: Arguments) -> list[Any]:
    return [arguments["document"]] if "document" in arguments else arguments.get("documents") or []


def row_of(document: Document) -> VectorRow:
    """Return a *document* as a record."""
    return VectorRow(document.id, document.page_content, document.metadata)


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


class Documents(OwnedRecords):
    """
    Reads and redacts calls of one store.

    Args:
        key: Metadata key that holds the owner's id, which stays as it is. None: no key does.
        narrow: Narrows filters. None: how the store filters is not known.
    """

    def __init__(self, key: str | None, narrow: Narrow | None) -> None:
        super().__init__(key)
        self._narrow = narrow

    def written(self, arguments: Arguments, /) -> list[VectorRow]:
        """See `OwnedRecords.written`."""
        texts, metadatas = (arguments.get(name) or () for name in ("texts", "metadatas"))
        documents = [each for each in _documents(arguments) if isinstance(each, Document)]
        # Texts may have fewer ids, or metadata, than they are.
        columns = zip_longest(ids_of(arguments) if texts else (), texts, metadatas)
        return [*map(row_of, documents), *(VectorRow(*each) for each in columns)]

    def _redacted(self, name: str, value: Any, redaction: Redaction) -> Any:
        if value is None or name in VERBATIM:
            return value
        match name:
            case "documents" | "document" | "metadatas" | "metadata":
                return self._document(value, redaction)
            case "texts" | "text" | "query" | "where_document":
                return redacted_texts(value, redaction, redaction.text)
            case "ids" | "id" | "document_id":
                return redacted_texts(value, redaction, redaction.identifier)
            case "filter" | "where":
                return self.filter(value, redaction)
            case _:
                return redaction.value(value)

    def _document(self, given: Any, redaction: Redaction) -> Any:
        if isinstance(given, (list, tuple)):
            return [self._document(each, redaction) for each in cast("list[Any]", given)]
        if not isinstance(given, Document):
            return given and self.metadata(given, redaction)
        changed = {
            "page_content": redaction.text(given.page_content),
            "metadata": self.metadata(given.metadata, redaction),
            "id": given.id and redaction.identifier(given.id),
        }
        return given.model_copy(update=changed)

    def narrow(self, given: Any, customer: str) -> Any:
        """
        Return a filter for what *given* finds of *customer*'s.

        Raises:
            ScopeError: How the store filters is not known.
        """
        if self._narrow is None:
            raise ScopeError(
                "tenancy is enforced, and how this store filters is not known: give narrow="
            )
        return self._narrow(given, customer)

    def confine_write(self, arguments: Arguments, customer: str) -> Arguments:
        """See `OwnedRecords.confine_write`."""
        self.narrow(None, customer)
        metadatas = self.owned(arguments, customer)
        if "texts" in arguments:
            return {**arguments, "metadatas": metadatas}
        pairs = zip(_documents(arguments), metadatas, strict=True)
        mine = [each.model_copy(update={"metadata": metadata}) for each, metadata in pairs]
        of_one = {"document": mine[0]} if "document" in arguments else {"documents": mine}
        return {**arguments, **of_one}

    def by_ids(self, arguments: Arguments, customer: str) -> Arguments:
        """Return a call by ids as it is: whose they are is looked up at the store."""
        narrowed = self.narrow(arguments.get("where"), customer)
        if arguments.get("where"):
            return {**arguments, "where": narrowed}
        if arguments.get("ids") is None:
            raise ScopeError("tenancy is enforced: name the documents by their ids")
        return arguments

    def only(self, answer: Any, customer: str) -> Any:
        """Return *answer* without documents that are not *customer*'s."""
        return kept_of(answer, lambda each: self.owner(_found(each).metadata) == customer)

    def sift(self, answer: Any, _arguments: Arguments, keep: Keep) -> Any:
        """Return the documents of *answer* that are kept."""
        return kept_of(answer, lambda each: keep(row_of(_found(each)).record))

    def answered(self, answer: Any, _arguments: Arguments) -> Summary:
        """Return how many documents were found, their ids, scores and owners."""
        pairs: list[Any] = [each for each in answer if isinstance(each, tuple)]
        scores = tuple(score for _, score in pairs if isinstance(score, float))
        return self.summary([row_of(_found(each)) for each in answer], scores)


def _found(each: Any) -> Document:
    """Return a document of an answer, with or without a score."""
    found: Document = cast("Any", each)[0] if isinstance(each, tuple) else each
    return found

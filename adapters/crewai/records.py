"""Records and paths of scopes in the arguments and answers of CrewAI's memory storages."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...memory.api import Arguments, Keep, Record, Redaction, Scope, ScopeError, Summary
from ...memory.context import current
from ..toolkit.owned_records import kept_of
from ..toolkit.type_guards import is_dict, is_list

_PATHS = ("scope_prefix", "scope", "parent")
_NO_NAME = "owner_scope: the customer's id is no name of a scope"


def _parts(path: Any) -> list[str]:
    return [each for each in path.split("/") if each] if isinstance(path, str) else []


def records_of(value: Any) -> list[Any]:
    """Return the records in an answer: one, several, or such with scores."""
    listed: list[Any] = value if is_list(value) else [value]
    pairs: list[Any] = [each[0] if isinstance(each, tuple) else each for each in listed]
    return [each for each in pairs if hasattr(each, "scope")]


def written(arguments: Arguments) -> list[Any]:
    """Return the records that a call writes."""
    return records_of(arguments.get("records", arguments.get("record")))


def _kept(answer: Any, keeps: Callable[[Any], bool]) -> Any:
    return kept_of(answer, lambda each: keeps(each[0] if isinstance(each, tuple) else each))


def _labelled(given: Any) -> Record:
    shown = ("content", "metadata", "categories", "source")
    return Record(given.id, tuple((each, getattr(given, each)) for each in shown), given.scope)


def recorded(_answer: Any, arguments: Arguments) -> list[Record]:
    """Return what a write wrote, for labels of its origin."""
    return [*map(_labelled, written(arguments))]


def sift(answer: Any, _arguments: Arguments, keep: Keep) -> Any:
    """Return the records of *answer* that are kept."""
    return _kept(answer, lambda each: keep(_labelled(each)))


class Owners:
    """Whose records are, by their scopes: those of customers are in the scope *root*, if any."""

    def __init__(self, root: str | None) -> None:
        self.root = None if root is None else _parts(root)

    def path(self, customer: str) -> str:
        """Return the path of *customer*'s scope."""
        if customer in {"", "*"} or "/" in customer:
            raise ScopeError(_NO_NAME)
        return "/".join(("", *(self.root or ()), customer))

    def of(self, path: Any) -> str | None:
        """Return whose the scope *path* is. None: nobody's."""
        names, root = _parts(path), self.root
        is_theirs = root is not None and names[: len(root)] == root and len(names) > len(root)
        return names[len(root or ())] if is_theirs else None

    def scope(self, arguments: Arguments) -> Scope:
        """Return the customer whose scope a call names, or that all records written share."""
        paths = [*map(arguments.get, _PATHS), *(each.scope for each in written(arguments))]
        named = {*map(self.of, paths)} - {None}
        told = current().customer or ""
        own = [*(self.root or ()), *_parts(told)]
        if named and "/" in told and any(_parts(each)[: len(own)] == own for each in paths):
            raise ScopeError(_NO_NAME)
        if "*" in named:
            raise ScopeError("owner_scope: a scope of everybody is no customer's")
        return Scope(customer=named.pop() if len(named) == 1 else None)

    def redact(self, arguments: Arguments, redaction: Redaction) -> Arguments:
        """Return *arguments* with every text replaced, as new objects. Vectors stay."""
        name = redaction.identifier

        def path(given: str) -> str:
            kept = {"", self.of(given)}
            return "/".join(each if each in kept else name(each) for each in given.split("/"))

        def record(given: Any) -> Any:
            texts = {"id": name(given.id), "scope": path(given.scope)}
            texts["content"] = redaction.text(given.content)
            rest = given.model_copy(update=dict.fromkeys(texts, ""))
            return redaction.value(rest).model_copy(update=texts)

        ways: dict[str, Callable[[Any], Any]] = {
            **dict.fromkeys(_PATHS, path),
            "record": record,
            "records": lambda given: [*map(record, given)],
            "record_id": name,
            "record_ids": lambda given: [*map(name, given)],
            "query_embedding": lambda given: given,
        }
        given = arguments.items()
        return {n: None if v is None else ways.get(n, redaction.value)(v) for n, v in given}

    def narrow(self, name: str, arguments: Arguments, customer: str) -> Arguments:
        """Return a call for *customer*'s scope, or for one below it, as the argument *name*."""
        is_own = self.of(arguments.get(name)) == customer
        return arguments if is_own else {**arguments, name: self.path(customer)}

    def owned(self, arguments: Arguments, customer: str) -> Arguments:
        """Return a write whose records are all in *customer*'s scope."""
        own, mine = self.path(customer), list[Any]()
        for each in written(arguments):
            if self.of(each.scope) not in {None, customer}:
                raise ScopeError("owner_scope: a record is in the scope of another customer")
            path = each.scope if self.of(each.scope) else "/".join((own, *_parts(each.scope)))
            mine.append(each.model_copy(update={"scope": path}))
        return {
            **arguments,
            **({"records": mine} if "records" in arguments else {"record": mine[0]}),
        }

    def ids(self, arguments: Arguments) -> list[str]:
        """Return the ids of the records that a call changes or deletes, if it names them."""
        own = [each.id for each in written(arguments)]
        return [*own, *(arguments.get("record_ids") or ())]

    def only(self, answer: Any, customer: str) -> Any:
        """Return *answer* without records that are not *customer*'s."""
        return _kept(answer, lambda each: self.of(each.scope) == customer)

    def summary(self, answer: Any, _arguments: Arguments) -> Summary:
        """Return how many records, or names, were found; of records, their ids and owners."""
        found = records_of(answer)
        owners = tuple(owner for each in found if (owner := self.of(each.scope)))
        hits = len(answer) if is_list(answer) or is_dict(answer) else len(found)
        return Summary(hits, tuple(each.id for each in found), owners=owners)


def refuse(_arguments: Arguments, _customer: str) -> Arguments:
    """Refuse a call in a customer's context: a storage takes any id, and ``/c-10`` for ``/c-1``."""
    raise ScopeError("tenancy is enforced: CrewAI's storages do not confine this to one customer")


def by_ids(arguments: Arguments, customer: str) -> Arguments:
    """Return a call by ids as it is, since whose they are is looked up. Refuse any other."""
    return arguments if arguments.get("record_ids") else refuse(arguments, customer)


def content(arguments: Arguments) -> Arguments:
    """Return what the trail keeps: what is written. A search has a vector, and no query."""
    told = [{"text": each.content, "metadata": each.metadata} for each in written(arguments)]
    return {"records": told} if told else {}

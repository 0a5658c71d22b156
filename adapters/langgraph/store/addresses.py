"""
Namespaces and keys: the addresses of LangGraph's store, which must survive their own redaction.

What replaces an address must tell two people apart and find the same item tomorrow. So a label or
key that holds personal data becomes ``<KEY_…>``, a keyed digest of the whole of it: a tag would let
``"notes on Ada"`` overwrite ``"notes on Grace"``. What holds none stays as it is, and so does the
label that is said to be the customer's id, like ``user_id`` in other stores.

Nothing of this depends on the context of a call, the customer and the identifiers known of it: an
item that was written on a customer's behalf is found by the job that runs on nobody's.
"""

from __future__ import annotations

import hmac
import re
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache, partial
from itertools import chain
from operator import is_
from typing import Any, Final, TypeAlias, TypeGuard, cast

from langgraph.store.base import (
    GetOp,
    ListNamespacesOp,
    MatchCondition,
    NotProvided,
    PutOp,
    SearchOp,
)

from ....memory.context import Scope
from ....memory.errors import ScopeError
from ....memory.guard.operation import Arguments
from ....memory.privacy.engine.redaction import Redaction
from ....memory.privacy.engine.redactor import Redactor
from ...toolkit.public import KnownPublic

Labels: TypeAlias = tuple[Any, ...] | list[Any]
_Counts: TypeAlias = tuple[tuple[str, int], ...]

ANY: Final = "*"
"""LangGraph's own wildcard in the prefixes and suffixes of ``list_namespaces``."""

_OURS = re.compile(r"<KEY_[0-9a-f]{16}>")
_DIGEST_BYTES = 8
_REMEMBERED = 8_192
_OPS = (GetOp, SearchOp, PutOp, ListNamespacesOp)
_WHOLE_PATHS = ("namespace",)
_PREFIXES = ("namespace_prefix", "prefix")


class Addresses:
    """
    Reader and redactor of one store's addresses.

    Args:
        key: Keys the digests: the same secret finds the same items.
        customer_at: Index of the label that is the customer's id, or None where none is.
        public: What holds nobody's data: all, or namespaces that begin with one of these labels.
    """

    def __init__(
        self,
        key: bytes,
        redactor: Redactor,
        customer_at: int | None = None,
        *,
        public: KnownPublic = False,
    ) -> None:
        self.customer_at = customer_at
        self.public = public
        self._holds_nobodys = partial(are_public, public)
        self._key = key
        self._redactor = redactor
        self._judged = lru_cache(maxsize=_REMEMBERED)(self._judge)
        self._judged_path = lru_cache(maxsize=_REMEMBERED)(self._judge_path)

    def redact(self, arguments: Arguments, redaction: Redaction) -> Arguments:
        """Return the arguments of any verb, or the fields of any operation, redacted."""
        kinds = _KINDS
        return {
            name: kinds[name](self, value, redaction)
            if name in kinds
            else value
            if value.__class__ in _HARMLESS
            else redaction.value(value)
            for name, value in arguments.items()
        }

    def ops(self, ops: Any, redaction: Redaction) -> Any:
        """Return the operations of ``batch``, redacted, in a new list."""
        if not isinstance(ops, Iterable) or isinstance(ops, str):
            return redaction.value(ops)  # the store says what is wrong with it
        return [self._one_op(each, redaction) for each in cast("Any", ops)]

    def _one_op(self, op: Any, redaction: Redaction) -> Any:
        if not is_op(op):
            return redaction.value(op)  # the store says what is wrong with it
        return op._replace(**self.redact(op._asdict(), redaction))

    def conditions(self, conditions: Any, redaction: Redaction) -> Any:
        """Return the match conditions of ``list_namespaces``, redacted."""
        if not isinstance(conditions, (list, tuple)):
            return redaction.value(conditions)
        return tuple(self._condition(each, redaction) for each in cast("Any", conditions))

    def _condition(self, condition: Any, redaction: Redaction) -> Any:
        if not isinstance(condition, MatchCondition):
            return redaction.value(condition)
        path: Any = self.namespace(condition.path, redaction)
        return condition._replace(path=path)

    def namespace(self, labels: Any, redaction: Redaction) -> Any:
        """Return a namespace, prefix or suffix, redacted label by label."""
        if not is_labels(labels):
            return redaction.value(labels)
        path: Any = labels
        if self.customer_at is None and path.__class__ is tuple:
            try:
                # Namespaces repeat with each call, and their judgement takes longer than the call.
                redacted, counts = self._judged_path(path)
            except TypeError:  # not all of them are text, or can be looked up
                pass
            else:
                if counts:
                    _add_counts(redaction, counts)
                return redacted
        owner = self._owner(labels)
        label = self.label
        return type(labels)([each if each is owner else label(each, redaction) for each in labels])

    def label(self, label: Any, redaction: Redaction) -> Any:
        """Return a label or key, or its digest if it holds personal data."""
        if not isinstance(label, str):
            return self._redactor.begin().value(label)  # the store says what is wrong with it
        redacted, counts = self._judged(label)
        if counts:
            _add_counts(redaction, counts)
        return redacted

    def _judge_path(self, labels: tuple[str, ...]) -> tuple[tuple[str, ...], _Counts]:
        """
        Return the labels of a namespace, redacted, and what was replaced in them.

        Raises:
            TypeError: One of them is no text.
        """
        if not all(each.__class__ is str for each in labels):
            raise TypeError
        judged = [self._judged(each) for each in labels]
        return tuple(label for label, _ in judged), tuple(chain(*(counts for _, counts in judged)))

    def _judge(self, label: str) -> tuple[str, _Counts]:
        # A digest is not digested again: what is listed may be given back as an address.
        if label == ANY or _OURS.fullmatch(label):
            return label, ()
        # Without the call's customer: who asks must not decide what an item is called.
        finding = self._redactor.begin()
        if finding.value(label) == label:
            return label, ()
        # A lone surrogate in a key has to have a digest, too.
        message = label.encode("utf-8", "surrogatepass")
        digest = hmac.digest(self._key, message, "sha256")[:_DIGEST_BYTES]
        return f"<KEY_{digest.hex()}>", tuple(finding.counts.items())

    def scope(self, arguments: Arguments) -> Scope:
        """
        Return the customer that the addresses name.

        Raises:
            ScopeError: The label that should name the customer is a wildcard or not text.
        """
        owners = {owner for path in _paths(arguments) if (owner := self._named(path)) is not None}
        # Several are nobody's in particular; each is known, so that it is redacted.
        customer = next(iter(owners)) if len(owners) == 1 else None
        return Scope(customer=customer, known=tuple(sorted(owners)))

    def whose(self, arguments: Arguments) -> Iterator[tuple[str | None, Arguments]]:
        """Yield the owner of the item that ``put`` writes, with its arguments."""
        labels = arguments.get("namespace")
        owner = self._owner(labels) if is_labels(labels) else None
        yield (owner if isinstance(owner, str) else None), arguments

    def _named(self, labels: Labels) -> str | None:
        owner = self._owner(labels)
        if owner is None or (isinstance(owner, str) and owner != ANY):
            return owner
        raise ScopeError(
            f"namespace label {self.customer_at} names the customer: it must be text and not '*'"
        )

    def _owner(self, labels: Labels) -> Any:
        if self.customer_at is None or self._holds_nobodys(labels):
            return None
        try:
            return labels[self.customer_at]
        except IndexError:
            return None

    def is_public(self, arguments: Arguments) -> bool:
        """Tell whether all that a call reads and writes is nobody's."""
        paths = _paths(arguments)
        return _is_addressed(arguments) and bool(paths) and all(map(self._holds_nobodys, paths))

    def confine(self, arguments: Arguments, customer: str) -> Arguments:
        """
        Return *arguments* if they name *customer* alone.

        Raises:
            ScopeError: They address somebody else's items, or one item that is nobody's.
        """
        if not _is_addressed(arguments):
            raise ScopeError("the call has no namespace that can be read")
        for labels in _paths(arguments):
            # None may be a prefix, too short to name anybody: what is found below it is sifted.
            if self._owner(labels) not in {customer, None}:
                raise ScopeError("the namespace is another customer's")
        if any(map(self._holds_nobodys, _written_paths(arguments))):
            raise ScopeError("an item of what is wrapped as public is written in their context")
        for labels in _whole_paths(arguments):
            if self._owner(labels) is None and not self._holds_nobodys(labels):
                raise ScopeError(f"the namespace has no label {self.customer_at}: it is nobody's")
        return arguments

    def only(self, result: Any, customer: str) -> Any:
        """Return the result of any verb without the items and namespaces of other customers."""
        if not isinstance(result, list):
            return result if self._is_for(result, customer) else None
        listed: list[Any] = [*cast("Any", result)]
        kept = [self.only(each, customer) for each in listed if self._is_for(each, customer)]
        # The store's own list where nothing was left out, as it would be without a guard.
        unchanged = len(kept) == len(listed) and all(map(is_, kept, listed))
        return cast("Any", result) if unchanged else kept

    def _is_for(self, found: Any, customer: str) -> bool:
        labels = getattr(found, "namespace", found)
        if not is_labels(labels) or isinstance(labels, list) or self._holds_nobodys(labels):
            return True
        return bool(self._owner(labels) == customer)

    def owners(self, items: list[Any]) -> tuple[str, ...]:
        """Return the owners of *items*, as far as they have one."""
        named = (self._owner(item.namespace) for item in items)
        return tuple(owner for owner in named if isinstance(owner, str))


def _add_counts(redaction: Redaction, counts: _Counts) -> None:
    for entity, count in counts:
        redaction.counts[entity] = redaction.counts.get(entity, 0) + count


def _value(_self: Addresses, value: Any, redaction: Redaction) -> Any:
    return redaction.value(value)


def _text(_self: Addresses, text: Any, redaction: Redaction) -> Any:
    return redaction.text(text) if isinstance(text, str) else redaction.value(text)


def _index(_self: Addresses, paths: Any, redaction: Redaction) -> Any:
    """Return the paths of fields to embed, redacted as the keys of values are."""
    if not isinstance(paths, (list, tuple)):
        return redaction.value(paths)
    given: list[Any] = list(cast("Any", paths))
    return [_path(p, redaction) if isinstance(p, str) else redaction.value(p) for p in given]


def _path(path: str, redaction: Redaction) -> str:
    # Each field is read alone, as in a value; and all of them as one text, since an address may
    # have a period in it, at which the store parts fields.
    return redaction.label(_FIELD.sub(lambda found: redaction.label(found[0]), path))


_FIELD = re.compile(r"[^.,\[\]{}]+")


@lru_cache(maxsize=_REMEMBERED)
def path_of(labels: tuple[Any, ...]) -> str:
    """Return the labels of a namespace as one text, which no other namespace has."""
    return "/".join([str(each).replace("%", "%25").replace("/", "%2F") for each in labels])


def label_of(part: str) -> str:
    """Return the label that is a *part* of such a text."""
    return part.replace("%2F", "/").replace("%25", "%")


def are_public(public: KnownPublic, labels: Labels) -> bool:
    """Tell whether what a namespace of these *labels* holds is nobody's."""
    if isinstance(public, bool):
        return public
    first = labels[0] if labels else None
    return isinstance(first, str) and first in public


def is_labels(value: Any) -> TypeGuard[Labels]:
    """Tell whether *value* can be a namespace."""
    return isinstance(value, (tuple, list))


def is_op(value: Any) -> bool:
    """Tell whether *value* is an operation of `BaseStore.batch`."""
    return isinstance(value, _OPS)


def _paths(arguments: Arguments) -> list[Labels]:
    return _named_paths(arguments, (*_WHOLE_PATHS, *_PREFIXES))


def _whole_paths(arguments: Arguments) -> list[Labels]:
    return _named_paths(arguments, _WHOLE_PATHS)


def _written_paths(arguments: Arguments) -> list[Labels]:
    """Return the namespaces of the items that a batch writes."""
    ops: list[Any] = arguments.get("ops") or []
    puts = [each for each in ops if isinstance(each, PutOp) and each.value is not None]
    return [each.namespace for each in puts if is_labels(each.namespace)]


def _is_addressed(arguments: Arguments) -> bool:
    """Return whether every item in *arguments* has a namespace, where its verb needs one."""
    ops: Any = arguments.get("ops")
    if ops is not None:
        return is_labels(ops) and all(map(is_op, ops))
    names = (*_WHOLE_PATHS, *_PREFIXES)
    found = [arguments[name] for name in names if name in arguments]
    return all(map(is_labels, found)) and (bool(found) or not arguments.keys() & _ITEM)


_ITEM = frozenset({"key", "value", "index", "query", "filter"})
"""Parameters of verbs that need a namespace."""


def _named_paths(arguments: Arguments, names: tuple[str, ...]) -> list[Labels]:
    several = [arguments]
    if "ops" in arguments:
        several += [each._asdict() for each in arguments["ops"] if is_op(each)]
    paths = [one.get(name) for one in several for name in names]
    return [path for path in paths if is_labels(path)]


_KINDS: dict[str, Callable[[Addresses, Any, Redaction], Any]] = {
    "namespace": Addresses.namespace,
    "namespace_prefix": Addresses.namespace,
    "prefix": Addresses.namespace,
    "suffix": Addresses.namespace,
    "match_conditions": Addresses.conditions,
    "key": Addresses.label,
    "value": _value,
    "filter": _value,
    "index": _index,
    "query": _text,
    "ops": Addresses.ops,
}
"""Redaction by parameter. All others are redacted as values."""

_HARMLESS = frozenset({type(None), bool, int, float, NotProvided})
"""Types of the values that carry no text: limits, offsets, times to live."""

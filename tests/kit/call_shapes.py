"""Every shape that a client's method and a call of it can have, and what a guard makes of each."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Iterator, Mapping
from functools import partialmethod
from typing import Any, NamedTuple

from langgraph.checkpoint.memory import InMemorySaver
from langgraph.store.memory import InMemoryStore
from mem0 import AsyncMemory, AsyncMemoryClient, Memory, MemoryClient
from qdrant_client import AsyncQdrantClient, QdrantClient

from mnemoscope.memory import ScopeError, context
from mnemoscope.memory.api import Method
from mnemoscope.memory.testing import AdapterCase
from mnemoscope.memory.testing.adapter_trial import Trial, trial
from tests.kit import adapter_cases

PERSONAL = "ada.lovelace@example.com"
CUSTOMER = adapter_cases.CUSTOMER

Arguments = dict[str, Any]
Super = Callable[..., Any]


class Kind(NamedTuple):
    """
    A client whose methods are given shapes.

    Attributes:
        client: Its class.
        case: Makes its case, of a subclass.
        stubs: Calls of methods that the client in memory cannot do, which stop at the spy.
        twins: Whether its table has both kinds of methods, and which of them are called.
    """

    client: type
    case: Callable[[type], AdapterCase]
    stubs: Mapping[str, Arguments]


_HERE = {"collection_name": adapter_cases.COLLECTION}
_SERVERS = {
    "delete_shard_key": {**_HERE, "shard_key": "a"},
    "create_payload_index": {**_HERE, "field_name": PERSONAL},
    "delete_payload_index": {**_HERE, "field_name": PERSONAL},
    "delete_vector_name": {**_HERE, "vector_name": "a"},
}
_SAVERS = {
    "copy_thread": {"source_thread_id": "t-1", "target_thread_id": "t-2"},
    "delete_for_runs": {"run_ids": ["r-1"]},
    "prune": {"thread_ids": ["t-1"]},
    "get": {"config": {"configurable": {"thread_id": "t-1", "checkpoint_ns": ""}}},
}

KINDS: Mapping[str, Kind] = {
    "mem0-sync": Kind(Memory, adapter_cases.memory_case, {}),
    "mem0-async": Kind(AsyncMemory, adapter_cases.memory_case, {"reset": {}}),
    "mem0-hosted-sync": Kind(MemoryClient, adapter_cases.hosted_case, {}),
    "mem0-hosted-async": Kind(AsyncMemoryClient, adapter_cases.hosted_case, {}),
    "qdrant-sync": Kind(QdrantClient, adapter_cases.qdrant_case, _SERVERS),
    "qdrant-async": Kind(AsyncQdrantClient, adapter_cases.qdrant_case, _SERVERS),
    "store-sync": Kind(
        InMemoryStore, lambda kind: adapter_cases.store_case(kind, is_async=False), {}
    ),
    "store-async": Kind(
        InMemoryStore, lambda kind: adapter_cases.store_case(kind, is_async=True), {}
    ),
    "checkpoint-sync": Kind(
        InMemorySaver, lambda kind: adapter_cases.checkpoint_case(kind, is_async=False), _SAVERS
    ),
    "checkpoint-async": Kind(
        InMemorySaver,
        lambda kind: adapter_cases.checkpoint_case(kind, is_async=True),
        {f"a{name}": arguments for name, arguments in _SAVERS.items()},
    ),
}


# -- shapes of methods -----------------------------------------------------------------------------


def _plain(name: str, method: Any, received: Super) -> Any:
    """Override with the client's own signature."""
    return _renamed(name, method, received, prefix="")


def _renamed(name: str, method: Any, received: Super, *, prefix: str = "my_") -> Any:
    """Override with other names for all that can be given by position."""
    parameters = [*inspect.signature(method).parameters.values()][1:]
    positional = [each for each in parameters if each.kind in _BY_POSITION]
    declared = ", ".join(f"{prefix}{each.name}=_ABSENT" for each in positional)
    named = ", ".join(f"({each.name!r}, {prefix}{each.name})" for each in positional)
    source = f"""
def {name}(self, {declared + ", " if declared else ""}**others):
    given = {{key: value for key, value in ({named}{"," if named else ""}) if value is not _ABSENT}}
    return received(self, given, others)
"""
    made: dict[str, Any] = {"_ABSENT": object(), "received": _by_name(method, received)}
    exec(source, made)  # noqa: S102 - a signature with names that are not known before
    return made[name]


_BY_POSITION = {inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD}


def _by_name(method: Any, received: Super) -> Super:
    signature = inspect.signature(method)

    def call(self: Any, given: Arguments, others: Arguments) -> Any:
        bound = signature.bind_partial(self)
        bound.arguments.update(given)
        return received(self, *bound.args[1:], **bound.kwargs, **others)

    return call


def _star(_name: str, _method: Any, received: Super) -> Any:
    """Override that takes anything, of the same kind as what it overrides."""

    async def awaited(self: Any, *args: Any, **kwargs: Any) -> Any:
        return await received(self, *args, **kwargs)

    def called(self: Any, *args: Any, **kwargs: Any) -> Any:
        return received(self, *args, **kwargs)

    return awaited if inspect.iscoroutinefunction(received) else called


def _decorated(name: str, method: Any, received: Super) -> Any:
    """Override by a decorator without ``wraps``, which has not even a ``self``."""
    inside = _plain(name, method, received)

    def wrapper(*args: Any, **kwargs: Any) -> Any:
        return inside(*args, **kwargs)

    return wrapper


def _property(_name: str, _method: Any, received: Super) -> Any:
    """Override by a property that makes the method."""
    return property(lambda self: lambda *args, **kwargs: received(self, *args, **kwargs))


def _partial(_name: str, _method: Any, received: Super) -> Any:
    """Override by a partial method."""

    def tagged(self: Any, _tag: str, *args: Any, **kwargs: Any) -> Any:
        return received(self, *args, **kwargs)

    return partialmethod(tagged, "tag")


def _of_object(_name: str, _method: Any, received: Super) -> Any:
    """Return what `make` gives the object for an attribute."""
    return _Attribute(received)


class _Attribute(NamedTuple):
    received: Super


SHAPES: Mapping[str, Callable[[str, Any, Super], Any]] = {
    "plain": _plain,
    "renamed": _renamed,
    "star": _star,
    "decorated": _decorated,
    "property": _property,
    "partialmethod": _partial,
    "attribute": _of_object,
}
WAYS = ("position", "keyword", "surplus")
"""How each is called: ``surplus`` is by keyword, with one more argument by a name of its own."""

TENANCIES = ("observe", "enforce")
CELLS = len(SHAPES) * len(WAYS) * len(TENANCIES)
"""For each method of each kind of client."""


def shaped(kind: Kind, shape: str, received: list[str]) -> type:
    """Return a subclass of *kind* whose methods have *shape* and record what they are given."""
    made: dict[str, Any] = {}
    attributes: dict[str, Any] = {}
    for name in methods_of(kind):
        method = getattr(kind.client, name)
        member = SHAPES[shape](name, method, _spy(kind, name, method, received))
        if isinstance(member, _Attribute):
            attributes[name] = member.received
        else:
            made[name] = member
    shaped_kind = type(f"{shape.title()}{kind.client.__name__}", (kind.client,), made)
    if not attributes:
        return shaped_kind

    def initialised(self: Any, *args: Any, **kwargs: Any) -> None:
        kind.client.__init__(self, *args, **kwargs)  # type: ignore[misc]
        for name, spy in attributes.items():
            vars(self)[name] = lambda *a, spy=spy, **k: spy(self, *a, **k)

    return type(shaped_kind.__name__, (shaped_kind,), {"__init__": initialised})


def _spy(kind: Kind, name: str, method: Any, received: list[str]) -> Super:
    is_stub = name in kind.stubs

    def spy(self: Any, *args: Any, **kwargs: Any) -> Any:
        received.append(f"{args!r} {kwargs!r}")
        kwargs.pop("note_to_self", None)
        return None if is_stub else method(self, *args, **kwargs)

    async def aspy(self: Any, *args: Any, **kwargs: Any) -> Any:
        answer = spy(self, *args, **kwargs)
        return await answer if inspect.isawaitable(answer) else answer

    return aspy if inspect.iscoroutinefunction(method) else spy


def methods_of(kind: Kind) -> dict[str, Callable[[str], Arguments]]:
    """Return the calls of all methods of *kind*, by name, stubs first: what deletes comes last."""
    stubs = {name: lambda _text, each=each: {**each} for name, each in kind.stubs.items()}
    return stubs | dict(kind.case(kind.client).calls)


# -- the matrix ------------------------------------------------------------------------------------


class Breach(NamedTuple):
    """One cell of the matrix in which something went past the guard."""

    method: str
    shape: str
    way: str
    tenancy: str
    what: str


def breaches(kind: Kind, shape: str, way: str, tenancy: str) -> Iterator[Breach]:
    """Yield the breaches of all methods of *kind* that have *shape*, called in one *way*."""
    received: list[str] = []
    client = shaped(kind, shape, received)
    with asyncio.Runner() as runner, trial(kind.case(client), runner, tenancy=tenancy) as tried:
        for name, arguments in methods_of(kind).items():
            row = tried.rows[name]
            method = row if isinstance(row, Method) else row(arguments(""))
            is_owned = tenancy == "enforce" and not method.unconfined
            call = _Call(tried, kind, name, shape, way, received, is_owned=is_owned)
            found = list(call.foreign(arguments("tea"))) if is_owned else []
            found += call.own(arguments(PERSONAL))
            yield from (Breach(name, shape, way, tenancy, each) for each in found)


class _Call:
    def __init__(
        self,
        tried: Trial,
        kind: Kind,
        name: str,
        shape: str,
        way: str,
        received: list[str],
        *,
        is_owned: bool,
    ) -> None:
        self._is_owned = is_owned
        self._tried, self._kind, self._name = tried, kind, name
        self._shape, self._way, self._received = shape, way, received

    @property
    def _is_strange(self) -> bool:
        """Whether an argument has a name that neither the client nor its subclass declares."""
        parameters = inspect.signature(getattr(self._kind.client, self._name)).parameters.values()
        return self._way == "surplus" and all(
            each.kind is not each.VAR_KEYWORD for each in parameters
        )

    def own(self, arguments: Arguments) -> Iterator[str]:
        """Yield what is wrong with the call of the customer whose data it is about."""
        answer = self._make(arguments, CUSTOMER)
        if PERSONAL in "".join(self._received):
            yield "raw content reaches the store"
        if self._is_owned and self._is_strange and not isinstance(answer, ScopeError):
            yield "a call that nobody can understand is not refused"
        if not self._received and not (self._is_owned and isinstance(answer, ScopeError)):
            yield f"it does not reach the store ({type(answer).__name__})"
        yield from self._told()

    def foreign(self, arguments: Arguments) -> Iterator[str]:
        """Yield what is wrong with the same call in the context of somebody else."""
        answer = self._make(arguments, "somebody-else")
        if CUSTOMER in repr(answer) and not isinstance(answer, Exception):
            yield "another customer's data is handed out"
        yield from self._told()

    def _make(self, arguments: Arguments, customer: str) -> Any:
        self._received.clear()
        args, kwargs = self._shaped(arguments)
        try:
            with context(customer=customer):
                return self._tried.settled(getattr(self._tried.client, self._name)(*args, **kwargs))
        except Exception as exc:  # noqa: BLE001 - whatever it is, it is looked at
            return exc

    def _told(self) -> Iterator[str]:
        events = self._tried.events()
        if len(events) != 1:
            yield f"it is told in {len(events)} events"
        if PERSONAL in "".join(
            f"{each!r}{each.content and each.content.value!r}" for each in events
        ):
            yield "raw content is in its event"

    def _shaped(self, arguments: Arguments) -> tuple[list[Any], Arguments]:
        """Return the arguments as this way of calling gives them."""
        named, in_order = dict(arguments), list[Any]()
        parameters = inspect.signature(getattr(self._kind.client, self._name)).parameters.values()
        for each in [*parameters][1:]:
            if each.name not in named or each.kind not in _BY_POSITION:
                break
            if self._way != "position" and each.kind is not each.POSITIONAL_ONLY:
                break
            in_order.append(named.pop(each.name))
        if self._shape == "renamed":
            own = {each.name for each in parameters if each.kind in _BY_POSITION}
            named = {f"my_{key}" if key in own else key: named[key] for key in named}
        if self._way == "surplus":
            named["note_to_self"] = PERSONAL
        return in_order, named

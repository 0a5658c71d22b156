"""
Guards for an application written without mnemoscope, by patching its clients' classes.

A client becomes guarded as its constructor ends: it is made an instance of the guarded subclass,
and its state moves to an unguarded twin behind it. So every reference to it is guarded, and
its calls of its own methods are not seen twice. Clients that a client builds for itself, as mem0
builds one of Qdrant, stay as they are: the operation is the outer one's.

LangGraph's stores and checkpointers become guarded as they are made too, in a graph or without one.
Some hand themselves to a task of their own while they are made, so theirs is the twin's
construction. Those of other classes' making are guarded as they are handed to a graph.

Clients that existed before stay as they are, and those that were made meanwhile stay guarded.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial, wraps
from importlib import import_module
from importlib.util import find_spec
from inspect import signature
from typing import TYPE_CHECKING, Any, cast

from ...memory.default_scope import current_scope
from ..toolkit.proxy import INSTRUMENTED, guard_of
from ..toolkit.registry import installed_adapters

if TYPE_CHECKING:
    from ...memory.api import StoreAdapter
    from ...memory.scope import Mnemoscope

_constructing: ContextVar[bool] = ContextVar("mnemoscope_constructing", default=False)
_lock = threading.Lock()


def _make_plain(kind: Any, *_args: Any, **_kwargs: Any) -> Any:
    return object.__new__(kind)


_PLAIN_NEW = staticmethod(_make_plain)
"""In a class that was patched and restored: it makes objects as `object` does."""


class _Patch:
    """One replaced attribute of a class, which can be restored."""

    def __init__(self, owner: type, name: str, replacement: Any) -> None:
        self._owner, self._name = owner, name
        self._own = vars(owner).get(name)
        setattr(owner, name, replacement)

    def undo(self) -> None:
        """
        Restore the class as it was: an inherited attribute is inherited again.

        But for ``__new__``: Python does not give a class its base's constructor back, and what
        deleting it leaves takes no arguments (python/cpython#105888).
        """
        # Once a class has had a __new__ of its own, object's refuses arguments, even when it is
        # gone.
        if self._name == "__new__":
            setattr(self._owner, self._name, _PLAIN_NEW)
        elif self._own is None:
            delattr(self._owner, self._name)
        else:
            setattr(self._owner, self._name, self._own)


_patches: list[_Patch] = []


def instrument(
    scope: Mnemoscope | None = None,
    *,
    owner_key: str | None = None,
    customer_at: int | None = None,
) -> tuple[str, ...]:
    """
    Guard every client of mem0 and Qdrant, and everything of LangGraph, that is made from now on.

    Of LangGraph these are stores, checkpointers and compiled graphs.

    Calling it again changes nothing. Clients that are wrapped explicitly are not guarded twice:
    the explicit wrapper wins.

    Args:
        scope: Makes the guards. None: the scope of `configure`, or one from the environment.
        owner_key: As for `Mnemoscope.qdrant`.
        customer_at: As for `Mnemoscope.store`.

    Returns:
        The packages that were found: of ``mem0``, ``qdrant_client`` and ``langgraph``.

    Raises:
        ConfigurationError: Without *scope*, where a setting makes no sense.
    """
    with _lock:
        of = scope or current_scope()
        found = tuple(name for name in ("mem0", "qdrant_client", "langgraph") if find_spec(name))
        if _patches or of.is_disabled:
            return found
        for adapter in installed_adapters():
            if adapter.instruments:
                options: dict[str, Any] = (
                    {"owner_key": owner_key} if adapter.store == "qdrant" else {}
                )
                _patch_clients(adapter, partial(of.guard, **options), of)
        if "langgraph" in found:
            _patch_langgraph(of, customer_at)
        return found


def uninstrument() -> None:
    """Restore every class as `instrument` found it. Guarded clients stay guarded."""
    with _lock:
        while _patches:
            _patches.pop().undo()


def _patch_clients(adapter: StoreAdapter, guarded: Callable[[Any], Any], scope: Mnemoscope) -> None:
    if adapter.prepare is not None:
        adapter.prepare()
    for kind in adapter.client_types:
        _patch_constructor(kind, guarded, scope)


def _patch_constructor(kind: type, guarded: Callable[[Any], Any], scope: Mnemoscope) -> None:
    original: Callable[..., None] = cast("Any", kind).__init__

    @wraps(original)
    def initialised(self: Any, *args: Any, **kwargs: Any) -> None:
        is_part = _constructing.get()
        with _building():
            original(self, *args, **kwargs)
        # A client that another one makes for itself is a part of it, and called by it.
        if not is_part and guard_of(self) is None:
            _become(self, guarded, scope)

    _patches.append(_Patch(kind, "__init__", initialised))


@contextmanager
def _building() -> Generator[None]:
    token = _constructing.set(True)
    try:
        yield
    finally:
        _constructing.reset(token)


def _class_of(client: object) -> type[object]:
    return type(client)


def _nothing(_self: object) -> None:
    return


def _become(client: Any, guarded: Callable[[Any], Any], scope: Mnemoscope) -> None:
    """Turn *client* into a guarded one, with an unguarded twin behind; if that fails, leave it."""
    kind = _class_of(client)
    inner = object.__new__(kind)
    try:
        # Shared and not copied: locks and connections must be the same.
        inner.__dict__ = client.__dict__
        proxy = guarded(inner)
    except Exception as exc:  # noqa: BLE001 - an application that never asked for us must not fail
        # Else the finaliser of what shares the client's state would close the client.
        inner.__class__ = type(kind.__name__, (kind,), {"__del__": _nothing})
        scope.note_fault("instrument", exc)
        return
    client.__dict__ = {**vars(proxy), INSTRUMENTED: True}
    client.__class__ = type(proxy)


def _patch_langgraph(scope: Mnemoscope, customer_at: int | None) -> None:
    checkpoints: Any = import_module("langgraph.checkpoint.base")
    stores: Any = import_module("langgraph.store.base")
    _patch_parts(checkpoints.BaseCheckpointSaver, scope.checkpointer, scope)
    _patch_parts(stores.BaseStore, partial(scope.store, customer_at=customer_at), scope)
    _patch_graphs(scope, customer_at)


def _patch_parts(base: Any, guarded: Callable[[Any], Any], scope: Mnemoscope) -> None:
    """Patch the constructor of every subclass of *base*: those there are, and those to come."""

    def subclassed(kind: Any, /, **options: Any) -> None:
        cast("Any", super(base, kind)).__init_subclass__(**options)
        _patch_part(kind, guarded, scope)

    # A saver is whatever subclass an application brings, also one that is defined later.
    for known in _subclasses(base):
        _patch_part(known, guarded, scope)
    _patches.append(_Patch(base, "__init_subclass__", classmethod(subclassed)))


def _subclasses(base: type) -> Iterator[type]:
    found: list[type] = base.__subclasses__()
    for kind in found:
        yield kind
        yield from _subclasses(kind)


def _patch_part(kind: Any, guarded: Callable[[Any], Any], scope: Mnemoscope) -> None:
    if "__init__" not in vars(kind):
        return  # its base's is patched; or it is a guarded class of ours
    original: Callable[..., None] = kind.__init__

    @wraps(original)
    def initialised(self: Any, *args: Any, **kwargs: Any) -> None:
        if guard_of(self) is not None:
            return  # by `made`, below
        if _constructing.get() or not _has_dict(_class_of(self)):
            original(self, *args, **kwargs)
            return
        twin = object.__new__(_class_of(self))
        with _building():
            original(twin, *args, **kwargs)
        proxy = _guarded_or_none(twin, guarded, scope)
        if proxy is None:
            # Not the twin's state: what it started knows the twin.
            original(self, *args, **kwargs)
            return
        self.__dict__ = {**vars(proxy), INSTRUMENTED: True}
        self.__class__ = _class_of(proxy)

    _patches.append(_Patch(kind, "__init__", initialised))
    if _has_dict(kind) or kind.__new__ not in {object.__new__, _make_plain}:
        return

    def made(cls: Any, *args: Any, **kwargs: Any) -> Any:
        bare = object.__new__(cls)
        if _constructing.get() or _has_dict(cls):
            return bare
        with _building():
            bare.__init__(*args, **kwargs)
        proxy = _guarded_or_none(bare, guarded, scope)
        if proxy is None:
            return bare
        vars(proxy)[INSTRUMENTED] = True
        return proxy

    # What has slots cannot change its class: another object is made in its place.
    _patches.append(_Patch(kind, "__new__", staticmethod(made)))


def _has_dict(kind: type) -> bool:
    return kind.__dictoffset__ != 0


def _guarded_or_none(client: Any, guarded: Callable[[Any], Any], scope: Mnemoscope) -> Any:
    try:
        return guarded(client)
    except Exception as exc:  # noqa: BLE001 - an application that never asked for us must not fail
        scope.note_fault("instrument", exc)
        return None


def _patch_graphs(scope: Mnemoscope, customer_at: int | None) -> None:
    graphs: Any = import_module("langgraph.graph.state")  # it ships no types
    functions: Any = import_module("langgraph.func")
    compiled: Callable[..., Any] = graphs.StateGraph.compile
    guarded = _guarding(compiled, scope, customer_at)

    @wraps(compiled)
    def watched(*args: Any, **kwargs: Any) -> Any:
        return _watched(guarded(*args, **kwargs), scope)

    _patches.append(_Patch(graphs.StateGraph, "compile", watched))
    made: Callable[..., Any] = functions.entrypoint.__init__
    _patches.append(_Patch(functions.entrypoint, "__init__", _guarding(made, scope, customer_at)))


def _watched(graph: Any, scope: Mnemoscope) -> Any:
    try:
        return scope.runnable(graph)
    except Exception as exc:  # noqa: BLE001 - an application that never asked for us must not fail
        scope.note_fault("instrument", exc)
        return graph


def _guarding(
    original: Callable[..., Any], scope: Mnemoscope, customer_at: int | None
) -> Callable[..., Any]:
    parameters = signature(original)

    @wraps(original)
    def called(*args: Any, **kwargs: Any) -> Any:
        try:
            bound = parameters.bind(*args, **kwargs)
        except TypeError:
            return original(*args, **kwargs)  # raises its own
        given = bound.arguments
        for name in ("checkpointer", "store"):
            if name in given:
                given[name] = _guarded_part(given[name], scope, customer_at)
        return original(*bound.args, **bound.kwargs)

    return called


def _guarded_part(part: Any, scope: Mnemoscope, customer_at: int | None) -> Any:
    checkpoints: Any = import_module("langgraph.checkpoint.base")
    stores: Any = import_module("langgraph.store.base")
    if guard_of(part) is not None:
        return part
    try:
        if isinstance(part, checkpoints.BaseCheckpointSaver):
            return scope.checkpointer(part)
        if isinstance(part, stores.BaseStore):
            return scope.store(part, customer_at=customer_at)
    except Exception as exc:  # noqa: BLE001 - an application that never asked for us must not fail
        scope.note_fault("instrument", exc)
    return part

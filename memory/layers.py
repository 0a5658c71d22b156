"""
What is set for a body of code: a `ContextVar` whose values are left in any order, and its manager.

A token of a `ContextVar` puts back what was there when the body began. Generators that take turns
end in another order than they began: by tokens, the value of one that has ended would come back,
and that of one that still runs would be gone.
"""

from __future__ import annotations

import inspect
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import AbstractContextManager
from contextvars import ContextVar, Token
from functools import partial, wraps
from typing import Any, Final, Generic, TypeVar, cast

T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., Any])

_MIXED: Final = (
    "a %s was left while one was open that began later, as by generators that take turns, or in "
    "another task or thread than it began in. What was called meanwhile may have been taken for "
    "that of another. As a decorator of the generator, as @context(...), it holds just while that "
    "runs"
)


class Layers(Generic[T]):
    """
    The value that code runs with: the innermost of those that it has entered and not left.

    It follows tasks and threads as any `ContextVar` does.

    Args:
        name: What is entered, in the words of a user.
        nothing: The value outside.

    Attributes:
        get: Returns the value. Not a function of ours: each call asks.
    """

    def __init__(self, name: str, nothing: T) -> None:
        self._name, self._nothing = name, nothing
        value: ContextVar[T] = ContextVar(f"mnemoscope_{name}", default=nothing)
        # One by one, since each task and thread has layers of its own from where it began.
        self._layers: ContextVar[tuple[_Layer[T], ...]] = ContextVar(
            f"mnemoscope_{name}_layers", default=()
        )
        self.get: Callable[[], T] = value.get
        self._set = value.set
        self._is_told = False

    def outer(self) -> T:
        """Return the value around what is entered next, without what was left elsewhere."""
        layers = self._layers.get()
        if layers and layers[-1].is_gone:
            self._put(layers)
        return self.get()

    def enter(self, value: T) -> Callable[[], None]:
        """Set *value* from now on, and return what leaves it."""
        layer = _Layer(value)
        token = self._layers.set((*self._layers.get(), layer))
        self._set(value)
        return partial(self._leave, layer, token)

    def _leave(self, layer: _Layer[T], token: Token[tuple[_Layer[T], ...]]) -> None:
        layers = self._layers.get()
        try:
            self._layers.reset(token)  # which it does where it was entered, and nowhere else
        except ValueError:
            layer.forget()  # there it stays, until another is entered
        is_last = bool(layers) and layers[-1] is layer
        if is_last:
            self._put(layers[:-1])
        else:
            self._layers.set(tuple(each for each in layers if each is not layer))
        if not self._is_told and (layer.is_gone or not is_last):
            self._is_told = True
            import logging  # noqa: PLC0415 - the front door imports next to nothing

            logging.getLogger("mnemoscope").warning(_MIXED, self._name)

    def _put(self, layers: tuple[_Layer[T], ...]) -> None:
        while layers and layers[-1].is_gone:
            layers = layers[:-1]
        self._layers.set(layers)
        self._set(layers[-1].value if layers else self._nothing)


class _Layer(Generic[T]):
    """
    One value that was entered.

    Attributes:
        is_gone: It was left where it had not been entered.
    """

    __slots__ = ("is_gone", "value")

    def __init__(self, value: T) -> None:
        self.value = value
        self.is_gone = False

    def forget(self) -> None:
        """Note that it was left elsewhere."""
        self.is_gone = True


class Entering(AbstractContextManager[T, None]):
    """
    A context manager that is a decorator, too, of functions of every colour.

    Around a generator it holds while that runs, not while it is suspended.

    Args:
        enter: Enters, and returns the value and what leaves it.
    """

    __slots__ = ("_enter", "_leave")

    def __init__(self, enter: Callable[[], tuple[T, Callable[[], None]]]) -> None:
        self._enter = enter
        self._leave: Callable[[], None] | None = None

    def __enter__(self) -> T:
        """Enter the body."""
        if self._leave is not None:
            raise RuntimeError("it is entered already: make another")
        value, self._leave = self._enter()
        return value

    def __exit__(self, *_raised: object) -> None:
        """Leave the body."""
        leave, self._leave = self._leave, None
        if leave is not None:
            leave()

    def __call__(self, fn: F) -> F:
        """Return *fn* such that each of its calls runs inside, in its own colour."""
        return run_inside(fn, partial(Entering, self._enter))


def run_inside(fn: F, opened: Callable[[], AbstractContextManager[Any]]) -> F:
    """Return *fn* such that each of its calls runs in what *opened* returns."""
    return cast("F", wraps(fn)(_inside(fn, opened)))


def _inside(
    fn: Callable[..., Any], opened: Callable[[], AbstractContextManager[Any]]
) -> Callable[..., Any]:
    if inspect.iscoroutinefunction(fn):

        async def awaited(*args: Any, **kwargs: Any) -> Any:
            with opened():
                return await fn(*args, **kwargs)

        return awaited
    if inspect.isasyncgenfunction(fn):
        return _inside_async_gen(fn, opened)
    if inspect.isgeneratorfunction(fn):
        return _inside_gen(fn, opened)

    def called(*args: Any, **kwargs: Any) -> Any:
        with opened():
            return fn(*args, **kwargs)

    return called


def _inside_gen(
    fn: Callable[..., Generator[Any, Any, Any]],
    opened: Callable[[], AbstractContextManager[Any]],
) -> Callable[..., Any]:
    def generated(*args: Any, **kwargs: Any) -> Generator[Any, Any, Any]:
        inner = fn(*args, **kwargs)
        step: Callable[[], Any] = partial(inner.send, None)
        while True:
            try:
                with opened():
                    item = step()
            except StopIteration as stop:
                return stop.value
            try:
                step = partial(inner.send, (yield item))
            except GeneratorExit:
                with opened():
                    inner.close()
                raise
            except BaseException as exc:  # noqa: BLE001 - thrown in by the caller, for the generator
                step = partial(inner.throw, exc)

    return generated


def _inside_async_gen(
    fn: Callable[..., AsyncGenerator[Any, Any]],
    opened: Callable[[], AbstractContextManager[Any]],
) -> Callable[..., Any]:
    async def generated(*args: Any, **kwargs: Any) -> AsyncGenerator[Any, Any]:
        inner = fn(*args, **kwargs)
        step: Callable[[], Any] = partial(inner.asend, None)
        while True:
            try:
                with opened():
                    item = await step()
            except StopAsyncIteration:
                return
            try:
                step = partial(inner.asend, (yield item))
            except GeneratorExit:
                with opened():
                    await inner.aclose()
                raise
            except BaseException as exc:  # noqa: BLE001 - thrown in by the caller, for the generator
                step = partial(inner.athrow, exc)

    return generated

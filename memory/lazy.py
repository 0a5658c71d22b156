"""
Watching a method that answers item by item, as lazily as the store answers.

The items are the store's, pulled when the caller pulls. A synchronous store is asked on the
caller's own thread and has no deadline: its generators hold locks and cursors, which belong to a
thread. An asynchronous one has its class's deadline for each item.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

from .call import Call
from .deadline import Expired
from .errors import DeadlineExceededError
from .guard import Guard
from .operation import Arguments, Operation

_END = object()


class LazyGuard(Guard):
    """
    A guard that can also watch methods which answer item by item.

    Each call has one event, when the last item was taken or the caller stopped. Its duration is
    what the caller waited, without the caller's own time between two items. The method's summary is
    given the number of items.
    """

    def iterate(
        self, operation: Operation, invoke: Callable[[Arguments], Iterator[Any]]
    ) -> Iterator[Any]:
        """Make one synchronous call, beginning with the first item: see `Guard.call`."""
        call = self._admit(operation)
        if call.refusal is not None:
            yield from self._refused(call, call.refusal)
            return
        taken = 0
        try:
            call.reached_store_at = self.runtime.clock()
            items = iter(self._step(call, lambda: invoke(call.arguments)))
            while (item := self._step(call, lambda: next(items, _END))) is not _END:
                taken += 1
                left = self.runtime.clock()
                yield item
                self._skip(call, self.runtime.clock() - left)
        except GeneratorExit:
            self._answered(call, taken)
            raise
        except BaseException as exc:
            if not self._gives_way(call, exc):
                raise
            yield from call.answer
        else:
            self._answered(call, taken)
        finally:
            self.bulkheads[call.method.op_class].leave()

    async def aiterate(
        self, operation: Operation, invoke: Callable[[Arguments], AsyncIterator[Any]]
    ) -> AsyncIterator[Any]:
        """Make one asynchronous call, beginning with the first item: see `Guard.acall`."""
        call = self._admit(operation)
        if call.refusal is not None:
            for item in self._refused(call, call.refusal):
                yield item
            return
        taken = 0
        items: Any = None
        try:
            call.reached_store_at = self.runtime.clock()
            items = self._step(call, lambda: invoke(call.arguments))
            while (item := await self._astep(call, items)) is not _END:
                taken += 1
                left = self.runtime.clock()
                yield item
                self._skip(call, self.runtime.clock() - left)
        except GeneratorExit:
            self._answered(call, taken)
            await items.aclose()
            raise
        except BaseException as exc:
            if self._gives_way(call, exc):
                for item in call.answer:
                    yield item
            elif isinstance(exc, Expired):
                raise DeadlineExceededError(self.store, call.deadline_s) from None
            else:
                raise
        else:
            self._answered(call, taken)
        finally:
            self.bulkheads[call.method.op_class].leave()

    # The call is current while the store works and not while the caller does: a generator that
    # yields with a ContextVar set would set it for its consumer.

    def _step(self, call: Call, advance: Callable[[], Any]) -> Any:
        marks = call.enter()
        try:
            return advance()
        finally:
            call.leave(marks)

    async def _astep(self, call: Call, items: AsyncIterator[Any]) -> Any:
        timeout = asyncio.timeout(call.deadline_s or None)
        marks = call.enter()
        try:
            async with timeout:
                return await anext(items, _END)
        except Exception as exc:
            if timeout.expired():
                raise Expired from exc
            raise
        finally:
            call.leave(marks)

    def _skip(self, call: Call, seconds: float) -> None:
        call.started += seconds
        call.reached_store_at = (call.reached_store_at or 0.0) + seconds

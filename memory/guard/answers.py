"""The check of a store's answers, for methods that say what the store documents."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..errors import UnexpectedAnswerError
from .call import Call
from .operation import Arguments
from .step import AsyncInvoke, Invoke


class CheckAnswer:
    """Turns an answer that is not as its method's ``answer`` says into an error of the store."""

    def wrap(self, call: Call, invoke: Invoke) -> Invoke:
        """Return what calls the store and checks its answer."""
        if (is_known := call.method.answer) is None:
            return invoke
        return lambda given: _checked(call, is_known, invoke(given))

    def awrap(self, call: Call, invoke: AsyncInvoke) -> AsyncInvoke:
        """Return what calls the store and checks its answer, with coroutines."""
        if (is_known := call.method.answer) is None:
            return invoke

        async def checked(given: Arguments) -> Any:
            return _checked(call, is_known, await invoke(given))

        return checked


def _checked(call: Call, is_known: Callable[[Any], bool], answer: Any) -> Any:
    if is_known(answer):
        return answer
    raise UnexpectedAnswerError(call.method.name, type(answer).__name__)

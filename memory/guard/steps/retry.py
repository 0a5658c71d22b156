"""Retries inside one call, for classes whose policy has pauses."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any

from ...limits.time_left import time_left_s
from ..call import Call
from ..operation import Arguments
from ..step import AsyncInvoke, Invoke


class Retry:
    """
    Calls the store again after a failure, within the call's deadline.

    How often, and after which pauses, is in the limits of the call's class.

    Args:
        may_pass: Tells a failure that may pass from a mistake of the caller, or of the input.
    """

    def __init__(self, may_pass: Callable[[BaseException], bool]) -> None:
        self._may_pass = may_pass

    def wrap(self, call: Call, invoke: Invoke) -> Invoke:
        """Return what calls the store as often as its class allows."""

        def attempts(given: Arguments) -> Any:
            for pause_s in call.limits.pauses_s:
                try:
                    return invoke(given)
                except Exception as exc:
                    if not self._may_pass(exc):
                        raise
                    if (left_s := time_left_s()) is not None and left_s <= pause_s:
                        raise
                    time.sleep(pause_s)
                    # Not again behind the back of a caller that has been told it failed.
                    if call.late:
                        raise
            return invoke(given)

        return attempts

    def awrap(self, call: Call, invoke: AsyncInvoke) -> AsyncInvoke:
        """Return what calls the store as often as its class allows, with coroutines."""

        async def attempts(given: Arguments) -> Any:
            for pause_s in call.limits.pauses_s:
                try:
                    return await invoke(given)
                except Exception as exc:
                    if not self._may_pass(exc):
                        raise
                await asyncio.sleep(pause_s)
            return await invoke(given)

        return attempts

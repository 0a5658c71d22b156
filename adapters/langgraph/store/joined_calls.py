"""
Calls that an asynchronous store joins: one that fails for its own input fails nobody else's.

LangGraph's asynchronous stores make one batch of all verbs of one tick of their loop. What the
database refuses of one of them, a text that it cannot encode or a filter of another form, is
raised to all. A call that may have failed for a neighbour's input is made again by itself.
"""

from __future__ import annotations

from typing import Any

from langgraph.store.base import BaseStore
from langgraph.store.base.batch import AsyncBatchedBaseStore

from ....memory.api import Arguments, AsyncInvoke, Invoke
from ....memory.guard.call import Call
from ....memory.guard.outages import is_of_the_store

_BY_POSITION = "namespace_prefix"
_VERBS = ("get", "search", "put", "delete", "list_namespaces")


class JoinedCalls:
    """
    Makes a call that failed for an input, of whichever call, again by itself.

    Args:
        client: The bare store. Verbs that its class has of its own are left alone.
    """

    def __init__(self, client: AsyncBatchedBaseStore) -> None:
        self._client = client
        verbs = {each for name in _VERBS for each in (name, f"a{name}")}
        self._joined = {each for each in verbs if _is_inherited(client, each)}

    def wrap(self, call: Call, invoke: Invoke, /) -> Invoke:
        """Return *invoke*, made again where it may have failed for another's input."""

        def separated(given: Arguments) -> Any:
            try:
                return invoke(given)
            except Exception as exc:
                if (verb := _verb(call, given)) not in self._joined or is_of_the_store(exc):
                    raise
            return self._alone(verb, given)

        return separated

    def awrap(self, call: Call, invoke: AsyncInvoke, /) -> AsyncInvoke:
        """Return *invoke*, made again where it may have failed for another's input."""

        async def separated(given: Arguments) -> Any:
            try:
                return await invoke(given)
            except Exception as exc:
                if (verb := f"a{_verb(call, given)}") not in self._joined or is_of_the_store(exc):
                    raise
            return await self._alone(verb, given)

        return separated

    def _alone(self, verb: str, given: Arguments) -> Any:
        # The base class has the same verbs, which join nothing.
        rest = dict(given)
        first = [rest.pop(_BY_POSITION)] if _BY_POSITION in rest else []
        return getattr(BaseStore, verb)(self._client, *first, **rest)


def _is_inherited(client: object, verb: str) -> bool:
    joined: Any = getattr(AsyncBatchedBaseStore, verb)
    return getattr(type(client), verb) is joined and verb not in getattr(client, "__dict__", ())


def _verb(call: Call, given: Arguments) -> str:
    """Return the verb of *call*: ``put`` of None has the row of a deletion."""
    return "put" if "value" in given else call.method.name

"""
The mark of the key in a LangGraph store, which a process with another key would not find data in.

It is an item of its own, compared before the first call and written if it is not there. Nobody sees
it through a guarded store: results are given without it.
"""

from __future__ import annotations

from typing import Any, Final

from langgraph.store.base import BaseStore, ListNamespacesOp, SearchOp

from ....memory.api import Arguments, AsyncInvoke, Faults, Invoke, KeyUse, time_left_s
from ....memory.guard.call import Call

MARK: Final = ("mnemoscope-key",)
"""The namespace of the mark. Not longer: a namespace that names a customer is."""

_KEY: Final = "key"
_ID: Final = "key_id"
_ABOUT: Final = "the key under which mnemoscope stores names and ids here as digests"
_PAGES: Final = {"search": 10, "list_namespaces": 100}
"""How many results these give where the caller does not say."""

_LISTING: Final = frozenset({*_PAGES, "batch"})


class KeyMark:
    """
    Compares the key of a store with this process's, once, and hides the mark from results.

    Args:
        name: The store's name in events.
        faults: Where it is noted that a store takes no mark.
    """

    def __init__(self, name: str, client: BaseStore, key_use: KeyUse, faults: Faults) -> None:
        self._name = name
        self._client = client
        self._key_use = key_use
        self._faults = faults
        self._is_checked = False

    def wrap(self, call: Call, invoke: Invoke, /) -> Invoke:
        """Return *invoke*, behind the comparison while that is to be made."""
        lists = call.method.name in _LISTING
        # Once it is checked, only listings have anything left to be done.
        if self._is_checked and not lists:
            return invoke

        def checked(given: Arguments) -> Any:
            if not self._is_checked:
                self._check()
            if not lists:
                return invoke(given)
            return _without_mark(call, given, invoke(_asking_one_more(call, given)))

        return checked

    def awrap(self, call: Call, invoke: AsyncInvoke, /) -> AsyncInvoke:
        """Return *invoke*, behind the comparison while that is to be made."""
        lists = call.method.name in _LISTING
        if self._is_checked and not lists:
            return invoke

        async def checked(given: Arguments) -> Any:
            if not self._is_checked:
                await self._acheck()
            if not lists:
                return await invoke(given)
            return _without_mark(call, given, await invoke(_asking_one_more(call, given)))

        return checked

    def _check(self) -> None:
        found = self._client.get(MARK, _KEY)
        if found is None:
            try:
                # Not indexed: an embedding of it would be a hit of some search, and cost money.
                self._client.put(MARK, _KEY, self._mark(), index=False, **self._kept_for_ever())
                found = self._client.get(MARK, _KEY)
            except Exception as exc:  # it may be read only: calls go on unchecked
                if time_left_s() == 0.0:
                    raise  # the call is over, and says nothing of the store
                self._note_unmarked(exc)
        self._compare(found)

    async def _acheck(self) -> None:
        found = await self._client.aget(MARK, _KEY)
        if found is None:
            try:
                mark, options = self._mark(), self._kept_for_ever()
                await self._client.aput(MARK, _KEY, mark, index=False, **options)
                found = await self._client.aget(MARK, _KEY)
            except Exception as exc:  # noqa: BLE001 - see `_check`
                self._note_unmarked(exc)
        self._compare(found)

    def _mark(self) -> dict[str, Any]:
        return {_ID: self._key_use.id, "about": _ABOUT}

    def _kept_for_ever(self) -> dict[str, Any]:
        # A store that knows no time to live refuses the argument.
        return {"ttl": None} if self._client.supports_ttl else {}

    def _note_unmarked(self, exc: Exception) -> None:
        self._faults.note("store.key_mark", exc)
        self._key_use.unmarked.add(self._name)

    def _compare(self, found: Any) -> None:
        if found is not None:
            self._key_use.check(self._name, str(found.value.get(_ID)))
        self._is_checked = True


def _asking_one_more(call: Call, given: Arguments) -> Arguments:
    """Return *given* for a page that is as long as it was asked for when the mark is taken out."""
    if call.method.name == "batch":
        return {**given, "ops": [_one_more(op) for op in given["ops"]]}
    if given.get("namespace_prefix") or given.get("prefix"):
        return given  # the mark is not below it
    return {**given, "limit": given.get("limit", _PAGES[call.method.name]) + 1}


def _one_more(op: Any) -> Any:
    if isinstance(op, ListNamespacesOp) or (isinstance(op, SearchOp) and not op.namespace_prefix):
        return op._replace(limit=op.limit + 1)
    return op


def _without_mark(call: Call, given: Arguments, result: Any) -> Any:
    """Return the answer to *given*, which asked for one more, as if there were no mark."""
    if call.method.name != "batch":
        return _page(result, given.get("limit", _PAGES[call.method.name]))
    answers = zip(given["ops"], result, strict=True)
    return [_page(each, op.limit) if _one_more(op) is not op else each for op, each in answers]


def _page(listed: Any, limit: int) -> Any:
    return [each for each in listed if getattr(each, "namespace", each) != MARK][:limit]

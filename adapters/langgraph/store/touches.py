"""What the writes and deletions of LangGraph's store touch: items, by namespace and key."""

from __future__ import annotations

import json
from typing import Any

from langgraph.store.base import GetOp, ListNamespacesOp, SearchOp

from ....memory.api import Arguments, Touches
from ....memory.guard.touches import UNTOLD
from ...toolkit.type_guards import is_list

_READS = (GetOp, SearchOp, ListNamespacesOp)


def touches(method: str, arguments: Arguments) -> Touches:
    """Return what a call of *method* touches."""
    if method in {"put", "delete"}:
        return _all([_item(arguments["namespace"], arguments["key"])], partly=False)
    ops = arguments.get("ops")
    return _batch(ops) if method == "batch" and is_list(ops) else UNTOLD


def _batch(ops: list[Any]) -> Touches:
    changes = [each for each in ops if not isinstance(each, _READS)]
    items = [_item(each.namespace, each.key) for each in changes]
    return _all(items, partly=any(each.value is not None for each in changes))


def _all(items: list[str | None], *, partly: bool) -> Touches:
    known = frozenset(each for each in items if each is not None)
    return Touches(records=known, partly=partly, unknown=None in items)


def _item(namespace: Any, key: Any) -> str | None:
    """Return the name of an item. None: a store may take another namespace and key for the same."""
    names = [*namespace, key]
    # Stores in databases join the labels with periods, and make text of a key.
    plain = all(isinstance(each, str) for each in names) and not any("." in n for n in namespace)
    return json.dumps(names) if plain else None

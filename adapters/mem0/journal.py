"""
mem0's writes in the journal.

``add`` gives every memory a new id, so adding twice remembers twice. Therefore each ``add`` of a
client with a journal carries an id of its own in the metadata, where it can be found again: after a
timeout nobody knows whether the store has taken it.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from inspect import isclass
from typing import Any

from pydantic import BaseModel

from ...memory.guard.operation import Arguments, Method
from ...memory.guard.writes import JournalledWrites, Lookup
from ..toolkit.touches import never_raising
from ..toolkit.type_guards import is_dict, is_list
from .scoping import ENTITIES, with_options
from .touches import hosted_touches, touches

MARK = "mnemoscope_write"
"""Metadata key that holds the id of a write."""

_METHODS = frozenset({"add", "update", "batch_update", "feedback"})
_MOST = 1_000
"""Memories that one ``add`` may have made, as far as is looked."""


def writes(client: object, table: Mapping[str, Method], *, hosted: bool) -> JournalledWrites:
    """Return the journal's binding to *client*, whose methods are in *table*."""
    return JournalledWrites(
        client=client,
        row=lambda name, _arguments: table[name],
        methods=_METHODS & table.keys(),
        models=_options(),
        once=HostedAddDeduplication() if hosted else AddDeduplication(),
        touches=never_raising(hosted_touches if hosted else touches),
    )


def _options() -> dict[str, type[Any]]:
    types = vars(import_module("mem0.client.types"))
    return {
        name: each for name, each in types.items() if isclass(each) and issubclass(each, BaseModel)
    }


class AddDeduplication:
    """Recognition of an ``add`` that mem0 has taken: ``Memory`` and ``AsyncMemory``."""

    def marked(self, method: str, arguments: Arguments, write_id: str) -> Arguments:
        """Return *arguments* with the id in the metadata, if they are those of ``add``."""
        metadata = with_options(arguments).get("metadata")
        if method != "add" or not (metadata is None or is_dict(metadata)):
            return arguments
        return {**arguments, "metadata": {**(metadata or {}), MARK: write_id}}

    def question(self, method: str, arguments: Arguments, write_id: str) -> Lookup | None:
        """Ask for all memories of the same people that carry the id."""
        if method != "add":
            return None
        filters = {**_whose(arguments), MARK: write_id}
        # A memory with a date that is over is hidden, and would be written twice.
        return Lookup("get_all", {"filters": filters, "top_k": _MOST, "show_expired": True})

    def left(self, method: str, arguments: Arguments, answer: object) -> Arguments | None:
        """Return *arguments* without the messages that are memories already, if any is left."""
        del method
        found: Any = answer.get("results") if is_dict(answer) else answer
        count = len(found) if is_list(found) else 0
        if not count:
            return arguments
        # Without inference each message is one memory, in order; with it all come at once.
        if arguments.get("infer", True) is not False or not is_list(arguments["messages"]):
            return None
        rest = _after(arguments["messages"], count)
        return {**arguments, "messages": rest} if rest else None


class HostedAddDeduplication(AddDeduplication):
    """Recognition of an ``add`` by the hosted clients. The service may still be at work on it."""

    def question(self, method: str, arguments: Arguments, write_id: str) -> Lookup | None:
        """Ask for all memories of the same people that carry the id."""
        if method != "add":
            return None
        # The service takes one condition in each object, and metadata as an object of its own.
        whose = [{key: value} for key, value in _whose(arguments).items()]
        filters = {"AND": [*whose, {"metadata": {MARK: write_id}}]}
        return Lookup("get_all", {"filters": filters})


def _whose(arguments: Arguments) -> Arguments:
    options = with_options(arguments)
    named = options.get("filters")
    ids = {**(named if is_dict(named) else {}), **options}
    return {key: ids[key] for key in ENTITIES if ids.get(key)}


def _after(messages: list[Any], count: int) -> list[Any]:
    """Return the messages after the first *count* that become memories."""
    for place, message in enumerate(messages):
        if count == 0:
            return messages[place:]
        count -= _is_remembered(message)
    return []


def _is_remembered(message: Any) -> bool:
    if not is_dict(message):
        return False
    role, content = message.get("role"), message.get("content")
    # As mem0 does it without inference.
    return content is not None and role is not None and role != "system"

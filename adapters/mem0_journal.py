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

from ..memory.journal.values import Values
from ..memory.journal.writes import Question, Writes
from ..memory.operation import Arguments, Method
from .mem0_scope import ENTITIES, given, is_dict, is_list

MARK = "mnemoscope_write"
"""Metadata key that holds the id of a write."""

_METHODS = frozenset({"add", "update", "batch_update", "feedback"})
_MOST = 1_000
"""Memories that one ``add`` may have made, as far as is looked."""


def writes(client: object, table: Mapping[str, Method], *, hosted: bool) -> Writes:
    """Return what is to be known of the writes of *client*, whose methods are in *table*."""
    return Writes(
        client=client,
        row=lambda name, _arguments: table[name],
        methods=_METHODS & table.keys(),
        values=Values(_options()),
        once=OnceHosted() if hosted else Once(),
    )


def _options() -> dict[str, type[Any]]:
    types = vars(import_module("mem0.client.types"))
    return {
        name: each for name, each in types.items() if isclass(each) and issubclass(each, BaseModel)
    }


class Once:
    """Knows an ``add`` of ``Memory`` and ``AsyncMemory`` again."""

    def marked(self, method: str, arguments: Arguments, write_id: str) -> Arguments:
        """Return *arguments* with the id in the metadata, if they are those of ``add``."""
        metadata = given(arguments).get("metadata")
        if method != "add" or not (metadata is None or is_dict(metadata)):
            return arguments
        return {**arguments, "metadata": {**(metadata or {}), MARK: write_id}}

    def question(self, method: str, arguments: Arguments, write_id: str) -> Question | None:
        """Ask for all memories of the same people that carry the id."""
        if method != "add":
            return None
        filters = {**_whose(arguments), MARK: write_id}
        return Question("get_all", {"filters": filters, "top_k": _MOST, "show_expired": True})

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


class OnceHosted(Once):
    """Knows an ``add`` of the hosted clients again. The service may still be at work on it."""

    def question(self, method: str, arguments: Arguments, write_id: str) -> Question | None:
        """Ask for all memories of the same people that carry the id."""
        if method != "add":
            return None
        whose = [{key: value} for key, value in _whose(arguments).items()]
        filters = {"AND": [*whose, {"metadata": {MARK: write_id}}]}
        return Question("get_all", {"filters": filters})


def _whose(arguments: Arguments) -> Arguments:
    asked = given(arguments)
    named = asked.get("filters")
    ids = {**(named if is_dict(named) else {}), **asked}
    return {key: ids[key] for key in ENTITIES if ids.get(key)}


def _after(messages: list[Any], count: int) -> list[Any]:
    """Return what follows the first *count* messages that become memories."""
    for place, message in enumerate(messages):
        if count == 0:
            return messages[place:]
        count -= _is_remembered(message)
    return []


def _is_remembered(message: Any) -> bool:
    if not is_dict(message):
        return False
    role, content = message.get("role"), message.get("content")
    return content is not None and role is not None and role != "system"

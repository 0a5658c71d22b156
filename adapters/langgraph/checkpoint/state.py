"""
Redaction of graph state, on copies: the running graph keeps its own objects.

The names by which LangGraph and model providers find things again stay as they are: ids of
messages, tool calls and interrupts, types of content blocks, signatures of reasoning. A provider
refuses a tool result whose id it did not give out.
"""

from __future__ import annotations

import copy
import dataclasses
from collections import deque
from typing import Any, Final, TypeGuard, cast

from langchain_core.messages import BaseMessage
from langgraph.types import Interrupt, Send
from pydantic import BaseModel

from ....memory.errors import RedactionError
from ....memory.privacy.engine.redaction import Redaction
from ...toolkit.type_guards import is_dict

DEPTH_LIMIT = 64

_KEPT: Final = frozenset({"id", "type", "tool_call_id", "tool_use_id", "signature", "index"})
"""In messages and their content blocks."""

_STRUCTURE: Final[dict[type, frozenset[str]]] = {
    Interrupt: frozenset({"id", "response_schema"}),
    Send: frozenset({"node", "timeout"}),
}
"""By type, attributes that are LangGraph's own."""

_NONE: Final[frozenset[str]] = frozenset()


class StateWalker:
    """
    Redacts the values of channels and writes.

    Beyond what the redactor walks by itself, an object of an unknown type is copied and its
    attributes are walked. What cannot be copied or has no attributes to look at is refused.

    Args:
        redaction: The call's session.
    """

    def __init__(self, redaction: Redaction) -> None:
        self._redaction = redaction
        self._depth = 0

    def walk(self, value: Any, kept: frozenset[str] = _NONE) -> Any:
        """
        Return a redacted copy of *value*.

        Args:
            value: State of any kind.
            kept: Keys and attributes to leave alone, here and below.

        Raises:
            RedactionError: Of a type that cannot be looked into, or too deep. Names the type.
        """
        if isinstance(value, str):
            return self._redaction.value(value)
        if self._depth >= DEPTH_LIMIT:
            raise RedactionError(
                f"state is deeper than {DEPTH_LIMIT} levels, or holds itself", kind=_named(value)
            )
        self._depth += 1
        try:
            return self._inside(value, kept)
        finally:
            self._depth -= 1

    def _inside(self, value: Any, kept: frozenset[str]) -> Any:
        if isinstance(value, BaseMessage):
            return self._model(value, _KEPT)
        if isinstance(value, BaseModel):
            return self._model(value, kept)
        if type(value) in _STRUCTURE:
            return self._attributes(value, _names(value), _STRUCTURE[type(value)])
        if dataclasses.is_dataclass(value) and not isinstance(value, type):
            return self._attributes(value, [each.name for each in dataclasses.fields(value)], kept)
        if _is_container(value):
            return self._container(value, kept)
        return self._leaf(value, kept)

    def _container(self, value: Any, kept: frozenset[str]) -> Any:
        if is_dict(value):
            return self._mapping(value, kept)
        walked = [self.walk(each, kept) for each in value]
        if isinstance(value, deque):
            return deque(walked, value.maxlen)
        kind = cast("Any", type(value))
        make = getattr(kind, "_make", kind)  # a namedtuple's own constructor takes its fields
        return make(walked)

    def _mapping(self, value: dict[Any, Any], kept: frozenset[str]) -> Any:
        # Both at once, since the redactor sees to it that two keys never become one.
        keys = list(self._redaction.value(dict.fromkeys(value)))
        walked = [each if name in kept else self.walk(each, kept) for name, each in value.items()]
        result = dict(zip(keys, walked, strict=True))
        if type(value) is dict:
            return result
        copied: Any = copy.copy(value)
        copied.clear()
        copied.update(result)
        return copied

    def _model(self, value: BaseModel, kept: frozenset[str]) -> Any:
        fields = {**value.__dict__, **(value.model_extra or {})}
        walked = {name: self.walk(fields[name], kept) for name in fields if name not in kept}
        return value.model_copy(update=walked)

    def _leaf(self, value: Any, kept: frozenset[str]) -> Any:
        if isinstance(value, BaseException):
            return self._exception(value)
        try:
            return self._redaction.value(value)
        except RedactionError:
            names = _names(value)
            if not names:
                raise
        return self._attributes(value, names, kept)

    def _attributes(self, value: Any, names: list[str], kept: frozenset[str]) -> Any:
        try:
            copied = copy.copy(value)
        except Exception as exc:
            kind = _named(value)
            raise RedactionError(f"cannot redact a {kind}: it cannot be copied", kind=kind) from exc
        for name in names:
            if name not in kept and hasattr(value, name):
                object.__setattr__(copied, name, self.walk(getattr(value, name), kept))
        return copied

    def _exception(self, exc: BaseException) -> BaseException:
        """Return an error of the same type, or one that names the type, with redacted arguments."""
        args = tuple(self.walk(each) for each in exc.args)
        try:
            copied = copy.copy(exc)
            copied.args = args
        except Exception:  # noqa: BLE001 - constructors of exceptions take what they like
            return Exception(_named(exc), *args)
        return copied


def _is_container(value: Any) -> TypeGuard[Any]:
    return isinstance(value, (dict, list, tuple, set, frozenset, deque))


def _names(value: Any) -> list[str]:
    kind = cast("Any", type(value))
    slots: Any = getattr(kind, "__slots__", ())
    return [*getattr(value, "__dict__", ()), *((slots,) if isinstance(slots, str) else slots)]


def _named(value: Any) -> str:
    return f"{type(value).__module__}.{type(value).__qualname__}"

"""
The filter between an agent's output and another agent, or a memory.

The output is validated and translated without a model: prose is left out, numbers become levels.
The packet that comes of it is all that passes. The output itself is sealed in the audit trail,
redacted and encrypted.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Mapping
from functools import wraps
from typing import TYPE_CHECKING, Any, Final, cast

from pydantic import BaseModel, ValidationError
from pydantic_core import from_json, to_jsonable_python

from ...telemetry.text import json_text
from ..default_scope import default_guard
from ..errors import ConfigurationError, HandoffError
from ..guard.operation import Arguments, Operation
from ..guard.rows import remember
from .fields import Fields

if TYPE_CHECKING:
    from ..decorator import GuardSource
    from ..privacy.engine.redaction import Redaction

STORE: Final = "handoff"
"""What stands for a store in the events of handoffs."""


def _redact(arguments: Arguments, redaction: Redaction) -> Arguments:
    return {"output": redaction.value(arguments["output"])}


class Handoff:
    """
    What passes of one agent's output to another agent, or into memory. Thread-safe.

    Args:
        schema: A pydantic model of the output. What it does not name does not pass.
        packet: Name and version of what passes: its key ``schema``.
        strip: Fields that are left out, such as reasoning. Nested ones are ``outer.inner``.
        preserve: Fields that may hold prose and pass. Those that cannot hold any pass anyway.
        buckets: Numbers between 0 and 1 that pass as ``high`` (from 0.7), ``moderate`` (from 0.4)
            or ``low``, each with the name that the level has.
        guard_for: ``scope.guard_for``: seals what was said. None: that of `configure`.

    Raises:
        ConfigurationError: A field that may hold prose is not named, or one that is not there is.

    Examples:
        >>> handoff = Handoff(schema=Finding, strip=["reasoning"], buckets={"confidence": "level"})
        >>> handoff.translate({"verdict": "fraud", "confidence": 0.9, "reasoning": "He said so."})
        {'verdict': 'fraud', 'level': 'high', 'schema': 'cross_agent_v1'}
    """

    def __init__(
        self,
        *,
        schema: type[BaseModel],
        packet: str = "cross_agent_v1",
        strip: Collection[str] = (),
        preserve: Collection[str] = (),
        buckets: Mapping[str, str] | None = None,
        guard_for: GuardSource | None = None,
    ) -> None:
        self._schema, self._packet_name = schema, packet
        self._fields = Fields(schema, strip, preserve, buckets or {})
        self._guard_for = guard_for or default_guard
        self._method = remember(
            "translate",
            "handoff",
            redact=_redact,
            content=_everything,
            unconfined="it hands on what one agent wrote, and asks no store",
            inline=True,
        )

    def translate(self, output: Any) -> dict[str, Any]:
        """
        Return the packet of an agent's *output*: JSON types, and its ``schema``.

        Args:
            output: A dict, an instance of the schema, or JSON.

        Raises:
            HandoffError: It is not what the schema says. It is sealed all the same.
            RedactionError: It cannot be redacted, so it cannot be sealed.
        """
        if (guard := self._guard_for(STORE)) is None:
            return self._packet(output)
        operation = Operation(self._method, {"output": _plain(output)})
        return cast("dict[str, Any]", guard.call(operation, lambda _none: self._packet(output)))

    async def atranslate(self, output: Any) -> dict[str, Any]:
        """Return the packet of *output*, as `translate` does."""
        if (guard := self._guard_for(STORE)) is None:
            return self._packet(output)

        async def packet(_none: Arguments) -> dict[str, Any]:
            return self._packet(output)

        operation = Operation(self._method, {"output": _plain(output)})
        return cast("dict[str, Any]", await guard.acall(operation, packet))

    def _packet(self, output: Any) -> dict[str, Any]:
        try:
            given = from_json(output) if isinstance(output, (str, bytes)) else output
            read = self._schema.model_validate(given)
        except ValidationError as exc:
            problems = tuple(map(self._problem, exc.errors(include_input=False)))
            raise HandoffError(self._schema, problems) from None
        except ValueError:
            raise HandoffError(self._schema, ("the output: not JSON",)) from None
        return {**self._fields.translate(read), "schema": self._packet_name}

    def _problem(self, error: Mapping[str, Any]) -> str:
        # Other names in the place of an error, and its message, may be the agent's words.
        place = [each for each in error["loc"] if each in self._fields.names]
        return f"{'.'.join(place) or 'the output'}: {error['type']}"

    def wrap(
        self,
        node: Callable[..., Any],
        *,
        key: str | None = None,
        ask_again: Callable[..., Any] | None = None,
    ) -> Callable[..., Any]:
        """
        Return a node whose output is translated before anybody sees it.

        Args:
            node: A function or coroutine function that returns the agent's output.
            key: The key of the state that takes the packet. None: the packet is the update.
            ask_again: Called once, as *node* is, with the error in front, where the output is
                refused; returns another. None: the error is raised.

        Raises:
            HandoffError: From the node: the output is not what the schema says.
        """

        def update(packet: dict[str, Any]) -> dict[str, Any]:
            return packet if key is None else {key: packet}

        @wraps(node)
        def called(*args: Any, **kwargs: Any) -> dict[str, Any]:
            try:
                return update(self.translate(node(*args, **kwargs)))
            except HandoffError as refused:
                if ask_again is None:
                    raise
                return update(self.translate(ask_again(refused, *args, **kwargs)))

        @wraps(node)
        async def awaited(*args: Any, **kwargs: Any) -> dict[str, Any]:
            try:
                return update(await self.atranslate(await node(*args, **kwargs)))
            except HandoffError as refused:
                if ask_again is None:
                    raise
                other = ask_again(refused, *args, **kwargs)
                return update(
                    await self.atranslate(await other if inspect.isawaitable(other) else other)
                )

        return awaited if inspect.iscoroutinefunction(node) else called

    def before(
        self, write: Callable[..., Any], argument: str, *, as_text: bool = False
    ) -> Callable[..., Any]:
        """
        Return *write* with the filter in front: what it is given as *argument* is translated.

        Args:
            write: A function, method or coroutine function, such as ``memory.add``.
            argument: The parameter that takes the agent's output.
            as_text: Hand on the packet as JSON, for clients that take text.

        Raises:
            ConfigurationError: *write* has no such parameter.
            HandoffError: From the call: nothing was written.
        """
        signature = inspect.signature(write)
        if argument not in signature.parameters:
            raise ConfigurationError(f"the function takes no {argument}: name what it takes")

        def bound(args: Any, kwargs: Any) -> inspect.BoundArguments:
            return signature.bind(*args, **kwargs)

        def put(call: inspect.BoundArguments, packet: dict[str, Any]) -> Any:
            call.arguments[argument] = json_text(packet) if as_text else packet
            return write(*call.args, **call.kwargs)

        @wraps(write)
        def called(*args: Any, **kwargs: Any) -> Any:
            call = bound(args, kwargs)
            return put(call, self.translate(call.arguments[argument]))

        @wraps(write)
        async def awaited(*args: Any, **kwargs: Any) -> Any:
            call = bound(args, kwargs)
            return await put(call, await self.atranslate(call.arguments[argument]))

        return awaited if inspect.iscoroutinefunction(write) else called


def _everything(arguments: Arguments) -> Any:
    return arguments


def _plain(output: Any) -> Any:
    """Return *output* as JSON types, which is what can be redacted and sealed."""
    return to_jsonable_python(output, fallback=lambda each: f"<{type(each).__name__}>")

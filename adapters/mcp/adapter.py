"""Guarded clients of MCP: FastMCP's, LangChain's on top of it, and the sessions of the SDK."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial, partialmethod
from importlib import import_module
from pathlib import Path
from typing import Any, Final, cast

from ...memory.api import (
    AdapterServices,
    Arguments,
    Deletes,
    Method,
    OperationClass,
    Redaction,
    Scope,
    StoreAdapter,
    StoreBinding,
    Summary,
    recall,
)
from ...memory.errors import ConfigurationError
from ...memory.guard.guard import Guard
from ...memory.guard.operation import Operation
from ...memory.limits.breaker import BreakerState
from ..toolkit.guarded_methods import GUARD, INNER, GuardedMethods
from ..toolkit.proxy import guarded_class, wrap
from ..toolkit.wrapping import guard_client
from .checks import EXECUTE, AnswerBlocked, KeepContracts, first_match
from .contract import ToolContract
from .contracts_file import ContractsFile
from .shapes import answer_of, results_in
from .tool_contracts import ToolContracts

_PLAIN: Final = """
list_tools list_tools_mcp list_prompts list_prompts_mcp list_resources list_resources_mcp
list_resource_templates list_resource_templates_mcp list_skills list_skills_mcp list_skill_resources
ping send_ping initialize discover send_discover adopt close cancel progress is_connected
set_logging_level set_roots set_sampling_callback set_elicitation_callback generate_name new
send_progress_notification send_roots_list_changed subscribe_resource unsubscribe_resource
validate_tool_result send_request send_notification call_tool dispatch_input_request
"""
_NOT_GUARDED: Final[Mapping[str, str]] = {
    str(name): "carries no content, or is what the guarded methods are made of"
    for name in _PLAIN.split()
}
_CONTENT: Final = ("arguments", "meta", "input_responses")


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolOptions:
    """
    How the tools of one server are called: see `Mnemoscope.mcp`.

    Attributes:
        classes: The class of operations, by pattern of tool names.
        deadlines_s: Seconds, by pattern of tool names.
        neutral: The structured answer in place of a failure, by pattern of tool names.
        customer_at: The parameter that holds the customer's id.
        contracts: The file of accepted contracts.
        recheck_s: Seconds after which the server is asked for its tools again.
    """

    classes: Mapping[str, str] = field(default_factory=dict[str, str])
    deadlines_s: Mapping[str, float] = field(default_factory=dict[str, float])
    neutral: Mapping[str, Any] = field(default_factory=dict[str, Any])
    customer_at: str | None = None
    contracts: Path | None = None
    recheck_s: float = 60.0

    def __post_init__(self) -> None:
        known = {each.value for each in _CLASSES}
        if unknown := sorted(set(self.classes.values()) - known):
            raise ConfigurationError(
                f"classes: {unknown[0]!r} is none: expected one of {', '.join(sorted(known))}"
            )


_CLASSES: Final = (OperationClass.RECALL, OperationClass.REMEMBER, OperationClass.FORGET)


class Tools:
    """The guarded tools of one client."""

    def __init__(self, server: str, options: ToolOptions, client: Any) -> None:
        self._options = options
        file = None if options.contracts is None else ContractsFile(options.contracts)
        self.contracts = ToolContracts(
            server,
            partial(listing, client),
            file=file,
            recheck_s=options.recheck_s,
            clock=time.monotonic,
        )
        self.row = lru_cache(maxsize=512)(self._row)
        self._session: Any = None

    async def call(
        self, guard: Guard, target: Callable[..., Any], given: Arguments, rest: Mapping[str, Any]
    ) -> Any:
        """Call a tool behind *guard*, by the row that the server's latest list gives it."""
        self._attend(target)
        # In front of the guard, since the row of a call depends on what the server lists. What goes
        # wrong is raised behind it, and an open breaker lets nobody wait for a server that is away.
        limits = guard.limits[self._listed(given["name"]).op_class]
        if self.contracts.is_stale and limits.breaker.state is not BreakerState.OPEN:
            await self.contracts.prepare(limits.deadline_s or None)
        kept = {name: each for name, each in rest.items() if name not in _CONTENT}
        given |= {name: each for name, each in rest.items() if name in _CONTENT}
        operation = Operation(self._listed(given["name"]), given)
        return await guard.acall(operation, lambda now: target(**now, **kept))

    def _listed(self, tool: str) -> Method:
        """Return the row of *tool*; one that no server lists has no name: a model made it up."""
        listed = self.contracts.listed(tool)
        return self.row("unknown" if listed is None else listed.tool)

    def _attend(self, target: Any) -> None:
        """Hear of changes in the session at hand; of another than before, look anew."""
        try:
            session = getattr(target.__self__, "session", target.__self__)
        except Exception:  # noqa: BLE001 - it is not connected: the call says so, behind the guard
            session = None
        if session is None or session is self._session:
            return
        # Another connection may lead to another version of the server.
        self.contracts.outdate()
        self._session = session
        heard = getattr(session, "_message_handler", None)
        if heard is not None:
            session._message_handler = partial(_hear, heard, self.contracts)  # noqa: SLF001 - no door

    def _row(self, tool: str) -> Method:
        options, listed = self._options, self.contracts.listed(tool)
        op_class = OperationClass(first_match(options.classes, tool) or _class_of(listed))
        neutral = first_match(options.neutral, tool)
        return Method(
            name=tool,
            operation=EXECUTE,
            op_class=op_class,
            deletes=Deletes.IDS if op_class is OperationClass.FORGET else None,
            neutral=None
            if neutral is None
            else lambda _given: result_of("", neutral, failed=False),
            redact=partial(_redact, options.customer_at, _declared(listed)),
            scope=partial(_scope, options.customer_at),
            collection=lambda _given: tool,
            summary=lambda result, _given: Summary(hits=results_in(answer_of(result))),
            content=lambda given: {"tool": tool, "arguments": given["arguments"]},
            needs_owner=options.customer_at is not None,
            confine=None if options.customer_at is None else partial(_confine, options.customer_at),
        )


def bind(
    client: Any, services: AdapterServices, /, *, server: str, store: str, options: ToolOptions
) -> StoreBinding:
    """Return what is to be known of a client of the MCP *server*."""
    tools = Tools(server, options, client)
    keep = KeepContracts(
        store,
        server,
        tools.contracts,
        observers=lambda: services.accounting.observers,
        deadlines_s=options.deadlines_s,
    )
    again = partial(guard_mcp, services=services, server=server, options=options)
    return StoreBinding(
        methods=_ROWS,
        client_class=partial(_guarded_kind, tools, again),
        around=(keep,),
        steps=(AnswerBlocked(partial(result_of, failed=True)),),
    )


def guard_mcp(client: Any, services: AdapterServices, *, server: str, options: ToolOptions) -> Any:
    """
    Return *client* with its tools behind a guard.

    Args:
        client: A session, FastMCP's client or group, or LangChain's adapter.
        services: The scope's.
        server: What the user calls the server. A member of a group is called by its name.
        options: Of the server's tools.

    Raises:
        UnsupportedClientError: It is none of these.
    """
    group = _kind("fastmcp.client.group", "ClientGroup")
    adapter = _kind("langchain.mcp", "MCPAdapter")
    again = partial(guard_mcp, services=services, options=options)
    if group is not None and isinstance(client, group):
        return group({name: again(each, server=name) for name, each in client.clients.items()})
    if adapter is not None and isinstance(client, adapter):
        return type(client)(again(client.client, server=server))
    store = f"mcp.{server}"
    kinds = _client_kinds()
    if not kinds:
        raise ConfigurationError('MCP: install its client: pip install "mnemoscope[mcp]"')
    known = replace(ADAPTER, store=store, client_types=kinds)
    return guard_client(client, known, services, server=server, store=store, options=options)


async def listing(client: Any) -> list[Any]:
    """Return all tools that a server lists, of all pages, past any cache."""
    # By the session: FastMCP's client may answer from a cache, and the SDK takes the output
    # schemas that it checks results by from what its session lists.
    params = import_module("mcp.types").PaginatedRequestParams
    session, found, cursors = getattr(client, "session", client), list[Any](), {""}
    cursor: str | None = ""
    while cursor is not None:
        page = await session.list_tools(**({"params": params(cursor=cursor)} if cursor else {}))
        found += page.tools
        cursor = page.next_cursor
        # A server that repeats itself would be asked for ever.
        if cursor in cursors:
            raise ConnectionError("the server lists a page of its tools twice")
        cursors.add(str(cursor))
    return found


def result_of(text: str, about: Any, *, failed: bool) -> Any:
    """Return the answer of a tool."""
    said = {"content": [{"type": "text", "text": text}] if text else [], "isError": failed}
    return import_module("mcp.types").CallToolResult.model_validate(
        {**said, "structuredContent": about}
    )


def _guarded_kind(tools: Tools, again: Callable[[Any], Any], base: type[Any]) -> type[Any]:
    kinds = _client_kinds()
    methods = GuardedMethods(table=_ROWS, client_types=kinds, not_guarded=frozenset(_NOT_GUARDED))
    kind = guarded_class(base, methods)
    is_session = not hasattr(base, "call_tool_mcp")
    chokepoint = "call_tool" if is_session else "call_tool_mcp"

    async def called(
        self: Any, name: str, arguments: dict[str, Any] | None = None, *rest: Any, **further: Any
    ) -> Any:
        held = self.__dict__
        target = getattr(held[INNER], chokepoint)
        further |= dict(zip(_POSITIONS[chokepoint], rest, strict=False))
        given = {"name": name, "arguments": arguments or {}}
        return await tools.call(held[GUARD], target, given, further)

    own: dict[str, Any] = {chokepoint: called}
    # LangChain's adapter clones the client that it is given, and calls the session below it: a
    # clone and a session are guarded, or nothing would be.
    if not is_session:
        own["call_tool"] = base.call_tool  # FastMCP's own code, which calls the method above
        own["new"] = partialmethod(_new, again)
        own["session"] = property(partial(_session, tools, again))
    return cast("type[Any]", type(base.__name__, (kind,), own | {"__module__": __name__}))


_POSITIONS: Final = {
    "call_tool": ("read_timeout_seconds", "progress_callback"),
    "call_tool_mcp": ("progress_handler", "timeout", "meta"),
}


def _new(client: Any, again: Callable[[Any], Any]) -> Any:
    """Return a guarded clone, whose contracts are its own."""
    return again(client.__dict__[INNER].new())


def _session(tools: Tools, again: Callable[[Any], Any], client: Any) -> Any:
    """Return the guarded session of a guarded client, behind its guard and its contracts."""
    held = client.__dict__
    inner = held[INNER].session
    known = held.get("session guarded")
    if known is None or known.__dict__[INNER] is not inner:
        base: type[Any] = inner.__class__
        kind = _guarded_kind(tools, again, base)
        known = held["session guarded"] = wrap(inner, held[GUARD], kind)
    return known


async def _hear(heard: Callable[[Any], Any], contracts: ToolContracts, message: Any) -> None:
    """Hand a message on, and note of it that the tools have changed."""
    root = getattr(message, "root", message)
    if type(root).__name__ == "ToolListChangedNotification":
        contracts.outdate()
    await heard(message)


def _client_kinds() -> tuple[type[Any], ...]:
    known = (("mcp.client.session", "ClientSession"), ("fastmcp.client", "Client"))
    return tuple(kind for each in known if (kind := _kind(*each)) is not None)


def _kind(module: str, name: str) -> type[Any] | None:
    """Return a class of a library. None: the application has not imported it."""
    # Not imported here: who has an object of it has imported it, and LangChain's warns of a beta.
    return getattr(sys.modules.get(module), name, None)


def _class_of(listed: ToolContract | None) -> OperationClass:
    # A hint of the server's, which may lie: a recall that writes is still redacted and audited,
    # and only fails in another way.
    reads = listed is not None and listed.hints.get("readOnlyHint", False)
    return OperationClass.RECALL if reads else OperationClass.REMEMBER


def _declared(listed: ToolContract | None) -> frozenset[str]:
    """Return the names of parameters that a server itself has listed."""
    return frozenset(listed.parameters.get("properties") or ()) if listed else frozenset()


def _redact(
    customer_at: str | None, declared: frozenset[str], given: Arguments, redaction: Redaction
) -> Arguments:
    values: Arguments = {}
    for name, each in given["arguments"].items():
        if name == customer_at:
            values[name] = each
        elif name in declared:
            values[name] = redaction.value(each)
        else:  # of a tool that takes any, the name is the model's: it may be a person's
            values |= redaction.value({name: each})
    others: Arguments = {name: redaction.value(given[name]) for name in _CONTENT if name in given}
    return {**given, **others, "arguments": values}


def _scope(customer_at: str | None, given: Arguments) -> Scope:
    named = given["arguments"].get(customer_at)
    return Scope(customer=named) if isinstance(named, str) else Scope()


def _confine(customer_at: str, given: Arguments, customer: str) -> Arguments:
    return {**given, "arguments": {**given["arguments"], customer_at: customer}}


def _redact_values(given: Arguments, redaction: Redaction) -> Arguments:
    return {name: redaction.value(each) for name, each in given.items()}


_ROWS: Final = {
    f"{name}{form}": recall(f"{name}{form}", redact=_redact_values)
    for name in ("read_resource", "get_prompt", "complete")
    for form in ("", "_mcp")
}

ADAPTER: Final = StoreAdapter(
    store="mcp",
    client_types=(),
    bind=bind,
    not_guarded=_NOT_GUARDED,
    raises=dict.fromkeys(_ROWS, "no answer of a server's can be made up"),
)

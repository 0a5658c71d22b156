"""Sessions of the OpenAI Agents SDK behind a guard. The SDK itself is not imported."""

from __future__ import annotations

from typing import Any

from ...memory import api
from ...memory.client_shapes import SessionShape
from ...memory.errors import ConfigurationError
from ..toolkit.databases import result_or_none
from ..toolkit.named_customer import named_customer
from ..toolkit.proxy import GuardedMethods, guarded_class
from .items import redact_items
from .subject_data import SessionData

_MAKES_BRANCHES = ("create_branch_from_turn", "create_branch_from_content")
_NUMBERS = ("get_session_usage", "get_turn_usage", "store_run_usage", "get_tool_usage")
_OPENS = ("close", "ping", "switch_to_branch")
NOT_GUARDED: dict[str, str] = dict.fromkeys((*_NUMBERS, *_OPENS), "counts or opens: no content")


def _redact(arguments: api.Arguments, redaction: api.Redaction) -> api.Arguments:
    redacted: api.Arguments = {}
    for name, value in arguments.items():
        if name in {"items", "search_term"}:
            redacted[name] = redact_items(value, redaction)
        else:  # a wrapper is the run's own context, which nothing stores
            redacted[name] = value if name == "wrapper" else redaction.value(value)
    return redacted


def _count(found: Any, _arguments: api.Arguments) -> api.Summary:
    return api.Summary(hits=len(found))


def bind(client: Any, services: api.AdapterServices, /, *, customer: Any = None) -> Any:
    """Return the binding of any session. For *customer*, and errors, see `Mnemoscope.session`."""
    if callable(getattr(client, "run_compaction", None)):
        raise ConfigurationError("this session compacts by itself: guard the session inside it")

    def scope(_arguments: api.Arguments) -> api.Scope:
        # A property of some sessions, which raises before their first item.
        session_id: Any = result_or_none(lambda: client.session_id)
        owner = named_customer(customer(session_id) if callable(customer) else customer)
        if owner is None and customer and services.policy.enforce_tenancy:
            raise api.ScopeError("tenancy is enforced, and customer= knows no owner of the session")
        return api.Scope(customer=owner, run=session_id)

    common: api.Arguments = {"redact": _redact, "scope": scope}
    reads = ("get_items", "get_conversation_turns", "find_turns_by_content", "list_branches")
    rows = api.method_table(
        *(api.recall(each, neutral=lambda _: [], summary=_count, **common) for each in reads),
        api.recall("get_conversation_by_turns", neutral=lambda _: {}, summary=_count, **common),
        api.remember(
            "add_items", neutral=lambda _: None, content=lambda own: own.get("items"), **common
        ),
        *(api.remember(each, "create_memory", **common) for each in _MAKES_BRANCHES),
        api.forget("pop_item", deletes=api.Deletes.IDS, **common),
        api.forget("delete_branch", deletes=api.Deletes.IDS, **common),
        api.forget("clear_session", deletes=api.Deletes.SCOPE, **common),
    )

    def class_of(base: Any) -> Any:
        table = {name: each for name, each in rows.items() if hasattr(base, name)}
        methods = GuardedMethods(table=table, client_types=(base,), not_guarded=[*NOT_GUARDED])
        kind: Any = guarded_class(base, methods)
        # By these compaction would write what nobody has redacted: without, it calls the protocol.
        kind._get_compaction_snapshot = kind._atomic_replace_items = None  # noqa: SLF001
        return kind

    data = SessionData(client, customer)
    return api.StoreBinding(methods=rows, client_class=class_of, subject_data=data)


ADAPTER = api.StoreAdapter(
    store="openai_agents",
    client_types=(SessionShape,),
    bind=bind,
    not_guarded=NOT_GUARDED,
    raises=dict.fromkeys(_MAKES_BRANCHES, "answers with the name of a branch that is there"),
)

"""LlamaIndex's memories, with the blocks in them, and chat stores: they share names of methods."""

from __future__ import annotations

from functools import lru_cache, partial
from importlib import import_module
from typing import Any

from ...memory import api
from ...telemetry.event.spelling import id_text
from ..toolkit.named_customer import named_customer
from ..toolkit.owned_records import kept_of
from .messages import content, labelled, messages_of, redact, summary
from .model_calls import count_model_calls
from .subject_data import ChatSessions, Owner

_memory: Any = import_module("llama_index.core.memory.memory")
_stores: Any = import_module("llama_index.core.storage.chat_store")
_KINDS = (_memory.BaseMemory, _memory.AsyncDBChatStore, _stores.BaseChatStore)
_COPIES = (
    "dict json copy model_copy model_dump model_dump_json custom_model_dump dump_store to_dict "
    "to_json to_string serialize_courses_in_order persist model_post_init get_token_count"
)
NOT_GUARDED: dict[str, str] = dict.fromkeys(
    _COPIES.split(), "copies or counts what it holds, redacted already"
)
MISTAKE = api.CallerMistake(
    what="a message that is none, or a call that this memory has not",
    error=(AttributeError, ValueError, NotImplementedError),
    where=("llama_index.core.memory", "llama_index.core.storage.chat_store"),
    how="called",
)
_READ, _DELETED = ("get", "get_all", "get_messages"), ("reset", "delete_messages")
_ADDED = ("put", "put_messages", "add_message", "add_messages", "async_add_message")
_SOME, _MOST_KEPT = ("message", "last_message", "oldest_messages"), 64


class Unstored:
    """Messages that the store did not take: what a memory answers is what a model is asked."""

    _kept: tuple[Any, ...] = ()

    def faces(self, method: api.Method) -> api.Faces:
        """Return what is done after calls that write or read messages."""
        is_read = method.op_class is api.OperationClass.RECALL
        return api.Faces(after=self._give if is_read else self._note)

    def _note(self, call: api.Call) -> None:
        keeps = call.neutral and call.redacted
        before = self._kept if keeps and call.method.operation != "update_memory" else ()
        self._kept = (*before, *messages_of(call.arguments))[-_MOST_KEPT:] if keeps else ()

    def _give(self, call: api.Call) -> None:
        if call.neutral and self._kept:
            call.answer([*self._kept])


@lru_cache(maxsize=64)
def _rows(owner_of: Owner | None, session: str | None, *, media: bool) -> dict[str, api.Method]:
    def scope(given: api.Arguments) -> api.Scope:
        key = given.get("key", session)
        customer = named_customer(owner_of(key)) if owner_of and isinstance(key, str) else None
        return api.Scope(customer=customer, run=key)

    def only(keys: list[str], customer: str) -> list[str]:
        return [each for each in keys if owner_of and id_text(owner_of(each)) == customer]

    def recorded(_answer: Any, given: api.Arguments) -> list[api.Record]:
        return [labelled(each, given.get("key", session)) for each in messages_of(given)]

    def sift(answer: Any, given: api.Arguments, keep: api.Keep) -> Any:
        return kept_of(answer, lambda each: keep(labelled(each, given.get("key", session))))

    same: Any = {"redact": partial(redact, media=media), "scope": scope, "content": content}
    same["needs_owner"] = owner_of is not None
    update, found = "update_memory", same | {"summary": summary}
    writes = dict.fromkeys(_ADDED, "upsert_memory") | dict.fromkeys(("set", "set_messages"), update)
    rows = api.method_table(
        *(api.recall(each, neutral=lambda _: [], sift=sift, **found) for each in _READ),
        api.recall("get_keys", neutral=lambda _: [], only=only, **found),
        api.recall("count_messages", neutral=lambda _: 0, **same),
        *(
            api.remember(each, writes[each], neutral=lambda _: None, written=recorded, **same)
            for each in writes
        ),
        api.remember("archive_oldest_messages", update, neutral=lambda _: [], **same),
        *(api.forget(each, deletes=api.Deletes.SCOPE, **same) for each in _DELETED),
        *(api.forget(f"delete_{each}", deletes=api.Deletes.IDS, **same) for each in _SOME),
    )
    return {**rows, **{f"a{name}": row for name, row in rows.items()}}


def bind(
    client: Any,
    services: api.AdapterServices,
    /,
    *,
    owner: Owner | None = None,
    media: bool = False,
) -> api.StoreBinding:
    """
    Return the binding of a memory or a chat store.

    Args:
        client: It.
        services: What the scope offers.
        owner: Without it nobody knows whose a session is: events name the context's customer,
            ``tenancy="enforce"`` refuses calls in it, and nothing is exported or erased.
        media: Pictures, sound and documents in messages are stored as they are.
    """
    session = getattr(client, "session_id", getattr(client, "chat_store_key", None))
    rows = _rows(owner, session, media=media)
    count_model_calls(services.accounting)
    return api.StoreBinding(
        methods={name: row for name, row in rows.items() if hasattr(client, name)},
        caller_mistakes=(MISTAKE,),
        subject_data=ChatSessions(client, owner, session),
        steps=(Unstored(),) if isinstance(client, _memory.BaseMemory) else (),
    )


ADAPTER = api.StoreAdapter(
    store=ChatSessions.store, client_types=_KINDS, bind=bind, not_guarded=NOT_GUARDED
)

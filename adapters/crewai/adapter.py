"""CrewAI's memory storages behind a guard: what its `Memory` keeps records in."""

from __future__ import annotations

from functools import lru_cache, partial
from importlib import import_module
from typing import Any

from ...memory import api
from ..toolkit.owned_records import OwnerCheck
from .model_calls import count_model_calls
from .records import Owners, by_ids, content, recorded, refuse, sift
from .subject_data import StoredRecords

# Not import statements, here and beside: what checks types runs where this framework is not.
_storage: Any = import_module("crewai.memory.storage.backend")
_info: Any = import_module("crewai.memory.types").ScopeInfo
_KEPT = "moves what is stored, redacted already"
NOT_GUARDED = {"optimize": _KEPT, "flush_to_central": _KEPT, "close": _KEPT}
MISTAKE = api.CallerMistake(
    what="vectors of another size than those that are stored",
    error=_storage.EmbeddingDimensionMismatchError,
    where=("crewai.memory.storage",),
)


@lru_cache(maxsize=64)
def _rows(root: str | None) -> dict[str, api.Method]:
    owners, owned = Owners(root), root is not None
    same: Any = {"redact": owners.redact, "scope": owners.scope, "content": content}
    same |= {"needs_owner": owned, "confine": refuse}
    narrow, parent = (partial(owners.narrow, name) for name in ("scope_prefix", "parent"))
    seen: Any = {**same, "summary": owners.summary}
    listed: Any = {"sift": sift, "only": owners.only if owned else None}
    narrowed: Any = {**seen, "confine": narrow if owned else None}
    tree: Any = {**narrowed, "confine": parent if owned else None}
    write: Any = {**same, "written": recorded, "confine": owners.owned if owned else None}
    by_id: Any = {**same, "confine": by_ids if owned else refuse}
    rows = api.method_table(
        api.recall("search", neutral=lambda _: [], **narrowed, **listed),
        api.recall("list_records", neutral=lambda _: [], **narrowed, **listed),
        api.recall("get_record", neutral=lambda _: None, **{**seen, "confine": None}, **listed),
        api.recall("get_scope_info", neutral=lambda given: _info(path=given["scope"]), **same),
        api.recall("list_scopes", neutral=lambda _: [], **tree),
        api.recall("list_categories", neutral=lambda _: {}, **narrowed, only=lambda _, __: {}),
        api.recall("count", neutral=lambda _: 0, **same),
        api.remember("save", neutral=lambda _: None, **write),
        api.remember("update", "update_memory", neutral=lambda _: None, **write),
        api.remember("touch_records", "update_memory", neutral=lambda _: None, **by_id),
        api.forget("delete", deletes=api.Deletes.IDS, **by_id),
        api.forget("reset", deletes=api.Deletes.EVERYTHING, **same),
    )
    return {**rows, **{f"a{name}": rows[name] for name in ("save", "search", "delete")}}


def bind(
    client: Any, services: api.AdapterServices, /, *, owner_scope: str | None = None
) -> api.StoreBinding:
    """
    Return the binding of a memory storage.

    *owner_scope* is the scope that those of customers are in: ``/customers``, where
    ``/customers/c-42`` is one's. Without it no record says whose it is: events name the context's
    customer, ``tenancy="enforce"`` refuses calls in it, and nothing is exported or erased.
    """
    rows, owners = _rows(owner_scope), Owners(owner_scope)
    count_model_calls(services.accounting)
    check = OwnerCheck(
        lambda given: [client.get_record(each) for each in owners.ids(given)],
        lambda found: (owners.of(each.scope) for each in found if each is not None),
    )
    enforces = owner_scope is not None and services.policy.enforce_tenancy
    return api.StoreBinding(
        methods={name: row for name, row in rows.items() if hasattr(client, name)},
        caller_mistakes=(MISTAKE,),
        subject_data=StoredRecords(client, owners),
        around=(check,) if enforces else (),
        shared=False,
    )


_KINDS: Any = (_storage.StorageBackend,)
ADAPTER = api.StoreAdapter(
    store=StoredRecords.store, client_types=_KINDS, bind=bind, not_guarded=NOT_GUARDED
)

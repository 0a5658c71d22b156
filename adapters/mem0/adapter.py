"""
mem0 behind the chokepoint: ``Memory``, ``AsyncMemory`` and the clients of the hosted service.

Its embedder is given texts without what stands for personal data: see `embedder`.

Two things are done to the library itself as a client is wrapped. It is kept from calling home,
unless the environment says otherwise: it sends unsalted hashes of user ids. And it is kept from
downloading a spaCy model in the middle of a call: where the download is refused, spaCy ends the
process. ``AsyncMemory`` has threads that a hung store may keep: see `threads`.
"""

from __future__ import annotations

import os
from dataclasses import replace
from functools import lru_cache, partial
from importlib import import_module
from importlib.metadata import PackageNotFoundError, distribution
from typing import TYPE_CHECKING, Any, cast

from ...memory.api import AdapterServices, BreaksOff, StoreAdapter, StoreBinding
from ...memory.guard.call import nothing_below
from ...memory.guard.operation import Method
from ...memory.guard.step import Around
from ...telemetry.process.faults import Faults
from ..toolkit.http_time import ends_in_time
from ..toolkit.own_methods import OwnMethods
from ..toolkit.proxy import GuardedMethods, guarded_class
from . import methods
from .database import database_of, hosted_database
from .embedder import EmbedderTexts
from .facts import AddFactsDeduplication, CountFacts
from .failures import HOSTED_MISTAKES, MISTAKES
from .hosted_answers import CheckDeletions
from .hosted_methods import (
    HOSTED_METHODS,
    HOSTED_NOT_GUARDED,
    HOSTED_RAISES,
    PROJECT_METHODS,
)
from .journal import writes
from .model_usage import ModelCallRecorder
from .phases import watch_phases
from .store_id import StoreIdStep, store_id
from .subject_data import HostedSubjectData, MemorySubjectData
from .tenancy import CheckOwner
from .threads import AwaitApart
from .vectors import guards_below

if TYPE_CHECKING:
    from .local_store import LocalTurns

_mem0: Any = import_module("mem0")  # it ships no types

_project: Any = import_module("mem0.client.project")

_TABLES: dict[type, dict[str, Method]] = {
    _mem0.Memory: methods.METHODS,
    _mem0.AsyncMemory: methods.METHODS,
    _mem0.MemoryClient: HOSTED_METHODS,
    _mem0.AsyncMemoryClient: HOSTED_METHODS,
}


_PROJECT = GuardedMethods(
    table=PROJECT_METHODS, client_types=(_project.Project, _project.AsyncProject)
)


def bind(client: Any, services: AdapterServices, /) -> StoreBinding:
    """Return the binding of a client of mem0, open source or hosted."""
    configure_library()
    rows = _table(type(client))
    hosted = rows is HOSTED_METHODS
    if not hosted:
        ModelCallRecorder(services.accounting).watch(client)
        watch_phases(client, services.faults)
    texts = EmbedderTexts(services.redactor.redactor.text_to_embed, services.faults)
    turns = _local_turns(client)
    lock = None if turns is None else turns.lock
    kept = writes(client, rows, hosted=hosted)
    complete = CheckDeletions(client) if hosted else CountFacts(client, services.faults)
    named = store_id(client, hosted=hosted)
    check = (CheckOwner(client, rows["get"]),) if services.policy.enforce_tenancy else ()
    return StoreBinding(
        methods=rows,
        caller_mistakes=HOSTED_MISTAKES if hosted else MISTAKES,
        exits=True,  # spaCy, where a model cannot be downloaded
        client_class=lambda base: _guarded_class(cast("Any", base)),
        subject_data=HostedSubjectData(client) if hosted else MemorySubjectData(client, lock),
        writes=kept if hosted else replace(kept, once=AddFactsDeduplication()),
        database=hosted_database(client) if hosted else database_of(client),
        steps=() if named is None else (StoreIdStep(services.redactor.name(named)),),
        below=nothing_below if hosted else partial(guards_below, client),
        # A local Qdrant's folder is one process's: the second one is refused.
        shared=_below(client) != "QdrantLocal",
        on_guarded=None if hosted else partial(texts.prepare, client),
        breaks_off=_breaks_off(client, services),
        around=(
            *((AwaitApart(client),) if isinstance(client, _mem0.AsyncMemory) else ()),
            *(_headers_for(client, services.faults) if turns is None else (turns,)),
            complete,
            *check,
        ),
    )


@lru_cache(maxsize=64)
def _guarded_class(base: Any, /) -> Any:
    table = _table(base)
    hosted = table is HOSTED_METHODS
    known = GuardedMethods(
        table=table,
        client_types=tuple(_TABLES),
        not_guarded=frozenset(HOSTED_NOT_GUARDED if hosted else methods.NOT_GUARDED),
        parts={"project": _PROJECT} if hosted else {},
    )
    return guarded_class(base, known)


def _table(base: Any) -> dict[str, Method]:
    return next(table for kind, table in _TABLES.items() if issubclass(base, kind))


def _local_turns(client: Any) -> LocalTurns | None:
    """Return what has calls of a local Qdrant take turns. None: there is none below *client*."""
    if _below(client) != "QdrantLocal":
        return None
    from .local_store import LocalTurns  # noqa: PLC0415 - not without Qdrant

    return LocalTurns(client)


def _headers_for(client: Any, faults: Faults) -> tuple[Around, ...]:
    if _below(client) != "QdrantRemote":
        return ()
    from ..qdrant.headers import headers_for  # noqa: PLC0415 - not without Qdrant

    return headers_for(client.vector_store.client, faults)


def _breaks_off(client: Any, services: AdapterServices) -> BreaksOff | None:
    if type(client) is not _mem0.MemoryClient:
        return None
    own = OwnMethods(_mem0.MemoryClient, "mem0/client/utils.py")  # its decorator
    ends = ends_in_time(client.client, services.guards.workers)
    return ends and (lambda call: own.has(client, call.method.name) and ends())


def _below(client: Any) -> str:
    """Return the name of the implementation inside a Qdrant client below *client*, if any."""
    # By name, so that Qdrant is not imported for stores of another kind.
    store = getattr(getattr(client, "vector_store", None), "client", None)
    return type(getattr(store, "_client", None)).__name__


def configure_library() -> None:
    """Keep mem0 from calling home and from downloading a model in the middle of a call."""
    if "MEM0_TELEMETRY" not in os.environ:  # the host has decided nothing
        # Read once, at mem0's import: the variable would come too late.
        telemetry: Any = import_module("mem0.memory.telemetry")
        telemetry.MEM0_TELEMETRY = False
    if not _installed("en_core_web_sm"):
        # Otherwise asked for, and downloaded, inside the first add and the first search.
        models: Any = import_module("mem0.utils.spacy_models")
        models._load_failed_full |= models._nlp_full is None  # noqa: SLF001 - there is no other way
        models._load_failed_lemma |= models._nlp_lemma is None  # noqa: SLF001 - see above


def _installed(package: str) -> bool:
    try:
        distribution(package)
    except PackageNotFoundError:
        return False
    return True


ADAPTER = StoreAdapter(
    store="mem0",
    client_types=tuple(_TABLES),
    bind=bind,
    instruments=True,
    prepare=configure_library,
    not_guarded=methods.NOT_GUARDED | HOSTED_NOT_GUARDED,
    raises=HOSTED_RAISES,
)

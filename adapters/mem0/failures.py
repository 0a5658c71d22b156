"""
The caller's mistakes that mem0 raises exceptions for. All others are failures of the store.

mem0 lets the exceptions of some twenty vector stores and as many model providers through, and none
of those are the caller's: a refused credential of the model provider, say, is the deployment's.
"""

from __future__ import annotations

from typing import Any

from mem0 import exceptions  # type: ignore[import-untyped]  # it ships no types

from ...memory.api import CallerMistake

_MAIN = "mem0.memory.main"
_CLIENT = "mem0.client.main"
_PROJECT = "mem0.client.project"
_ANSWER = "mem0.client.utils:_handle_http_error"


def _is_by_service(error: Any) -> bool:
    # The service explains itself in JSON. A page of HTML is from something in front of it.
    return bool(error.details)


def _names_memory(error: Any) -> bool:
    request: dict[str, Any] = error.debug_info or {}
    path = str(request.get("url"))
    # A 404 of the address itself says that it is wrong, which is the deployment's.
    return _is_by_service(error) and "/memories/" in path and request.get("method") != "POST"


def _are_no_options(error: Any) -> bool:
    # The client calls it on whatever it is given as options; any other name is a defect of its own.
    return bool(error.name == "model_dump")


MISTAKES = (
    CallerMistake(
        what="an empty query",
        error=ValueError,
        where=(
            f"{_MAIN}:_validate_and_trim_search_query",
            f"{_CLIENT}:_validate_and_trim_search_query",
        ),
    ),
    CallerMistake(
        what="`user_id` and the like beside `filters`",
        error=ValueError,
        where=(f"{_MAIN}:_reject_top_level_entity_params", f"{_CLIENT}:search"),
    ),
    CallerMistake(
        what="an empty id, or one with white space in it",
        error=ValueError,
        where=(f"{_MAIN}:_validate_and_trim_entity_id",),
    ),
    CallerMistake(
        what="a `top_k` or `threshold` that is no number, or out of range",
        error=ValueError,
        where=(f"{_MAIN}:_validate_search_params",),
    ),
    CallerMistake(
        what="nobody to remember it for",
        error=exceptions.ValidationError,
        where=(f"{_MAIN}:_build_filters_and_metadata",),
    ),
    CallerMistake(
        what="messages, or a type of memory, that `add` does not take",
        error=(ValueError, exceptions.ValidationError),
        where=(f"{_MAIN}:add", f"{_CLIENT}:add"),
    ),
    CallerMistake(
        what="an expiration that is no date",
        error=ValueError,
        where=(f"{_MAIN}:_normalize_expiration_date",),
    ),
    CallerMistake(
        what="filters that name nobody",
        error=ValueError,
        where=(f"{_MAIN}:search", f"{_MAIN}:get_all", f"{_MAIN}:delete_all"),
    ),
    CallerMistake(
        # mem0 hashes the ids for its telemetry, also where that is off.
        what="an id in `filters` that is None",
        error=AttributeError,
        where=("mem0.memory.utils:process_telemetry_filters",),
        how="called",
    ),
    CallerMistake(
        what="a filter of another form",
        error=ValueError,
        where=(
            f"{_MAIN}:_process_metadata_filters",
            f"{_MAIN}:process_condition",
            "mem0.vector_stores.qdrant:_create_filter",
            "mem0.vector_stores.qdrant:_build_field_condition",
        ),
    ),
    CallerMistake(
        what="an update of nothing",
        error=ValueError,
        where=(f"{_MAIN}:update", f"{_CLIENT}:update"),
    ),
    CallerMistake(
        what="the id of no memory",
        error=ValueError,
        where=(f"{_MAIN}:_update_memory", f"{_MAIN}:delete", f"{_MAIN}:_delete_memory"),
    ),
)
"""What ``Memory`` and ``AsyncMemory`` raise. The hosted clients share some of it."""

HOSTED_MISTAKES = (
    *(row for row in MISTAKES if any(each.startswith(_CLIENT) for each in row.where)),
    CallerMistake(
        what="`user_id` and the like beside `filters`, for `get_all`",
        error=ValueError,
        where=(f"{_CLIENT}:get_all",),
    ),
    CallerMistake(
        what="options of another type",
        error=AttributeError,
        where=(_CLIENT,),
        how="called",
        when=_are_no_options,
    ),
    CallerMistake(
        what="a feedback that there is none of",
        error=ValueError,
        where=(f"{_CLIENT}:feedback",),
    ),
    CallerMistake(
        what="a change of nothing in the project",
        error=ValueError,
        where=(f"{_CLIENT}:update_project", f"{_PROJECT}:update"),
    ),
    CallerMistake(
        what="a role that there is none of",
        error=ValueError,
        where=(f"{_PROJECT}:add_member", f"{_PROJECT}:update_member"),
    ),
    CallerMistake(
        what="arguments that do not bind",
        error=TypeError,
        where=("mem0.client.utils:wrapper", "mem0.client.utils:async_wrapper"),
        how="called",
    ),
    CallerMistake(
        what="a request that the service finds invalid (400, 409, 422)",
        error=exceptions.ValidationError,
        where=(_ANSWER,),
        when=_is_by_service,
    ),
    CallerMistake(
        what="the id of no memory (404)",
        error=exceptions.MemoryNotFoundError,
        where=(_ANSWER,),
        when=_names_memory,
    ),
)
"""What ``MemoryClient`` and ``AsyncMemoryClient`` raise."""

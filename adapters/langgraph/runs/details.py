"""Details of a model call of LangChain's, from what its callbacks are given."""

from __future__ import annotations

from typing import Any

from ....telemetry.event.usage import CallDetails
from ...toolkit.call_details import (
    TELLING,
    answer_details,
    call_details,
    configured_server,
    is_response_id,
    media_details,
    request_details,
)
from ...toolkit.type_guards import is_dict


def details_of(
    message: Any, about: Any, used: Any, response: Any, request: tuple[Any, Any] | None
) -> CallDetails | None:
    """
    Return the details of a finished call, besides its usage. None: nothing.

    Args:
        message: Its first answer, whole or as far as it came. None: there is none.
        about: What its provider said around that.
        used: The ``usage_metadata``.
        response: The ``LLMResult``. None: there is none.
        request: The model as LangChain writes it down, and the call's parameters, if known.
    """
    # Looked at first, since all of it is done on the thread of the node.
    if (
        request is None
        and TELLING.isdisjoint(about or ())
        and not (used and "input_token_details" in used)
        and not getattr(message, "id", None)
    ):
        return None
    found = {} if request is None else requested(*request)
    return call_details(found | answered(message, about, used, response))


def requested(serialized: Any, parameters: Any) -> dict[str, Any]:
    """Return what is known of a call as it begins: of its model, and its *parameters*."""
    return configured_server(serialized) | request_details(parameters)


def answered(message: Any, about: Any, used: Any, response: Any) -> dict[str, Any]:
    """Return what is known of a call as it ends; see `details_of`."""
    rows = getattr(response, "generations", None)
    found: dict[str, Any] = {}
    if rows and len(rows[0]) > 1:
        messages = [getattr(each, "message", None) for each in rows[0]]
        abouts = [getattr(each, "response_metadata", None) for each in messages]
        # OpenAI's integration has the id of several answers there alone.
        whole = getattr(response, "llm_output", None)
        found = answer_details([*abouts, {"id": whole.get("id")} if is_dict(whole) else None])
    elif about:
        found = answer_details((about,))
    if "response_id" not in found and is_response_id(known := getattr(message, "id", None)):
        found["response_id"] = known
    if is_dict(used):
        found |= media_details(used.get("input_token_details"), used.get("output_token_details"))
    return found

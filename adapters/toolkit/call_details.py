"""
Details of a model call, read from its request and its answer.

Requests and answers are the provider's own, or those of a model that somebody has made: of what
they hold only numbers leave, and ids and words that have the form of one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any, Final
from urllib.parse import urlsplit

from ...telemetry.event.usage import CallDetails
from .databases import PORTS, result_or_none
from .type_guards import is_dict

# A closed form: what a provider calls an id might hold text of the user's.
_ID: Final = re.compile(r"[\w.:/+=|-]{1,256}", re.ASCII)
_WORD: Final = re.compile(r"[A-Za-z_ -]{1,64}")
_FRAMEWORK_IDS: Final = ("lc_", "run-")
"""How ids of LangChain's begin, which the provider knows nothing of."""

_WHOLE: Final = {
    "max_tokens": "max_tokens",
    "max_completion_tokens": "max_tokens",
    "max_output_tokens": "max_tokens",
    "num_predict": "max_tokens",
    "top_k": "top_k",
    "seed": "seed",
    "n": "choice_count",
    "dimensions": "dimension_count",
}
_DECIMAL: Final = frozenset(("temperature", "top_p", "frequency_penalty", "presence_penalty"))
_PARAMETERS: Final = _WHOLE.keys() | _DECIMAL
_FINISH: Final = ("finish_reason", "stop_reason", "stopReason", "done_reason")
TELLING: Final = frozenset(("id", *_FINISH))
"""Names under which an answer says something of itself."""

_ADDRESSES: Final = frozenset(
    ("base_url", "openai_api_base", "azure_endpoint", "anthropic_api_url", "groq_api_base")
)
"""What LangChain's models call the address of the server that they ask."""


def call_details(found: Mapping[str, Any]) -> CallDetails | None:
    """Return the details that are in *found*, by name. None: there are none."""
    return CallDetails(**found) if found else None


def request_details(request: Any) -> dict[str, Any]:
    """Return the parameters of a *request* to a model that are numbers, by their field."""
    if not request or not is_dict(request):
        return {}
    found: dict[str, Any] = {}
    # By name: a request has the prompt in it, which must not get here.
    for name in request.keys() & _PARAMETERS:
        value = request[name]
        if name in _DECIMAL:
            if isinstance(value, int | float) and not isinstance(value, bool):
                found[name] = float(value)
        elif (number := _whole(value)) is not None:
            found[_WHOLE[name]] = number
    if found.get("choice_count") == 1:  # the conventions have it where it is another
        del found["choice_count"]
    return found


def server_details(address: Any) -> dict[str, Any]:
    """Return the server of a model's *address*, without who logs in."""
    server = _server(address) if isinstance(address, str) else None
    return {} if server is None else {"server": server}


def configured_server(serialized: Any) -> dict[str, Any]:
    """Return the server that a model of LangChain's, *serialized*, was set up with, if any."""
    options = serialized.get("kwargs") if serialized and is_dict(serialized) else None
    if not is_dict(options):
        return {}
    for name in options.keys() & _ADDRESSES:
        return server_details(options[name])
    return {}


@lru_cache(maxsize=256)
def _server(address: str) -> tuple[str, int] | None:
    parts = result_or_none(lambda: urlsplit(address))
    port = None if parts is None else result_or_none(lambda: parts.port) or PORTS.get(parts.scheme)
    return (parts.hostname, port) if parts is not None and parts.hostname and port else None


def answer_details(abouts: Iterable[Any]) -> dict[str, Any]:
    """
    Return what answers to one call say of themselves.

    Args:
        abouts: Of each answer what its provider said around it.
    """
    found: dict[str, Any] = {}
    reasons = list[str]()
    for about in abouts:
        if not is_dict(about):
            continue
        if "response_id" not in found and is_response_id(known := about.get("id")):
            found["response_id"] = known
        for name in _FINISH:
            reason = about.get(name)
            if isinstance(reason, str) and _WORD.fullmatch(reason):
                reasons.append(reason)
                break
    if reasons:
        found["finish_reasons"] = tuple(reasons)
    return found


def is_response_id(known: Any) -> bool:
    """Return whether *known* has the form of an id, and of none of LangChain's own."""
    if not isinstance(known, str) or known.startswith(_FRAMEWORK_IDS):
        return False
    return _ID.fullmatch(known) is not None


def call_id(known: Any) -> str | None:
    """Return *known* if it has the form of a tool call's id, else None."""
    return known if isinstance(known, str) and _ID.fullmatch(known) else None


def media_details(into: Any, out: Any) -> dict[str, int]:
    """Return the tokens of sound and pictures that the details of input and output report."""
    found: dict[str, int] = {}
    for name, details, kind in (
        ("audio_input_tokens", into, "audio"),
        ("image_input_tokens", into, "image"),
        ("audio_output_tokens", out, "audio"),
    ):
        if is_dict(details) and (count := _whole(details.get(kind))):
            found[name] = count
    return found


def _whole(value: Any) -> int | None:
    """Return a whole number that an attribute can hold; None for anything else."""
    fits = isinstance(value, int) and not isinstance(value, bool) and abs(value) < 1 << 63
    return value if fits else None

"""
Whether LangChain's cache has the answer to a call, which then costs nothing.

LangChain tells callbacks of a call before it looks into its cache, and does not hand them the key.
The key is made here from what it does tell. Where that is less than it makes the key of, as with
tools that are bound to a model it can write down, the answer is not found, and the call is one as
any other.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from copy import deepcopy
from typing import Any

from langchain_core.globals import get_llm_cache
from langchain_core.load import dumps

from ...toolkit.type_guards import is_dict


def is_cached(serialized: Any, messages: Any, about: dict[str, Any]) -> bool:
    """
    Return whether the cache has the answer.

    Args:
        serialized: The model, as LangChain writes it down.
        messages: One conversation, in a list.
        about: The rest that LangChain tells callbacks of the call.
    """
    cache = get_llm_cache()
    if cache is None or not messages:
        return False
    said = [each.model_copy(update={"id": None}) for each in messages[0]]
    prompt = dumps(said)
    return any(cache.lookup(prompt, model) is not None for model in _models(serialized, about))


def _models(serialized: Any, about: dict[str, Any]) -> Iterator[str]:
    """Yield what may stand for the model in the key: see ``BaseChatModel._get_llm_string``."""
    params: dict[str, Any] = about.get("invocation_params") or {}
    options: dict[str, Any] = about.get("options") or {}
    if is_dict(serialized) and serialized.get("type") == "constructor":
        written = deepcopy(serialized)
        _clean(written)
        yield f"{json.dumps(written, sort_keys=True)}---{sorted({'stop': None, **options}.items())}"
    else:
        yield str(sorted(params.items()))


def _clean(written: Any) -> None:
    """Take out what LangChain takes out: ``_cleanup_llm_representation``."""
    if not is_dict(written):
        return
    if written.get("type") == "not_implemented":
        written.pop("repr", None)
    written.pop("graph", None)
    given = written.get("kwargs")
    for each in given.values() if is_dict(given) else ():
        _clean(each)

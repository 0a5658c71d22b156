"""
The texts that mem0 has embedded, without what stands for personal data.

mem0 embeds what it stores and what it looks for: redacted text, in which a pseudonym would make
memories alike that only mention somebody. So the embedder of a guarded client is given texts as
they are to be densely encoded. What mem0 stores, and matches by words, keeps its stand-ins. The
embedder is as it was again when no guarded client is left.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping
from typing import Any, Final

from ...memory.guard.guard import Guard
from ...telemetry.process.faults import Faults
from ..toolkit.stand_in import StandIn, mark_of
from ..toolkit.type_guards import is_list
from .facts import note_lost_fact
from .model_usage import REMOTE, provider_of
from .phases import timed

_METHODS: Final = ("embed", "embed_batch")
_TEXTS: Final = frozenset(("text", "texts"))


class EmbedderTexts:
    """
    Has embedders given texts as they are to be densely encoded.

    Args:
        text_to_embed: Returns a redacted text so.
        faults: Where errors of ours are noted.
    """

    def __init__(self, text_to_embed: Callable[[str], str], faults: Faults) -> None:
        self._text_to_embed = text_to_embed
        self._faults = faults

    def prepare(self, client: Any, guard: Guard) -> None:
        """Prepare the embedder of *client* for as long as *guard* lives. Never raises."""
        embedder = getattr(client, "embedding_model", None)
        try:
            for name in _METHODS:
                made: Any = getattr(embedder, name, None)
                if not callable(made):
                    continue
                served = mark_of(made)
                if not isinstance(served, _Embedding):
                    served = _Embedding(embedder, name, made, self._text_to_embed)
                served.serve(guard)
        except Exception as exc:  # noqa: BLE001 - then it is given what is stored
            self._faults.note("mem0.embedder", exc)


class _Embedding:
    """
    The stand-in for a method of an embedder, while guarded clients use it.

    Args:
        text_to_embed: Returns what it is given.
    """

    def __init__(
        self,
        embedder: Any,
        name: str,
        made: Callable[..., Any],
        text_to_embed: Callable[[str], str],
    ) -> None:
        self._embedder, self._name = embedder, name
        self._held: dict[str, Any] = embedder.__dict__
        # What is asked over the network is an event of its own.
        is_reported = provider_of(embedder) in REMOTE
        self._call = made if is_reported else timed(made, "embed", name)
        self._replaced: Any = self._held.get(name)
        self._text_to_embed = text_to_embed
        self._stand_in = StandIn(made, self._embed, mark=self)
        self._served = 0

    def serve(self, guard: Guard) -> None:
        """Take the method's place until *guard*, and those before it, are gone."""
        if not self._served:
            setattr(self._embedder, self._name, self._stand_in)
        self._served += 1
        # At exit nothing has to be put back, and the embedder may be half gone.
        weakref.finalize(guard, self._release).atexit = False

    def _release(self) -> None:
        self._served -= 1
        # Somebody else has replaced it since: theirs is not taken away.
        if self._served or self._held.get(self._name) is not self._stand_in:
            return
        if self._replaced is None:
            del self._held[self._name]
        else:
            self._held[self._name] = self._replaced

    def _embed(self, *args: Any, **kwargs: Any) -> Any:
        given = (*map(self._given, args[:1]), *args[1:])
        try:
            return self._call(*given, **self._named(kwargs))
        except Exception:
            # Of a batch mem0 tries each text by itself; what it asks for a search, it raises.
            if self._name == "embed" and "add" in {*args[1:2], kwargs.get("memory_action")}:
                note_lost_fact()
            raise

    def _named(self, kwargs: Mapping[str, Any]) -> dict[str, Any]:
        return {
            name: self._given(value) if name in _TEXTS else value for name, value in kwargs.items()
        }

    def _given(self, value: Any) -> Any:
        if isinstance(value, str):
            return self._text_to_embed(value)
        return list(map(self._given, value)) if is_list(value) else value

"""
The texts that a store's index embeds, without what stands for personal data.

A store with an index embeds what it is given: redacted values and queries, in which a pseudonym
would make items alike that only mention somebody. So the embeddings of a guarded store are given
texts as they are to be densely encoded. What is stored keeps its stand-ins. The store has its own
embeddings again when no guarded store is left.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any, cast

from langchain_core.embeddings import Embeddings

from ....memory.guard.guard import Guard

_OWN = frozenset(("_embeddings", "_served", "_text_to_embed"))


def prepare_embeddings(store: Any, text_to_embed: Callable[[str], str], guard: Guard) -> None:
    """Have the index of *store*, if it has one, embed texts so for as long as *guard* lives."""
    embeddings = getattr(store, "embeddings", None)
    if not isinstance(embeddings, Embeddings):
        return
    # By `type`, since `isinstance` is answered for the wrapped class.
    if type(embeddings) is not EmbeddedTexts:
        embeddings = EmbeddedTexts(embeddings, text_to_embed)
        try:
            store.embeddings = embeddings
        except AttributeError:  # of a class that lets nobody: then it embeds what it stores
            return
    embeddings.serve(store, guard)


class EmbeddedTexts(Embeddings):
    """
    The embeddings of a store, given texts as they are to be densely encoded.

    In every other way it is the *embeddings*: it has their class and their attributes.

    Args:
        text_to_embed: Returns a redacted text as it is to be densely encoded.
    """

    def __init__(self, embeddings: Embeddings, text_to_embed: Callable[[str], str]) -> None:
        self._embeddings = embeddings
        self._text_to_embed = text_to_embed
        self._served = 0

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """Embed texts to store."""
        return self._embeddings.embed_documents(list(map(self._text_to_embed, texts)))

    def embed_query(self, text: str) -> list[float]:
        """Embed a query."""
        return self._embeddings.embed_query(self._text_to_embed(text))

    async def aembed_documents(self, texts: list[str]) -> list[list[float]]:
        """Embed texts to store."""
        return await self._embeddings.aembed_documents(list(map(self._text_to_embed, texts)))

    async def aembed_query(self, text: str) -> list[float]:
        """Embed a query."""
        return await self._embeddings.aembed_query(self._text_to_embed(text))

    def serve(self, store: Any, guard: Guard) -> None:
        """Stay in *store* until *guard*, and those before it, are gone."""
        self._served += 1
        # At exit other libraries are half gone, and so may the store be.
        weakref.finalize(guard, self._release, store).atexit = False

    def _release(self, store: Any) -> None:
        self._served -= 1
        # Unless the host has put others there since.
        if not self._served and store.embeddings is self:
            store.embeddings = self._embeddings

    def _class(self) -> type:
        return type(self._embeddings)

    __class__ = cast("Any", property(_class))  # pyright: ignore[reportIncompatibleMethodOverride]

    def __getattr__(self, name: str) -> Any:
        if name in _OWN:
            raise AttributeError(name)  # a copy that is not filled yet
        return getattr(self._embeddings, name)

    def __setattr__(self, name: str, value: Any) -> None:
        target = self if name in _OWN else self._embeddings
        object.__setattr__(self, name, value) if target is self else setattr(target, name, value)

    def __delattr__(self, name: str) -> None:
        delattr(self._embeddings, name)

"""
mem0 inside this process: Qdrant in a folder, embeddings by wordllama, LangChain's model or none.

mem0 finds its embedder and language model in tables from provider names to class names. While a
``Memory`` is built, two of the names refer to classes of this module.
"""

from __future__ import annotations

import os
import weakref
from collections.abc import Generator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from mnemoscope.hybrid_search.encoders import WordLlama

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel

ENCODER = WordLlama()


class WordLlamaEmbedding:
    """mem0's embedder over wordllama's static embeddings: no network, no download."""

    def __init__(self, config: Any) -> None:
        self.config = config

    def embed(self, text: str, _memory_action: str | None = None) -> list[float]:
        """Return the embedding of *text*."""
        return ENCODER.query(text)

    def embed_batch(self, texts: list[str], _memory_action: str = "add") -> list[list[float]]:
        """Return the embeddings of *texts*."""
        return ENCODER.documents(texts)


class NoModel:
    """A placeholder for the language model, which mem0 does not call with ``infer=False``."""

    def __init__(self, config: Any) -> None:
        self.config = config

    def generate_response(self, *_args: Any, **_kwargs: Any) -> NoReturn:
        """Raise: there is no model."""
        raise NotImplementedError("the demo has no language model for mem0: use infer=False")


def embedded_memory(folder: Path, model: BaseChatModel | None = None) -> Any:
    """
    Build a mem0 ``Memory`` whose files are all in *folder*; without *model* it cannot infer.

    It is offline: mem0's telemetry is off, unless ``MEM0_TELEMETRY`` says otherwise.
    """
    os.environ.setdefault("MEM0_TELEMETRY", "False")  # read as mem0 is imported
    mem0 = import_module("mem0")  # it ships no types
    with _registered("lmstudio", "vllm"):
        memory = mem0.Memory.from_config(
            {
                "embedder": {"provider": "lmstudio", "config": {"embedding_dims": ENCODER.size}},
                "llm": {"provider": "langchain", "config": {"model": model}}
                if model
                else {"provider": "vllm", "config": {}},
                "vector_store": {
                    "provider": "qdrant",
                    "config": {
                        "path": str(folder / "memories"),
                        "on_disk": True,
                        "collection_name": "memories",
                        "embedding_model_dims": ENCODER.size,
                    },
                },
                "history_db_path": str(folder / "mem0-history.db"),
            }
        )
    # Qdrant's own clean-up comes too late if the interpreter ends first, and says so.
    weakref.finalize(memory, memory.vector_store.client.close)
    return memory


@contextmanager
def _registered(embedder: str, model: str) -> Generator[None]:
    factory = import_module("mem0.utils.factory")
    embedders = factory.EmbedderFactory.provider_to_class
    models = factory.LlmFactory.provider_to_class
    before = embedders[embedder], models[model]
    embedders[embedder] = f"{__name__}.{WordLlamaEmbedding.__name__}"
    models[model] = (f"{__name__}.{NoModel.__name__}", factory.BaseLlmConfig)
    try:
        yield
    finally:
        embedders[embedder], models[model] = before

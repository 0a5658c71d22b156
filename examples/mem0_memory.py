"""
Guard a mem0 memory: personal data stays out of it, and an outage does not stop the agent.

Runs offline: Qdrant in memory, and an embedder that counts words.

Prints:
    stored: <PERSON> prefers tea, write to <EMAIL_ADDRESS>
    found: <PERSON> prefers tea, write to <EMAIL_ADDRESS>
    mem0: ok, 1 hits, redacted {'PERSON': 1}
    found: nothing
    mem0: degraded by ConnectionError, neutral answer: True
    refused: user_id must name one, not everybody: the store takes '*' for any
"""

import logging
import os
import shutil
import tempfile
import warnings
import zlib
from typing import Any

os.environ["MEM0_TELEMETRY"] = "False"
os.environ["MEM0_DIR"] = tempfile.mkdtemp()

from mem0 import Memory
from mem0.embeddings.base import EmbeddingBase
from mem0.utils.factory import EmbedderFactory
from qdrant_client import QdrantClient

from mnemoscope.memory import ScopeError, configure, context

DIMS = 64
embedder_is_up = True


class WordCounts(EmbeddingBase):
    """An embedder without a model: texts that share words are near one another."""

    def embed(self, text: str, _action: str | None = None) -> list[float]:
        """Return the number of occurrences of each word."""
        if not embedder_is_up:
            raise ConnectionError("embedder.internal:8080 refused the connection")
        vector = [0.0] * DIMS
        for word in text.lower().split():
            vector[zlib.crc32(word.encode()) % DIMS] += 1.0
        return vector


EmbedderFactory.provider_to_class["lmstudio"] = f"{__name__}.WordCounts"
config: dict[str, Any] = {
    "vector_store": {
        "provider": "qdrant",
        "config": {"client": QdrantClient(":memory:"), "embedding_model_dims": DIMS},
    },
    "embedder": {"provider": "lmstudio", "config": {"embedding_dims": DIMS}},
    "llm": {"provider": "openai", "config": {"api_key": "not used: infer=False"}},
    "history_db_path": ":memory:",
}

scope = configure(sinks=[], pii_model="none")
logging.getLogger("mem0").setLevel(logging.ERROR)  # it misses an optional package
warnings.filterwarnings("ignore", message="Payload indexes have no effect in the local Qdrant")
memory = scope.mem0(Memory.from_config(config))


def recall(question: str) -> None:
    """Search, and print the results and the status of the call."""
    found = memory.search(question, filters={"user_id": "c-42"})["results"]
    print("found:", "; ".join(each["memory"] for each in found) or "nothing")
    outcome = scope.last_outcome()
    assert outcome is not None
    if outcome.neutral:
        print(f"mem0: {outcome.status} by {outcome.error}, neutral answer: {outcome.neutral}")
    else:
        print(f"mem0: {outcome.status}, {outcome.hits} hits, redacted {outcome.redactions}")


with context(tenant="acme", agent="sales", purpose="reply"):
    written = "Ada prefers tea, write to ada@example.com"
    added = memory.add(written, user_id="c-42", infer=False)
    print("stored:", added["results"][0]["memory"])

    recall("What does Ada prefers")

    embedder_is_up = False
    recall("What does Ada prefers")

    try:
        memory.delete_all(user_id="*")
    except ScopeError as refused:
        print("refused:", refused)

scope.close()
memory.close()
shutil.rmtree(os.environ["MEM0_DIR"])

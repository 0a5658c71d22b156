"""
How long an event loop stands still while documents are written: bare and guarded.

A coroutine that has nothing to do with the store sleeps a millisecond at a time, and notes how late
it is woken. Meanwhile 100 documents of 2 kB go to Qdrant in memory in one call; one word in forty
could be a name by its capital, so that a language model has to be asked all over a document.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import string
import time
from typing import Any

from qdrant_client import AsyncQdrantClient, models

from benchmarks.tables import Section, show
from mnemoscope.memory import Mnemoscope, load_settings

COLLECTION, DIMENSIONS, DOCUMENTS, CHARS = "notes", 64, 100, 2_000
WORDS = ("the", "customer", "asked", "for", "invoice", "was", "told", "that", "it", "is", "late")
WORDS_FOR_NAME = 40
PAUSE_S = 0.001


def documents(seed: int) -> list[models.PointStruct]:
    """Return documents with a name and an address in each, all others than before."""
    chosen = random.Random(seed)  # noqa: S311 - the same texts in every run

    def made_up() -> str:
        return "".join(chosen.choices(string.ascii_lowercase, k=8)).capitalize()

    def text() -> str:
        words: list[str] = chosen.choices(WORDS, k=CHARS // 5)
        words[::WORDS_FOR_NAME] = [made_up() for _ in words[::WORDS_FOR_NAME]]
        return f"{' '.join(words)} {made_up()}@example.com"[-CHARS:]

    vector = [0.5] * DIMENSIONS
    return [
        models.PointStruct(id=number, vector=vector, payload={"text": text()})
        for number in range(DOCUMENTS)
    ]


async def watched(work: Any) -> tuple[list[float], float]:
    """Return by how many seconds a coroutine was late while *work* was awaited, and its time."""
    late_s: list[float] = []

    async def watch() -> None:
        while True:
            began = time.perf_counter()
            await asyncio.sleep(PAUSE_S)
            late_s.append(time.perf_counter() - began - PAUSE_S)

    watching = asyncio.create_task(watch())
    await asyncio.sleep(0.05)
    late_s.clear()
    began = time.perf_counter()
    await work
    took_s = time.perf_counter() - began
    await asyncio.sleep(0.01)
    watching.cancel()
    return late_s, took_s


async def measured(client: Any, rounds: int) -> list[str]:
    """Return a row of figures: of *rounds* writes."""
    late_s: list[float] = []
    took_s: list[float] = []
    for seed in range(rounds + 1):
        late, took = await watched(client.upsert(COLLECTION, documents(seed)))
        if seed:  # the first loads what is loaded on first use
            late_s += late
            took_s.append(took)
    late_s.sort()
    p99 = late_s[min(len(late_s) - 1, int(len(late_s) * 0.99))]
    figures = (late_s[-1], p99, late_s[len(late_s) // 2], sum(took_s) / rounds)
    return [f"{each * 1e3:,.1f}" for each in figures]


async def main(rounds: int, model: str | None) -> None:
    """Print the table."""
    size = models.VectorParams(size=DIMENSIONS, distance=models.Distance.COSINE)
    rows: list[list[str]] = []
    for name, pii_model in (("bare", None), ("patterns only", "none"), ("with a model", model)):
        bare = AsyncQdrantClient(":memory:")
        await bare.create_collection(COLLECTION, vectors_config=size)
        settings = load_settings(pii_model=pii_model, deadline_remember_s=0)
        scope = Mnemoscope(settings, only_sinks=[])
        client = bare if name == "bare" else scope.qdrant(bare)
        rows.append([name, *await measured(client, rounds)])
        scope.close()
        await bare.close()
    header = ("milliseconds", "longest", "p99", "median", "the write")
    show(Section("A coroutine beside 100 documents of 2 kB", "How late it is woken", header, rows))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--model", default=None, help="as MNEMOSCOPE_PII_MODEL")
    given = parser.parse_args()
    asyncio.run(main(given.rounds, given.model))

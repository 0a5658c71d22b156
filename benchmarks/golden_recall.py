"""
Planted regressions of recall, found or not, on long conversations.

    python -m benchmarks.golden_recall FOLDER

FOLDER holds conversations in the form of LoCoMo: see `benchmarks.recall`. The memory of the demo,
mem0 over Qdrant with WordLlama, remembers all turns of each as one customer's and is asked each
question, guarded, with an audit trail and a threshold of 0.35. The recalls in the trail are made
again by copies of its folder: one as it is, and one for each change. They are held against the
answers on record, and against the turns that answer the questions.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import tempfile
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

os.environ.setdefault("MEM0_TELEMETRY", "False")

from msgspec import structs
from qdrant_client import models
from rich.console import Console
from rich.table import Table

from benchmarks.recall import TOP, Conversation, read
from mnemoscope.adapters.cli.recorded_recalls import customers_by_number, recorded_recalls
from mnemoscope.adapters.toolkit.repeated_recalls import GuardedCandidate
from mnemoscope.demo import embedded_memory
from mnemoscope.hybrid_search import WordLlama
from mnemoscope.memory import Mnemoscope, context, load_settings
from mnemoscope.memory.golden_recall import GoldenCase, ReplayReport, compare

TENANT, THRESHOLD, HIGHER = "bench", 0.35, 0.45
NAME = "memories"
"""Of the demo's collection."""

Change = Callable[[Any, list[Any]], None]
"""Spoils a Qdrant client of the copy, given its points, the oldest first."""


def scope_at(folder: Path, sinks: str) -> Mnemoscope:
    """Return a scope whose trail is in *folder*, without deadlines."""
    settings = load_settings(
        sinks=sinks,
        audit_url=f"sqlite:///{folder}/audit.db",
        audit_pseudonym_key="6d" * 32,
        **dict.fromkeys(("deadline_recall_s", "deadline_remember_s"), 0),
    )
    return Mnemoscope(settings)


@contextmanager
def memory_in(folder: Path) -> Iterator[Any]:
    """Open the demo's memory in *folder*, bare."""
    with warnings.catch_warnings(action="ignore"):  # indexes do nothing in a local Qdrant
        bare = embedded_memory(folder)
    try:
        yield bare
    finally:
        bare.vector_store.client.close()
        bare.close()


def record(folder: Path, conversations: Sequence[Conversation]) -> list[GoldenCase]:
    """Remember and ask all, and return the recalls on record with the turns that answer each."""
    evidence: list[tuple[str, ...]] = []
    with closing(scope_at(folder, "audit")) as scope, memory_in(folder / "memory") as bare:
        scope.prepare()
        memory = scope.mem0(bare)
        for about in conversations:
            with context(tenant=TENANT, customer=about.name):
                ids = [
                    memory.add(text, user_id=about.name, infer=False)["results"][0]["id"]
                    for text in about.texts("said")
                ]
                for question in about.questions:
                    filters = {"user_id": about.name}
                    memory.search(question.text, filters=filters, top_k=TOP, threshold=THRESHOLD)
                    evidence.append(tuple(ids[turn] for turn in sorted(question.evidence)))
        if not scope.flush(60.0):
            raise SystemExit("events were lost: nothing is measured")
        cases, left_out = recorded_recalls(scope.audit, 0, len(evidence))
    if len(cases) != len(evidence) or left_out:
        raise SystemExit(f"{len(cases)} of {len(evidence)} recalls are on record: {left_out}")
    return [
        structs.replace(case, relevant=relevant)
        for case, relevant in zip(cases, evidence, strict=True)
    ]


def _age(point: Any) -> tuple[str, str]:
    # By the text where several were written at one time: ids are drawn anew in each run.
    return point.payload["created_at"], point.payload["data"]


# -- changes ---------------------------------------------------------------------------------------


def nothing(_client: Any, _points: list[Any]) -> None:
    """Leave all as it is."""


def another_embedder(client: Any, points: list[Any]) -> None:
    """Embed all anew, of each text its second half alone."""
    encoder = WordLlama()
    texts = [point.payload["data"] for point in points]
    vectors = encoder.documents([text[len(text) // 2 :] for text in texts])
    client.upsert(
        NAME,
        [
            models.PointStruct(id=point.id, vector=list(vector), payload=point.payload)
            for point, vector in zip(points, vectors, strict=True)
        ],
    )


def a_lost_part(client: Any, points: list[Any]) -> None:
    """Lose the fifth of the collection that was written last."""
    client.delete(NAME, points_selector=[each.id for each in points[-len(points) // 5 :]])


def a_tenth_lost(client: Any, points: list[Any]) -> None:
    """Lose 10 % of the points, at random."""
    lost = random.Random(1).sample(points, len(points) // 10)  # noqa: S311 - no secret
    client.delete(NAME, points_selector=[each.id for each in lost])


CHANGES: dict[str, tuple[Change, dict[str, Any]]] = {
    "the same store": (nothing, {}),
    "another embedder": (another_embedder, {}),
    f"threshold {THRESHOLD} → {HIGHER}": (nothing, {"threshold": HIGHER}),
    "a fifth of it lost": (a_lost_part, {}),
    "10 % of points lost": (a_tenth_lost, {}),
}


def replayed(
    folder: Path, name: str, cases: Sequence[GoldenCase], customers: Sequence[str]
) -> ReplayReport:
    """Make *cases* again with a copy of the memory that has the change *name*."""
    change, arguments = CHANGES[name]
    copy = Path(tempfile.mkdtemp(dir=folder))
    shutil.copytree(folder / "memory", copy, dirs_exist_ok=True)
    with closing(scope_at(folder, "")) as scope, memory_in(copy) as bare:
        scope.prepare()
        client = bare.vector_store.client
        points, _after = client.scroll(NAME, limit=1_000_000, with_vectors=False)
        change(client, sorted(points, key=_age))
        known = customers_by_number(trail_of(folder), cases, customers)
        with closing(GuardedCandidate([scope.mem0(bare)], known, arguments)) as candidate:
            return compare(cases, candidate, TOP)


def trail_of(folder: Path) -> Any:
    """Return the trail in *folder*."""
    with closing(scope_at(folder, "audit")) as scope:
        return scope.audit


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[1])
    parser.add_argument("folder", type=Path)
    given = parser.parse_args()
    conversations = [read(path) for path in sorted(given.folder.glob("*.json"))]
    if not conversations:
        raise SystemExit(f"{given.folder} has no conversation: expected *.json in LoCoMo's form")
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        judged = record(folder, conversations)
        measured = [structs.replace(each, relevant=None) for each in judged]
        names = [each.name for each in conversations]
        found = {
            name: (replayed(folder, name, judged, names), replayed(folder, name, measured, names))
            for name in CHANGES
        }
    report(found)


def report(found: dict[str, tuple[ReplayReport, ReplayReport]]) -> None:
    """Print the table, 80 columns wide."""
    table = Table(box=None, pad_edge=False)
    for heading in ("", "evidence@10", "MRR", "record@10", "MRR", "differ"):
        table.add_column(heading, justify="right" if heading else "left", no_wrap=True)
    first, _same = found["the same store"]
    before = (first.recall.on_record, first.mean_reciprocal_rank.on_record, 1.0, 1.0)
    table.add_row("on record", *map(_share, before), "")
    for name, (judged, measured) in found.items():
        means = (judged.recall.candidate, judged.mean_reciprocal_rank.candidate)
        means += (measured.recall.candidate, measured.mean_reciprocal_rank.candidate)
        differ = len(measured.worst(len(measured.outcomes)))
        table.add_row(name, *map(_share, means), f"{differ:,} of {len(measured.outcomes):,}")
    Console(width=80).print(table)


def _share(mean: float | None) -> str:
    return "unknown" if mean is None else f"{mean:.3f}"


if __name__ == "__main__":
    main()

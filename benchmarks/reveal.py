"""
What a customer's own agent reads, beside what it would read without a guard.

    python -m benchmarks.reveal same FOLDER
    python -m benchmarks.reveal strangers [--calls 100000] [--customers 50]
    python -m benchmarks.reveal cost

``same``: all turns of the conversations in FOLDER (LoCoMo's form) are remembered through a scope
with pseudonyms, a vault and ``pii_reveal``, with identifiers planted in every fifth of them, and
read through another scope that shares the vault. Each answer is compared with what was written.
``strangers``: random calls of customers with names and addresses of their own, in all adapters,
half of them for what is somebody else's. ``cost``: microseconds that a reveal adds, a result.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import os
import random
import statistics
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

os.environ.setdefault("MEM0_TELEMETRY", "False")

from langchain_core.messages import AIMessage, HumanMessage
from langgraph.checkpoint.base import empty_checkpoint
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.store.base import GetOp, SearchOp
from langgraph.store.memory import InMemoryStore
from qdrant_client import QdrantClient, models
from rich.console import Console

from mnemoscope.demo.embedded_mem0 import embedded_memory
from mnemoscope.memory import Mnemoscope, context
from mnemoscope.memory.settings import load_settings
from mnemoscope.memory.testing import CapturingSink

KEY = "00112233445566778899aabbccddeeff"
VECTOR = [0.6, 0.8]
SCREEN = Console(highlight=False)


def open_scope(folder: Path, **given: Any) -> tuple[Mnemoscope, CapturingSink]:
    """Return a scope with pseudonyms and a vault in *folder*, and its only sink."""
    sink = CapturingSink()
    chosen: dict[str, Any] = {
        "audit_pseudonym_key": KEY,
        "pii_model": "none",
        "pii_operators": "*=pseudonym",
        "vault": folder / "vault" / "names.db",
        "pii_reveal": "recall,resume",
        **{f"deadline_{each}_s": 0 for each in ("recall", "remember", "resume", "checkpoint")},
    }
    return Mnemoscope(load_settings(**chosen | given), only_sinks=[sink]), sink


class Stores:
    """
    One bare client of each adapter.

    Args:
        folder: Where mem0 has its files.

    Attributes:
        bare: The clients by name.
    """

    def __init__(self, folder: Path) -> None:
        qdrant = QdrantClient(":memory:")
        size = models.VectorParams(size=len(VECTOR), distance=models.Distance.COSINE)
        qdrant.create_collection("notes", vectors_config=size)
        self.bare: dict[str, Any] = {
            "store": InMemoryStore(),
            "qdrant": qdrant,
            "saver": InMemorySaver(),
            "mem0": embedded_memory(folder),
        }

    def guarded(self, scope: Mnemoscope) -> dict[str, Any]:
        """Return the clients as *scope* guards them."""
        return {name: scope.guard(each) for name, each in self.bare.items()}

    def held(self) -> str:
        """Return all that the stores hold, as text."""
        points, _next = self.bare["qdrant"].scroll("notes", limit=100_000)
        items = self.bare["store"].search((), limit=100_000)
        saver = self.bare["saver"]
        threads = [each.checkpoint for each in saver.list(None)]
        table = self.bare["mem0"].vector_store.client
        memories, _next = table.scroll("memories", limit=100_000)
        return repr((points, items, threads, memories, dict(saver.writes)))


def saved(guarded: Any, thread: str, messages: list[Any]) -> None:
    """Save a checkpoint with *messages*."""
    config = {"configurable": {"thread_id": thread, "checkpoint_ns": ""}}
    checkpoint = empty_checkpoint()
    version = guarded.get_next_version(None, None)
    checkpoint["channel_values"] = {"messages": messages}
    checkpoint["channel_versions"] = {"messages": version}
    guarded.put(config, checkpoint, {"source": "loop", "step": 1}, {"messages": version})


def resumed(guarded: Any, thread: str) -> list[Any]:
    """Return the messages of the latest checkpoint of *thread*."""
    found = guarded.get_tuple({"configurable": {"thread_id": thread}})
    return found.checkpoint["channel_values"]["messages"]


# -- the same --------------------------------------------------------------------------------------

PLANTED = (
    ("Write to {name}.q{n}@planted.example please.", "{name}.q{n}@planted.example"),
    ("Call me on +44 20 7946 0{n:03}.", "+44 20 7946 0{n:03}"),
    ("My name is Rosalind Quimby{letters}.", "Rosalind Quimby{letters}"),
    ("The IBAN is GB82 WEST 1234 5698 7654 32.", "GB82 WEST 1234 5698 7654 32"),
)


def turns_of(path: Path) -> list[tuple[str, str, str | None]]:
    """Return speaker, text and planted identifier of each turn."""
    held = json.loads(path.read_text(encoding="utf-8"))
    sessions = (held[f"session_{n}"] for n in range(1, 100) if f"session_{n}" in held)
    turns: list[tuple[str, str, str | None]] = []
    for number, turn in enumerate(each for session in sessions for each in session):
        text, planted = turn["text"], None
        if number % 5 == 0:
            sentence, identifier = PLANTED[number // 5 % len(PLANTED)]
            letters = "".join(chr(ord("a") + int(digit)) for digit in str(number))
            names = {"name": turn["speaker"].lower(), "n": number, "letters": letters}
            text = f"{text} {sentence.format(**names)}"
            planted = identifier.format(**names)
        turns.append((turn["speaker"], text, planted))
    return turns


def payload(speaker: str, text: str) -> dict[str, Any]:
    """Return a turn at several places: text, inside JSON as text, a list."""
    return {
        "speaker": speaker,
        "text": text,
        "json": json.dumps({"said": {"by": speaker, "text": text}}, ensure_ascii=False),
        "lines": [f"{speaker}: {text}", {"last": text}],
    }


def written(stores: dict[str, Any], turns: list[tuple[str, str, str | None]]) -> list[str]:
    """Write *turns* through guarded clients, and return mem0's ids of them."""
    ids: list[str] = []
    for number, (speaker, text, _planted) in enumerate(turns):
        stores["store"].put(("turns",), str(number), payload(speaker, text))
        point = models.PointStruct(id=number, vector=VECTOR, payload=payload(speaker, text))
        stores["qdrant"].upsert("notes", [point])
        added = stores["mem0"].add(f"{speaker}: {text}", user_id="c-1", infer=False)
        ids.append(added["results"][0]["id"])
        message = HumanMessage(text, name="speaker") if number % 2 else AIMessage(text)
        saved(stores["saver"], f"t-{number}", [message, {"role": "user", "content": text}])
    return ids


def compared(
    stores: dict[str, Any], turns: list[tuple[str, str, str | None]], ids: list[str]
) -> Iterator[tuple[str, bool]]:
    """Yield, for each answer of guarded clients, its kind and whether it is what was written."""
    for number, (speaker, text, _planted) in enumerate(turns):
        expected = payload(speaker, text)
        yield "store.get", stores["store"].get(("turns",), str(number)).value == expected
        batch = stores["store"].batch([GetOp(("turns",), str(number))])
        yield "store.batch", batch[0].value == expected
        found = stores["qdrant"].retrieve("notes", [number])
        yield "qdrant.retrieve", found[0].payload == expected
        yield "mem0.get", stores["mem0"].get(ids[number])["memory"] == f"{speaker}: {text}"
        messages = resumed(stores["saver"], f"t-{number}")
        yield "saver.get_tuple", messages[0].content == text and messages[1]["content"] == text
    lines = {f"{speaker}: {text}" for speaker, text, _planted in turns}
    expected = [payload(speaker, text) for speaker, text, _planted in turns]
    points, _next = stores["qdrant"].scroll("notes", limit=len(turns))
    yield from (("qdrant.scroll", each.payload == expected[each.id]) for each in points)
    for item in stores["store"].search(("turns",), limit=len(turns)):
        yield "store.search", item.value == expected[int(item.key)]
    for speaker, text, _planted in turns[::10]:
        results = stores["mem0"].search(f"{speaker}: {text}", filters={"user_id": "c-1"})
        yield from (("mem0.search", each["memory"] in lines) for each in results["results"])


def same(folder: Path) -> int:
    """Compare what is read with what was written, and print the shares."""
    answers: Counter[str] = Counter()
    right: Counter[str] = Counter()
    leaks = planted_count = 0
    for path in sorted(folder.glob("*.json")):
        turns = turns_of(path)
        with tempfile.TemporaryDirectory() as place:
            here, stores = Path(place), Stores(Path(place))
            writer, sink = open_scope(here)
            reader, reader_sink = open_scope(here)
            with closing(writer), closing(reader), context(customer="c-1", tenant=path.stem):
                ids = written(stores.guarded(writer), turns)
                writer.flush(60)
                for kind, is_same in compared(stores.guarded(reader), turns, ids):
                    answers[kind] += 1
                    right[kind] += is_same
                reader.flush(60)
            events = [*sink.events, *reader_sink.events]
            told = repr([(each, each.content and each.content.value) for each in events])
            held = stores.held()
            planted = [each for *_, each in turns if each]
            planted_count += len(planted)
            leaks += sum(each in held or each in told for each in planted)
    for kind, number in sorted(answers.items()):
        SCREEN.print(f"{kind:18} {right[kind]:5} of {number:5}  {right[kind] / number:.4f}")
    share = right.total() / answers.total()
    SCREEN.print(f"{'all':18} {right.total():5} of {answers.total():5}  {share:.4f}")
    SCREEN.print(f"planted identifiers in stores and events: {leaks} of {planted_count}")
    return 0 if share >= 0.995 and not leaks else 1


# -- strangers -------------------------------------------------------------------------------------


def of_customer(number: int) -> tuple[str, str]:
    """Return a name and an address that only this customer has."""
    letters = "".join(chr(ord("a") + int(digit)) for digit in f"{number:03}")
    return f"Rosalind Quimby{letters}", f"own{letters}@planted.example"


def strangers(calls: int, customers: int, seed: int = 1) -> int:
    """Make random calls of random customers, and count originals of others in their answers."""
    chance = random.Random(seed)  # noqa: S311 - a reproducible order
    with tempfile.TemporaryDirectory() as place:
        stores = Stores(Path(place))
        scope, _sink = open_scope(Path(place))
        with closing(scope):
            guarded = stores.guarded(scope)
            found = Strangers(guarded, customers, chance)
            found.write()
            scope.flush(60)
            for _each in range(calls):
                found.read_one()
            asyncio.run(found.read_together(max(1, calls // 20)))
    SCREEN.print(
        f"{found.reads:,} answers to {customers} customers, {found.own:,} with originals of theirs"
    )
    SCREEN.print(f"originals of others: {found.leaks}")
    return 0 if not found.leaks and found.own else 1


class Strangers:
    """
    Customers who write, and read one another's records.

    Args:
        guarded: The guarded clients.
        customers: How many.
        chance: Chooses who reads what.

    Attributes:
        reads: Answers so far.
        own: Of them, those with an original of the reader's own.
        leaks: Of them, those with an original of anybody else's.
    """

    def __init__(self, guarded: dict[str, Any], customers: int, chance: random.Random) -> None:
        self._guarded = guarded
        self._customers = customers
        self._chance = chance
        self._ids: dict[int, str] = {}
        self._needles = {n: of_customer(n) for n in range(customers)}
        self.reads = self.own = self.leaks = 0

    def context_of(self, number: int) -> Any:
        """Return the context of a customer: two of three tenants share it with others."""
        return context(customer=f"c-{number}", tenant=(None, "acme", "globex")[number % 3])

    def write(self) -> None:
        """Have each customer write a record to each store."""
        for number in range(self._customers):
            name, address = of_customer(number)
            text = f"My name is {name}, write to {address}."
            with self.context_of(number):
                self._guarded["store"].put(("all",), str(number), {"text": text})
                point = models.PointStruct(id=number, vector=VECTOR, payload={"text": text})
                self._guarded["qdrant"].upsert("notes", [point])
                saved(self._guarded["saver"], str(number), [HumanMessage(text)])
                added = self._guarded["mem0"].add(text, user_id="shared", infer=False)
                self._ids[number] = added["results"][0]["id"]

    def read_one(self) -> None:
        """Have a random customer read a random record, their own or another's."""
        reader = self._chance.randrange(self._customers)
        with suppress(Exception), self.context_of(reader):
            self._look(reader, self._chance.choice(self._ways())(self._target(reader)))

    async def read_together(self, calls: int) -> None:
        """Have many customers read at once, each in a task of their own."""

        async def one(reader: int) -> None:
            with self.context_of(reader):
                store = self._guarded["store"]
                answer = await store.abatch([GetOp(("all",), str(self._target(reader)))])
                self._look(reader, answer)

        for _each in range(max(1, calls // self._customers)):
            await asyncio.gather(*map(one, range(self._customers)))

    def _target(self, reader: int) -> int:
        return self._chance.choice((reader, self._chance.randrange(self._customers)))

    def _ways(self) -> list[Callable[[int], Any]]:
        store, qdrant = self._guarded["store"], self._guarded["qdrant"]
        saver, memory = self._guarded["saver"], self._guarded["mem0"]
        return [
            lambda n: store.get(("all",), str(n)),
            lambda n: store.search(("all",), limit=3, offset=n),
            lambda n: store.batch([GetOp(("all",), str(n)), SearchOp(("all",), limit=2)]),
            lambda n: qdrant.retrieve("notes", [n]),
            lambda n: qdrant.scroll("notes", limit=3, offset=n),
            lambda n: qdrant.query_points("notes", query=VECTOR, limit=3),
            lambda n: resumed(saver, str(n)),
            lambda n: list(saver.list({"configurable": {"thread_id": str(n)}})),
            lambda n: memory.get(self._ids[n]),
        ]

    def _look(self, reader: int, answer: Any) -> None:
        told = repr(answer)
        self.reads += 1
        for number, needles in self._needles.items():
            if any(each in told for each in needles):
                self.own += number == reader
                self.leaks += number != reader


# -- cost ------------------------------------------------------------------------------------------


def cost(rounds: int = 400) -> int:
    """Measure guarded recalls with and without a reveal, interleaved, and print the difference."""
    worst = 0.0
    for results in (1, 10, 50):
        with tempfile.TemporaryDirectory() as place:
            bare = InMemoryStore()
            scopes = [open_scope(Path(place), pii_reveal=each)[0] for each in ("", "recall")]
            with closing(scopes[0]), closing(scopes[1]), context(customer="c-1", tenant="acme"):
                stores = [each.guard(bare) for each in scopes]
                for number in range(results):
                    text = (
                        f"My name is Rosalind Quimby, number {number}, mail r.q{number}@x.example."
                    )
                    stores[1].put(("all",), str(number), {"text": text, "n": number})
                scopes[1].flush(30)
                taken = _interleaved(stores, results, rounds)
        added = (statistics.median(taken[1]) - statistics.median(taken[0])) / results * 1e6
        worst = max(worst, added)
        SCREEN.print(f"{results:3} results: a reveal costs {added:6.1f} µs a result")
    return 0 if worst <= 30 else 1


def _interleaved(stores: list[Any], results: int, rounds: int) -> list[list[float]]:
    taken: list[list[float]] = [[], []]
    for number in range(rounds + 20):
        for index, store in enumerate(stores):
            began = time.perf_counter()
            store.search(("all",), limit=results)
            if number >= 20:
                taken[index].append(time.perf_counter() - began)
    return taken


def main() -> int:
    """Run one of the three."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    ways = parser.add_subparsers(dest="way", required=True)
    ways.add_parser("same").add_argument("folder", type=Path)
    apart = ways.add_parser("strangers")
    apart.add_argument("--calls", type=int, default=100_000)
    apart.add_argument("--customers", type=int, default=50)
    ways.add_parser("cost").add_argument("--rounds", type=int, default=400)
    given = parser.parse_args()
    logging.disable(logging.WARNING)
    if given.way == "same":
        return same(given.folder)
    return (
        strangers(given.calls, given.customers) if given.way == "strangers" else cost(given.rounds)
    )


if __name__ == "__main__":
    sys.exit(main())

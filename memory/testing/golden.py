"""Golden traces: the memory operations of a run, held against those of a snapshot."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from typing import Any, Final

import msgspec

from ...telemetry.event.event import Event, OperationClass
from ...telemetry.event.usage import Usage

MOST_COST: Final = 1.5
"""What a run may cost, as a share of its snapshot's."""

_BANDS: Final = ((0, "0"), (1, "1"), (5, "2-5"), (20, "6-20"))
_FRAMES: Final = frozenset({OperationClass.MODEL})


class GoldenOperation(msgspec.Struct, frozen=True, kw_only=True):
    """
    One memory operation of a run.

    Attributes:
        op_class: What it does to memory: ``recall``, ``remember``…
        method: The client's own method.
        store: The store's name.
        status: How it ended: ``ok``, ``empty``, ``degraded``…
        place: A hash of its collection.
        hits: The band that its number of results is in: ``0``, ``1``, ``2-5``, ``6-20``, ``21+``.
        memories: Hashes of the contents of the memories that it wrote or found. Of those that were
            written elsewhere there is none.
    """

    op_class: str
    method: str
    store: str
    status: str
    place: str | None = None
    hits: str | None = None
    memories: tuple[str, ...] = ()

    @property
    def is_about(self) -> tuple[str | None, ...]:
        """The fields by which it is the same operation in two runs."""
        return self.op_class, self.method, self.store, self.place

    def __str__(self) -> str:
        """Return it in words."""
        place = f" at {self.place}" if self.place else ""
        return f"{self.op_class} ({self.method} of {self.store}{place})"


class GoldenTrace(msgspec.Struct, frozen=True, kw_only=True):
    """
    The memory operations of a run in their order, and what its model calls took.

    Attributes:
        operations: Those that the agent asked for: what a store does of its own is left out.
        tokens: Input and output.
        cost_usd: None: the price of a model is not known.
    """

    operations: tuple[GoldenOperation, ...]
    tokens: int = 0
    cost_usd: float | None = 0.0

    @classmethod
    def of(cls, events: Iterable[Event]) -> GoldenTrace:
        """Return the trace of *events*, oldest first."""
        contents: dict[str, str] = {}
        operations, usages = list[GoldenOperation](), list[Usage]()
        # Sinks have events as calls end, and a recall may end after what it was made for.
        for each in sorted(events, key=lambda event: event.started_ns):
            if each.usage is not None:
                usages.append(each.usage)
            elif not (each.nested or each.is_notice or each.op_class in _FRAMES):
                if each.content is not None and each.op_class is OperationClass.REMEMBER:
                    written = _hash(each.content.value)
                    contents.update((e, written) for e in each.memory_ids)
                operations.append(_operation(each, contents))
        costs = [each.cost_usd for each in usages]
        return cls(
            operations=tuple(operations),
            tokens=sum(each.input_tokens + each.output_tokens for each in usages),
            cost_usd=None if None in costs else round(sum(filter(None, costs)), 6),
        )

    def differences(self, golden: GoldenTrace) -> list[str]:
        """Return what is otherwise in this trace than in *golden*, a line each."""
        return [*_of_operations(golden.operations, self.operations), *_of_cost(golden, self)]


def _operation(event: Event, contents: Mapping[str, str]) -> GoldenOperation:
    # Ids are drawn anew in each run; what is written is the same.
    known = {contents[each] for each in event.memory_ids if each in contents}
    hits = event.hits
    return GoldenOperation(
        op_class=event.op_class,
        method=event.method,
        store=event.store,
        status=event.status,
        place=None if event.collection is None else _hash(event.collection),
        hits=None if hits is None else next((b for most, b in _BANDS if hits <= most), "21+"),
        memories=tuple(sorted(known)),
    )


def _hash(content: Any) -> str:
    encoded = msgspec.json.encode(content, order="deterministic")
    return hashlib.blake2b(encoded, digest_size=4).hexdigest()


def _of_operations(
    before: Sequence[GoldenOperation], after: Sequence[GoldenOperation]
) -> Iterator[str]:
    was, now = [each.is_about for each in before], [each.is_about for each in after]
    gone, new = list[int](), list[int]()
    for tag, i, i_end, j, j_end in SequenceMatcher(None, was, now, autojunk=False).get_opcodes():
        if tag == "equal":
            for old, place in zip(before[i:i_end], range(j, j_end), strict=True):
                yield from _of_one(place + 1, old, after[place])
        else:
            gone += range(i, i_end)
            new += range(j, j_end)
    for i in gone:
        moved = next((j for j in new if now[j] == was[i]), None)
        if moved is None:
            behind = f"after the {before[i - 1].op_class}" if i else "the first"
            yield f"dropped: operation {i + 1} of {len(before)}, {before[i]}, {behind}"
        else:
            new.remove(moved)
            yield f"reordered: {before[i]} was operation {i + 1}, is {moved + 1}"
    yield from (f"new: operation {j + 1} of {len(after)}, {after[j]}" for j in new)


def _of_one(number: int, old: GoldenOperation, new: GoldenOperation) -> Iterator[str]:
    about = f"operation {number}, {new}"
    if new.status != old.status:
        yield f"{about}: {new.status}, expected {old.status}"
    elif old.hits != new.hits:
        yield f"{about}: {new.hits} hits, expected {old.hits}"
    # More than was found is judged by the band: of new memories a snapshot knows nothing.
    if lost := sorted(set(old.memories) - set(new.memories)):
        yield f"{about}: without the memories {', '.join(lost)}"


def _of_cost(golden: GoldenTrace, trace: GoldenTrace) -> Iterator[str]:
    cost, was, unit = trace.cost_usd, golden.cost_usd, "USD"
    if cost is None or was is None:
        # An unknown price is no price of zero.
        cost, was, unit = trace.tokens, golden.tokens, "tokens"
    if cost > MOST_COST * was:
        yield f"cost: {cost:g} {unit}, expected at most {MOST_COST:.0%} of {was:g}"

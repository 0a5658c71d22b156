"""Putting a prompt together: what is in, what is left out and why, without a model."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Generator, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from math import ceil
from typing import Any, NamedTuple

from ..errors import AssemblyError, ConfigurationError
from ..guard.call import last_event
from ..guard.script import adrive, drive
from .block import Block


class LeftOut(NamedTuple):
    """
    An item that is not in the prompt.

    Attributes:
        id: As its store knows it.
        tokens: Of its text.
        why: ``budget`` or ``total``: there was no room; ``older`` than the latest that were wanted;
            ``recent``: its arc is not whole yet.
    """

    id: str
    tokens: int
    why: str

    def __repr__(self) -> str:
        """Return the reason: a store's key may be personal data."""
        return f"LeftOut({self.tokens} tokens, {self.why})"


@dataclass(frozen=True, slots=True)
class BlockReceipt:
    """
    The account of one block: each item that was read is `kept` or `left_out`.

    Attributes:
        tokens: Tokens that it has: more than its budget only for what is never pruned.
        kept: Ids of the items in the prompt, in its order.
        status: How its recall ended: ``ok``, ``empty``, ``degraded``…; ``unguarded``: without an
            event. None: no client was asked.
        has_more: Its client answered as many items as it was asked for: it may have others.
    """

    name: str
    budget: int
    tokens: int
    kept: tuple[str, ...] = field(repr=False)
    left_out: tuple[LeftOut, ...]
    status: str | None
    has_more: bool


@dataclass(frozen=True, slots=True)
class Assembly:
    """
    A prompt and its receipt.

    Attributes:
        text: The prompt. Not in the `repr`.
        tokens: Of the whole text: the sum of its blocks'.
        total: Tokens that it might have.
    """

    text: str = field(repr=False)
    tokens: int
    total: int
    blocks: tuple[BlockReceipt, ...]

    @property
    def is_complete(self) -> bool:
        """Whether each client answered, and none may have more than it was asked for."""
        known = {None, "ok", "empty"}
        return all(each.status in known and not each.has_more for each in self.blocks)


def estimate_tokens(text: str) -> int:
    """Return how many tokens *text* has, about: a quarter of its characters, and 15 % more."""
    return ceil(len(text) / 4 * 1.15)


def assemble(blocks: Sequence[Block], total: int, count: Callable[[str], int]) -> Assembly:
    """Put *blocks* together; see `Mnemoscope.assemble`."""

    def read(block: Block) -> Any:
        answer = block.recall()
        if inspect.iscoroutine(answer):
            answer.close()
            raise ConfigurationError(f"{block.method} is a coroutine function: use aassemble")
        return answer

    return drive(_assembling(blocks, total, count), read)


async def aassemble(blocks: Sequence[Block], total: int, count: Callable[[str], int]) -> Assembly:
    """Put *blocks* together; see `Mnemoscope.aassemble`."""

    async def read(block: Block) -> Any:
        answer = block.recall()
        return await answer if inspect.isawaitable(answer) else answer

    return await adrive(_assembling(blocks, total, count), read)


class _Draft:
    """A block on its way into a prompt."""

    def __init__(self, block: Block, answer: Any, status: str | None) -> None:
        self.block, self.status, self.items = block, status, block.items(answer)
        size = len(self.items)
        self.has_more = block.limit is not None and size >= block.limit
        end = size - size % block.arcs if block.arcs else size
        start = 0 if block.latest is None else max(0, end - block.latest)
        self.why = dict.fromkeys(range(start), "older") | dict.fromkeys(range(end, size), "recent")
        shown = range(start, end) if block.budget else range(0)
        self.kept = {place for place in shown if block.is_pinned(self.items[place])}
        free = [place for place in shown if place not in self.kept]
        self.free = free if block.is_stored else free[::-1]
        self.added: list[int] = []

    def text(self) -> str:
        """Return the block as it stands in the prompt; nothing where it has no line."""
        if isinstance(self.block.source, str):
            lines: Iterable[str] = [self.block.source] if self.kept else ()
        else:
            lines = self._arcs() if self.block.arcs else map(self._line, sorted(self.kept))
        return "\n".join([f"[{self.block.name}]", *lines, "", ""]) if self.kept else ""

    def _line(self, place: int) -> str:
        return f"- {self.items[place].text}"

    def _arcs(self) -> Iterable[str]:
        size = self.block.arcs
        lines: list[tuple[int, int, list[str]]] = []
        for arc, places in groupby(sorted(self.kept), lambda place: place // size):
            first, texts = arc, [self.items[place].text for place in places]
            if lines and len(texts) < size and _has_lost(lines[-1], size):
                first, _last, before = lines.pop()
                texts = before + texts
            lines.append((first, arc, texts))
        for first, last, texts in lines:
            yield f"- {first * size + 1} to {(last + 1) * size}: {'; '.join(texts)}"

    def fill(self, count: Callable[[str], int], room: int) -> None:
        """Add what may be pruned, as far as the budget and *room*, both tokens, go."""
        most, is_full = min(self.block.budget, room), False
        for place in self.free:
            if not is_full:
                self.kept.add(place)
                self.added.append(place)
                if count(self.text()) <= most:
                    continue
                is_full = not self.block.is_stored  # no holes in what is told in order
            self.drop("budget" if most == self.block.budget else "total", place)

    def drop(self, why: str, place: int) -> None:
        """Leave out the item at *place*."""
        self.why[place] = why
        self.kept.discard(place)
        self.added = [each for each in self.added if each != place]

    def receipt(self, count: Callable[[str], int], tokens: int) -> BlockReceipt:
        """Return its account."""
        block, ids = self.block, [each.id for each in self.items]
        left = (place for place in range(len(ids)) if place not in self.kept)
        return BlockReceipt(
            block.name,
            block.budget,
            tokens,
            tuple(ids[place] for place in sorted(self.kept)),
            tuple(
                LeftOut(ids[at], count(self.items[at].text), self.why.get(at, "budget"))
                for at in left
            ),
            self.status,
            self.has_more,
        )


def _has_lost(line: tuple[int, int, list[str]], size: int) -> bool:
    first, last, texts = line
    return len(texts) < size * (last - first + 1)


def _assembling(
    blocks: Sequence[Block], total: int, count: Callable[[str], int]
) -> Generator[Block, Any, Assembly]:
    if sum(block.budget for block in blocks) > total:
        raise ConfigurationError(f"the blocks' budgets are more than the total of {total} tokens")
    drafts: list[_Draft] = []
    for block in blocks:
        answer, status, before = block.source, None, last_event.get()
        if block.is_stored:
            answer, event = (yield block), last_event.get()
            status = "unguarded" if event is None or event is before else str(event.status)
        drafts.append(_Draft(block, answer, status))
    if (used := count(_joined(drafts))) > total:
        raise AssemblyError([each.block.name for each in drafts if each.kept], used, total)
    for draft in drafts:
        draft.fill(count, total - count(_joined([each for each in drafts if each is not draft])))
    # A counter may find more in the whole than in its parts.
    while (used := count(_joined(drafts))) > total:
        last = next(each for each in reversed(drafts) if each.added)
        last.drop("total", last.added[-1])
    # As differences, so that they add up to the whole.
    ends = [count(_joined(drafts[:number])) for number in range(len(drafts) + 1)]
    receipts = [draft.receipt(count, ends[at + 1] - ends[at]) for at, draft in enumerate(drafts)]
    return Assembly(_joined(drafts), used, total, tuple(receipts))


def _joined(drafts: Sequence[_Draft]) -> str:
    return "".join(each.text() for each in drafts)

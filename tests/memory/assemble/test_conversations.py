"""A prompt after each turn of a long conversation is within its budget and has each firm fact."""

from __future__ import annotations

import json
import re
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest
from langgraph.store.memory import InMemoryStore

from mnemoscope.memory import Assembly, Block, clean_input, context, estimate_tokens
from mnemoscope.memory.testing import scope_for_tests

LOCOMO = Path(__file__).parents[4] / "shared/data/locomo"
TOTAL = 6_100
FACTS = ("c-1", "facts")
PIECES = re.compile(r"[^\W\d_]{1,4}|\d{1,3}|[^\w\s]|_")

pytestmark = pytest.mark.skipif(not LOCOMO.exists(), reason="the LoCoMo files are not here")


def word_pieces(text: str) -> int:
    """Return the pieces of at most four letters or three digits, and signs, in *text*."""
    return len(PIECES.findall(text)) + text.count("\n")


PATIENT = {"deadline_recall_s": 0, "deadline_remember_s": 0}
"""However busy the machine is."""

COUNTERS = (estimate_tokens, word_pieces)


def turns_of(name: str) -> list[str]:
    """Return the turns of a conversation, in order."""
    held = json.loads((LOCOMO / name).read_text())
    sessions = (held.get(f"session_{number}", []) for number in range(1, 40))
    return [f"{turn['speaker']}: {turn['text']}" for session in sessions for turn in session]


@pytest.fixture(scope="module", params=["conv_26.json", "conv_30.json"])
def told(request) -> tuple[str, list[str]]:
    """Return a conversation's name and turns."""
    return request.param, turns_of(request.param)


@pytest.mark.long
def test_every_prompt_is_within_its_budget(told):
    """
    Eight blocks, a prompt a turn: none beyond 6,100, every canonical fact in, receipts add up.

    Two counters of tokens take turns, and both count every prompt. No model is there to be called.
    """
    name, turns = told
    firm: set[str] = set()
    sizes: list[int] = []
    with scope_for_tests(**PATIENT) as (scope, _sink), context(customer="c-1"):
        store = scope.store(InMemoryStore(), customer_at=0)
        for number, turn in enumerate(turns, 1):
            if number % 3 == 0:
                tier = "canonical" if number % 24 == 0 else "known"
                key, text = f"f{number}", turn[:90] if tier == "canonical" else turn
                store.put(FACTS, key, {"text": text, "tier": tier})
                firm |= {key} if tier == "canonical" else set()
            count = COUNTERS[number % 2]
            prompt = scope.assemble(blocks(store, turns[:number], number), total=TOTAL, count=count)
            sizes.append(prompt.tokens)
            check(prompt, firm, number, count)

    # As the blocks are full, a turn costs what one a hundred turns before did.
    third, last = fmean(sizes[-200:-100]), fmean(sizes[-100:])
    assert last == pytest.approx(third, rel=0.1), name


def blocks(store: Any, turns: list[str], number: int) -> list[Block]:
    """Return the eight blocks of the published prompt, with its budgets."""
    ask = {"namespace_prefix": FACTS, "limit": 500}
    return [
        Block("system preamble", "You keep two friends company. " * 110, 1_000),
        Block("metadata", [f"turn: {number}", "language: en"], 400),
        Block("players", [{"id": "p1", "text": "two friends", "tier": "immutable"}], 500),
        Block("facts", store, 500, ask=ask),
        Block("summary", turns, 1_500, arcs=5),
        Block("recent turns", turns, 2_000, latest=5),
        Block("control", [clean_input(turns[-1])], 200),
        Block("tracking", turns, 0),
    ]


def check(prompt: Assembly, firm: set[str], number: int, count: Any) -> None:
    """Hold one prompt to what every prompt must be."""
    by_name = {each.name: each for each in prompt.blocks}
    assert prompt.tokens == count(prompt.text) == sum(each.tokens for each in prompt.blocks)
    assert max(each(prompt.text) for each in COUNTERS) <= TOTAL
    assert prompt.is_complete
    assert firm <= {*by_name["facts"].kept}
    recent = [str(each) for each in range(max(1, number - 4), number + 1)]
    assert [*by_name["recent turns"].kept] == recent
    assert len(by_name["summary"].kept) + len(by_name["summary"].left_out) == number

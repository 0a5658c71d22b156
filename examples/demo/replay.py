"""Replay the conversation, message by message, through the agent."""

from __future__ import annotations

import time
import warnings
from collections import Counter
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from langchain_core._api import LangChainBetaWarning
from langchain_core.language_models import BaseChatModel

from mnemoscope.memory import Mnemoscope

from .agent import AgentContext, build_agent, reply
from .conversation import Dialogue, DialogueTurn
from .export_and_erase import CustomerRequests
from .faults import StoreFault
from .stores import Stores
from .surge import Surge

if TYPE_CHECKING:
    from .memory_server import ServerChange


class AnsweredTurn(NamedTuple):
    """
    A message and its answer.

    Attributes:
        speaker: Who wrote it.
        asked: The message.
        recalled: What the agent remembered.
        answer: What it answered.
        since_us: Microseconds since 1970 UTC.
        until_us: Likewise.
    """

    speaker: str
    asked: str
    recalled: tuple[str, ...]
    answer: str
    since_us: int
    until_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayResult:
    """
    The outcome of a replay.

    Attributes:
        seconds: Wall time.
        failures: Runs that raised, by the type of the exception.
        turns: The messages that were answered.
        requests: The second customer's export and erasure, if requested.
        server_change: Of a memory server over MCP, if requested.
    """

    seconds: float
    failures: dict[str, int]
    turns: tuple[AnsweredTurn, ...]
    requests: CustomerRequests | None = None
    server_change: ServerChange | None = None


def replay(
    conversation: Dialogue,
    *,
    stores: Stores,
    model: BaseChatModel,
    scope: Mnemoscope,
    fault: StoreFault | None,
    surge: Surge | None,
    advance: Callable[[], None],
) -> ReplayResult:
    """Send every message to the agent, with *fault* and *surge* from half-way on."""
    started = time.perf_counter()
    failures: Counter[str] = Counter()
    turns: list[AnsweredTurn] = []
    graph = build_agent(stores.store, stores.checkpointer)
    agents = {
        name: AgentContext(
            customer=customer,
            known=conversation.speakers,
            memory=stores.memory,
            documents=stores.documents,
            model=model,
        )
        for name, customer in conversation.customers.items()
    }
    with plain_langchain():
        for place, (session, turn) in enumerate(_turns(conversation)):
            if place == len(conversation) // 2:
                _begin(fault, surge, stores)
            agent = agents[turn.speaker]
            thread = f"{agent.customer}-{session}"
            since_us = _now_us()
            try:
                said = reply(graph, turn.text, agent=agent, thread=thread, scope=scope)
            except Exception as exc:  # noqa: BLE001 - a run that raises is counted
                failures[type(exc).__name__] += 1
            else:
                turns.append(
                    AnsweredTurn(
                        turn.speaker, turn.text, said.recalled, said.text, since_us, _now_us()
                    )
                )
            advance()
    return ReplayResult(
        seconds=time.perf_counter() - started, failures=dict(failures), turns=tuple(turns)
    )


def _now_us() -> int:
    return time.time_ns() // 1_000


def _begin(fault: StoreFault | None, surge: Surge | None, stores: Stores) -> None:
    if fault:
        fault.begin(stores.bare[fault.store])
    if surge:
        surge.begin()


@contextmanager
def plain_langchain() -> Generator[None]:
    """Silence LangChain's warning that its third stream protocol is new."""
    with warnings.catch_warnings(action="ignore", category=LangChainBetaWarning):
        yield


def _turns(conversation: Dialogue) -> Iterator[tuple[int, DialogueTurn]]:
    for session in conversation.sessions:
        for turn in session.turns:
            yield session.number, turn

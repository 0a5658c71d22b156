"""The conversation, message by message, through the agent."""

from __future__ import annotations

import time
import warnings
from collections import Counter
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from langchain_core._api import LangChainBetaWarning
from langchain_core.language_models import BaseChatModel
from langsmith import tracing_context  # pyright: ignore[reportUnknownVariableType] - bare dict

from ...memory import Mnemoscope
from .agent import Desk, build_agent, reply
from .conversation import Conversation, Turn
from .parting import Parting
from .stores import Stores
from .surge import Surge
from .trouble import Trouble


@dataclass(frozen=True, slots=True, kw_only=True)
class Replayed:
    """
    How the replay went.

    Attributes:
        seconds: All of it, wall time.
        failures: Runs that raised, by the type of the exception.
        parting: What became of the customer who left, if one did.
    """

    seconds: float
    failures: dict[str, int]
    parting: Parting | None = None


def replay(  # noqa: PLR0913 - what the demo is made of
    conversation: Conversation,
    *,
    stores: Stores,
    model: BaseChatModel,
    scope: Mnemoscope,
    trouble: Trouble | None,
    surge: Surge | None,
    advance: Callable[[], None],
) -> Replayed:
    """Send every message to the agent, with *trouble* and *surge* from half-way on."""
    started = time.perf_counter()
    failures: Counter[str] = Counter()
    graph = build_agent(stores.store, stores.checkpointer)
    desks = {
        name: Desk(
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
                _begin(trouble, surge, stores)
            desk = desks[turn.speaker]
            try:
                reply(graph, turn.text, desk=desk, thread=f"{desk.customer}-{session}", scope=scope)
            except Exception as exc:  # noqa: BLE001 - a run that raises is what is to be counted
                failures[type(exc).__name__] += 1
            advance()
    return Replayed(seconds=time.perf_counter() - started, failures=dict(failures))


def _begin(trouble: Trouble | None, surge: Surge | None, stores: Stores) -> None:
    if trouble:
        trouble.begin(stores.bare[trouble.store])
    if surge:
        surge.begin()


@contextmanager
def plain_langchain() -> Generator[None]:
    """
    Keep LangChain from saying that its third stream protocol is new, and from tracing.

    Its own tracer, which ``LANGSMITH_TRACING`` switches on, would send every prompt in clear.
    """
    with (
        warnings.catch_warnings(action="ignore", category=LangChainBetaWarning),
        tracing_context(enabled=False),
    ):
        yield


def _turns(conversation: Conversation) -> Iterator[tuple[int, Turn]]:
    for session in conversation.sessions:
        for turn in session.turns:
            yield session.number, turn

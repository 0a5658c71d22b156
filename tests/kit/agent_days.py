"""
Days of agents at work, made up: weeks, nights, heavy tails, restarts, outages; and two stories.

Nothing in it is normally distributed. Times have a tail of Pareto's, lengths are log-normal, calls
in a run geometric, customers and purposes by Zipf's law. In a restart caches are cold for ten
minutes; in an outage a store answers slowly or not at all for an hour.
"""

from __future__ import annotations

import heapq
import math
import random
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import orjson

from mnemoscope.memory.api import OperationClass, Status

DAY_S = 86_400
START_S = 1_790_000_000 // DAY_S * DAY_S
Row = tuple[int, bytes, bytes, bytes, str]
"""Number, sealed header, references of run and place, customer."""

_MEAN = 1.4
"""Of all durations of one kind, in their median: what is heavy-tailed has a larger mean."""

_BY_WEEKDAY = (1.0, 1.05, 1.1, 1.0, 0.85, 0.3, 0.25)


@dataclass(frozen=True, kw_only=True)
class Agent:
    """One agent: its runs on a working day, and what a run of it usually does."""

    name: str
    runs: int
    recalls: float
    writes: float
    models: float
    seconds: float
    tokens: float
    purposes: tuple[str, ...]


AGENTS = (
    Agent(
        name="concierge",
        runs=120,
        recalls=3,
        writes=1,
        models=2,
        seconds=0.08,
        tokens=180,
        purposes=("reply", "book", "cancel", "complain", "remind"),
    ),
    Agent(
        name="classifier",
        runs=150,
        recalls=1.5,
        writes=0.3,
        models=1,
        seconds=0.04,
        tokens=60,
        purposes=("triage",),
    ),
    Agent(
        name="researcher",
        runs=25,
        recalls=9,
        writes=3,
        models=6,
        seconds=0.3,
        tokens=700,
        purposes=("research", "summary"),
    ),
    Agent(
        name="archivist",
        runs=12,
        recalls=4,
        writes=12,
        models=0,
        seconds=0.15,
        tokens=1,
        purposes=("archive",),
    ),
)


@dataclass(frozen=True, kw_only=True)
class Change:
    """What is otherwise in some runs of an agent: factors of what they usually have."""

    slower: float = 1.0
    shorter: float = 1.0
    calls: float = 1.0
    query: float = 1.0
    place: str | None = None


@dataclass(frozen=True, kw_only=True)
class Story:
    """A change that some runs of an agent on one day have, or all from a day on."""

    agent: str
    day: int
    change: Change
    runs: int | None = None
    """None: all of them, to the end."""


SLOW_AND_SHORT = Story(
    agent="classifier", day=27, change=Change(slower=3.0 * _MEAN, shorter=0.25), runs=12
)
"""Twelve took three times as long as average, and returned unusually short classifications."""

TWICE_AS_OFTEN = Story(
    agent="researcher", day=26, change=Change(calls=2.0, query=0.4, place="drafts")
)
"""From a day on it queries twice as often, with other parameters."""


class AgentDays:
    """So many days of agents at work, by a seed."""

    def __init__(self, seed: int, *, days: int = 30, stories: Iterable[Story] = (), scale=1.0):
        self._random = random.Random(seed)  # noqa: S311 - the same days for the same seed
        self._days, self._stories, self._scale = days, tuple(stories), scale
        draw = self._random
        self._restarts = sorted(draw.uniform(0, days) * DAY_S for _ in range(days // 3))
        self._outages = sorted(draw.uniform(0, days) * DAY_S for _ in range(max(1, days // 12)))
        self._number = 0

    def rows(self) -> Iterator[Row]:
        """Yield the events as the search for deviations reads them from a trail's tables."""
        waiting: list[tuple[int, int, Row]] = []
        for at_s, agent, change in self._runs():
            for at_us, row in self._run(at_s, agent, change):
                heapq.heappush(waiting, (at_us, row[0], row))
            while waiting and waiting[0][0] < at_s * 1e6:
                yield heapq.heappop(waiting)[2]
        while waiting:
            yield heapq.heappop(waiting)[2]

    def _runs(self) -> Iterator[tuple[float, Agent, Change | None]]:
        draw, found = self._random, []
        for day in range(self._days):
            weekday = _BY_WEEKDAY[(day + 2) % 7]
            for agent in AGENTS:
                count = round(agent.runs * self._scale * weekday * draw.lognormvariate(0, 0.15))
                changes: list[Change | None] = [None] * count
                for story in self._stories:
                    if story.agent != agent.name:
                        continue
                    if story.runs is None and day >= story.day:
                        changes = [story.change] * count
                    elif story.runs is not None and day == story.day:
                        changes[: story.runs] = [story.change] * story.runs
                for change in changes:
                    hour = min(23.99, max(0.0, draw.gauss(13.5, 4.0)))
                    found.append((START_S + day * DAY_S + hour * 3_600, agent, change))
        return iter(sorted(found, key=lambda each: each[0]))

    def _run(self, at_s: float, agent: Agent, change: Change | None) -> Iterator[tuple[int, Row]]:
        draw, change = self._random, change or Change()
        run = f"run-{draw.getrandbits(48):x}"
        trace = draw.getrandbits(128) or 1
        customer = f"c-{self._zipf(400)}"
        purpose = agent.purposes[self._zipf(len(agent.purposes))]
        mood = draw.lognormvariate(0, 0.3) * self._load(at_s)
        plan = [
            *[OperationClass.RECALL] * round(self._geometric(agent.recalls) * change.calls),
            *[OperationClass.REMEMBER] * self._geometric(agent.writes),
            *[OperationClass.MODEL] * self._some(agent.models),
        ]
        draw.shuffle(plan)
        for op_class in plan:
            seconds = agent.seconds * mood * self._tail() * change.slower
            if op_class is OperationClass.MODEL:
                seconds *= 12
            self._number += 1
            collection, fields = self._fields(op_class, agent, change)
            header = {
                "occurred_at": round(at_s * 1e6),
                "duration_us": round(min(seconds, 600.0) * 1e6),
                "op_class": op_class.value,
                "nested": False,
                "trace_id": f"{trace:032x}",
                "tenant": "acme",
                "agent": agent.name,
                "purpose": purpose,
                **fields,
            }
            row = self._number, orjson.dumps(header), run.encode(), collection.encode(), customer
            yield header["occurred_at"], row
            at_s += seconds + draw.expovariate(2.0)

    def _fields(self, op_class: OperationClass, agent: Agent, change: Change) -> tuple:
        draw = self._random
        if op_class is OperationClass.MODEL:
            tokens = max(
                1, round(draw.lognormvariate(math.log(agent.tokens), 0.6) * change.shorter)
            )
            given = round(tokens * draw.uniform(3, 20))
            usage = {
                "node": "answer",
                "input_tokens": given,
                "output_tokens": tokens,
                "cost_usd": repr((given + 4 * tokens) / 1e6),
            }
            return "", {"operation": "chat", "method": "chat", "status": Status.OK, "usage": usage}
        size = round(draw.lognormvariate(math.log(120), 0.7) * change.query) + 4
        collection = change.place or ("notes" if draw.random() < 0.8 else "profiles")
        if op_class is OperationClass.REMEMBER:
            write = {"operation": "upsert_memory", "method": "add"}
            return collection, write | {"status": Status.OK, "size_bytes": size * 3}
        hits = 0 if draw.random() < 0.12 else min(10, 1 + self._geometric(3))
        hits = round(hits * change.shorter)
        recall = {"operation": "search_memory", "method": "search"}
        return collection, recall | {
            "status": Status.OK if hits else Status.EMPTY,
            "size_bytes": size,
            "hits": hits,
            "top_score": repr(draw.betavariate(6, 3)) if hits else None,
        }

    def _load(self, at_s: float) -> float:
        passed = at_s - START_S
        hour = passed % DAY_S / 3_600
        load = 1.0 + 0.5 * math.exp(-(((hour - 14) / 3) ** 2))
        if any(0 <= passed - each < 600 for each in self._restarts):
            load *= 4.0
        if any(0 <= passed - each < 3_600 for each in self._outages):
            load *= self._random.choice((1.0, 20.0))
        return load

    def _tail(self) -> float:
        draw = self._random
        body = draw.lognormvariate(0, 0.45)
        return body * draw.paretovariate(1.3) * 3 if draw.random() < 0.02 else body

    def _geometric(self, mean: float) -> int:
        if mean <= 0:
            return 0
        return int(math.log(1.0 - self._random.random()) / math.log(mean / (1.0 + mean)))

    def _some(self, mean: float) -> int:
        return 1 + self._geometric(mean - 1) if mean >= 1 else 0

    def _zipf(self, size: int) -> int:
        return min(size - 1, int(self._random.paretovariate(1.0)) - 1)

"""The runs of a trail, streamed: what each agent did in a run, operation by operation."""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import msgspec

from ...telemetry.event.kinds import OperationClass, Status
from .figures import SealedFigures
from .idle_work import Idle

WHOLE_RUN = "run"
"""What stands for an operation in the figures of a run as a whole."""

IDLE_US = 3_600_000_000
"""Quiet that ends a run: what its thread does an hour later is another one."""

MOST_OPEN, _MOST_TOUCHED = 10_000, 100
_NEVER_MADE = frozenset({Status.REJECTED, Status.REFUSED, Status.DENIED})
_WRITES = frozenset({OperationClass.REMEMBER, OperationClass.CHECKPOINT})
_TOOL = "execute_tool"


class Measured(NamedTuple):
    """
    The figures of one agent's operation in one run: means by call, but for counts.

    Attributes:
        values: By the measures of an operation, or of a run as a whole; None: there was none.
    """

    agent: str
    operation: str
    values: tuple[float | None, ...]


OPERATION_MEASURES = ("seconds", "results", "top score", "bytes", "answer tokens", "calls")
RUN_MEASURES = ("calls", "writes", "purposes", "places", "customers")


class AgentRun:
    """
    One run: what its events add up to.

    Attributes:
        seq: Number of its first event that has a detail, or of its first.
        touched: Of each agent the purposes, places, methods and customers.
        idle: The work in it that may have earned nothing.
    """

    __slots__ = ("_sums", "first_us", "idle", "last_us", "seq", "touched", "writes")

    def __init__(self, seq: int, at_us: int) -> None:
        self.seq, self.first_us, self.last_us = seq, at_us, at_us
        self.touched: dict[str, set[tuple[str, Any]]] = {}
        self.writes: dict[str, int] = {}
        self.idle = Idle()
        self._sums: dict[tuple[str, str], list[float]] = {}

    def add(self, event: SealedFigures, place: Any, customer: Any) -> None:
        """Add *event*, at *place* and for *customer* as the trail refers to them."""
        agent = event.agent or "no agent"
        sums = self._sums.setdefault((agent, event.operation), [0.0] * 10)
        usage = event.usage
        score = None if event.top_score is None else float(event.top_score)
        # What is not known is left out of the mean: taken for 0 it would look like a change.
        figures = (
            event.duration_us / 1e6,
            event.hits,
            score,
            event.size_bytes,
            None if usage is None else usage.output_tokens,
        )
        for at, figure in enumerate(figures):
            if figure is not None and math.isfinite(figure):
                sums[2 * at] += figure
                sums[2 * at + 1] += 1
        self.writes[agent] = self.writes.get(agent, 0) + (event.op_class in _WRITES)
        touched = self.touched.setdefault(agent, set())
        # A run that goes through all customers would take as much room as they are.
        if len(touched) < _MOST_TOUCHED:
            touched.add(("method", event.method))
            kinds = (("purpose", event.purpose), ("place", place), ("customer", customer))
            touched.update(each for each in kinds if each[1] is not None)
        self.idle.add(agent, event, place)

    def measured(self) -> Iterator[Measured]:
        """Yield the figures of each operation of each agent, and of each agent's run as a whole."""
        calls: dict[str, float] = {}
        for (agent, operation), sums in self._sums.items():
            means = [sums[at] / sums[at + 1] if sums[at + 1] else None for at in range(0, 10, 2)]
            yield Measured(agent, operation, (*means, sums[1]))
            calls[agent] = calls.get(agent, 0) + sums[1]
        for agent, touched in self.touched.items():
            kinds = [kind for kind, _each in touched]
            counts = [float(kinds.count(kind)) for kind in ("purpose", "place", "customer")]
            yield Measured(agent, WHOLE_RUN, (calls[agent], float(self.writes[agent]), *counts))


class OpenRuns:
    """
    The runs that have not ended yet: `MOST_OPEN` at most, those longest quiet end first.

    Attributes:
        cut: Runs that ended for want of room.
    """

    def __init__(self, most: int = MOST_OPEN) -> None:
        self._most, self._now_us, self.cut = most, 0, 0
        self._open: OrderedDict[Any, AgentRun] = OrderedDict()
        self._read = msgspec.json.Decoder(SealedFigures, strict=False).decode

    def ended(self, rows: Iterable[Sequence[Any]]) -> Iterator[AgentRun]:
        """Yield the runs of *rows*, each as it has ended, oldest first; see `search.EVENTS`."""
        for seq, header, run_ref, place, customer in rows:
            event = self._read(bytes(header))
            yield from self._ended_before(event.occurred_at)
            # An event whose detail was erased has no run: its trace is what is left of that.
            key = event.trace_id if run_ref is None else (bytes(run_ref), event.tenant)
            run = self._open.get(key)
            if run is None:
                run = self._open[key] = AgentRun(seq, event.occurred_at)
            # By its last event, and not its first: a thread that lives for days stays one run.
            self._open.move_to_end(key)
            run.last_us = max(run.last_us, event.occurred_at)
            if event.outcome is not None:
                run.idle.outcome = event.outcome.outcome
            elif is_own_work(event):
                run.add(event, place and bytes(place), customer)
        yield from self._open.values()

    def _ended_before(self, at_us: int) -> Iterator[AgentRun]:
        # Events are recorded as they end: one that took long has begun before those around it.
        self._now_us = max(self._now_us, at_us)
        while self._open:
            oldest = next(iter(self._open.values()))
            is_full = len(self._open) >= self._most
            if oldest.last_us >= self._now_us - IDLE_US and not is_full:
                return
            self.cut += oldest.last_us >= self._now_us - IDLE_US
            yield self._open.popitem(last=False)[1]


def is_own_work(event: SealedFigures) -> bool:
    """Return whether *event* is an operation of its own: no graph, node, notice or refusal."""
    if event.nested or event.status in _NEVER_MADE:
        return False
    is_model = event.op_class is OperationClass.MODEL
    return not is_model or event.usage is not None or event.operation == _TOOL

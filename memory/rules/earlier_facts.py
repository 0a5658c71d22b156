"""
What other processes did in a run that this one goes on with, read from the audit trail.

The facts of a thread travel in its checkpoints. A run that the caller names has none, where it only
remembers and recalls: its counts are in the trail. They are read once a run, on a thread of their
own: a memory operation waits a moment for them, anything else does not. Where they cannot be read,
the run goes on without.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from ...telemetry.event.kinds import OperationClass, Status
from ...telemetry.process.faults import Faults
from ..limits.workers import Expired, Workers
from .run_facts import Earlier, KeyedHashes, RunKey, RunsUnderWay

MOST_EVENTS: Final = 4_096
"""Events of a run that are read, the latest: of what is older nothing is known."""

WAIT_S: Final = 0.25
"""Seconds for which a memory operation waits."""

PAUSE_S: Final = 10.0
"""Seconds for which nothing is read once that has failed, or has taken too long."""

_DONE = frozenset(each.value for each in Status if each.is_normal)
_ENDS = frozenset({"chat", "execute_tool", "execute_node"})


@dataclass
class EarlierFacts:
    """
    Has runs know what other processes did in them. Thread-safe.

    Args:
        headers: Returns the headers of a run's events that other processes recorded, by the run's
            tenant and name, the latest first, at most so many.
        hashes: Makes hashes of nodes.
        faults: Where it is noted that a run could not be read.
        clock: Monotonic seconds.
    """

    headers: Callable[[RunKey, int], Iterable[Mapping[str, Any]]]
    runs: RunsUnderWay
    hashes: KeyedHashes
    faults: Faults
    clock: Callable[[], float]
    _workers: Workers = field(default_factory=Workers)
    _paused_until: float = float("-inf")

    def is_unread(self, key: RunKey) -> bool:
        """Return whether nobody has asked for what was done in a run."""
        run = self.runs.known(key)
        return run is None or not run.is_read

    def read(self, key: RunKey, *, waits: bool) -> None:
        """Have a run know what was done in it, soon."""
        with self.runs.guard:
            run = self.runs.of(key)
            if run.is_read:
                return
            run.is_read = True
            if self.clock() < self._paused_until:
                run.lacks_earlier = True
                return
        try:
            self._workers.run(lambda: self._read(key), WAIT_S if waits else 0.0, _nothing)
        except Expired as exc:
            if waits:
                self._paused_until = self.clock() + PAUSE_S
                self.faults.note("rules.earlier", exc)

    def _read(self, key: RunKey) -> None:
        try:
            found = earlier(self.headers(key, MOST_EVENTS), self.hashes)
        except Exception as exc:  # noqa: BLE001 - the run goes on without
            self._paused_until = self.clock() + PAUSE_S
            self.faults.note("rules.earlier", exc)
            found = Earlier(events=1)
        if found.events:
            with self.runs.guard:
                run = self.runs.known(key)
                if run is not None:
                    run.add_earlier(found)


def earlier(headers: Iterable[Mapping[str, Any]], hashes: KeyedHashes) -> Earlier:
    """Return the counts of a run by the headers of its events, the latest first."""
    found, began, ended, fails = Earlier(), dict[str, int](), dict[str, int](), True
    for each in headers:
        found.events += 1
        writer, at_us = each["writer"], each["occurred_at"]
        began[writer] = min(at_us, began.get(writer, at_us))
        ended[writer] = max(at_us + each["duration_us"], ended.get(writer, 0))
        operation, status, usage = each["operation"], each["status"], each["usage"]
        if operation in _ENDS:
            fails &= status == Status.ERROR
            found.errors += fails
        if operation == "chat":
            cost = None if usage is None or usage["cost_usd"] is None else float(usage["cost_usd"])
            found.model_calls += 1
            found.cost_usd += cost or 0.0
            found.unpriced_calls += cost is None
            found.input_tokens += 0 if usage is None else usage["input_tokens"]
            found.output_tokens += 0 if usage is None else usage["output_tokens"]
        elif operation == "execute_tool":
            found.tool_calls += 1
        elif operation == "execute_node":
            found.nodes[hashes.of_name(each["method"])] += 1
        elif status in _DONE and not each["nested"]:
            found.recalls += each["op_class"] == OperationClass.RECALL and each["n_memories"] > 0
            found.writes += each["op_class"] == OperationClass.REMEMBER
    found.elapsed_s = sum(ended[writer] - began[writer] for writer in began) / 1e6
    return found


def _nothing() -> None:
    """Do nothing: what is read late has been added."""

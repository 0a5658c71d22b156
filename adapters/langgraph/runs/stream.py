"""
Transformer for v3 streams that observes the run: spans, durations, tokens and cost.

    run = graph.stream_events(inputs, version="v3", transformers=[scope.usage()])

Times, tokens and spans come from LangChain's callbacks (`callbacks`). The transformer finds the run
that the stream is of, by the id of its first task, and puts the totals on the stream. It observes:
it neither holds back nor changes an event, and no error of its own gets out of it, since one would
end the run. LangGraph makes one for the run and one for every subgraph; the run's sees all events,
so the others do nothing.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, ClassVar, Final

from langgraph.stream import StreamTransformer  # pyright: ignore[reportMissingTypeStubs] - typed

from ....memory.accounting import ModelAccounting
from .callbacks import graph_callbacks
from .gate import guard_runs
from .meter import Meter

logger = logging.getLogger("mnemoscope")

CHANNEL: Final = "usage"
"""Key of the totals in a run's extensions: ``run.extensions["usage"]``."""


class UsageTransformer(StreamTransformer):
    """
    Finds the run that a stream is of, and changes none of its events.

    Args:
        scope: LangGraph's path of the subgraph: ``()`` at the root.
        meter: None where nothing is to be counted.
    """

    supports_sync: ClassVar[bool] = True
    required_stream_modes: ClassVar[tuple[str, ...]] = ("tasks",)

    def __init__(
        self,
        scope: tuple[str, ...] = (),
        meter: Meter | None = None,
        note: Callable[[str, Exception], None] | None = None,
    ) -> None:
        super().__init__(scope)
        self._meter = meter
        self._note = note
        self._is_found = meter is None

    def init(self) -> dict[str, Any]:
        """Contribute nothing here: two of us on one run would collide over the name."""
        return {}

    def _on_register(self, mux: Any) -> None:
        # Only the root numbers events. A run inside a node has a root too, whose scope is not ().
        if not getattr(mux, "_assign_seq", not self.scope):
            self._meter, self._is_found = None, True
        if self._meter is not None:
            mux.extensions.setdefault(CHANNEL, self._meter.totals)
            graph_callbacks().runs.seek(self._meter)

    def process(self, event: Any) -> bool:
        """Pass an event on, and find the run by its first task."""
        if not self._is_found and event["method"] == "tasks":
            self._is_found = True
            try:
                self._found(event["params"]["data"]["id"])
            except Exception as exc:  # noqa: BLE001 - an error in here would end the run
                self._failed("stream.process", exc)
        return True

    def _found(self, task_id: str) -> None:
        if self._meter is not None:
            graph_callbacks().runs.claim(task_id, self._meter)

    def finalize(self) -> None:
        """End the run if it is open. LangGraph finalizes runs that their reader left, too."""
        meter, self._meter = self._meter, None
        if meter is None:
            return
        try:
            if self._is_found and meter.graph is None:
                meter.totals.is_counted = False
                _warn_of_uncounted_run()
            graph_callbacks().runs.close(meter)
        except Exception as exc:  # noqa: BLE001 - an error in here would fail the run
            self._failed("stream.finalize", exc)

    def fail(self, err: BaseException) -> None:  # noqa: ARG002 - the callbacks told what failed
        """End the run if it is open."""
        self.finalize()

    def _failed(self, site: str, exc: Exception) -> None:
        if self._note is not None:
            self._note(site, exc)


@cache
def _warn_of_uncounted_run() -> None:
    """Warn once a process."""
    logger.warning(
        "usage() did not find the run of a stream: none of its model calls is counted. Watch the "
        "graph instead: scope.runnable(graph)"
    )


class UsageFactory:
    """
    Factory of observing transformers, called by LangGraph for each run and subgraph.

    Args:
        accounting: Counts the model calls. None: the transformers do nothing.
    """

    def __init__(
        self, accounting: ModelAccounting | None, features: Mapping[str, str] | None = None
    ) -> None:
        self._accounting = accounting
        self._features = dict(features or {})
        if accounting is not None:
            graph_callbacks().report_to(accounting)
            if accounting.budgets is not None and accounting.budgets.can_stop:
                from .budget_gate import guard_models  # noqa: PLC0415 - only where it is wanted

                guard_models(accounting.budgets, accounting.faults)
            if accounting.observers:
                guard_runs(accounting)

    def meter(self) -> Meter | None:
        """Return a meter for a run that begins here and now. None: nothing counts. Never raises."""
        if self._accounting is None:
            return None
        try:
            return Meter(self._accounting, features=self._features)
        except Exception as exc:  # noqa: BLE001 - then this run is not counted
            self._accounting.faults.note("stream.begin", exc)
            return None

    def __call__(self, scope: tuple[str, ...]) -> UsageTransformer:
        """Return the transformer for *scope*. Never raises: that would fail the run."""
        note = self._accounting.faults.note if self._accounting else None
        return UsageTransformer(scope, self.meter(), note)

"""
The v3 stream bridge: what each part of a LangGraph run took and used, and for which feature.

    run = graph.stream_events(inputs, version="v3", transformers=[scope.usage()])

Times, tokens and spans come from LangChain's callbacks (`langgraph_callbacks`). The transformer
says which of the process's runs this stream is of, by the id of its first task, and puts the totals
on the stream. It observes: it neither holds back nor changes an event, and no error of its own gets
out of it, since one would end the run. LangGraph makes one for the run and one for every subgraph;
the run's sees all events, so the others do nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar, Final

from langgraph.stream import StreamTransformer  # pyright: ignore[reportMissingTypeStubs] - typed

from ..memory.labels import Labels
from ..memory.runtime import Runtime
from ..telemetry.prices import Prices
from .langgraph_callbacks import graph_callbacks
from .langgraph_gate import guard_models
from .langgraph_meter import Meter

CHANNEL: Final = "usage"
"""Where a run shows its totals: ``run.extensions["usage"]``."""


class UsageTransformer(StreamTransformer):
    """
    Leads from a stream to the run it is of.

    Args:
        scope: LangGraph's name for where it stands: ``()`` at the root.
        meter: None where nothing is to be counted.
        note: Takes errors of ours.
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
        """Let an event pass, and find the run by its first task."""
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
        """End what is open: LangGraph finalizes runs that were left as well."""
        try:
            if self._meter is not None:
                graph_callbacks().runs.close(self._meter)
        except Exception as exc:  # noqa: BLE001 - an error in here would fail the run
            self._failed("stream.finalize", exc)

    def fail(self, err: BaseException) -> None:  # noqa: ARG002 - the callbacks told what failed
        """End what is open."""
        self.finalize()

    def _failed(self, site: str, exc: Exception) -> None:
        if self._note is not None:
            self._note(site, exc)


class UsageFactory:
    """
    Makes the transformers of a run, as LangGraph asks for them.

    Args:
        runtime: None: they do nothing.
        prices: For the cost.
        features: Features by node name.
    """

    def __init__(
        self,
        runtime: Runtime | None,
        prices: Prices,
        features: Mapping[str, str] | None = None,
    ) -> None:
        self._runtime = runtime
        self._prices = prices
        self._features = dict(features or {})
        self._labels = Labels(runtime) if runtime else None
        if runtime is not None:
            graph_callbacks().report_to(runtime)
            guard_models(runtime.budgets, runtime.faults)

    def meter(self) -> Meter | None:
        """Return who watches a run that begins here and now. None: nobody. Never raises."""
        if self._runtime is None or self._labels is None:
            return None
        try:
            return Meter(self._runtime, self._prices, labels=self._labels, features=self._features)
        except Exception as exc:  # noqa: BLE001 - then this run is not counted
            self._runtime.faults.note("stream.begin", exc)
            return None

    def __call__(self, scope: tuple[str, ...]) -> UsageTransformer:
        """Return the transformer for *scope*. Never raises: that would fail the run."""
        note = self._runtime.faults.note if self._runtime else None
        return UsageTransformer(scope, self.meter(), note)


def usage(
    runtime: Runtime | None,
    prices: Prices | str | Path | None = None,
    *,
    features: Mapping[str, str] | None = None,
) -> UsageFactory:
    """
    Return the transformer factory that counts tokens in a LangGraph v3 stream.

    Args:
        runtime: What the guards of a scope share. None where mnemoscope is switched off.
        prices: A table, or a file that extends the shipped one.
        features: Features by node name.

    Raises:
        PriceFileError: The file makes no sense.
    """
    chosen = prices if isinstance(prices, Prices) else _loaded(prices)
    return UsageFactory(runtime, chosen, features)


@lru_cache(maxsize=16)
def _loaded(path: str | Path | None) -> Prices:
    return Prices.load(path)

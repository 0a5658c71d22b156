"""
The v3 stream bridge: what each model call of a LangGraph run used, and which feature it was for.

    run = graph.stream_events(inputs, version="v3", transformers=[scope.usage()])

The transformer observes: it neither holds back nor changes an event, and no error of its own gets
out of it, since one would end the run. LangGraph makes one for the run and one for every subgraph,
and the run's sees all events, so the others do nothing. A call is counted when it has ended, once
per scope however many streams tell of it.
"""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar, Final

from langgraph.stream import StreamTransformer  # pyright: ignore[reportMissingTypeStubs] - typed

from ..memory.runtime import Runtime
from ..telemetry.prices import Prices
from .langgraph_meter import Meter
from .langgraph_models import watched_models

CHANNEL: Final = "usage"
"""Where a run shows its totals: ``run.extensions["usage"]``."""


class UsageTransformer(StreamTransformer):
    """
    Hands the ``messages`` events of a run to its meter.

    Args:
        scope: LangGraph's name for where it stands: ``()`` at the root.
        meter: None where nothing is to be counted.
        runtime: Where errors of ours are noted.
    """

    supports_sync: ClassVar[bool] = True
    required_stream_modes: ClassVar[tuple[str, ...]] = ("messages",)

    def __init__(
        self,
        scope: tuple[str, ...] = (),
        meter: Meter | None = None,
        runtime: Runtime | None = None,
    ) -> None:
        super().__init__(scope)
        self._meter = meter
        self._runtime = runtime

    def init(self) -> dict[str, Any]:
        """Contribute nothing here: two of us on one run would collide over the name."""
        return {}

    def _on_register(self, mux: Any) -> None:
        # Only the root numbers events. A run inside a node has a root too, whose scope is not ().
        if not getattr(mux, "_assign_seq", not self.scope):
            self._meter = None
        if self._meter is not None:
            mux.extensions.setdefault(CHANNEL, self._meter.totals)

    def process(self, event: Any) -> bool:
        """Take note of an event and let it pass."""
        if self._meter is not None and event["method"] == "messages":
            try:
                self._meter.saw(*event["params"]["data"])
            except Exception as exc:  # noqa: BLE001 - an error in here would end the run
                self._note("stream.process", exc)
        return True

    def finalize(self) -> None:
        """Tell of what never ended: LangGraph finalizes runs that were left as well."""
        try:
            if self._meter is not None:
                self._meter.close()
        except Exception as exc:  # noqa: BLE001 - an error in here would fail the run
            self._note("stream.finalize", exc)

    def fail(self, err: BaseException) -> None:  # noqa: ARG002 - the callbacks told what failed
        """Tell of what never ended."""
        self.finalize()

    def _note(self, site: str, exc: Exception) -> None:
        if self._runtime is not None:
            self._runtime.faults.note(site, exc)


class UsageFactory:
    """
    Makes the transformers of a run, as LangGraph asks for them.

    Args:
        runtime: None: they do nothing.
        prices: For the cost.
    """

    def __init__(self, runtime: Runtime | None, prices: Prices) -> None:
        self._runtime = runtime
        self._prices = prices
        self._models = watched_models() if runtime else None

    def __call__(self, scope: tuple[str, ...]) -> UsageTransformer:
        """Return the transformer for *scope*. Never raises: that would fail the run."""
        if self._runtime is None or self._models is None:
            return UsageTransformer(scope)
        try:
            meter = Meter(self._runtime, self._prices, self._models)
        except Exception as exc:  # noqa: BLE001 - then this run is not counted
            self._runtime.faults.note("stream.begin", exc)
            return UsageTransformer(scope)
        return UsageTransformer(scope, meter, self._runtime)


def usage(runtime: Runtime | None, prices: Prices | str | Path | None = None) -> UsageFactory:
    """
    Return the transformer factory that counts tokens in a LangGraph v3 stream.

    Args:
        runtime: What the guards of a scope share. None where mnemoscope is switched off.
        prices: A table, or a file that extends the shipped one.

    Raises:
        PriceFileError: The file makes no sense.
    """
    return UsageFactory(runtime, prices if isinstance(prices, Prices) else _loaded(prices))


@lru_cache(maxsize=16)
def _loaded(path: str | Path | None) -> Prices:
    return Prices.load(path)

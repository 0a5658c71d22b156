"""A relay beside the traffic, so that its panels and alerts have something to show."""

from __future__ import annotations

import secrets
import threading
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path

from prometheus_client import REGISTRY

from mnemoscope.audit.record.keys import parse_secret
from mnemoscope.memory.building.relay import build_relay
from mnemoscope.memory.settings import load_settings
from mnemoscope.telemetry.event.subject import SubjectKeys
from mnemoscope.telemetry.prometheus.live import LiveCollector, Sample
from mnemoscope.telemetry.relay.relay import Relay
from mnemoscope.telemetry.relay.sink import RelaySink


class _Figures:
    """The figures of a relay, and of a sink that it reads."""

    def __init__(self, relay: Relay, sink: RelaySink) -> None:
        self._relay, self._sink = relay, sink

    def samples(self) -> Iterator[Sample]:
        """Yield them; the traffic's own lanes are shown by its scope."""
        for each in self._relay.samples():
            if each.name.startswith("mnemoscope_relay"):
                yield each
        yield from self._sink.samples()


@contextmanager
def relayed(folder: Path) -> Generator[RelaySink]:
    """Yield a sink whose events a relay of this process writes to a log; show both's figures."""
    key = secrets.token_hex(32)
    settings = load_settings(
        sinks="logs", log_file=folder / "relayed.jsonl", audit_pseudonym_key=key, disabled=False
    )
    relay = build_relay(settings, folder / "relay")
    sink, stopping = RelaySink(folder / "relay", SubjectKeys(parse_secret(key))), threading.Event()

    figures = _Figures(relay, sink)  # the collector does not keep them alive
    LiveCollector.for_registry(REGISTRY).add(figures.samples)
    thread = threading.Thread(target=relay.run, args=(stopping,))
    thread.start()
    try:
        yield sink
    finally:
        stopping.set()
        thread.join()

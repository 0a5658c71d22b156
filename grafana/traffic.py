"""
Traffic for the dashboards: the demo's agent answers until stopped, with /metrics on a port.

    python grafana/traffic.py                                    until it is stopped
    python grafana/traffic.py --seconds 60 --slow qdrant --after 20 --incidents

Everything is as in `mnemoscope demo`: real mem0, Qdrant and LangGraph stores, a scripted model. The
collector and the audit database are named by the usual variables (OTEL_EXPORTER_OTLP_ENDPOINT,
MNEMOSCOPE_AUDIT_URL, MNEMOSCOPE_LOG_FILE).
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import os
import secrets
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from opentelemetry.trace import Tracer
from traffic_feature import counting
from traffic_incidents import GATE, LATE, Noted
from traffic_relay import relayed

from mnemoscope.demo.conversation import load_conversation
from mnemoscope.demo.environment import NO_TRACER, environment, quiet
from mnemoscope.demo.faults import BREAKABLE, FaultMode, StoreFault
from mnemoscope.demo.run import PRICES
from mnemoscope.memory import Budget, Mnemoscope, Phase, Phases
from mnemoscope.memory.errors import ConfigurationError
from mnemoscope.memory.growth.forecast import SizeHistory, SizeSample
from mnemoscope.memory.hygiene import hygiene
from mnemoscope.memory.settings import Settings, load_settings

if TYPE_CHECKING:
    from traffic_incidents import Incidents

SLOW_S = 1.2
"""Duration of a slow store's calls: above the objective, below half of the deadline."""

DEADLINE_S = 3.0
"""Deadline of a recall; the breaker opens when most calls take half of it."""

BUDGETS = (
    Budget(usd=0.005, per="hour", feature="reply-outline", name="outlines"),
    Budget(tokens=2_000_000, per="day", name="all tokens"),
)
"""Small budgets, so that the dashboard shows how they are used up."""


RULES = (
    Noted(name="cautious", shadow=True),
    Noted(name="refused"),
    Phases([Phase(LATE, 30), Phase("write", 10, protected=True, weight=1)]),
    GATE,
)
"""Rules that incidents meet, for the dashboard: one is in shadow, and one asks humans."""


def main() -> int:
    """Make traffic; return the exit code."""
    options = _options()
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # stops a container
    try:
        with TemporaryDirectory(prefix="mnemoscope-traffic-", ignore_cleanup_errors=True) as name:
            folder = Path(name)
            wanted = NO_TRACER | {"MEM0_TELEMETRY": "False", "MEM0_DIR": str(folder)}
            with quiet(), environment(wanted):
                _run(options, folder)
    except ConfigurationError as exc:
        print(f"traffic: {exc}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130
    return 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Traffic for the dashboards.")
    parser.add_argument(
        "--address", default="127.0.0.1", help="where /metrics is served: 0.0.0.0 in a container"
    )
    parser.add_argument("--port", type=int, default=9464, help="serve /metrics here")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="then stop")
    parser.add_argument("--pause", type=float, default=0.5, help="seconds between two messages")
    parser.add_argument("--slow", choices=sorted(BREAKABLE), help="make this store slow")
    parser.add_argument("--after", type=float, default=0.0, help="seconds before it turns slow")
    parser.add_argument("--incidents", action="store_true", help="inject every kind of failure")
    return parser.parse_args()


def _run(options: argparse.Namespace, folder: Path) -> None:
    settings = _settings(options, folder)
    if options.incidents:
        _grow(settings)
    with (
        relayed(folder) as relay,
        closing(
            Mnemoscope(
                settings,
                extra_sinks=[relay],
                budgets=BUDGETS,
                rules=RULES,
                extra_features=[counting, hygiene],
            )
        ) as scope,
    ):
        # Not at the top: mem0 reads the environment when it is imported.
        from mnemoscope.demo.stores import open_stores

        scope.prepare()
        with open_stores(folder, scope) as stores:
            print(f"traffic: /metrics on port {options.port}", flush=True)
            fault = (
                StoreFault(options.slow, FaultMode.SLOW, delay_s=SLOW_S) if options.slow else None
            )
            try:
                _answer(options, scope, stores, fault)
            finally:
                if fault:
                    fault.end()


def _settings(options: argparse.Namespace, folder: Path) -> Settings:
    given: dict[str, Any] = {
        "prometheus_port": options.port,
        "prometheus_address": options.address,
        "prices": PRICES,
        "deadline_recall_s": DEADLINE_S,
        "journal": folder / "journal",
        "integrity": "observe",
        "growth_every_s": 2.0,
        "growth_limits": {"mem0": 1 << 30, "qdrant": 1 << 30},
        "disabled": False,
    }
    if "MNEMOSCOPE_AUDIT_URL" not in os.environ:
        given["audit_url"] = f"sqlite:///{folder / 'audit.db'}"
    if "MNEMOSCOPE_LOG_FILE" not in os.environ:
        given["log_file"] = folder / "log.jsonl"
    if "MNEMOSCOPE_AUDIT_PSEUDONYM_KEY" not in os.environ:
        given["audit_pseudonym_key"] = secrets.token_hex(32)
    return load_settings(**given)


def _grow(settings: Settings) -> None:
    """Give the stores a past: nothing is foretold of those that are young."""
    history = SizeHistory(settings.growth_file)
    for days_ago in range(10, 0, -1):
        at_s = time.time() - days_ago * 86_400
        history.add({each: SizeSample(at_s, 1_000.0 / days_ago) for each in ("mem0", "qdrant")})


def _answer(options: argparse.Namespace, scope: Mnemoscope, stores: Any, fault: Any) -> None:
    from mnemoscope.demo.replay import plain_langchain

    incidents = _incidents(scope, stores) if options.incidents else None
    library = _library(scope)
    started, is_slow = time.monotonic(), False
    with plain_langchain():
        for answer in _messages(scope, stores, _models(options)):
            passed = time.monotonic() - started
            if passed > options.seconds:
                return
            if fault and not is_slow and passed > options.after:
                fault.begin(stores.bare[fault.store])
                is_slow = True
            with contextlib.suppress(Exception):  # a failed request of a customer
                answer()
            library.start_span("GET /customers", attributes={"user.name": "Ada"}).end()
            if incidents:
                incidents.happen()
            time.sleep(options.pause)


def _library(scope: Mnemoscope) -> Tracer:
    """Return the tracer of another library, whose spans are redacted and go nowhere."""
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor, SpanExporter, SpanExportResult

    class Nowhere(SpanExporter):
        def export(self, spans: Any) -> SpanExportResult:  # noqa: ARG002 - they go nowhere
            return SpanExportResult.SUCCESS

    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(scope.redacting_exporter(Nowhere())))
    return provider.get_tracer("traffic")


def _incidents(scope: Mnemoscope, stores: Any) -> Incidents:
    from traffic_incidents import Incidents

    return Incidents(scope, stores)


def _models(options: argparse.Namespace) -> Iterator[Any]:
    from traffic_models import Newcomer, Silent

    from mnemoscope.demo.scripted_model import ScriptedModel

    usual = ScriptedModel()
    if not options.incidents:
        return itertools.repeat(usual)
    return itertools.cycle([usual, usual, Newcomer(), usual, Silent()])


def _messages(scope: Mnemoscope, stores: Any, models: Iterator[Any]) -> Iterator[Any]:
    from mnemoscope.demo.agent import AgentContext, build_agent, reply

    conversation = load_conversation()
    graph = build_agent(stores.store, stores.checkpointer)
    for day in itertools.count():
        for session in conversation.sessions:
            for turn in session.turns:
                customer = conversation.customers[turn.speaker]
                agent = AgentContext(
                    customer=customer,
                    known=conversation.speakers,
                    memory=stores.memory,
                    documents=stores.documents,
                    model=next(models),
                    infers=False,
                )
                thread = f"{customer}-{day}-{session.number}"
                yield lambda text=turn.text, agent=agent, thread=thread: reply(
                    graph, text, agent=agent, thread=thread, scope=scope
                )
        for customer in conversation.customers.values():
            # Keeps the embedded stores small.
            yield lambda customer=customer: stores.memory.delete_all(user_id=customer)


if __name__ == "__main__":
    raise SystemExit(main())

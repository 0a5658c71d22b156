"""
The books of a scripted model family against every place where spend is told.

Whatever the models of the family report, they also write down. A graph of two levels of subgraphs,
parallel branches, a retry, a fallback, an interrupt and a resume calls all of them; what metrics,
spans, audit trail and stream say must be what was written down, to the token.
"""

from __future__ import annotations

import asyncio
import operator
import threading
from collections import Counter
from typing import Annotated, Any, TypedDict

import pytest
from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph
from langgraph.types import Command, RetryPolicy, Send, interrupt
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from prometheus_client import CollectorRegistry

from mnemoscope.adapters.langgraph.runs.callbacks import graph_callbacks
from mnemoscope.adapters.langgraph.runs.graph import runnable
from mnemoscope.audit import AuditLog
from mnemoscope.audit.sink.sink import AuditSink
from mnemoscope.telemetry.delivery.drain import Drain
from mnemoscope.telemetry.otlp.sink import OtlpSink
from mnemoscope.telemetry.pricing.prices import Price, Prices
from mnemoscope.telemetry.prometheus.sink import PrometheusSink
from tests.kit.bench import Bench
from tests.kit.patience import GIVE_UP_S

PRICES = Prices({"family-1": Price(input=1.0, output=2.0, cached_input=0.5, cache_write=4.0)})
ABOUT = {"model_name": "family-1", "model_provider": "fakeco"}
KINDS = ("input", "output", "cached", "cache_write", "reasoning")

pytestmark = pytest.mark.filterwarnings("ignore:The v3 streaming protocol")


class Book:
    """What the models of the family really used, by kind of token."""

    def __init__(self) -> None:
        self.tokens: Counter[str] = Counter()
        self.calls = 0
        self._lock = threading.Lock()

    def write(self, numbers):
        with self._lock:
            self.tokens.update(dict(zip(KINDS, numbers, strict=True)))

    def called(self):
        with self._lock:
            self.calls += 1


def reported(numbers):
    """Return five numbers as LangChain has them, which leaves details out that are 0."""
    into, out, cached, written, reasoning = numbers
    given: dict[str, Any] = {"input_tokens": into, "output_tokens": out, "total_tokens": into + out}
    details = {"cache_read": cached, "cache_creation": written}
    if any(details.values()):
        given["input_token_details"] = {key: n for key, n in details.items() if n}
    if reasoning:
        given["output_token_details"] = {"reasoning": reasoning}
    return given


class Family(BaseChatModel):
    """
    A model that uses what it is told to, and reports it chunk by chunk.

    Like those of the large providers it tells the callbacks of each chunk with its usage.
    """

    book: Any
    reports: list[tuple[int, ...]]
    cumulative: bool = False
    fails: bool = False

    @property
    def _llm_type(self):
        return "family"

    def _get_ls_params(self, stop=None, **kwargs):
        return {"ls_provider": "fakeco", "ls_model_name": "family-1", "ls_model_type": "chat"}

    @property
    def _used(self):
        return (
            self.reports[-1]
            if self.cumulative
            else tuple(map(sum, zip(*self.reports, strict=True)))
        )

    def _generate(self, messages, stop=None, run_manager=None, **kwargs):
        self.book.called()
        if self.fails:
            raise ConnectionError
        self.book.write(self._used)
        message = AIMessage("Hi", usage_metadata=reported(self._used), response_metadata=ABOUT)
        return ChatResult(generations=[ChatGeneration(message=message)])

    def _stream(self, messages, stop=None, run_manager=None, **kwargs):
        self.book.called()
        said = (0,) * 5
        for numbers in self.reports:
            piece = AIMessageChunk("H", usage_metadata=reported(numbers), response_metadata=ABOUT)
            chunk = ChatGenerationChunk(message=piece)
            new = (
                tuple(n - s for n, s in zip(numbers, said, strict=True))
                if self.cumulative
                else numbers
            )
            said = numbers
            if run_manager:
                run_manager.on_llm_new_token("H", chunk=chunk)
            self.book.write(new)
            yield chunk
            if self.fails:
                raise ConnectionError


class State(TypedDict, total=False):
    said: Annotated[list[str], operator.add]


def family(book):
    """Return the family: each member with a way of its own to report what it used."""
    return {
        "streaming": Family(book=book, reports=[(100, 0, 40, 10, 0), (0, 25, 0, 0, 0)]),
        "whole": Family(book=book, reports=[(31, 7, 0, 0, 0)], disable_streaming=True),
        "reasoning": Family(book=book, reports=[(50, 1, 0, 0, 0), (0, 90, 0, 0, 80)]),
        "cumulative": Family(
            book=book,
            reports=[(64, 1, 16, 0, 0), (64, 9, 16, 0, 4), (64, 30, 16, 0, 12)],
            cumulative=True,
        ),
        "breaks": Family(book=book, reports=[(70, 2, 0, 0, 0)], fails=True),
    }


def asks(model, *, is_async):
    def node(_state):
        return {"said": [str(model.invoke("hi").text)]}

    async def anode(_state):
        return {"said": [str((await model.ainvoke("hi")).text)]}

    return anode if is_async else node


def graph_of(book, *, is_async):
    """Return the builder: two levels of subgraphs, branches, Send, retry, fallback, interrupt."""
    models = family(book)

    def node(name):
        return asks(models[name], is_async=is_async)

    inmost = StateGraph(State)
    inmost.add_node("reasons", node("reasoning"))
    inmost.add_node("totals", node("cumulative"))
    inmost.add_edge(START, "reasons")
    inmost.add_edge(START, "totals")
    middle = StateGraph(State)
    middle.add_node("inner", inmost.compile())
    middle.add_node("beside", node("whole"))
    middle.add_edge(START, "inner")
    middle.add_edge("inner", "beside")
    fails = iter([True, False, True, False])

    def retried(state):
        models["streaming"].invoke("hi")
        if next(fails):
            raise ConnectionError
        return {"said": ["x"]}

    falls_back = models["breaks"].with_fallbacks([models["streaming"]])

    def approve(_state):
        models["whole"].invoke("hi")
        return {"said": [interrupt("go on?")]}

    builder = StateGraph(State)
    builder.add_node("outer", middle.compile())
    policy = RetryPolicy(max_attempts=2, initial_interval=0.001, jitter=False)
    builder.add_node("retried", retried, retry_policy=policy)
    builder.add_node("falls_back", asks(falls_back, is_async=is_async))
    builder.add_node("worker", node("cumulative"))
    builder.add_node("approve", approve)
    builder.add_edge(START, "outer")
    builder.add_edge(START, "retried")
    builder.add_edge(START, "falls_back")
    builder.add_conditional_edges(START, lambda _s: [Send("worker", {})] * 3, ["worker"])
    builder.add_edge(["outer", "retried", "falls_back"], "approve")
    return builder


def invoked(graph, inputs, config):
    graph.invoke(inputs, config)


def messages(graph, inputs, config):
    list(graph.stream(inputs, config, stream_mode="messages", subgraphs=True))


def v3(graph, inputs, config):
    run = graph.stream_events(inputs, config, version="v3")
    list(run)
    return run.extensions["usage"]


def ainvoked(graph, inputs, config):
    asyncio.run(graph.ainvoke(inputs, config))


def av2(graph, inputs, config):
    async def drain():
        async for _event in graph.astream_events(inputs, config, version="v2"):
            pass

    asyncio.run(drain())


def av3(graph, inputs, config):
    async def drain():
        run = await graph.astream_events(inputs, config, version="v3")
        async for _event in run:
            pass
        return run.extensions["usage"]

    return asyncio.run(drain())


@pytest.fixture
def books(redactor, subject_keys, tmp_path):
    """Return a bench with three real sinks, and a function that reads them all."""
    registry, exporter = CollectorRegistry(), InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    audit = AuditLog(f"sqlite:///{tmp_path / 'audit.db'}", subject_keys)
    sinks = [PrometheusSink(registry=registry), OtlpSink(provider=provider), AuditSink(audit)]
    bench = Bench(redactor=redactor, drain=Drain(sinks), keys=subject_keys)

    def read():
        assert bench.drain.flush(GIVE_UP_S)
        return {
            "metrics": _of_metrics(registry),
            "spans": _of_spans(exporter.get_finished_spans()),
            "audit": _of_audit(audit.rows()),
        }

    yield bench, read
    bench.drain.close(2)
    provider.shutdown()


def _of_metrics(registry):
    found: Counter[str] = Counter()
    for metric in registry.collect():
        for sample in metric.samples:
            if sample.name == "mnemoscope_tokens_total":
                found[sample.labels["type"]] += int(sample.value)
    return found


_ATTRIBUTES = {
    "input": "gen_ai.usage.input_tokens",
    "output": "gen_ai.usage.output_tokens",
    "cached": "gen_ai.usage.cache_read.input_tokens",
    "cache_write": "gen_ai.usage.cache_creation.input_tokens",
    "reasoning": "gen_ai.usage.reasoning.output_tokens",
}


def _of_spans(spans):
    found: Counter[str] = Counter()
    for span in spans:
        for kind, name in _ATTRIBUTES.items():
            found[kind] += span.attributes.get(name, 0)
    return found


def _of_audit(rows):
    found: Counter[str] = Counter()
    for row in rows:
        if row.usage is not None:
            for kind in KINDS:
                found[kind] += getattr(row.usage, f"{kind}_tokens")
    return found


def _of_totals(totals):
    return Counter({kind: getattr(totals, f"{kind}_tokens") for kind in KINDS})


@pytest.mark.parametrize(
    "way", [invoked, messages, v3, ainvoked, av2, av3], ids=lambda f: f.__name__
)
def test_every_place_says_what_was_used(way, books):
    """Metrics, spans, audit trail and the stream's totals are the script's, exactly."""
    bench, read = books
    book, before = Book(), set(graph_callbacks().runs._open)
    builder = graph_of(book, is_async=way in {ainvoked, av2, av3})
    graph = runnable(builder.compile(checkpointer=InMemorySaver()), bench.priced(PRICES))
    config = {"configurable": {"thread_id": "t-1"}}
    live = [way(graph, {}, config), way(graph, Command(resume="yes"), config)]

    assert read() == dict.fromkeys(("metrics", "spans", "audit"), book.tokens)
    assert (
        book.calls == 12
    )  # subgraphs 3, retry 2, fallback 2, workers 3, before and after resume 2
    if way in {v3, av3}:
        assert sum((_of_totals(each) for each in live), Counter()) == book.tokens
        assert sum(each.calls for each in live) == book.calls
    assert set(graph_callbacks().runs._open) <= before

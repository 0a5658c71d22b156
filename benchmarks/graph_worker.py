"""
One way of watching a LangGraph graph, or none, in a process of its own.

    python graph_worker.py bare|runnable|usage|openlit|traceloop|openinference

Says what was started, as JSON on one line. Then, for each line ``CASE CALLS`` on standard input,
makes that many calls of the case and answers with their cost in microseconds of one call. A blank
line ends it.

Spans of peers go to a batch processor and an OTLP exporter, ours to all five sinks: OTLP and
LangSmith of all of them go to the one back end that the environment names. Peers are instrumented
as their own start function would do it, with metrics off: ours are on.
"""

from __future__ import annotations

import gc
import json
import operator
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from statistics import median
from typing import Annotated, Any, NamedTuple, TypedDict

from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langgraph.graph import START, StateGraph

warnings.filterwarnings("ignore", message="The v3 streaming protocol")

PEERS = {
    "openlit": ("openlit", ""),
    "traceloop": (
        "opentelemetry-instrumentation-langchain",
        "opentelemetry.instrumentation.langchain:LangchainInstrumentor",
    ),
    "openinference": (
        "openinference-instrumentation-langchain",
        "openinference.instrumentation.langchain:LangChainInstrumentor",
    ),
}
WHOLE = {"model_name": "scripted-1", "model_provider": "scripted"}


class Case(NamedTuple):
    """
    A graph and a way to run it.

    Attributes:
        mode: A key of `MODES`.
        nodes: In a row; the first calls the model.
        calls: How often it does.
        chunks: What the model streams, the usage that comes last left out.
        pause_s: Before each of them.
    """

    mode: str
    nodes: int = 3
    calls: int = 1
    chunks: int = 1
    pause_s: float = 0.0


class State(TypedDict):
    """What the nodes leave."""

    said: Annotated[list[str], operator.add]


class Scripted(BaseChatModel):
    """A model that says as many chunks as it is told to, as fast as it is told to."""

    chunks: int = 1
    pause_s: float = 0.0

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def _get_ls_params(self, stop: Any = None, **_kwargs: Any) -> Any:
        return {"ls_provider": "scripted", "ls_model_name": "scripted-1", "ls_model_type": "chat"}

    def _used(self) -> Any:
        return {"input_tokens": 10, "output_tokens": self.chunks, "total_tokens": 10 + self.chunks}

    def _generate(self, messages: Any, *_args: Any, **_kwargs: Any) -> ChatResult:
        said = AIMessage(content="word " * self.chunks, usage_metadata=self._used())
        said.response_metadata = WHOLE
        return ChatResult(generations=[ChatGeneration(message=said)])

    def _stream(self, messages: Any, *_args: Any, **_kwargs: Any) -> Iterator[ChatGenerationChunk]:
        for number in range(self.chunks):
            if self.pause_s:
                time.sleep(self.pause_s)
            about = {} if number else WHOLE
            yield ChatGenerationChunk(
                message=AIMessageChunk(content="word ", response_metadata=about)
            )
        yield ChatGenerationChunk(message=AIMessageChunk(content="", usage_metadata=self._used()))


def compiled(case: Case) -> Any:
    """Return the graph of *case*."""
    model = Scripted(chunks=case.chunks, pause_s=case.pause_s)

    def asks(_state: State) -> State:
        for _ in range(case.calls):
            model.invoke("which tea")
        return {"said": ["something"]}

    def passes(_state: State) -> State:
        return {"said": []}

    builder = StateGraph(State)
    before = START
    for number in range(case.nodes):
        builder.add_node(f"node-{number}", passes if number else asks)
        builder.add_edge(before, before := f"node-{number}")
    return builder.compile()


def _invoke(graph: Any, **_given: Any) -> int:
    graph.invoke({"said": []})
    return 0


def _v2(graph: Any, **_given: Any) -> int:
    return sum(1 for _part in graph.stream({"said": []}, stream_mode="messages"))


def _v3(graph: Any, **given: Any) -> int:
    return sum(1 for _event in graph.stream_events({"said": []}, version="v3", **given))


MODES: dict[str, Callable[..., int]] = {"invoke": _invoke, "v2": _v2, "v3": _v3}


class Watched(NamedTuple):
    """
    How graphs are watched.

    Attributes:
        version: Of the package that watches.
        call: Makes one call of a graph, compiled before or watched by then.
        watch: Returns a graph that is watched.
        settle: Waits until what is told of the calls so far has been sent.
    """

    version: str
    call: Callable[..., int]
    watch: Callable[[Any], Any]
    settle: Callable[[], object]


def bare() -> Watched:
    """Nothing watches."""
    return Watched(version("langgraph"), _called, lambda graph: graph, lambda: None)


def _called(mode: str, graph: Any, **given: Any) -> int:
    return MODES[mode](graph, **given)


def ours(way: str, folder: Path) -> Watched:
    """All five sinks watch: a graph made watched, or one whose stream is given `usage()`."""
    from benchmarks import cases
    from mnemoscope.memory import context

    scope = cases.Scopes(folder).make(cases.ALL)
    given: dict[str, Any] = {"transformers": [scope.usage()]} if way == "usage" else {}

    def call(mode: str, graph: Any) -> int:
        with context(tenant="acme", customer=cases.CUSTOMER):
            return _called(mode, graph, **given)

    watch = scope.runnable if way == "runnable" else lambda graph: graph
    return Watched(version("mnemoscope"), call, watch, cases.settled(scope))


def peer(name: str, folder: Path) -> Watched:
    """One of the others watches."""
    from opentelemetry import trace
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    provider = TracerProvider()
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    trace.set_tracer_provider(provider)
    package, instrumentor = PEERS[name]
    if instrumentor:
        module, _, class_name = instrumentor.partition(":")
        getattr(import_module(module), class_name)().instrument(skip_dep_check=True)
    else:
        prices = folder / "prices.json"  # else it asks the network for them
        prices.write_text("{}", encoding="utf-8")
        import_module("openlit").init(disable_metrics=True, pricing_json=str(prices))
    return Watched(version(package), _called, lambda graph: graph, provider.force_flush)


class Block(NamedTuple):
    """
    What a block of calls cost, for one of them.

    Attributes:
        wall_us: The median.
        run_us: CPU time of the caller and of the threads that LangGraph made for the call.
        sinks_us: CPU time of the threads that send, until all was sent.
        events: What was streamed.
    """

    wall_us: float
    run_us: float
    sinks_us: float
    events: int


def block(watched: Watched, case: Case, graph: Any, calls: int) -> Block:
    """Make *calls*, garbage collection off."""
    taken, events = list[int](), 0
    watched.settle()
    gc.collect()
    gc.disable()
    in_all, before = time.process_time_ns(), _spent_elsewhere()
    for _ in range(calls):
        began = time.perf_counter_ns()
        events = watched.call(case.mode, graph)
        taken.append(time.perf_counter_ns() - began)
    run_ns = time.process_time_ns() - in_all
    run_ns -= sum(ns - before.get(each, 0) for each, ns in _spent_elsewhere().items())
    watched.settle()
    sinks_ns = time.process_time_ns() - in_all - run_ns
    gc.enable()
    return Block(median(taken) / 1e3, run_ns / calls / 1e3, sinks_ns / calls / 1e3, events)


def _spent_elsewhere() -> dict[int, int]:
    """Return the CPU time of those who send: LangGraph's own threads end with their call."""
    others = [each.ident for each in threading.enumerate() if each is not threading.main_thread()]
    return {
        each: time.clock_gettime_ns(time.pthread_getcpuclockid(each))
        for each in others
        if each is not None
    }


def main() -> None:
    """Answer until there is nothing more to do."""
    way = sys.argv[1]
    with tempfile.TemporaryDirectory() as folder:
        try:
            if way == "bare":
                watched = bare()
            else:
                watched = (peer if way in PEERS else ours)(way, Path(folder))
        except (PackageNotFoundError, ImportError) as exc:
            _say({"missing": type(exc).__name__})
            return
        _say({"version": watched.version, "langgraph": version("langgraph")})
        graphs = dict[Case, Any]()
        for line in iter(sys.stdin.readline, "\n"):
            mode, nodes, calls, chunks, pause_s, times = line.split()
            case = Case(mode, int(nodes), int(calls), int(chunks), float(pause_s))
            if case not in graphs:
                graphs[case] = watched.watch(compiled(case))
            _say(block(watched, case, graphs[case], int(times))._asdict())


def _say(answer: dict[str, Any]) -> None:
    print(json.dumps(answer), flush=True)  # noqa: T201 - read by whoever started it


if __name__ == "__main__":
    main()

"""
The run that every tool is shown: an agent with mem0, Qdrant, a store and a checkpointer.

It is run in the environment of each tool, where nothing of this project is installed; nothing but
loopback is asked. The last line that it prints is what was true, as JSON.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
import time
from contextlib import suppress
from importlib.metadata import version
from statistics import median
from typing import Any, TypedDict

os.environ["MEM0_TELEMETRY"] = "False"

from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph
from langgraph.store.memory import InMemoryStore
from mem0 import Memory
from mem0.utils.factory import EmbedderFactory
from qdrant_client import QdrantClient, models

RUNS = 3
TIMED = 10
SIZE = 8
THREAD = "thread-7"
USER = "rosalind.quimby@user.example"
MESSAGE = "Write to ada.oxblood@message.example about the tea"
MEMORY = "Rosalind's address is grace.hopper@memory.example"
ANSWER = "I wrote to edsger.dijkstra@answer.example"
DOCUMENT = "Refunds: ask barbara.liskov@document.example"
NOTE = "Call alan.turing@note.example"
CITY = "card-of-donald.knuth@tool.example"
CANARIES = {
    "user id": USER,
    "message": "ada.oxblood@message.example",
    "memory": "grace.hopper@memory.example",
    "answer": "edsger.dijkstra@answer.example",
    "document": "barbara.liskov@document.example",
    "note in the store": "alan.turing@note.example",
    "tool argument": CITY,
}
MODEL = "gpt-4o-mini"
INPUT, OUTPUT = 100, 20
PRICE_USD = INPUT * 0.15e-6 + OUTPUT * 0.6e-6


class Model(BaseChatModel):
    """A model that says what it is scripted to, and what that used."""

    says: str = ANSWER
    model_name: str = MODEL

    @property
    def _llm_type(self) -> str:
        return "openai-chat"

    @property
    def _identifying_params(self) -> dict[str, Any]:
        return {"model_name": self.model_name}

    def _get_ls_params(self, stop: Any = None, **kwargs: Any) -> Any:
        return {"ls_provider": "openai", "ls_model_name": MODEL, "ls_model_type": "chat"}

    def _generate(self, *_: Any, **__: Any) -> ChatResult:
        calls.append(1)
        used: Any = {
            "input_tokens": INPUT,
            "output_tokens": OUTPUT,
            "total_tokens": INPUT + OUTPUT,
        }
        about = {"model_name": MODEL, "model_provider": "openai", "finish_reason": "stop"}
        message = AIMessage(self.says, usage_metadata=used, response_metadata=about)
        return ChatResult(generations=[ChatGeneration(message=message)])


calls: list[int] = []
"""One for each call that a model has answered."""


class Embedder:
    """Embeddings made of a hash: no network."""

    def __init__(self, config: Any) -> None:
        self.config = config

    def embed(self, text: str, _memory_action: str | None = None) -> list[float]:
        digest = hashlib.sha256(text.encode()).digest()
        return [each / 255 for each in digest[:SIZE]]

    def embed_batch(self, texts: list[str], _memory_action: str = "add") -> list[list[float]]:
        return [self.embed(each) for each in texts]


@tool
def weather(city: str) -> str:
    """Return the weather of a city."""
    return f"Sunny, says {city}"


class State(TypedDict, total=False):
    messages: list[Any]
    found: list[str]


def memory_of(vectors: QdrantClient) -> Memory:
    """Return mem0 over Qdrant in memory, with a model that extracts."""
    EmbedderFactory.provider_to_class["lmstudio"] = f"{__name__}.{Embedder.__name__}"
    facts = json.dumps({"memory": [{"id": "0", "text": MEMORY, "event": "ADD"}], "facts": [MEMORY]})
    return Memory.from_config(
        {
            "embedder": {"provider": "lmstudio", "config": {"embedding_dims": SIZE}},
            "llm": {"provider": "langchain", "config": {"model": Model(says=facts)}},
            "vector_store": {
                "provider": "qdrant",
                "config": {
                    "client": vectors,
                    "collection_name": "memories",
                    "embedding_model_dims": SIZE,
                },
            },
            "history_db_path": ":memory:",
        }
    )


class Agent:
    """The agent. *wrap* is what a tool asks to be done with clients and graph."""

    def __init__(self, wrap: Any) -> None:
        plain = QdrantClient(":memory:")
        size = models.VectorParams(size=SIZE, distance=models.Distance.COSINE)
        plain.create_collection("documents", size)
        self.memory = wrap("mem0", memory_of(QdrantClient(":memory:")))
        self.documents = wrap("qdrant", plain)
        self.store = wrap("store", InMemoryStore())
        builder = StateGraph(State)
        for name in ("recall", "consult", "answer", "remember"):
            builder.add_node(name, getattr(self, name))
        builder.add_edge(START, "recall")
        builder.add_edge("recall", "consult")
        builder.add_edge("consult", "answer")
        builder.add_edge("answer", "remember")
        saver = wrap("checkpointer", InMemorySaver())
        self.graph = wrap("graph", builder.compile(store=self.store, checkpointer=saver))

    def recall(self, state: State) -> State:
        found = self.memory.search(state["messages"][-1].content, filters={"user_id": USER})
        noted = self.store.search(("notes",), limit=3)
        return {"found": [*(each["memory"] for each in found["results"]), *map(str, noted)]}

    def consult(self, state: State) -> State:
        point = models.PointStruct(id=1, vector=[0.5] * SIZE, payload={"text": DOCUMENT})
        self.documents.upsert("documents", [point])
        found = self.documents.query_points("documents", query=[0.5] * SIZE, with_payload=True)
        with suppress(ValueError):
            self.documents.query_points("missing", query=[0.5] * SIZE)
        return {"found": [*state["found"], *(each.payload["text"] for each in found.points)]}

    def answer(self, state: State) -> State:
        weather.invoke({"city": CITY})
        return {"messages": [*state["messages"], Model().invoke(state["messages"])]}

    def remember(self, state: State) -> State:
        said = [{"role": "user", "content": state["messages"][0].content}]
        self.memory.add(said, user_id=USER)
        self.store.put(("notes",), "last", {"text": NOTE})
        self.store.get(("notes",), "last")
        return {"found": []}

    def run(self, config: dict[str, Any] | None = None) -> None:
        """Answer one message."""
        asked = {"messages": [HumanMessage(MESSAGE)]}
        configurable = {"thread_id": THREAD, "user_id": USER}
        self.graph.invoke(asked, {**(config or {}), "configurable": configurable})


def as_it_is(_kind: str, client: Any) -> Any:
    """Return *client*: most tools patch classes."""
    return client


def exporting() -> Any:
    """Return a provider that exports to where the environment says."""
    from opentelemetry import trace
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    provider = TracerProvider()
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    trace.set_tracer_provider(provider)
    return provider


def openlit(content: bool) -> Any:
    import openlit as tool

    provider = exporting()
    tool.init(capture_message_content=content, disable_metrics=True, disable_events=True)
    return as_it_is, {}, provider.force_flush


def traceloop(content: bool) -> Any:
    os.environ["TRACELOOP_TRACE_CONTENT"] = str(content).lower()
    from opentelemetry.instrumentation.langchain import LangchainInstrumentor
    from opentelemetry.instrumentation.qdrant import QdrantInstrumentor

    provider = exporting()
    LangchainInstrumentor().instrument(tracer_provider=provider)
    QdrantInstrumentor().instrument(tracer_provider=provider)
    return as_it_is, {}, provider.force_flush


def openinference(content: bool) -> Any:
    from openinference.instrumentation import TraceConfig
    from openinference.instrumentation.langchain import LangChainInstrumentor

    provider = exporting()
    config = TraceConfig(hide_inputs=not content, hide_outputs=not content)
    LangChainInstrumentor().instrument(tracer_provider=provider, config=config)
    return as_it_is, {}, provider.force_flush


def langfuse(content: bool) -> Any:
    from langfuse import Langfuse
    from langfuse.langchain import CallbackHandler

    hidden: Any = {} if content else {"mask": lambda data, **_: "hidden"}
    client = Langfuse(public_key="pk-lf-1", secret_key="sk-lf-1", **hidden)
    return as_it_is, {"callbacks": [CallbackHandler()]}, client.flush


def langsmith(content: bool) -> Any:
    from langchain_core.tracers import LangChainTracer
    from langsmith import Client

    provider = exporting()
    client = Client(tracing_mode="otel", hide_inputs=not content, hide_outputs=not content)

    def flush() -> None:
        client.flush()
        provider.force_flush()

    return as_it_is, {"callbacks": [LangChainTracer(client=client)]}, flush


def mnemoscope(content: bool) -> Any:
    from mnemoscope.memory import configure

    given = {"content_sinks": "otlp"} if content else {}
    scope = configure(sinks="otlp", pii_model="none", **given)
    wraps = {
        "mem0": scope.mem0,
        "qdrant": scope.qdrant,
        "store": scope.store,
        "checkpointer": scope.checkpointer,
        "graph": scope.runnable,
    }
    return lambda kind, client: wraps[kind](client), {}, lambda: scope.flush(60)


TOOLS = {
    each.__name__: each
    for each in (openlit, traceloop, openinference, langfuse, langsmith, mnemoscope)
}


def cpu_ms(agent: Agent, config: dict[str, Any] | None, flush: Any) -> float:
    """Return the processor's time that a run takes, with the delivery of what is told of it."""
    took: list[float] = []
    for _ in range(TIMED):
        began = time.process_time()
        agent.run(config)
        flush()
        took.append((time.process_time() - began) * 1e3)
    return median(took)


def main(name: str, content: str, packages: list[str]) -> None:
    """Run the agent bare, then with the tool of that name."""
    bare_agent = Agent(as_it_is)
    bare_agent.run()
    bare_ms = cpu_ms(bare_agent, None, lambda: None)
    wrap, config, flush = TOOLS[name](content == "on")
    calls.clear()
    agent = Agent(wrap)
    for _ in range(RUNS):
        agent.run(config)
    flush()
    sys.stdout.write("told\n")
    sys.stdout.flush()
    told = len(calls)
    ids = [each["id"] for each in agent.memory.get_all(filters={"user_id": USER})["results"]]
    sys.stdin.readline()  # the receiver has noted where the runs' spans end
    truth = {
        "calls": told,
        "input_tokens": told * INPUT,
        "output_tokens": told * OUTPUT,
        "cost_usd": told * PRICE_USD,
        "memory_ids": ids,
        "bare_cpu_ms": bare_ms,
        "cpu_ms": cpu_ms(agent, config, flush),
        "versions": {each: version(each) for each in packages},
    }
    sys.stdout.write(json.dumps(truth) + "\n")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3:])

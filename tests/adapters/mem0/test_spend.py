"""What mem0's own models cost is told as part of the memory operation it was for."""

from __future__ import annotations

import json
import sys
import types
from collections.abc import Callable
from importlib import import_module
from typing import Any, TypedDict

import httpx
import openai
import pytest
from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import AIMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langgraph.graph import START, StateGraph
from mem0 import Memory
from mem0.configs.embeddings.base import BaseEmbedderConfig
from mem0.configs.llms.base import BaseLlmConfig
from mem0.configs.llms.openai import OpenAIConfig
from mem0.embeddings.openai import OpenAIEmbedding
from mem0.llms.openai import OpenAILLM

from mnemoscope.adapters.langgraph.runs.graph import runnable
from mnemoscope.adapters.mem0.adapter import ADAPTER
from mnemoscope.memory import context
from mnemoscope.memory.api import Event, Status
from mnemoscope.telemetry.event.phase import OperationPhases
from mnemoscope.telemetry.pricing.prices import Price, Prices
from tests.kit.bench import Bench, wrapping

guarded = wrapping(ADAPTER)

MAIL = "ada@example.com"
PRICES = Prices({"gpt-4o-mini": Price(input=1.0, output=2.0)})
FACT = json.dumps({"memory": [{"text": "likes tea", "event": "ADD"}]})
USED = {
    "input_tokens": 100,
    "output_tokens": 7,
    "total_tokens": 107,
    "input_token_details": {"cache_read": 40},
    "output_token_details": {"reasoning": 3},
}


class Scripted(BaseChatModel):
    """A LangChain model that finds the one fact, and says what it used."""

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def _generate(self, *_args: Any, **_kwargs: Any) -> ChatResult:
        said = AIMessage(FACT, usage_metadata=USED, response_metadata={"model_name": "gpt-4o-mini"})
        return ChatResult(generations=[ChatGeneration(message=said)])


def answer(_request: httpx.Request) -> httpx.Response:
    """Answer as OpenAI does."""
    return httpx.Response(
        200,
        json={
            "id": "c-1",
            "object": "chat.completion",
            "created": 1,
            "model": "gpt-4o-mini",
            "choices": [
                {
                    "index": 0,
                    "finish_reason": "stop",
                    "message": {"role": "assistant", "content": FACT},
                }
            ],
            "usage": {
                "prompt_tokens": 100,
                "completion_tokens": 7,
                "total_tokens": 107,
                "prompt_tokens_details": {"cached_tokens": 40},
                "completion_tokens_details": {"reasoning_tokens": 3},
            },
        },
    )


def openai_model(callback: Callable[..., Any] | None = None) -> OpenAILLM:
    """Return mem0's OpenAI model, whose service is a function."""
    model = OpenAILLM(OpenAIConfig(model="gpt-4o-mini", api_key="key", response_callback=callback))
    transport = httpx.MockTransport(answer)
    model.client = openai.OpenAI(api_key="key", http_client=httpx.Client(transport=transport))
    return model


def langchain_model() -> Any:
    """Return mem0's LangChain model. All it takes of ``langchain`` is one name of its core."""
    parts = ("langchain", "langchain.chat_models", "langchain.chat_models.base")
    modules = {name: types.ModuleType(name) for name in parts}
    modules["langchain.chat_models.base"].BaseChatModel = BaseChatModel  # type: ignore[attr-defined]  # see above
    with pytest.MonkeyPatch.context() as patch:
        for name, module in modules.items():
            patch.setitem(sys.modules, name, module)
        kind = import_module("mem0.llms.langchain").LangchainLLM
    return kind(BaseLlmConfig(model=Scripted()))


class Reranker:
    """Leaves the order as it is; asks its model, if it has one, about each document."""

    llm: Any = None

    @classmethod
    def of(cls, module: str) -> Any:
        """Return one whose class is in a module of mem0's."""
        made = type("Reranker", (cls,), {"__module__": f"mem0.reranker.{module}"})()
        made.config = types.SimpleNamespace(model="rank-1")
        return made

    def rerank(self, query: str, documents: list[Any], top_k: int | None = None) -> list[Any]:
        """Return *documents* with the same score."""
        for _each in documents if self.llm else ():
            self.llm.generate_response(messages=[{"role": "user", "content": query}])
        return [{**each, "rerank_score": 0.5} for each in documents][:top_k]


@pytest.fixture
def remembering(make_memory: Callable[..., Any], bench: Bench, kind: type) -> Callable[..., Any]:
    """Return a function that guards a memory with a model of its own, sync and async."""

    def made(
        model: Any = None, *, embedder: Any = None, reranker: Any = None, of: type = kind
    ) -> Any:
        memory = make_memory(of)
        memory.reranker = reranker
        memory.llm = model or memory.llm
        memory.embedding_model = embedder or memory.embedding_model
        return guarded(memory, bench, prices=PRICES)

    return made


async def added(memory: Any, done: Callable[[Any], Any], events: Any) -> tuple[Event, Event]:
    """Add a memory, and return the event of mem0's model call and that of the operation."""
    with context(tenant="acme", feature="reply"):
        await done(memory.add("I like tea", user_id=MAIL))
    chat, operation = (
        next(each for each in events() if each.operation == name)
        for name in ("chat", "create_memory")
    )
    return chat, operation


class TestKnown:
    @pytest.mark.parametrize("model", [openai_model, langchain_model])
    async def test_what_a_provider_says_is_counted(
        self, model: Callable[[], Any], remembering: Any, done: Any, events: Any
    ) -> None:
        """OpenAI's callback and LangChain's give tokens and so the cost."""
        chat, _operation = await added(remembering(model()), done, events)
        used = chat.usage

        assert used is not None
        assert (used.model, used.reported) == ("gpt-4o-mini", True)
        assert (used.input_tokens, used.output_tokens) == (100, 7)
        assert (used.cached_tokens, used.reasoning_tokens) == (40, 3)
        assert used.cost_usd == pytest.approx((100 * 1.0 + 7 * 2.0) / 1e6)

    async def test_the_model_that_was_asked_is_told_from_the_one_that_answered(
        self, remembering: Any, done: Any, events: Any
    ) -> None:
        """With what else is known of the call; mem0 asks by an alias, and a snapshot answers."""
        model = openai_model()
        model.config.model = "gpt-4o"
        chat, _operation = await added(remembering(model), done, events)

        used = chat.usage
        assert used is not None
        assert (used.requested_model, used.model) == ("gpt-4o", "gpt-4o-mini")
        details = used.details
        assert details is not None
        assert (details.response_id, details.finish_reasons) == ("c-1", ("stop",))
        assert (details.max_tokens, details.temperature, details.top_p) == (2_000, 0.1, 0.1)
        assert details.server == ("api.openai.com", 443)

    async def test_it_is_part_of_the_operation(
        self, remembering: Any, done: Any, events: Any
    ) -> None:
        """The call is a child of the operation's span, for the same person and feature."""
        chat, operation = await added(remembering(openai_model()), done, events)

        assert chat.trace.parent_span_id == operation.trace.span_id
        assert chat.trace.trace_id == operation.trace.trace_id
        assert (chat.tenant, chat.feature, chat.method) == ("acme", "reply", "add")
        assert chat.nested
        assert chat.subject is not None
        assert MAIL not in repr(chat)

    def test_embedders_by_openais_client_tell_their_tokens(
        self, remembering: Any, events: Any
    ) -> None:
        """mem0 drops what a response reports."""
        asked: list[int] = []

        def embed(request: httpx.Request) -> httpx.Response:
            given = json.loads(request.content)["input"]
            asked.append(len(given))
            data = [
                {"object": "embedding", "index": place, "embedding": [0.5] * 16}
                for place in range(len(given))
            ]
            used = {"prompt_tokens": 3 * len(given), "total_tokens": 3 * len(given)}
            said = {"object": "list", "data": data, "model": "text-embedding-9", "usage": used}
            return httpx.Response(200, json=said)

        embedder = OpenAIEmbedding(BaseEmbedderConfig(api_key="key", embedding_dims=16))
        http = httpx.Client(transport=httpx.MockTransport(embed))
        embedder.client = openai.OpenAI(api_key="key", http_client=http)
        memory = remembering(embedder=embedder, of=Memory)
        memory.search("which tea", filters={"user_id": MAIL})
        (told,) = (each for each in events() if each.operation == "embeddings")

        assert (told.usage.input_tokens, told.usage.reported) == (3 * sum(asked), True)
        assert (told.usage.model, told.usage.provider) == ("text-embedding-9", "openai")

    def test_in_a_node_they_are_the_nodes(
        self, remembering: Any, bench: Bench, events: Any
    ) -> None:
        """Also where no run of LangChain's tells of them."""

        class State(TypedDict, total=False):
            said: str

        memory = remembering(openai_model(), of=Memory)
        builder = StateGraph(State)
        builder.add_node("learn", lambda _state: memory.add("I like tea", user_id=MAIL) and {})
        builder.add_edge(START, "learn")
        runnable(builder.compile(), bench.priced(PRICES)).invoke({})
        memory.add("I like tea", user_id=MAIL)
        nodes = [each.usage.node for each in events() if each.operation == "chat"]

        assert nodes == ["learn", None]

    @pytest.mark.parametrize("provider", ["cohere", "zero_entropy"])
    def test_a_reranker_of_a_service_is_told(
        self, remembering: Any, events: Any, provider: str
    ) -> None:
        """A call that costs something and says no tokens; it is no phase besides."""
        memory = remembering(of=Memory, reranker=Reranker.of(f"{provider}_reranker"))
        memory.add("I like tea", user_id=MAIL)
        memory.search("which tea", filters={"user_id": MAIL}, rerank=True)
        told = [each for each in events() if each.operation == "rerank"]
        (search,) = (each for each in events() if each.operation == "search_memory")

        assert [(each.usage.provider, each.usage.model) for each in told] == [(provider, "rank-1")]
        assert not told[0].usage.reported
        assert told[0].trace.parent_span_id == search.trace.span_id
        assert "rerank" not in {each.name for each in search.part(OperationPhases).phases}

    def test_a_reranker_that_asks_a_model_tells_its_calls(
        self, remembering: Any, events: Any
    ) -> None:
        """Each, with what it used."""
        reranker = Reranker.of("llm_reranker")
        reranker.llm = openai_model()
        memory = remembering(of=Memory, reranker=reranker)
        memory.add("I like tea", user_id=MAIL)
        memory.search("which tea", filters={"user_id": MAIL}, rerank=True)
        chats = [each for each in events() if (each.operation, each.method) == ("chat", "search")]

        assert [each.usage.input_tokens for each in chats] == [100]

    async def test_the_hosts_own_callback_is_called(
        self, remembering: Any, done: Any, events: Any
    ) -> None:
        """A callback for responses that was set stays set."""
        seen: list[Any] = []
        await added(remembering(openai_model(lambda *given: seen.append(given))), done, events)

        assert len(seen) == 1

    async def test_a_model_used_elsewhere_too_is_not_heard_there(
        self, remembering: Any, events: Any
    ) -> None:
        """What the application itself asks of the same models is none of mem0's."""
        model, chained = openai_model(), langchain_model()
        remembering(model)
        remembering(chained)
        model.generate_response([{"role": "user", "content": "hi"}])
        chained.langchain_model.invoke("hi")

        assert events() == []

    def test_inside_a_watched_graph_it_is_counted_once(
        self, remembering: Any, bench: Bench, events: Any
    ) -> None:
        """A LangChain model that mem0 asks in a node is told by the graph, below the operation."""

        class State(TypedDict, total=False):
            said: str

        memory = remembering(langchain_model(), of=Memory)
        builder = StateGraph(State)
        builder.add_node("learn", lambda _state: memory.add("I like tea", user_id=MAIL) and {})
        builder.add_edge(START, "learn")
        runnable(builder.compile(), bench.priced(PRICES)).invoke({})
        (chat,) = (each for each in events() if each.operation == "chat")
        (operation,) = (each for each in events() if each.operation == "create_memory")

        assert chat.usage is not None
        assert (chat.usage.input_tokens, chat.usage.node) == (100, "learn")
        assert chat.trace.parent_span_id == operation.trace.span_id

    async def test_a_memory_guarded_twice_is_told_once(
        self, make_memory: Any, bench: Bench, done: Any, events: Any, kind: type
    ) -> None:
        """Guarding the same memory again does not count its models again."""
        memory = make_memory(kind)
        memory.llm = openai_model()
        guarded(memory, bench, prices=PRICES)
        await added(guarded(memory, bench, prices=PRICES), done, events)

        assert [each.operation for each in events()].count("chat") == 1


class TestUnknown:
    async def test_what_no_provider_says_is_unknown(
        self, remembering: Any, done: Any, events: Any
    ) -> None:
        """A call whose tokens nobody tells is told, with a cost that is unknown and not zero."""
        chat, _operation = await added(remembering(), done, events)

        assert chat.usage is not None
        assert not chat.usage.reported
        assert chat.usage.cost_usd is None
        assert chat.duration_s > 0

    async def test_an_embedder_of_a_service_is_unknown(
        self, remembering: Any, make_memory: Any, done: Any, events: Any
    ) -> None:
        """mem0 drops what embeddings used: each call says so."""
        local = make_memory().embedding_model
        remote = type("Remote", (type(local),), {"__module__": "mem0.embeddings.openai"})(
            local.config
        )
        await added(remembering(embedder=remote), done, events)
        calls = [each for each in events() if each.operation == "embeddings"]

        assert calls
        assert not any(each.usage.reported for each in calls)

    async def test_a_local_embedder_costs_nothing(
        self, remembering: Any, done: Any, events: Any
    ) -> None:
        """An embedder on this machine has no spend to tell of."""
        await added(remembering(), done, events)

        assert "embeddings" not in {each.operation for each in events()}

    async def test_a_model_that_fails(self, remembering: Any, done: Any, events: Any) -> None:
        """The error is the caller's; the event has its type."""
        model = openai_model()

        def refuses(_request: httpx.Request) -> httpx.Response:
            return httpx.Response(401, json={"error": {"message": MAIL}})

        transport = httpx.MockTransport(refuses)
        model.client = openai.OpenAI(api_key="key", http_client=httpx.Client(transport=transport))
        chat = None
        try:
            chat, _operation = await added(remembering(model), done, events)
        except Exception:  # noqa: BLE001 - mem0 may raise it or make do without
            chat = next(each for each in events() if each.operation == "chat")

        assert (chat.status, chat.error) == (Status.ERROR, "openai.AuthenticationError")
        assert MAIL not in repr(chat)

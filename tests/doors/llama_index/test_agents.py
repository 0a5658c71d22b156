"""An agent of LlamaIndex, as its own pages write one, with a guarded memory."""

from __future__ import annotations

import sys

import pytest
from llama_index.core.agent.workflow import FunctionAgent
from llama_index.core.base.llms.types import (
    ChatMessage,
    ChatResponse,
    CompletionResponse,
    ImageBlock,
    LLMMetadata,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
)
from llama_index.core.chat_engine import SimpleChatEngine
from llama_index.core.llms import CustomLLM
from llama_index.core.llms.callbacks import llm_chat_callback, llm_completion_callback
from llama_index.core.llms.mock import MockFunctionCallingLLM
from llama_index.core.memory import (
    BaseMemory,
    FactExtractionMemoryBlock,
    Memory,
    StaticMemoryBlock,
)
from llama_index.core.storage.chat_store import SimpleChatStore
from llama_index.core.storage.chat_store.sql import SQLAlchemyChatStore
from pydantic import Field
from sqlalchemy import NullPool
from sqlalchemy.exc import OperationalError
from sqlalchemy.ext.asyncio import create_async_engine

from mnemoscope.memory import ScopeError, context
from mnemoscope.memory.api import DataSubject
from tests.kit.hostile_ids import HOSTILE_IDS, check_apart, text_of

# Its agents look at all attributes of themselves.
pytestmark = pytest.mark.filterwarnings("ignore::pydantic.warnings.PydanticDeprecationWarning")
ADA = "ada.lovelace@example.com"
PHONE = "+44 20 7946 0958"


class Scripted(MockFunctionCallingLLM):
    """A model that answers in turn, with the usage that a provider reports, and keeps the input."""

    answers: list
    inputs: list = Field(default_factory=list)

    @property
    def metadata(self):
        """Return what it can do."""
        return LLMMetadata(is_function_calling_model=True, model_name="gpt-5-mini")

    def _next(self, messages):
        self.inputs.append(list(messages))
        blocks, given, answered = self.answers.pop(0)
        message = ChatMessage(role="assistant", blocks=blocks)
        usage = {"prompt_tokens": given, "completion_tokens": answered}
        return ChatResponse(message=message, raw={"usage": usage} if given else None)

    @llm_chat_callback()
    def chat(self, messages, **kwargs):
        """Answer."""
        return self._next(messages)

    @llm_chat_callback()
    async def achat(self, messages, **kwargs):
        """Answer."""
        return self._next(messages)

    @llm_chat_callback()
    async def astream_chat(self, messages, **kwargs):
        """Answer in one piece."""

        async def pieces():
            yield self._next(messages)

        return pieces()

    def get_tool_calls_from_response(self, response, error_on_no_tool_call=True, **kwargs):
        """Return the calls in its answer."""
        from llama_index.core.llms.llm import ToolSelection

        return [
            ToolSelection(
                tool_id=each.tool_call_id, tool_name=each.tool_name, tool_kwargs=each.tool_kwargs
            )
            for each in response.message.blocks
            if isinstance(each, ToolCallBlock)
        ]


def says(text, given=0, answered=0):
    """Return an answer of a model."""
    return [TextBlock(text=text)], given, answered


def calls(name, arguments, given=0, answered=0):
    """Return a call of a tool."""
    block = ToolCallBlock(tool_call_id="call_1", tool_name=name, tool_kwargs=arguments)
    return [block], given, answered


@pytest.fixture
def new_memory(tmp_path):
    """Return a maker of memories in a SQLite file: LlamaIndex closes no engine that has a pool."""

    def make(session="s", **options):
        url = f"sqlite+aiosqlite:///{tmp_path / 'chats.db'}"
        engine = create_async_engine(url, poolclass=NullPool)
        return Memory.from_defaults(session, async_engine=engine, **options)

    return make


def customer_of(session):
    """Return the customer in a key of a session."""
    return session.partition("/")[0]


def multiply(a: float, b: float) -> float:
    """Multiply two numbers."""
    return a * b


async def test_an_agent_with_memory_works_as_its_page_says(watch):
    """The quick start of agents and of memory: a second question is asked with the first."""
    watched = watch()
    llm = Scripted(
        answers=[calls("multiply", {"a": 1234, "b": 4567}), says("5,635,678"), says("By 4567")]
    )
    agent = FunctionAgent(
        tools=[multiply],
        llm=llm,
        system_prompt="You are a helpful assistant that can multiply two numbers.",
    )
    memory = watched.scope.guard(Memory.from_defaults(session_id="my_session", token_limit=40000))

    response = await agent.run("What is 1234 * 4567?", memory=memory)
    again = await agent.run("What did I multiply by?", memory=memory)

    assert str(response) == "5,635,678"
    assert str(again) == "By 4567"
    assert isinstance(memory, Memory)
    assert isinstance(memory, BaseMemory)
    assert memory.session_id == "my_session"
    roles = [each.role.value for each in llm.inputs[-1]]
    assert roles == ["system", "user", "assistant", "tool", "assistant", "user"]
    assert len(await memory.aget_all()) == 6
    await memory.sql_store._async_engine.dispose()


async def test_tokens_and_memory_operations_are_counted_once(watch, new_memory):
    """Each call of the model and of the memory: in spans, in Prometheus and in the trail."""
    watched = watch()
    before = {each: watched.sample("mnemoscope_tokens_total", type=each) for each in TOKENS}
    llm = Scripted(
        answers=[calls("multiply", {"a": 6, "b": 7}, 100, 10), says("42", 130, 20)],
    )
    agent = FunctionAgent(tools=[multiply], llm=llm)
    memory = watched.scope.guard(new_memory("c-42/sums"), owner=customer_of)

    with context(tenant="acme", feature="sums"):
        await agent.run("6 * 7?", memory=memory)

    after = {each: watched.sample("mnemoscope_tokens_total", type=each) for each in TOKENS}
    assert {each: after[each] - before[each] for each in TOKENS} == {"input": 230, "output": 30}
    chats = watched.spans("chat")
    assert [each.attributes["gen_ai.usage.input_tokens"] for each in chats] == [100, 130]
    assert [each.attributes["gen_ai.usage.output_tokens"] for each in chats] == [10, 20]
    assert {each.attributes["gen_ai.request.model"] for each in chats} == {"gpt-5-mini"}
    told = [each for each in watched.events() if each.store == "llama_index"]
    # The question, its history, after the tool's answer its history, and then all that was said.
    assert [(each.method, each.hits) for each in told] == [
        ("put", None), ("get", 1), ("get", 1), ("put_messages", None), ("get", 4),
    ]  # fmt: skip
    assert len(watched.spans("search_memory")) == 3
    assert len(watched.spans("upsert_memory")) == 2
    assert {each.feature for each in told} == {"sums"}
    assert {each.run.endswith("/sums") and "c-42" not in each.run for each in told} == {True}
    (spent,) = watched.scope.audit.spend("feature")
    assert (spent.name, spent.calls) == ("sums", 2)
    assert (spent.input_tokens, spent.output_tokens) == (230, 30)
    trail = [each.store for each in watched.scope.audit.history("c-42", "acme")]
    assert trail.count("llama_index") == len(told)


class Completing(CustomLLM):
    """A model that completes texts. Its chat is a completion, and the pages say to write it so."""

    fails: bool = False

    @property
    def metadata(self):
        """Return what it is."""
        return LLMMetadata(model_name="own")

    @llm_completion_callback()
    def complete(self, prompt, formatted=False, **kwargs):
        """Return a text."""
        if self.fails:
            raise ConnectionError(f"cannot send {prompt}")
        usage = {"input_tokens": 7, "output_tokens": 3}
        return CompletionResponse(text="Tea", raw={"usage": usage})

    @llm_completion_callback()
    def stream_complete(self, prompt, formatted=False, **kwargs):
        """Return it in pieces."""
        for each in ("T", "Tea"):
            yield CompletionResponse(
                text=each,
                delta="T",
                raw={"usage": None}
                if each == "T"
                else {"usage": {"input_tokens": 7, "output_tokens": 3}},
            )


def test_a_chat_that_is_a_completion_is_one_call(watch, new_memory):
    """Both tell of it. One that fails used what nobody tells, and has no event."""
    watched = watch()
    memory = watched.scope.guard(new_memory("s"))
    engine = SimpleChatEngine.from_defaults(llm=Completing(), memory=memory)

    assert str(engine.chat("What do I like?")) == "Tea"
    assert "".join(each.delta for each in Completing().stream_chat([ChatMessage("?")])) == "TT"
    with pytest.raises(ConnectionError):
        Completing(fails=True).chat([ChatMessage(ADA)])

    chats = [each for each in watched.events() if each.operation == "chat"]
    assert [(each.usage.input_tokens, each.usage.output_tokens) for each in chats] == [(7, 3)] * 2
    assert {each.usage.model for each in chats} == {"own"}
    assert ADA.encode() not in watched.held()
    assert [each.content for each in memory.get_all()] == ["What do I like?", "Tea"]


def test_the_latest_scope_that_guards_a_memory_counts_calls(watch, new_memory):
    """Of two scopes in one process one does; and none once it has closed."""
    first, second = watch(), watch()
    first.scope.guard(new_memory("s"))
    second.scope.guard(new_memory("s"))

    Completing().chat([ChatMessage("?")])
    counted = [len(each.events()) for each in (first, second)]
    second.scope.close()
    Completing().chat([ChatMessage("?")])

    assert counted == [0, 1]
    assert [len(each.sink.events) for each in (first, second)] == [0, 1]


class Away(SQLAlchemyChatStore):
    """A chat store whose database is down."""

    async def get_messages(self, *args, **kwargs):
        """Fail."""
        raise OperationalError("SELECT", {}, Exception(f"no route to the database of {ADA}"))

    async def add_message(self, key, message, **kwargs):
        """Fail."""
        raise OperationalError("INSERT", {}, Exception(str(message)))

    add_messages = add_message


async def test_an_agent_answers_while_its_database_is_down(watch):
    """The model is asked what the memory could not keep, redacted as it would have been."""
    watched = watch()
    llm = Scripted(answers=[calls("multiply", {"a": 6, "b": 7}), says("42"), says("Hello")])
    agent = FunctionAgent(tools=[multiply], llm=llm)
    bare = Memory.from_defaults("s", chat_store=Away("messages"))
    memory = watched.scope.guard(bare)

    response = await agent.run(f"I am {ADA}. What is 6 * 7?", memory=memory)
    await agent.run("Hi", memory=memory)

    assert str(response) == "42"
    assert [each.content for each in llm.inputs[0]] == ["I am <EMAIL_ADDRESS>. What is 6 * 7?"]
    assert [each.role.value for each in llm.inputs[1]] == ["user", "assistant", "tool"]
    assert llm.inputs[2][-1].content == "Hi"
    told = [each for each in watched.events() if each.store == "llama_index"]
    assert {(str(each.status), each.neutral) for each in told} == {("degraded", True)}
    assert ADA.encode() not in watched.held()
    with pytest.raises(OperationalError):
        await agent.run("Hi", memory=bare)


async def test_a_memory_that_is_back_answers_for_itself(watch, new_memory):
    """What was kept meanwhile is not given again."""
    watched = watch()
    bare = new_memory("s")
    memory = watched.scope.guard(bare)
    working, bare.sql_store = bare.sql_store, Away("messages")
    await memory.aput(ChatMessage("first"))
    assert [each.content for each in await memory.aget()] == ["first"]

    bare.sql_store = working
    await memory.aput(ChatMessage("second"))
    bare.sql_store = Away("messages")

    assert await memory.aget() == []


async def test_nothing_personal_is_in_the_database_or_the_sinks(watch, new_memory):
    """Of what was said, of tools' arguments and outputs, of what a provider adds: a canary each."""
    watched = watch()

    def look_up(mail: str) -> str:
        """Return what is known of somebody."""
        return f"Their phone is {PHONE}"

    llm = Scripted(answers=[calls("look_up", {"mail": ADA}), says(f"Call {PHONE}"), says("Done")])
    agent = FunctionAgent(tools=[look_up], llm=llm)
    memory = watched.scope.guard(new_memory())
    thinking = ThinkingBlock(content=f"of {ADA}", additional_information={"signature": "c2ln" * 9})
    said = ChatMessage(role="assistant", blocks=[thinking], additional_kwargs={"to": ADA})

    await memory.aput(said)
    response = await agent.run(f"Who is {ADA}?", memory=memory)
    await agent.run("And now?", memory=memory)

    assert str(response) == f"Call {PHONE}"
    for canary in (ADA, PHONE, "lovelace"):
        assert canary.encode() not in watched.held()
    assert "<EMAIL_ADDRESS>" in str(await memory.aget_all())
    _, question, call, output, *_ = llm.inputs[-1]
    assert question.content == "Who is <EMAIL_ADDRESS>?"
    assert call.blocks[0].tool_call_id == output.additional_kwargs["tool_call_id"] == "call_1"
    assert call.blocks[0].tool_name == "look_up"
    (kept,) = llm.inputs[-1][0].blocks
    assert kept.additional_information == {"signature": "c2ln" * 9}
    assert said.blocks[0].content == f"of {ADA}"


@pytest.mark.parametrize("media", [False, True])
async def test_pictures_are_kept_where_that_is_wanted(watch, media, new_memory):
    """They cannot be redacted."""
    watched = watch()
    memory = watched.scope.guard(new_memory("s"), media=media)
    picture = ImageBlock(image=b"\x89PNG\r\n\x1a\n", image_mimetype="image/png")

    await memory.aput(ChatMessage(role="user", blocks=[TextBlock(text="This?"), picture]))

    (message,) = await memory.aget()
    kinds = [type(each) for each in message.blocks]
    assert kinds == ([TextBlock, ImageBlock] if media else [TextBlock, TextBlock])
    assert ("cannot be redacted" in str(message)) is not media


async def test_memory_blocks_are_given_redacted_messages(watch, new_memory):
    """What a block asks its model, and what it keeps, has been redacted before."""
    watched = watch()
    llm = Scripted(answers=[says("<facts><fact>Reads mail</fact></facts>", 50, 5)])
    facts = FactExtractionMemoryBlock(llm=llm)
    static = StaticMemoryBlock(static_content="Be kind.")
    bare = new_memory("s", memory_blocks=[static, facts], token_limit=40)
    memory = watched.scope.guard(bare)

    await memory.aput(ChatMessage(f"I am {ADA}, " + "and I read my mail. " * 8))
    await memory.aput(ChatMessage("noted", role="assistant"))
    await memory.aput(ChatMessage("Hello " * 8))

    assert facts.facts == ["Reads mail"]
    assert ADA not in str(llm.inputs)
    assert "Reads mail" in str(await memory.aget())
    (chat,) = [each for each in watched.events() if each.operation == "chat"]
    assert chat.usage.input_tokens == 50


async def test_a_customers_sessions_are_exported_and_erased(watch, new_memory):
    """Messages that were archived, too, and the rows in the database's file."""
    watched = watch()
    memories = [
        watched.scope.guard(
            new_memory(session, token_limit=40, memory_blocks=blocks), owner=customer_of
        )
        for session, blocks in (("c-1/a", [StaticMemoryBlock(static_content="x")]), ("c-2/a", []))
    ]
    store = memories[0].sql_store
    for word, memory in zip(("oolong", "rooibos"), memories, strict=True):
        await memory.aput(ChatMessage(f"{word} " * 30))
        await memory.aput(ChatMessage("noted", role="assistant"))
        await memory.aput(ChatMessage(f"{word} " * 30))
    (data, _), _other = watched.scope.subject_data.clients()
    subject = DataSubject(customer="c-1")

    assert len(await memories[0].aget()) < 3
    assert [each.content[:12] for each in (await data.page(subject)).records] == [
        "user: oolong", "assistant: n", "user: oolong",
    ]  # fmt: skip
    erased = await data.erase(subject)

    assert erased.removed == 3
    assert "memory blocks" in erased.messages[0]
    assert await store.get_keys() == ["c-2/a"]
    assert (await data.page(subject)).records == ()
    (path,) = await data.files()
    assert b"oolong" not in path.read_bytes()
    assert b"rooibos" in path.read_bytes()


def test_whose_a_session_is_is_not_guessed(watch, new_memory):
    """Without an owner nothing is exported, and nothing said to be gone."""
    watched = watch()
    guarded = [watched.scope.guard(each) for each in (new_memory("s"), SimpleChatStore())]

    unavailable = [each.unavailable for each, _ in watched.scope.subject_data.clients()]

    assert ["owner=" in each for each in unavailable] == [True] * len(guarded)


async def test_a_session_of_another_customer_is_refused(watch, new_memory):
    """Where tenancy is enforced, of a memory as of a chat store; and one that is nobody's."""
    scope = watch(tenancy="enforce").scope
    memory = scope.guard(new_memory("c-1/a"), owner=customer_of)
    store = scope.guard(SimpleChatStore(), owner=customer_of)
    nobodys = scope.guard(new_memory("s"))
    await memory.aput(ChatMessage("tea"))
    store.add_message("c-1/a", ChatMessage("tea"))
    store.add_message("c-2/a", ChatMessage("coffee"))

    with context(customer="c-2"):
        for refused in (memory.get, memory.reset, lambda: store.get_messages("c-1/a"), nobodys.get):
            with pytest.raises(ScopeError):
                refused()
        assert store.get_keys() == ["c-2/a"]
    with context(customer="c-1"):
        assert [each.content for each in memory.get()] == ["tea"]
    with pytest.raises(ScopeError):
        store.get_messages("*/a")


def test_a_second_memory_is_wrapped_without_a_look_for_other_clients(watch, new_memory):
    """Libraries that are not installed are looked for once: a memory is made for each session."""
    scope, looked_for = watch().scope, []

    class Spy:
        def find_spec(self, name, path=None, target=None):
            looked_for.append(name)

    scope.guard(new_memory("first"))
    sys.meta_path.insert(0, Spy())
    try:
        scope.guard(new_memory("second"))
    finally:
        del sys.meta_path[0]

    assert [each for each in looked_for if each.partition(".")[0] in {"mem0", "crewai"}] == []


def test_a_wrong_message_is_the_callers_mistake(watch, new_memory):
    """As without a guard."""
    memory = watch().scope.guard(new_memory("s"))
    with pytest.raises(AttributeError):
        memory.put("no message")


TOKENS = ("input", "output")


@pytest.mark.parametrize("tenancy", ["observe", "enforce"])
async def test_customers_with_ids_of_any_kind_are_apart(watch, tmp_path, tenancy):
    """Nobody's conversation is another's, whatever a key makes of an id."""
    watched, uri = watch(tenancy=tenancy), f"sqlite+aiosqlite:///{tmp_path / 'chats.db'}"
    bare = SQLAlchemyChatStore(table_name="chats", async_database_uri=uri)
    store = watched.scope.guard(bare, owner=lambda key: key.rpartition("|")[0])
    for each in HOSTILE_IDS:
        with context(customer=each):
            await store.add_message(f"{each}|1", ChatMessage(text_of(each)))

    await check_apart(watched.scope.subject_data.named()["llama_index"])

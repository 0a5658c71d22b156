"""History providers of Microsoft's Agent Framework behind a guard, in runs of its agents."""

from __future__ import annotations

import json
from importlib.metadata import entry_points

import pytest
from agent_framework import (
    Agent,
    BaseChatClient,
    ChatResponse,
    ChatResponseUpdate,
    Content,
    FileHistoryProvider,
    FunctionInvocationLayer,
    HistoryProvider,
    InMemoryHistoryProvider,
    Message,
    ResponseStream,
)

from mnemoscope.memory import ScopeError, context
from mnemoscope.memory.api import DataSubject
from mnemoscope.memory.subject_data.records import UncertainOwnerError
from mnemoscope.memory.testing import AdapterCase, check_adapter, scope_for_tests
from tests.kit.hostile_ids import HOSTILE_IDS, check_apart, text_of

pytestmark = pytest.mark.filterwarnings("ignore::FutureWarning")

(FOUND,) = entry_points(group="mnemoscope.store_adapters", name="agent_framework")
ADAPTER = FOUND.load()
ADA = "ada.lovelace@example.com"
PHONE = "+44 20 7946 0958"


def owner_of(session_id: str | None) -> str | None:
    """Return whose session it is: ids are a customer's, a colon, and a number."""
    return None if session_id is None else session_id.partition(":")[0]


class Scripted(FunctionInvocationLayer, BaseChatClient):
    """A chat client that answers with the steps that it is given, contents and tokens each."""

    def __init__(self, *steps):
        super().__init__()
        self.steps, self.calls = list(steps), []

    def _inner_get_response(self, *, messages, stream, options, **kwargs):
        self.calls.append([each.text for each in messages])
        contents, used = self.steps.pop(0)

        async def answer():
            said = [Message("assistant", contents)]
            return ChatResponse(messages=said, usage_details=used, model="gpt-5-mini")

        async def updates():
            told = [*contents, Content.from_usage(used)]
            yield ChatResponseUpdate(role="assistant", contents=told, model="gpt-5-mini")

        return (
            ResponseStream(updates(), finalizer=ChatResponse.from_updates) if stream else answer()
        )


def text(said):
    """Return a step that says something, with tokens."""
    return [Content.from_text(said)], {"input_token_count": 12, "output_token_count": 4}


def calling(name, **arguments):
    """Return a step that calls a tool, with tokens."""
    call = Content.from_function_call("call_1", name, arguments=json.dumps(arguments))
    return [call], {"input_token_count": 100, "output_token_count": 10}


@pytest.mark.parametrize("kind", ["file", "memory"])
async def test_a_conversation_goes_on_over_two_turns(watch, tmp_path, kind):
    """The framework's second lesson: one session, and the second turn knows of the first."""
    watched = watch()
    bare = (
        FileHistoryProvider(tmp_path / "history") if kind == "file" else InMemoryHistoryProvider()
    )
    history = watched.scope.guard(bare, customer=owner_of)
    client = Scripted(text("Hello"), text("You hike"))
    agent = Agent(client=client, name="ConversationAgent", context_providers=[history])

    session = agent.create_session(session_id="c-42:1")
    await agent.run("I love hiking", session=session)
    result = await agent.run("What do you remember about me?", session=session)

    assert result.text == "You hike"
    assert client.calls[1] == ["I love hiking", "Hello", "What do you remember about me?"]
    assert isinstance(history, HistoryProvider)
    assert isinstance(history, type(bare))


async def test_tokens_and_memory_operations_are_counted_once(watch, tmp_path):
    """One event for the model calls of a run, one for each call of the provider."""
    watched = watch()
    tokens = ("input", "output", "cached", "reasoning")
    before = {each: watched.sample("mnemoscope_tokens_total", type=each) for each in tokens}

    def weather(city: str) -> str:
        """Return the weather."""
        return "18 degrees"

    used = {"input_token_count": 130, "output_token_count": 20}
    used |= {"cache_read_input_token_count": 90, "reasoning_output_token_count": 8}
    client = Scripted(calling("weather", city="London"), ([Content.from_text("Mild")], used))
    history = watched.scope.guard(FileHistoryProvider(tmp_path / "history"), customer=owner_of)
    second = watched.scope.guard(
        InMemoryHistoryProvider(source_id="copy", load_messages=False), customer=owner_of
    )
    agent = Agent(
        client=client, name="Forecaster", tools=[weather], context_providers=[history, second]
    )

    with context(tenant="acme", feature="trips"):
        result = await agent.run("London?", session=agent.create_session(session_id="c-42:1"))

    after = {each: watched.sample("mnemoscope_tokens_total", type=each) for each in tokens}
    assert {each: after[each] - before[each] for each in tokens} == {
        "input": 230,
        "output": 30,
        "cached": 90,
        "reasoning": 8,
    }
    assert result.usage_details["input_token_count"] == 230
    told = [(each.store, each.method, each.hits) for each in watched.events()]
    assert sorted(told, key=str) == [
        ("agent_framework", "get_messages", 0),
        ("agent_framework", "save_messages", None),
        ("agent_framework", "save_messages", None),
        ("agent_framework.model", "run", None),
    ]
    assert all("c-42" not in (each.run or "") for each in watched.events())
    assert all(each.duration_s > 0 for each in watched.events())
    (chat,) = watched.spans("chat")
    assert chat.attributes["gen_ai.usage.input_tokens"] == 230
    assert chat.attributes["gen_ai.request.model"] == "gpt-5-mini"
    (spent,) = watched.scope.audit.spend("feature")
    assert (spent.name, spent.input_tokens, spent.output_tokens) == ("trips", 230, 30)


async def test_a_run_that_streams_is_counted_as_well(watch, tmp_path):
    """Its response is known when the stream has ended."""
    watched = watch()
    history = watched.scope.guard(FileHistoryProvider(tmp_path / "history"), customer=owner_of)
    agent = Agent(client=Scripted(text("Tea")), name="A", context_providers=[history])

    session = agent.create_session(session_id="c-42:1")
    async for _ in agent.run("?", session=session, stream=True):
        pass

    (event,) = [each for each in watched.events() if each.operation == "chat"]
    assert (event.usage.input_tokens, event.usage.output_tokens, event.usage.node) == (12, 4, "A")
    assert [each.text for each in await history.get_messages("c-42:1")] == ["?", "Tea"]


async def test_an_agent_answers_while_its_history_is_away(watch, tmp_path):
    """History is empty, messages are counted as lost, and the run ends as it would have."""

    class Away(FileHistoryProvider):
        async def get_messages(self, session_id, *, state=None, **kwargs):
            raise OSError(f"cannot read what {ADA} said")

        async def save_messages(self, session_id, messages, *, state=None, **kwargs):
            raise OSError("disk full")

    watched = watch()
    history = watched.scope.guard(Away(tmp_path / "history"), customer=owner_of)
    agent = Agent(client=Scripted(text("Hello")), name="A", context_providers=[history])

    result = await agent.run(f"I am {ADA}", session=agent.create_session(session_id="c-42:1"))

    assert result.text == "Hello"
    calls = [each for each in watched.events() if each.operation != "chat"]
    assert {(str(each.status), each.neutral) for each in calls} == {("degraded", True)}
    assert ADA.encode() not in watched.held()


async def test_nothing_personal_is_in_the_history_or_the_sinks(watch, tmp_path):
    """Neither of what was said, nor of tool calls and results: a canary in each place."""

    def look_up(mail: str) -> str:
        """Return what is known of somebody."""
        return f"Their phone is {PHONE}"

    watched = watch()
    history = watched.scope.guard(FileHistoryProvider(tmp_path / "history"), customer=owner_of)
    client = Scripted(calling("look_up", mail=ADA), text(f"I call {PHONE}"), text("Done"))
    agent = Agent(client=client, name="A", tools=[look_up], context_providers=[history])
    session = agent.create_session(session_id="c-42:1")

    first = await agent.run(f"Who is {ADA}?", session=session)
    await agent.run("And now?", session=session)

    assert first.text == f"I call {PHONE}"
    for canary in (ADA, PHONE, "lovelace"):
        assert canary.encode() not in watched.held()
    stored = await history.get_messages("c-42:1")
    kinds = [[part.type for part in each.contents] for each in stored]
    assert kinds[:4] == [["text"], ["function_call"], ["function_result"], ["text"]]
    assert stored[1].contents[0].call_id == stored[2].contents[0].call_id == "call_1"
    assert stored[1].contents[0].name == "look_up"
    assert stored[0].text == "Who is <EMAIL_ADDRESS>?"


PARTS = {
    "text": Content.from_text(ADA),
    "a result": Content.from_function_result("c", result={"mail": [ADA]}),
    "arguments": Content.from_function_call("c", "f", arguments={"to": ADA}),
    "arguments as text": Content.from_function_call("c", "f", arguments=f'{{"to": "{ADA}"}}'),
    "arguments twice": Content.from_function_call("c", "f", arguments=f'{{"a": "{ADA}", "a": 1}}'),
    "a name": Content.from_function_call("c", ADA, arguments="{}"),
    "a file": Content.from_data(ADA.encode(), media_type="text/plain"),
    "properties": Content.from_text("x", additional_properties={"note": ADA}),
    "raw": Content.from_text("x", raw_representation=ADA),
    "an error": Content.from_error(message=ADA, error_code="e", error_details=ADA),
}


@pytest.mark.parametrize("place", PARTS)
async def test_a_message_is_redacted_in_each_place(place, tmp_path):
    """And stays a message of its kind."""
    with scope_for_tests() as (scope, _):
        state = {}
        history = scope.guard(InMemoryHistoryProvider())
        message = Message("user", [PARTS[place]], author_name=ADA, raw_representation=ADA)
        await history.save_messages("s", [message], state=state)
        (stored,) = state["messages"]

    assert "lovelace" not in json.dumps(stored.to_dict())
    assert "lovelace" not in repr([vars(each) for each in stored.contents])
    assert stored.raw_representation is None
    assert ADA in message.author_name
    if place == "a file":
        assert stored.text == "[attachment withheld]"
    else:
        assert [each.type for each in stored.contents] == [PARTS[place].type]


def test_the_provider_keeps_the_contract(tmp_path, monkeypatch):
    """All that is asked of an adapter: events, redaction, failing, two customers, erasure."""
    # The contract looks for what is found in its repr, which a message's own does not show.
    monkeypatch.setattr(Message, "__repr__", lambda message: repr(message.to_dict()))
    folders = iter(range(10_000))
    check_adapter(
        AdapterCase(
            adapter=ADAPTER,
            make_client=lambda: FileHistoryProvider(tmp_path / f"{next(folders)}"),
            calls={
                "save_messages": lambda said: {
                    "session_id": "c-42:1",
                    "messages": [Message("user", [said])],
                },
                "get_messages": lambda said: {"session_id": "c-42:1"},
            },
            not_called=dict.fromkeys(("clear", "close", "aclose"), "of other providers"),
            options={"customer": owner_of},
            customer="c-42",
        )
    )


async def test_a_customer_is_exported_and_erased_with_all_their_sessions(watch, tmp_path):
    """By the names of the files, also of ids that no file can have as its name."""
    watched = watch()
    bare = FileHistoryProvider(tmp_path / "history")
    for name in ("c-42:1", "c-42:two/../x", "c-7:1", "c-42"):
        await bare.save_messages(name, [Message("user", [f"oolong for {name}"])])
    _history = watched.scope.guard(bare, customer=owner_of)

    provider = watched.scope.subject_data.named()["agent_framework"]
    page = await provider.page(DataSubject(customer="c-42"))
    assert [each.id for each in page.records] == ["c-42", "c-42:1", "c-42:two/../x"]
    assert "oolong for c-42:1" in repr(page.records[1].content)
    assert (await provider.erase(DataSubject(customer="c-42"))).removed == 3
    assert await bare.get_messages("c-42:1") == []
    assert len(await bare.get_messages("c-7:1")) == 1
    (tmp_path / "history" / "~session-hashed!.jsonl").write_text("")
    with pytest.raises(UncertainOwnerError, match="does not tell"):
        await provider.page(DataSubject(customer="c-42"))


@pytest.mark.parametrize("tenancy", ["observe", "enforce"])
async def test_customers_with_ids_of_any_kind_are_apart(watch, tmp_path, tenancy):
    """Nobody's conversation is another's, whatever the name of a file makes of an id."""
    watched, ids = watch(tenancy=tenancy), [each for each in HOSTILE_IDS if len(each) < 99]
    bare = FileHistoryProvider(tmp_path / "history")
    history = watched.scope.guard(bare, customer=lambda own: own and own.rpartition("|")[0])
    for each in ids:
        with context(customer=each):
            await history.save_messages(f"{each}|1", [Message("user", [text_of(each)])])

    await check_apart(watched.scope.subject_data.named()["agent_framework"], ids)


async def test_another_customers_session_is_refused_where_tenancy_is_enforced(watch, tmp_path):
    """By the session's id and the context, before the file is read."""
    watched = watch(tenancy="enforce")
    history = watched.scope.guard(FileHistoryProvider(tmp_path / "history"), customer=owner_of)
    with context(customer="c-42"):
        await history.save_messages("c-42:1", [Message("user", ["tea"])])

    with context(customer="c-7"), pytest.raises(ScopeError, match="another customer"):
        await history.get_messages("c-42:1")
    with pytest.raises(ScopeError, match="names no customer"):
        await history.get_messages(None)

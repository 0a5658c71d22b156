"""A conversation of the OpenAI Agents SDK, as its own pages write one, in a guarded session."""

from __future__ import annotations

import pytest
from agents import Agent, RunHooks, Runner, SQLiteSession, Usage, function_tool
from agents.lifecycle import RunHooksBase
from agents.testing import ModelStep, ScriptedModel, assistant_message, function_call
from openai.types.responses.response_usage import InputTokensDetails, OutputTokensDetails

from mnemoscope.memory import context

ADA = "ada.lovelace@example.com"
PHONE = "+44 20 7946 0958"


def used(given: int, answered: int, cached: int = 0, reasoned: int = 0) -> Usage:
    """Return the usage of one request."""
    return Usage(
        requests=1,
        input_tokens=given,
        output_tokens=answered,
        total_tokens=given + answered,
        input_tokens_details=InputTokensDetails(cached_tokens=cached, cache_write_tokens=0),
        output_tokens_details=OutputTokensDetails(reasoning_tokens=reasoned),
    )


def scripted(*steps: tuple[list, Usage]) -> ScriptedModel:
    """Return a model that answers with these steps, one after the other."""
    model = ScriptedModel([ModelStep(output=output, usage=usage) for output, usage in steps])
    model.model = "gpt-5-mini"
    return model


async def test_a_conversation_goes_on_over_three_turns(watch):
    """The quick start of the SDK: the second and third question are asked with the first."""
    watched = watch()
    model = scripted(
        ([assistant_message("In San Francisco")], used(11, 5)),
        ([assistant_message("California")], used(29, 3, cached=7)),
        ([assistant_message("About 39 million")], used(41, 9, reasoned=2)),
    )
    agent = Agent(name="Assistant", instructions="Reply very concisely.", model=model)

    session = watched.scope.session(SQLiteSession("conversation_123"), customer="c-42")
    hooks = watched.scope.guard(RunHooks())

    await Runner.run(agent, "What city has the Golden Gate?", session=session, hooks=hooks)
    await Runner.run(agent, "What state is it in?", session=session, hooks=hooks)
    result = await Runner.run(agent, "How many live there?", session=session, hooks=hooks)

    assert result.final_output == "About 39 million"
    assert [len(each.input) for each in model.calls] == [1, 3, 5]
    assert len(await session.get_items()) == 6
    assert isinstance(session, SQLiteSession)
    assert isinstance(hooks, RunHooksBase)


async def test_tokens_and_memory_operations_are_counted_once(watch):
    """Each request of the model and call of the session, in spans, Prometheus and the trail."""
    watched = watch()
    tokens = ("input", "output", "cached", "reasoning")
    before = {each: watched.sample("mnemoscope_tokens_total", type=each) for each in tokens}

    @function_tool
    def weather(city: str) -> str:
        """Return the weather."""
        return "18 degrees"

    model = scripted(
        ([function_call("weather", {"city": "London"}, call_id="call_1")], used(100, 10)),
        ([assistant_message("Mild")], used(130, 20, cached=90, reasoned=8)),
    )
    agent = Agent(name="Forecaster", model=model, tools=[weather])
    session = watched.scope.session(SQLiteSession("trip-7"), customer="c-42")
    hooks = watched.scope.guard(RunHooks())

    with context(tenant="acme", customer="c-42", feature="trips"):
        result = await Runner.run(agent, "How is London?", session=session, hooks=hooks)

    assert result.final_output == "Mild"
    after = {each: watched.sample("mnemoscope_tokens_total", type=each) for each in tokens}
    counted = {each: after[each] - before[each] for each in tokens}
    assert counted == {"input": 230, "output": 30, "cached": 90, "reasoning": 8}
    told = [
        (each.store, each.method, each.hits, each.feature, each.run) for each in watched.events()
    ]
    model_calls = [each for each in told if each[0] == "openai_agents.model"]
    session_calls = [each for each in told if each[0] == "openai_agents"]
    assert model_calls == [("openai_agents.model", "run", None, "trips", None)] * 2
    assert {each[3:] for each in session_calls} == {("trips", "trip-7")}
    assert [each[1] for each in session_calls][:2] == ["get_items", "add_items"]
    assert all(e.duration_s > 0 for e in watched.events() if e.operation == "chat")
    chats = watched.spans("chat")
    assert [each.attributes["gen_ai.usage.input_tokens"] for each in chats] == [100, 130]
    assert [each.attributes["gen_ai.usage.output_tokens"] for each in chats] == [10, 20]
    assert {each.attributes["gen_ai.request.model"] for each in chats} == {"gpt-5-mini"}
    assert len(watched.spans("search_memory")) == len([e for e in told if e[1] == "get_items"])
    (spent,) = watched.scope.audit.spend("feature")
    assert (spent.name, spent.calls, spent.input_tokens, spent.output_tokens) == (
        "trips",
        2,
        230,
        30,
    )


async def test_a_run_that_streams_is_counted_as_well(watch):
    """Its hooks are called when the stream has ended."""
    watched = watch()
    model = scripted(([assistant_message("Tea")], used(12, 4)))
    hooks = watched.scope.guard(RunHooks())
    session = watched.scope.session(SQLiteSession("s"), customer="c-42")

    result = Runner.run_streamed(Agent(name="A", model=model), "?", session=session, hooks=hooks)
    async for _ in result.stream_events():
        pass

    (event,) = [each for each in watched.events() if each.operation == "chat"]
    assert (event.usage.input_tokens, event.usage.output_tokens, event.usage.node) == (12, 4, "A")
    assert result.context_wrapper.usage.total_tokens == 16


async def test_the_hooks_of_a_user_are_called_as_before(watch):
    """Guarded, they are what they were."""
    watched = watch()
    called = []

    class Own(RunHooks):
        async def on_llm_start(self, context, agent, system_prompt, input_items):
            called.append("start")

        async def on_llm_end(self, context, agent, response):
            called.append(response.usage.total_tokens)

        async def on_agent_end(self, context, agent, output):
            called.append(output)

    hooks = watched.scope.guard(Own(), model="gpt-5")
    model = scripted(([assistant_message("Tea")], used(12, 4)))
    await Runner.run(Agent(name="A", model=model), "?", hooks=hooks)

    assert called == ["start", 16, "Tea"]
    (event,) = watched.events()
    assert event.usage.model == "gpt-5"
    assert event.usage.cost_usd is not None


async def test_what_no_model_reports_is_unknown(watch):
    """A response without usage is no response of no tokens."""
    watched = watch()
    hooks = watched.scope.guard(RunHooks())
    await Runner.run(
        Agent(name="A", model=scripted(([assistant_message("Tea")], Usage()))), "?", hooks=hooks
    )

    (event,) = watched.events()
    assert (event.usage.reported, event.usage.cost_usd) == (False, None)


class Away(SQLiteSession):
    """A session whose database is down."""

    async def get_items(self, limit=None):
        raise OSError(f"cannot reach the database of {ADA}")

    async def add_items(self, items):
        raise OSError(f"cannot store {items}")


async def test_an_agent_answers_while_its_database_is_down(watch):
    """History is empty, new items are counted as lost, and the run ends as it would have."""
    watched = watch()
    model = scripted(([assistant_message("Hello")], used(10, 2)))
    session = watched.scope.session(Away("s"), customer="c-42")

    result = await Runner.run(Agent(name="A", model=model), f"I am {ADA}", session=session)

    assert result.final_output == "Hello"
    assert {(str(each.status), each.neutral) for each in watched.events()} == {("degraded", True)}
    assert ADA.encode() not in watched.held()
    with pytest.raises(OSError, match="cannot reach"):
        await Runner.run(Agent(name="A", model=model), "?", session=Away("s"))


async def test_nothing_personal_is_in_the_database_or_the_sinks(watch, tmp_path):
    """Neither of what was said, nor of tool calls and outputs: a canary in each place."""
    watched = watch()

    @function_tool
    def look_up(mail: str) -> str:
        """Return what is known of somebody."""
        return f"Their phone is {PHONE}"

    model = scripted(
        ([function_call("look_up", {"mail": ADA}, call_id="call_9")], used(1, 1)),
        ([assistant_message(f"I will write to {ADA} and call {PHONE}")], used(1, 1)),
        ([assistant_message("Done")], used(1, 1)),
    )
    agent = Agent(name="A", model=model, tools=[look_up])
    path = tmp_path / "conversations.db"
    inner = SQLiteSession("user_123", path)
    session = watched.scope.session(inner, customer="c-42")

    first = await Runner.run(agent, f"Who is {ADA}?", session=session)
    await Runner.run(agent, "And now?", session=session)

    assert first.final_output == f"I will write to {ADA} and call {PHONE}"
    for canary in (ADA, PHONE, "lovelace"):
        assert canary.encode() not in watched.held()
    again = model.calls[-1].input
    kinds = [each.get("type", each.get("role")) for each in again]
    assert kinds == ["user", "function_call", "function_call_output", "message", "user"]
    assert again[1]["call_id"] == again[2]["call_id"] == "call_9"
    assert again[1]["name"] == "look_up"
    assert again[0]["content"] == "Who is <EMAIL_ADDRESS>?"
    inner.close()

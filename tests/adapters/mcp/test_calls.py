"""Calls of tools: what is redacted, checked, retried, disabled, pinned, and how they fail."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager, suppress
from typing import Any

import pytest
from fastmcp import Client, FastMCP
from fastmcp.exceptions import ToolError
from fastmcp.server.middleware import Middleware
from mcp.types import TextContent

from mnemoscope.memory import (
    ConfigurationError,
    Mnemoscope,
    Origin,
    Role,
    Roles,
    Trust,
    UnsupportedClientError,
    context,
)
from mnemoscope.memory.testing import scope_for_tests
from tests.adapters.mcp.conftest import through_client
from tests.kit.mcp_servers import (
    INPUTS,
    NUMBER,
    TEXT,
    exchange,
    notes_server,
    over_http,
    takes,
    tool,
)

ADA = "ada@example.com"


async def test_a_guarded_client_is_a_client(scope):
    """An instance of its class, which libraries that check are satisfied with."""
    assert isinstance(scope.mcp(Client(notes_server())), Client)


def test_what_is_no_client_is_refused(scope):
    """A mistake is told when it is made."""
    with pytest.raises(UnsupportedClientError, match="ClientSession"):
        scope.mcp(object())


def test_a_class_that_is_none_is_refused(scope):
    """A mistake is told when it is made."""
    with pytest.raises(ConfigurationError, match="expected one of forget, recall, remember"):
        scope.mcp(Client(notes_server()), classes={"search": "read"})


async def test_arguments_are_redacted_before_the_server_has_them(door, scope):
    """Names of parameters stay as they are."""
    asked = tool()
    async with door(scope, notes_server(asked)) as ask:
        await ask("search", query=f"mail to {ADA}")

    assert ADA not in json.dumps(asked.calls)
    assert list(asked.calls[0]) == ["query"]


async def test_names_that_no_server_declares_are_redacted(door, scope):
    """A tool that takes any parameters is given what a model calls them."""
    asked = tool(parameters={"type": "object", "properties": {}, "additionalProperties": True})
    async with door(scope, notes_server(asked)) as ask:
        await ask("search", **{ADA: "writes often", "topic": "tea"})

    assert ADA not in json.dumps(asked.calls)
    assert set(asked.calls[0].values()) == {"writes often", "tea"}
    assert "topic" in asked.calls[0]


async def test_results_are_redacted_before_the_agent_has_them(door, scope):
    """Text and structured content alike."""
    answered = tool(answers=[{"found": [f"mail to {ADA}"]}])
    async with door(scope, notes_server(answered)) as ask:
        answer = await ask("search", query="mail")

    assert not answer.failed
    assert ADA not in answer.text
    assert "mail to" in answer.text


async def test_long_results_are_redacted_too(scope):
    """Those that are redacted on a thread."""
    text = f"mail to {ADA} " + "and tea " * 2_000
    async with scope.mcp(Client(notes_server(tool(answers=[{"found": [text]}])))) as client:
        result = await client.call_tool("search", {"query": "mail"})

    assert ADA not in repr(result)
    assert "and tea" in repr(result.data)


async def test_the_error_of_a_tool_is_redacted(scope):
    """What a server says as it fails may quote what it was given."""
    failing = tool(answers=[ToolError(f"no mail for {ADA}")])
    async with through_client(scope, notes_server(failing)) as ask:
        answer = await ask("search", query="mail")

    assert answer.failed
    assert ADA not in answer.text


async def test_a_call_is_an_event_by_the_conventions(scope, events):
    """``execute_tool``, named by the tool, in the class that the server's hint says."""
    async with through_client(scope, notes_server(), server="notes") as ask:
        with context(customer="c-1", agent="desk"):
            await ask("search", query="tea")

    (event,) = events()
    assert (event.store, event.method, event.collection) == ("mcp.notes", "search", "search")
    assert (event.op_class, event.status, event.hits) == ("recall", "ok", 2)
    attributes = event.parts[0].attributes()
    assert attributes["gen_ai.tool.name"] == "search"
    assert attributes["mcp.method.name"] == "tools/call"


async def test_a_tool_that_says_that_it_failed_is_an_error(scope, events):
    """Its answer is handed on, and its server is none that is away."""
    asked = tool(answers=[ToolError("no such note")])
    async with through_client(scope, notes_server(asked)) as ask:
        answers = [await ask("search", query="tea") for _ in range(20)]

    assert {each.text for each in answers} == {"no such note"}
    assert {each.status for each in events()} == {"error"}


async def test_a_tool_that_does_not_say_that_it_only_reads_is_a_write(scope, events):
    """What is not known is guarded as what can do harm."""
    async with through_client(scope, notes_server(tool(annotations=None))) as ask:
        await ask("search", query="tea")

    assert events()[0].op_class == "remember"


async def test_the_user_says_the_class_of_a_tool(scope, events):
    """By pattern; the first that fits counts."""
    classes = {"drop_*": "forget", "*": "recall"}
    server = notes_server(tool("drop_notes"), tool("search"))
    async with through_client(scope, server, classes=classes) as ask:
        await ask("drop_notes", query="tea")
        await ask("search", query="tea")

    assert [each.op_class for each in events()] == ["forget", "recall"]


# -- arguments and results -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"question": "a"}, "expected parameter 'query', found 'question'"),
        ({}, "expected parameter 'query', found none"),
        ({"query": 5}, "'query': expected string, found number"),
        ({"query": "a", "limit": "five"}, "'limit': expected integer, found string"),
        ({"query": "a", "order": "secret"}, "'order': not as its enum demands"),
    ],
)
async def test_arguments_that_are_not_as_the_schema_says_are_not_sent(scope, arguments, sentence):
    """The model is told which and why, by names and types; no value is repeated."""
    asked = tool()
    async with through_client(scope, notes_server(asked)) as ask:
        answer = await ask("search", **arguments)

    assert answer == (True, f"Schema mismatch: {sentence}. Call it once more.")
    assert asked.calls == []


async def test_the_second_mismatch_in_a_row_disables_the_tool(door, scope):
    """One retry; then right arguments are refused, too, until the session ends."""
    asked = tool()
    async with door(scope, notes_server(asked)) as ask:
        first = await ask("search", question="tea")
        second = await ask("search", question="tea")
        third = await ask("search", query="tea")

    assert first.text.endswith("Call it once more.")
    assert second.text.endswith("Tool disabled for this session: do without it.")
    assert third == second
    assert asked.calls == []


async def test_a_right_call_takes_the_first_mismatch_back(scope):
    """Only one in a row with another disables."""
    async with through_client(scope, notes_server()) as ask:
        for _ in range(3):
            await ask("search", question="tea")

            assert not (await ask("search", query="tea")).failed


async def test_a_result_that_is_not_as_the_schema_says_is_not_handed_on(scope):
    """A read is made once more by itself; what is wrong twice is an error for the model."""
    wrong = tool(output=takes({"found": NUMBER}), answers=[{"found": "secret"}])
    async with through_client(scope, notes_server(wrong)) as ask:
        answer = await ask("search", query="tea")

    assert answer.failed
    assert "secret" not in answer.text
    assert len(wrong.calls) == 2


async def test_a_write_with_a_wrong_result_is_not_made_again(scope):
    """Nobody knows what it has written."""
    wrong = tool(output=takes({"found": NUMBER}), answers=[{"found": "x"}], annotations=None)
    async with through_client(scope, notes_server(wrong)) as ask:
        assert (await ask("search", query="tea")).failed

    assert len(wrong.calls) == 1


async def test_a_result_that_is_right_the_second_time_is_handed_on(scope):
    """The one retry of a read."""
    flaky = tool(output=takes({"found": TEXT}), answers=[{"found": 1}, {"found": "tea"}])
    async with through_client(scope, notes_server(flaky)) as ask:
        assert not (await ask("search", query="tea")).failed


async def test_no_value_of_a_users_is_in_an_event(scope, events):
    """Neither an argument that was refused nor its name."""
    async with through_client(scope, notes_server()) as ask:
        answer = await ask("search", **{ADA: "secret"})

    assert "found 'another'" in answer.text
    assert ADA not in repr(events())
    assert "secret" not in repr(events())


# -- pins ------------------------------------------------------------------------------------------


async def test_a_pinned_tool_goes_on_by_its_version(scope, tmp_path):
    """Where the server has the earlier version still, calls go there."""
    path = tmp_path / "contracts.json"
    first = tool(version="1.0")
    server = notes_server(first)
    async with through_client(scope, server, server="notes", contracts=path) as ask:
        await ask("search", query="tea")
    found = json.loads(path.read_text())
    found["notes"]["pinned"] = ["search"]
    path.write_text(json.dumps(found))
    second = tool(version="2.0", parameters=INPUTS["likely renamed"])
    server.add_tool(second)

    async with through_client(scope, server, server="notes", contracts=path) as ask:
        answer = await ask("search", query="tea")

    assert not answer.failed
    assert (len(first.calls), len(second.calls)) == (2, 0)


async def test_the_contract_of_an_earlier_process_counts(scope, tmp_path):
    """The file is written at the first connection, and the next one is compared with it."""
    path = tmp_path / "contracts.json"
    async with through_client(scope, notes_server(), contracts=path) as ask:
        await ask("search", query="tea")
    later = tool(parameters=INPUTS["likely renamed"])

    async with through_client(scope, notes_server(later), contracts=path) as ask:
        answer = await ask("search", query="tea")

    assert answer.failed
    assert later.calls == []


async def test_what_a_human_accepts_unblocks_a_tool_in_mid_session(scope, tmp_path):
    """The file is read again before a tool is blocked."""
    path = tmp_path / "contracts.json"
    server = notes_server()
    async with through_client(scope, server, contracts=path, recheck_s=0) as ask:
        await ask("search", query="tea")
        exchange(server, tool(parameters=INPUTS["likely renamed"]))
        assert (await ask("search", search_query="tea")).failed
        elsewhere = tmp_path / "elsewhere.json"
        async with through_client(scope, server, contracts=elsewhere) as other:
            await other("search", search_query="tea")
        elsewhere.replace(path)

        assert not (await ask("search", search_query="tea")).failed


def test_a_file_that_is_none_of_ours_is_told(scope, tmp_path):
    """In one line, when the client is wrapped, and without what it says."""
    path = tmp_path / "contracts.json"
    path.write_text('{"notes": "secret"}')

    with pytest.raises(ConfigurationError, match="cannot be read") as told:
        scope.mcp(Client(notes_server()), server="notes", contracts=path)

    assert "secret" not in str(told.value)


# -- failures --------------------------------------------------------------------------------------


@asynccontextmanager
async def lost(scope: Mnemoscope, **options: Any) -> AsyncIterator[Client]:
    """Yield a guarded client whose server has gone since the first call."""
    with ExitStack() as stack:
        address = stack.enter_context(over_http(notes_server()))
        guarded = await scope.mcp(Client(address), **options).__aenter__()
        await guarded.call_tool("search", {"query": "tea"})
        stack.close()
        yield guarded
        with suppress(Exception):  # it cannot say goodbye to the server
            await guarded.__aexit__(None, None, None)


async def test_a_server_that_is_away_is_an_error(scope, events):
    """No answer is made up, though the tool is a read."""
    async with lost(scope) as client:
        with pytest.raises(Exception, match=r"(?i)connect|closed|refused"):
            await client.call_tool("search", {"query": "tea"}, raise_on_error=False)

    assert events()[-1].status == "error"


async def test_a_server_that_is_away_as_it_is_looked_at_is_an_error(scope, events):
    """Where the listing fails the tool is not called: what it takes now is not known."""
    async with lost(scope, recheck_s=0) as client:
        with pytest.raises(Exception, match=r"(?i)connect|closed|refused"):
            await client.call_tool("search", {"query": "tea"}, raise_on_error=False)

    assert events()[-1].status == "error"


class NoList(Middleware):
    """Keeps who asks a server for its tools waiting, and counts them."""

    def __init__(self) -> None:
        self.asked = 0

    async def on_list_tools(self, context: Any, call_next: Any) -> Any:
        self.asked += 1
        await asyncio.sleep(60)


async def test_a_server_that_does_not_list_its_tools_is_waited_for_once():
    """The call ends with that failure, as its own: nobody waits for two deadlines."""
    server, hangs = notes_server(), NoList()
    server.add_middleware(hangs)
    with scope_for_tests(deadline_remember_s=0.5) as (scope, _):
        async with scope.mcp(Client(server)) as client:
            with pytest.raises(TimeoutError):
                await client.call_tool("search", {"query": "tea"})

    assert hangs.asked == 1


async def test_a_failure_has_the_answer_that_the_user_names(scope, events):
    """``neutral`` by pattern, in the answer's own shape."""
    options = {"neutral": {"se*": {"found": []}}, "deadlines_s": {"search": 0.05}}
    async with scope.mcp(Client(slow_server()), **options) as client:
        result = await client.call_tool("search", {"query": "tea"})

    assert result.structured_content == {"found": []}
    assert events()[-1].status == "degraded"


async def test_drift_has_no_neutral_answer(scope):
    """What a human has to look at is not answered as if nothing was found."""
    server = notes_server()
    async with through_client(scope, server, recheck_s=0, neutral={"*": {"found": []}}) as ask:
        await ask("search", query="tea")
        exchange(server, tool(parameters=INPUTS["likely renamed"]))

        assert (await ask("search", query="tea")).failed


def slow_server() -> FastMCP:
    """Return a server whose tool answers in a minute."""
    server = FastMCP("slow")

    @server.tool(annotations={"readOnlyHint": True}, output_schema=None)
    async def search(query: str) -> str:
        await asyncio.sleep(60)
        return query

    return server


async def test_a_call_takes_no_longer_than_its_tool_may(scope):
    """A deadline of a tool's own, below that of its class."""
    async with scope.mcp(Client(slow_server()), deadlines_s={"search": 0.05}) as client:
        with pytest.raises(TimeoutError):
            await client.call_tool("search", {"query": "tea"})


# -- rules and tenancy -----------------------------------------------------------------------------


async def test_a_role_allows_tools_by_name():
    """A tool is a place: ``mcp.<server>/<tool>``."""
    roles = Roles({"desk": Role(recall=("mcp.notes/search",))})
    with scope_for_tests(rules=[roles]) as (scope, _), context(agent="desk"):
        server = notes_server(tool("search"), tool("list_all"))
        async with through_client(scope, server, server="notes") as ask:
            allowed = await ask("search", query="tea")
            with pytest.raises(Exception, match="not available"):
                await ask("list_all", query="tea")

    assert not allowed.failed


async def test_a_run_that_has_read_a_tool_is_of_external_origin():
    """The memory that it writes next is labelled so."""
    from langgraph.store.memory import InMemoryStore

    origin = Origin()
    with scope_for_tests(rules=[origin]) as (scope, sink):
        store = scope.store(InMemoryStore())
        async with through_client(scope, notes_server(tool(annotations=None))) as ask:
            with context(customer="c-1", run="r-1"), origin.reading(Trust.PERSON):
                await ask("search", query="tea")
                await store.aput(("notes",), "a", {"text": "found"})
        scope.flush()

    labels = [
        part for event in sink.events for part in event.parts if "Label" in type(part).__name__
    ]
    assert "external" in repr(labels)


async def test_tenancy_confines_a_tool_to_the_customer():
    """``customer_at`` names the parameter: another's id is refused, none is filled in."""
    parameters = takes({"query": TEXT, "user_id": TEXT})
    asked = tool(parameters=parameters)
    with scope_for_tests(tenancy="enforce") as (scope, _):
        async with through_client(scope, notes_server(asked), customer_at="user_id") as ask:
            with context(customer="c-1", tenant="acme"):
                await ask("search", query="tea", user_id="c-1")
                with pytest.raises(ValueError, match="customer"):
                    await ask("search", query="tea", user_id="c-2")

    assert [each["user_id"] for each in asked.calls] == ["c-1"]


async def test_tenancy_refuses_a_tool_that_nothing_confines():
    """Without ``customer_at`` nobody knows whose notes it finds."""
    asked = tool()
    with scope_for_tests(tenancy="enforce") as (scope, _):
        async with through_client(scope, notes_server(asked)) as ask:
            with (
                context(customer="c-1", tenant="acme"),
                pytest.raises(ValueError, match="customer"),
            ):
                await ask("search", query="tea")

    assert asked.calls == []


# -- shapes ----------------------------------------------------------------------------------------


async def test_an_answer_that_is_suddenly_empty_is_a_signal(scope, events):
    """Ten answers of five results, then none."""
    usual = [{"found": ["note"] * 5}] * 10
    async with through_client(scope, notes_server(tool(answers=[*usual, {"found": []}]))) as ask:
        for _ in range(11):
            await ask("search", query="tea")

    signals = [each.parts[0].signal for each in events()]
    assert signals == [None] * 10 + ["emptied"]
    assert events()[-1].parts[0].measurements() == {"kept": 1, "emptied": 1}


async def test_an_answer_of_another_size_is_a_signal(scope, events):
    """More than four deviations from the mean of the last fifty."""
    usual = [{"found": ["note" * (5 + each % 3)]} for each in range(12)]
    large = {"found": ["note" * 500]}
    async with through_client(scope, notes_server(tool(answers=[*usual, large, large]))) as ask:
        for _ in range(13):
            await ask("search", query="tea")

    assert [each.parts[0].signal for each in events()] == [None] * 12 + ["resized"]


TEXTS = {
    "JSON": (json.dumps(["note"] * 5), "[]"),
    "a text a result": ([TextContent(type="text", text="note")] * 5, []),
}


@pytest.mark.parametrize(("usual", "empty"), TEXTS.values(), ids=TEXTS)
async def test_answers_in_texts_are_counted_too(scope, events, usual, empty):
    """As of servers that declare no output schema, which are most."""
    asked = tool(output=None, answers=[*[usual] * 10, empty])
    async with through_client(scope, notes_server(asked)) as ask:
        for _ in range(11):
            await ask("search", query="tea")

    assert [each.hits for each in events()] == [5] * 10 + [0]
    assert events()[-1].parts[0].signal == "emptied"


async def test_a_text_of_another_size_is_a_signal(scope, events):
    """One that is no JSON has no results, and a size."""
    asked = tool(output=None, answers=[*["likes tea"] * 10, "likes tea " * 50, "likes tea"])
    async with through_client(scope, notes_server(asked)) as ask:
        for _ in range(11):
            await ask("search", query="tea")

    assert [each.parts[0].signal for each in events()] == [None] * 10 + ["resized"]
    assert {each.hits for each in events()} == {None}

"""
What other people's agents have done, by shape: sixty, half of them stuck.

Those that are stuck are from threads on loops, and most of the others from threads on detectors
that took work for one, or are what LangGraph's own examples do: the source says. A few are ours.
None of their text is here. The rule was made looking at those with an even place alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import count
from typing import NamedTuple


class Step(NamedTuple):
    """
    One turn of an agent.

    Attributes:
        text: What its model said.
        calls: What it called: tool, argument and answer of each. None as an answer: it failed.
        agent: Who: the name of its node. Empty: a node that does nothing that is seen.
    """

    text: str = ""
    calls: tuple[tuple[str, str, str | None], ...] = ()
    agent: str = "agent"


class Trajectory(NamedTuple):
    """
    What one run has done.

    Attributes:
        source: The thread, as ``owner/repository#number``; or an example; or ``ours``.
        steps: Its turns.
        is_stuck: Whether it is to be stopped before its last turn has ended.
    """

    source: str
    steps: tuple[Step, ...]
    is_stuck: bool


Steps = Iterator[Step]
_MADE: list[tuple[str, bool, Callable[[], Steps]]] = []


def _stuck(source: str) -> Callable[[Callable[[], Steps]], Callable[[], Steps]]:
    return lambda make: _MADE.append((source, True, make)) or make


def _works(source: str) -> Callable[[Callable[[], Steps]], Callable[[], Steps]]:
    return lambda make: _MADE.append((source, False, make)) or make


def trajectories() -> list[Trajectory]:
    """Return all of them, in their order."""
    return [Trajectory(source, tuple(make()), is_stuck) for source, is_stuck, make in _MADE]


def _call(tool: str, argument: str, answer: str | None = "done", text: str = "") -> Step:
    return Step(text, ((tool, argument, answer),))


def _in_turn(texts: list[str]) -> Iterator[str]:
    return (texts[n % len(texts)] for n in count())


AGAIN = _in_turn(
    [
        "Let me try that once more.",
        "I will check it again to be sure.",
        "The result is not what I wanted, so I repeat the step.",
        "One more attempt should settle it.",
        "Perhaps it works this time.",
        "Running the same thing again.",
        "I need to verify that again.",
    ]
)
"""What a model says beside a call that it repeats: in other words each time."""


# -- stuck -----------------------------------------------------------------------------------------


@_stuck("bytedance/deer-flow#1055")
def _() -> Steps:
    """The same command without a word, and the same answer."""
    for _n in range(25):
        yield _call("bash", "python -c 'import report'", "ModuleNotFoundError: report")


@_stuck("langchain-ai/langgraph#4231")
def _() -> Steps:
    """What is asked for is found, and then saved for ever."""
    yield _call("retrieve", "the question", "a long passage of the handbook " * 4)
    for _n in range(12):
        yield _call("save_memory", "the user likes tea", "saved")


@_stuck("langchain-ai/langgraph#5548")
def _() -> Steps:
    """A tool whose answer says to call it again."""
    for _n in range(20):
        yield _call("set_status", "busy", "Call set_status again")


@_stuck("langchain-ai/langgraph#6731")
def _() -> Steps:
    """A query that fails the same way each time, with something else said to it."""
    yield _call("list_tables", "", "orders, customers")
    for _n in range(12):
        yield _call("query", "select amt from orders", "no such column: amt", next(AGAIN))


@_stuck("langchain-ai/langgraph-supervisor-py#208")
def _() -> Steps:
    """A supervisor that does not see that the agent has answered."""
    for _n in range(12):
        yield Step("", (("transfer_to_retrieval", "{}", "transferred"),), "supervisor")
        yield Step("The account is open since May.", (), "retrieval")
        yield Step("", (("transfer_back", "{}", "transferred back"),), "retrieval")


@_stuck("langchain-ai/langgraph-swarm-py#6")
def _() -> Steps:
    """Two agents that hand the question to one another."""
    for _n in range(15):
        yield Step("", (("transfer_to_bob", "{}", "transferred"),), "alice")
        yield Step("", (("transfer_to_alice", "{}", "transferred"),), "bob")


@_stuck("Significant-Gravitas/AutoGPT#1994")
def _() -> Steps:
    """The same search, found well each time."""
    for _n in range(10):
        yield _call("google", "income tax by country", "ten links " * 20, next(AGAIN))


@_stuck("Significant-Gravitas/AutoGPT#3444")
def _() -> Steps:
    """An address that cannot be loaded."""
    for _n in range(14):
        yield _call("browse_website", "<website_url>", None, next(AGAIN))


@_stuck("anomalyco/opencode#47845")
def _() -> Steps:
    """Two calls by turns."""
    for _n in range(9):
        yield _call("lookup", "a", "see b")
        yield _call("search", "b", "see a")


@_stuck("macanderson/stella#359")
def _() -> Steps:
    """Read, an edit that fails, a test that fails."""
    for _n in range(8):
        yield _call("read", "main.rs", "fn main() { run() }")
        yield _call("edit", "main.rs: run() -> start()", "the text was not found")
        yield _call("test", "", "1 failed")


@_stuck("shanevcantwell/langgraph-agentic-scaffold#106")
def _() -> Steps:
    """Eight nodes in a circle, most of which are not seen to do anything."""
    for _n in range(6):
        for _m in range(3):
            yield Step(agent="router")
            yield Step("I have written the file.", (), "project_director")
        yield Step("INCOMPLETE", (), "exit_interview")
        yield Step(agent="facilitator")


@_stuck("earendil-works/pi#6158")
def _() -> Steps:
    """Directories are listed, and no file is written."""
    for _n in range(3):
        for _m in range(6):
            yield _call("bash", "ls ~/.jupyter/custom", "custom.css")
        for _m in range(5):
            yield _call("bash", "ls -la ~/.jupyter/custom", "total 8, custom.css")


@_stuck("anomalyco/opencode#43800")
def _() -> Steps:
    """Good work, and then one file that is read for ever."""
    for n in range(10):
        yield _call("edit", f"phase {n}", "ok")
    for _n in range(9):
        yield _call("read", "plan.md", "the plan " * 30)


@_stuck("superplanehq/superplane#4123")
def _() -> Steps:
    """Three lists, all of them empty."""
    for _n in range(7):
        yield _call("list_integration_resources", "{}", "[]")
        yield _call("describe_trigger", "{}", "[]")
        yield _call("list_components", "{}", "[]")


@_stuck("langmanus/langmanus#61")
def _() -> Steps:
    """A researcher and a search that have nothing new."""
    for _n in range(12):
        yield Step("", (("search", "battery prices", "the same five results " * 5),), "search")
        yield Step("I should look for battery prices.", (), "researcher")


@_stuck("NorthlandPositronics/Cogtrix#473")
def _() -> Steps:
    """What time is it? 33 times."""
    for n in range(33):
        yield _call("get_current_datetime", "{}", f"2026-05-01T10:{n:02}:07.{n:06}Z")


@_stuck("OpenRouterTeam/typescript-agent#73")
def _() -> Steps:
    """Calls without arguments, which are refused."""
    for _n in range(11):
        yield _call("write_file", "{}", None)


@_stuck("OpenRouterTeam/typescript-agent#89")
def _() -> Steps:
    """The same three calls side by side, in whatever order they end."""
    calls = [("sh", each, f"{each}: nothing") for each in ("a", "b", "c")]
    for n in range(9):
        yield Step("", tuple(calls[n % 3 :] + calls[: n % 3]))


@_stuck("OpenHands/OpenHands#11431")
def _() -> Steps:
    """A monologue: whom it asks is not there."""
    yield _call("bash", "make", "built")
    for _n in range(10):
        yield Step("The task is done. Please tell me if there is anything else.")


@_stuck("crewAIInc/crewAI#6")
def _() -> Steps:
    """Work is delegated in the same words, and comes back in the same words."""
    for _n in range(10):
        yield _call("delegate", "Researcher|compile a list of IDEs", "Here are the IDEs: A, B, C.")


@_stuck("crewAIInc/crewAI#6414")
def _() -> Steps:
    """A gives to B, B gives to A, each with a word of its own."""
    for _n in range(12):
        yield Step(next(AGAIN), (("delegate", "B|find out", "B has it"),), "a")
        yield Step(next(AGAIN), (("delegate", "A|find out", "A has it"),), "b")


@_stuck("Significant-Gravitas/AutoGPT#1899")
def _() -> Steps:
    """All is done, and begun again from the start: a circle of twelve."""
    for _n in range(5):
        for place in range(12):
            yield _call("do", f"part {place} of the strategy", f"part {place} is written")


@_stuck("ai4s-research/open-science#121")
def _() -> Steps:
    """A circle of forty, without a word."""
    for _n in range(5):
        for place in range(40):
            yield _call("sh", f"step {place}", f"finished {place}")


@_stuck("langchain-ai/langgraph#5954")
def _() -> Steps:
    """Documents that are never relevant, and a question that is put in two ways by turns."""
    for n in range(10):
        query = ("what is a refund", "how are refunds made")[n % 2]
        yield Step("", (("retrieve", query, "the page on shipping " * 5),), "retrieve")
        yield Step("no", (), "grade")
        yield Step(query, (), "rewrite")


@_stuck("openclaw/openclaw#17118")
def _() -> Steps:
    """A job that never ends, asked for and asked for."""
    for _n in range(60):
        yield _call("process_poll", "job-1", "still running")


@_stuck("QwenLM/qwen-code#9492")
def _() -> Steps:
    """A list of tasks that nobody changes."""
    yield _call("task_list", "{}", "1 open")
    for _n in range(19):
        yield _call("task_list", "{}", "2 open")


@_stuck("langchain-ai/deepagents#6441")
def _() -> Steps:
    """The same grep for nothing, and a path that does not exist, in sub-agents."""
    for _n in range(8):
        yield Step(next(AGAIN), (("grep", "retry_policy", ""),), "tools")
        yield Step("", (("read_file", "/src/retry.py", None),), "tools")


@_stuck("BaseIntelligence/bounty-challenge#50173")
def _() -> Steps:
    """Answers that differ by when they were given and how long they took alone."""
    for n in range(12):
        answer = f"[2026-04-07 09:{n:02}:11] no match (took 0.{n}31s)"
        yield _call("grep", "TODO", answer)


@_stuck("Significant-Gravitas/AutoGPT#2841")
def _() -> Steps:
    """An apology, and the same command."""
    for _n in range(9):
        yield _call("browse_website", "https://example.org", "Error: 'question'", "I apologize.")


@_stuck("hurttlocker/o8#2448")
def _() -> Steps:
    """An edit that is undone, and made again."""
    for _n in range(8):
        yield _call("edit", "retries = 3 -> 5", "changed")
        yield _call("test", "", "2 failed")
        yield _call("edit", "retries = 5 -> 3", "changed")


# -- at work ---------------------------------------------------------------------------------------


@_works("StartupHakk/OpenMonoAgent.ai#47")
def _() -> Steps:
    """A background task that gets on."""
    for percent in range(41, 71):
        yield _call("check_status", "job-1", f"running {percent} %")
    yield Step("It is done.")


@_works("QwenLM/qwen-code#9492")
def _() -> Steps:
    """A board of tasks that others change."""
    for left in range(20, 0, -1):
        yield _call("task_list", "{}", f"{left} open")


@_works("vstorm-co/pydantic-deepagents#208")
def _() -> Steps:
    """Files are attached, and each is."""
    for n in range(14):
        yield _call("attach_file", f"mail-1, file-{n}.txt", "True")


@_works("google-gemini/gemini-cli#5873")
def _() -> Steps:
    """Files are moved, and what imports them is changed."""
    for n in range(15):
        yield _call("search", f"component {n}", f"used in {n + 1} files")
        yield _call("sh", f"git mv a/{n} b/{n}", "")
        yield _call("edit", f"import {n}", "changed")


@_works("google-gemini/gemini-cli#7950")
def _() -> Steps:
    """Blocks of data are loaded one after the other, with the same to say to each."""
    for n in range(24):
        yield _call("read", f"block {n}", "1000 rows were loaded", "I load the next block.")


@_works("google-gemini/gemini-cli#6950")
def _() -> Steps:
    """The same sound is made for eight lines of a text."""
    for n in range(8):
        yield _call("speak", f"line {n}", "a file was written")


@_works("traceroost/core#215")
def _() -> Steps:
    """Tests that go on failing while one thing after the other is changed."""
    for n in range(12):
        yield _call("edit", f"change {n}", "changed")
        yield _call("test", "", "FAILED 2")


@_works("agentscope-ai/QwenPaw#6041")
def _() -> Steps:
    """The history is recalled between pieces of work, and says the same."""
    for n in range(9):
        yield _call("recall_history", "preferences", "likes short answers")
        yield _call("write", f"section {n}", "written")


@_works("weave-os/router#1123")
def _() -> Steps:
    """A shell is read from with nothing written to it."""
    for n in range(18):
        yield _call("exec", "write_stdin('')", f"compiled {n * 7} of 126")


@_works("OpenHands/OpenHands#5355")
def _() -> Steps:
    """Sleep, and look at what a long run has put out."""
    for n in range(12):
        yield _call("sleep", "120", "")
        yield _call("tail", "train.log", f"epoch {n}: loss {1 / (n + 1):.3f}")


@_works("crewAIInc/crewAI#330")
def _() -> Steps:
    """Three agents that delegate to each other, each time something else."""
    for n in range(8):
        for of, to in (("researcher", "writer"), ("writer", "critic"), ("critic", "researcher")):
            yield Step("", (("delegate", f"{to}|point {n}", f"point {n} by {to}"),), of)


@_works("langchain-ai/langgraph: plan-and-execute")
def _() -> Steps:
    """A plan, a step of it, and the plan again with less in it."""
    for n in range(9):
        yield Step(f"Step {n} of the plan: look up fact {n}.", (), "planner")
        yield Step("", (("search", f"fact {n}", f"it is {n * n}"),), "executor")
        yield Step(agent="replan")


@_works("langchain-ai/langgraph: reflection")
def _() -> Steps:
    """A draft and a critique, six times, both better each time."""
    for n in range(6):
        yield Step(f"Draft {n}: the essay with {n} more arguments.", (), "generate")
        yield Step(f"Argument {n} needs an example.", (), "reflect")


@_works("langchain-ai/langgraph: agent_supervisor")
def _() -> Steps:
    """A supervisor who hands on eight tasks, in the same words, with work done for each."""
    for n in range(8):
        yield Step("", (("transfer_to_math", "{}", "Successfully transferred"),), "supervisor")
        yield Step("", (("multiply", f"{n}, 7", f"{n * 7}"),), "math")
        yield Step("", (("transfer_back", "{}", "Successfully transferred back"),), "math")


@_works("langchain-ai/langgraph: map-reduce")
def _() -> Steps:
    """Twelve documents side by side."""
    yield Step("", tuple(("summarise", f"document {n}", f"on {n}") for n in range(12)))
    yield Step("All in all it is about numbers.")


@_works("langchain-ai/deepagents: write_todos")
def _() -> Steps:
    """A list of things to do that is written anew after each of them."""
    for n in range(12):
        yield _call("write_todos", f"{n} done, {12 - n} to do", "")
        yield _call("task", f"part {n}", f"found {n} things")


@_works("langchain-ai/langgraph: sql-agent")
def _() -> Steps:
    """Tables, schema, check, run; and two questions more."""
    yield _call("list_tables", "", "artist, album")
    for n in range(3):
        yield _call("schema", "artist, album", "create table artist (id, name)")
        yield _call("check_query", f"select {n}", f"select {n}")
        yield _call("run_query", f"select {n}", f"[({n},)]")
        yield Step(f"The answer to question {n} is {n}.")


@_works("langchain-ai/langgraph: wait-user-input")
def _() -> Steps:
    """Twenty questions, to which a person says yes or no."""
    for n in range(20):
        yield _call("ask_person", f"question {n}?", ("yes", "no")[n % 3 == 0])


@_works("langchain-ai/langgraph: extraction/retries")
def _() -> Steps:
    """A service that is down twice."""
    for answer in (None, None, "200 OK"):
        yield _call("fetch", "https://example.org/api", answer)
    yield Step("It is up again.")


@_works("ours")
def _() -> Steps:
    """A file that is read again after each change."""
    for n in range(10):
        yield _call("open", "main.py", f"{n} lines were changed")
        yield _call("edit", f"line {n}", "")


@_works("hurttlocker/o8#2448")
def _() -> Steps:
    """All checks are run, something is mended, and all are run again."""
    for n in range(2):
        for check in range(8):
            yield _call("check", f"{check}", "passed")
        yield _call("mend", f"{n}", "mended")
    for check in range(8):
        yield _call("check", f"{check}", "passed")
    yield Step("All checks pass.")


@_works("ours")
def _() -> Steps:
    """Pages until there is none, with the same word for each."""
    for n in range(25):
        yield _call("next_page", "", f"rows {n * 10} to {n * 10 + 9}", "Next page.")


@_works("ours")
def _() -> Steps:
    """Thirty hosts that answer alike."""
    for n in range(30):
        yield _call("ping", f"host-{n}", "ok")


@_works("ours")
def _() -> Steps:
    """Searches of which four in a row find nothing."""
    for n in range(15):
        found = "No results were found for this query." if 5 <= n < 9 else f"source {n}"
        yield _call("search", f"query {n}", found, f"Next I look for aspect {n}.")


@_works("ours")
def _() -> Steps:
    """A player who goes north and north."""
    for n in range(16):
        yield _call("move", "north", f"you are at (3, {n})")


@_works("ours")
def _() -> Steps:
    """A queue that is taken from by the same call."""
    for n in range(22):
        yield _call("take", "", f"item {n}")


@_works("ours")
def _() -> Steps:
    """An inbox that is empty three times."""
    for _n in range(3):
        yield _call("check_inbox", "", "empty")
        yield _call("work", f"meanwhile {_n}", "done")
    yield _call("check_inbox", "", "one message")
    yield Step("Here it is.")


@_works("ours")
def _() -> Steps:
    """Thirty sentences, without any tool."""
    words = ("river", "stone", "bread", "cloud", "paper", "glass", "horse", "table")
    for n in range(30):
        yield Step(f"The {words[n % 8]} is beside the {words[n // 8]}.")


@_works("ours")
def _() -> Steps:
    """Sixty turns with a look at the folder between them, which shows the same."""
    for n in range(30):
        yield _call("edit_file", f"function {n}", "updated", next(AGAIN))
        yield _call("ls", "/src", "main.py, test_main.py")


@_works("fastclaw-ai/fastclaw#80")
def _() -> Steps:
    """A job that is asked for, and is at times where it was."""
    for state in ("queued", "queued", "starting", "running", "running", "running", "done"):
        yield _call("get_job", "7", state)
    yield Step("It is done.")

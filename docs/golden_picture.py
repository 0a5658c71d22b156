"""
Draw the diff of a dropped recall for the docs: make golden-picture ARGS=FOLDER.

FOLDER is a copy of langchain-ai/memory-agent, LangGraph's own template of an agent with memory. Its
run is recorded, and then a node takes the place of its own that calls the model without a recall.
"""

from __future__ import annotations

import io
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from rich.console import Console
from rich.text import Text

PICTURE = Path(__file__).with_name("images") / "golden.svg"
WIDTH = 100
SUITE = '''
import os

import memory_agent.graph
import sys
from langchain_core.language_models import GenericFakeChatModel
from langchain_core.messages import AIMessage
from langgraph.graph import StateGraph
from langgraph.store.memory import InMemoryStore

from mnemoscope.memory import context

template = sys.modules["memory_agent.graph"]
REMEMBER = {"name": "upsert_memory", "id": "1", "args": {"content": "oolong", "context": "tea"}}


class Model(GenericFakeChatModel):
    def bind_tools(self, tools):
        return self


async def call_model(state, runtime):
    """The candidate: as the template's node, and without its recall."""
    return {"messages": [await template.utils.load_chat_model("").ainvoke(state.messages)]}


async def test_the_agent_remembers(memory_scope, golden_memory, monkeypatch):
    answers = [AIMessage("", tool_calls=[REMEMBER]), AIMessage("Noted."), AIMessage("Oolong.")]
    model = Model(messages=iter(answers))
    monkeypatch.setattr(template.utils, "load_chat_model", lambda name: model)
    builder = template.builder
    if os.environ.get("CANDIDATE"):
        builder = StateGraph(template.State, context_schema=template.Context)
        builder.add_node(call_model)
        builder.add_node(template.store_memory)
        builder.add_edge("__start__", "call_model")
        builder.add_conditional_edges("call_model", template.route_message)
        builder.add_edge("store_memory", "call_model")
    scope, _sink = memory_scope
    graph = builder.compile(store=scope.store(InMemoryStore()))
    with context(customer="c-1"):
        for text in ("I like oolong", "what do I like?"):
            said = {"messages": [("user", text)]}
            await graph.ainvoke(said, context=template.Context(user_id="c-1"))
    golden_memory()
'''


def printed(folder: Path, template: Path, *options: str, **variables: str) -> Text:
    """Return what pytest prints of the suite in *folder*, with its colours."""
    plugins = ("-p", "mnemoscope.adapters.pytest_plugin", "-p", "syrupy", "-p", "asyncio")
    done = subprocess.run(  # noqa: S603 - ours
        [sys.executable, "-m", "pytest", "--color=yes", "--tb=short", "--show-capture=no", "-q",
         "--asyncio-mode=auto", *plugins, *options],
        cwd=folder,
        env={
            "PATH": os.environ["PATH"],
            "PYTHONPATH": str(template / "src"),
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
            "COLUMNS": str(WIDTH),
            **variables,
        },
        capture_output=True,
        text=True,
        check=False,
    )  # fmt: skip
    return Text.from_ansi(done.stdout)


def main() -> None:
    """Draw the picture."""
    template = Path(sys.argv[1]).resolve()
    console = Console(record=True, width=WIDTH, force_terminal=True, file=io.StringIO())
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "test_agent.py").write_text(SUITE, encoding="utf-8")
        for options, variables in ((("--snapshot-update",), {}), ((), {"CANDIDATE": "1"})):
            said = printed(folder, template, *options, **variables)
            prompt = "".join(f"{key}={value} " for key, value in variables.items())
            console.print(
                Text.assemble(("$ ", "bold green"), f"{prompt}pytest {' '.join(options)}")
            )
            for line in said.split():
                console.print(line)
    drawn = console.export_svg(title="pytest", unique_id="golden")
    # Rich makes the viewer download a font; a local one is enough.
    drawn = re.sub(r"\s*@font-face \{.*?\}", "", drawn, flags=re.DOTALL)
    PICTURE.write_text(drawn + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()

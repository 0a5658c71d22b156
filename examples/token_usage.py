"""
Tokens and cost of a LangGraph run, by feature and node.

Runs offline: the model is a script that reports its usage as a provider would.

Prints:
    reply-draft in draft: 1200 in, $0.000300
    spell-check in check: 1200 in, $0.000300
    2 calls, 2400 input tokens, $0.000600
"""

from collections.abc import Iterator, Sequence
from typing import Any, TypedDict

from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, UsageMetadata
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langgraph.graph import START, StateGraph

from mnemoscope.memory import Mnemoscope, context, feature, load_settings
from mnemoscope.telemetry import Event

USED: UsageMetadata = {
    "input_tokens": 1_200,
    "output_tokens": 300,
    "total_tokens": 1_500,
    "input_token_details": {"cache_read": 800},
    "output_token_details": {"reasoning": 120},
}
ABOUT = {"model_name": "gpt-4o-mini", "model_provider": "openai"}


class ScriptedModel(BaseChatModel):
    """Gives the same answer every time."""

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def _generate(self, *_args: Any, **_kwargs: Any) -> ChatResult:
        message = AIMessage("Dear customer", usage_metadata=USED, response_metadata=ABOUT)
        return ChatResult(generations=[ChatGeneration(message=message)])

    def _stream(self, *_args: Any, **_kwargs: Any) -> Iterator[ChatGenerationChunk]:
        yield ChatGenerationChunk(message=AIMessageChunk("Dear ", response_metadata=ABOUT))
        yield ChatGenerationChunk(message=AIMessageChunk("customer", usage_metadata=USED))


class PrintingSink:
    """A sink: any object with these three methods and two attributes."""

    name = "printed"
    idempotent = False

    def write(self, batch: Sequence[Event], /) -> None:
        """Print the model calls."""
        for event in (each for each in batch if each.usage):
            usage = event.usage
            print(
                f"{event.feature} in {usage.node}: {usage.input_tokens} in, ${usage.cost_usd:.6f}"
            )

    def flush(self, _timeout_s: float, /) -> bool:
        """Do nothing: there is no buffer."""
        return True

    def close(self, _timeout_s: float, /) -> None:
        """Do nothing: there is no connection."""


class State(TypedDict, total=False):
    """The state of the graph."""

    draft: Any
    checked: Any


model = ScriptedModel()


@feature("reply-draft")
def draft(_state: State) -> State:
    """Write a draft."""
    return {"draft": model.invoke("Write a reply").content}


@feature("spell-check")
def check(_state: State) -> State:
    """Check the draft."""
    return {"checked": model.invoke("Check the reply").content}


scope = Mnemoscope(load_settings(pii_model="none"), only_sinks=[PrintingSink()])

builder = StateGraph(State)
builder.add_node("draft", draft)
builder.add_node("check", check)
builder.add_edge(START, "draft")
builder.add_edge("draft", "check")

graph = scope.runnable(builder.compile())  # however it is called: also by invoke() or stream()

with context(tenant="acme", customer="c-42"):
    run = graph.stream_events({}, version="v3")
    answer = run.output

scope.flush()
totals = run.extensions["usage"]
print(f"{totals.calls} calls, {totals.input_tokens} input tokens, ${totals.cost_usd:.6f}")
scope.close()

"""
A budget for a feature: told of as it is used up, and a stop before it is overspent.

Runs offline: the model is a script that reports its usage as a provider would.
"""

from collections.abc import Iterator, Sequence
from typing import Any, TypedDict

from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, UsageMetadata
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langgraph.graph import START, StateGraph

from mnemoscope.memory import Budget, BudgetExceeded, Mnemoscope, feature
from mnemoscope.memory.settings import load_settings
from mnemoscope.telemetry.event import Event

USED: UsageMetadata = {"input_tokens": 100_000, "output_tokens": 2_000, "total_tokens": 102_000}
ABOUT = {"model_name": "gpt-4o", "model_provider": "openai"}


class ScriptedModel(BaseChatModel):
    """Says the same thing every time, for $0.27."""

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def _generate(self, *_args: Any, **_kwargs: Any) -> ChatResult:
        said = AIMessage("Dear customer", usage_metadata=USED, response_metadata=ABOUT)
        return ChatResult(generations=[ChatGeneration(message=said)])

    def _stream(self, *_args: Any, **_kwargs: Any) -> Iterator[ChatGenerationChunk]:
        yield ChatGenerationChunk(message=AIMessageChunk("Dear ", response_metadata=ABOUT))
        yield ChatGenerationChunk(message=AIMessageChunk("customer", usage_metadata=USED))


class Alarms:
    """A sink: whatever has these three methods and these two attributes."""

    name = "alarms"
    idempotent = False

    def write(self, batch: Sequence[Event], /) -> None:
        """Print what went past a level."""
        for crossing in (each.crossing for each in batch if each.crossing):
            print(crossing.sentence())

    def flush(self, _timeout_s: float, /) -> bool:
        """Nothing is buffered."""
        return True

    def close(self, _timeout_s: float, /) -> None:
        """Nothing is open."""


class State(TypedDict, total=False):
    """What the graph works on."""

    draft: Any


model = ScriptedModel()


@feature("reply-draft")
def draft(_state: State) -> State:
    """Write a draft."""
    return {"draft": model.invoke("Write a reply").content}


budget = Budget(feature="reply-draft", usd=1.0, per="hour", alert_at=0.5, on_exceeded="stop")
scope = Mnemoscope(load_settings(pii_model="none"), sinks=[Alarms()], budgets=[budget])

builder = StateGraph(State)
builder.add_node("draft", draft)
builder.add_edge(START, "draft")
graph = builder.compile()

for number in range(1, 7):
    try:
        run = graph.stream_events({}, version="v3", transformers=[scope.usage()])
        assert run.output["draft"]
    except BudgetExceeded as exc:
        print(f"reply {number} was not written: {exc}")
        break

scope.flush()
(status,) = scope.budgets
print(f"spent ${status.spent:.2f}, ${status.left:.2f} left, {status.refused_calls} call refused")
scope.close()

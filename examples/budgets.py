"""
A budget for a feature: a warning at half of it, and a stop before it is overspent.

Runs offline: the model is a script that reports its usage as a provider would.

Prints:
    budget reply-draft per hour is past its alert level: $0.540 of $1.00, …
    budget reply-draft per hour is spent: $1.08 of $1.00, …
    reply 5 was not written: the budget 'reply-draft per hour' is spent ($1.08 of $1.00), …
    spent $1.08, $0.00 left, 1 call refused
"""

from collections.abc import Iterator, Sequence
from typing import Any, TypedDict

from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, UsageMetadata
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langgraph.graph import START, StateGraph

from mnemoscope.memory import Budget, BudgetExceeded, Mnemoscope, feature, load_settings
from mnemoscope.telemetry import Event

USED: UsageMetadata = {"input_tokens": 100_000, "output_tokens": 2_000, "total_tokens": 102_000}
ABOUT = {"model_name": "gpt-4o", "model_provider": "openai"}


class ScriptedModel(BaseChatModel):
    """Gives the same answer every time, for $0.27."""

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
        """Print the levels that were crossed."""
        for event in batch:
            if event.notice is not None and event.operation.startswith("budget_"):
                print(event.notice.sentence())

    def flush(self, _timeout_s: float, /) -> bool:
        """Do nothing: there is no buffer."""
        return True

    def close(self, _timeout_s: float, /) -> None:
        """Do nothing: there is no connection."""


class State(TypedDict, total=False):
    """The state of the graph."""

    draft: Any


model = ScriptedModel()


@feature("reply-draft")
def draft(_state: State) -> State:
    """Write a draft."""
    return {"draft": model.invoke("Write a reply").content}


budget = Budget(feature="reply-draft", usd=1.0, per="hour", alert_at=0.5, on_exceeded="stop")
scope = Mnemoscope(load_settings(pii_model="none"), only_sinks=[PrintingSink()], budgets=[budget])

builder = StateGraph(State)
builder.add_node("draft", draft)
builder.add_edge(START, "draft")
graph = builder.compile()

for number in range(1, 7):
    try:
        run = graph.stream_events({}, version="v3", transformers=[scope.usage()])
        assert run.output["draft"]
    except BudgetExceeded as exc:
        scope.flush()  # what the sink prints comes first
        print(f"reply {number} was not written: {exc}")
        break

(status,) = scope.budgets
print(f"spent ${status.spent:.2f}, ${status.left:.2f} left, {status.refused_calls} call refused")
scope.close()

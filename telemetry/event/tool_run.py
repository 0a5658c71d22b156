"""The part of an event that says which call of a tool it was, and how much went through it."""

from __future__ import annotations

from .part import EventPart


class ToolRun(EventPart, tag="tool_run", frozen=True):
    """
    One run of a tool. Shown in traces alone.

    Attributes:
        call_id: The id that the model has given the call.
        answer_chars: Characters that came out. None: no text did.
    """

    call_id: str | None = None
    given_chars: int | None = None
    answer_chars: int | None = None

    def attributes(self) -> dict[str, str | None]:
        """Return the id, by the GenAI conventions."""
        return {"gen_ai.tool.call.id": self.call_id}

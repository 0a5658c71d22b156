"""An event as a sentence that the customer understands."""

from __future__ import annotations

from typing import Any, NamedTuple


class Sentence(NamedTuple):
    """
    One event as the page shows it.

    Attributes:
        kind: ``read``, ``written``, ``forgotten``, ``conversation`` or ``model``: a colour and a
            word of its own.
        text: What happened.
    """

    kind: str
    text: str


KINDS = {
    "read": "Looked up",
    "written": "Remembered",
    "forgotten": "Forgotten",
    "conversation": "Conversation",
    "model": "Model",
    "other": "Other",
}

_KIND_OF = {
    "recall": "read",
    "remember": "written",
    "forget": "forgotten",
    "resume": "conversation",
    "checkpoint": "conversation",
    "model": "model",
}

_WENT_WELL = {
    "recall": "looked up what is remembered about you",
    "remember": "was given something to remember",
    "forget": "deleted something that was remembered",
    "resume": "picked up the conversation where it was left",
    "checkpoint": "saved the state of the conversation",
    "model": "asked a language model",
}

_WENT_WRONG = {
    "degraded": "the store did not answer, and the agent went on without it",
    "timeout": "the store took too long, and the agent went on without it",
    "rejected": "the store was not asked, since it had failed before",
    "error": "it failed",
    "refused": "it was refused, since personal data could not be removed from it first",
    "denied": "it was refused, since it was not clear on whose behalf it was done",
    "cancelled": "it was stopped half-way",
}

_LATER = {
    "appended": "it was kept aside to be written later",
    "replayed": "it was written later, when the store was back",
    "lost": "it was not written",
}


def sentence(document: dict[str, Any]) -> Sentence:
    """Return what to show of one event, as events.jsonl has it, with how many *times* in a row."""
    op_class = document["class"]
    done = _WENT_WELL.get(op_class, document["operation"])
    times = document["times"]
    often = f" {times:,} times" if times > 1 else ""
    text = f"{_agent(document)} {done}{often}{_ending(document)}."
    return Sentence(_KIND_OF.get(op_class, "other"), text)


def _agent(document: dict[str, Any]) -> str:
    return f"The agent “{document['agent']}”" if document["agent"] else "The agent"


def _ending(document: dict[str, Any]) -> str:
    later = _LATER.get(document["journal"] or "")
    wrong = _WENT_WRONG.get(document["status"])
    if wrong is not None:
        return f": {wrong}" + (f"; {later}" if later else "")
    if later is not None:
        return f": {later}"
    if document["class"] != "recall":
        return ""
    hits = document["hits"]
    if document["status"] == "empty" or hits == 0:
        return ", and found nothing"
    return "" if hits is None else f", and found {counted(hits, 'entry', 'entries')}"


def counted(number: int, one: str, many: str) -> str:
    """Return *number* with its noun."""
    return f"{number:,} {one if number == 1 else many}"

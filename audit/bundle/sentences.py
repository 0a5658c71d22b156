"""Events and memories as sentences that the customer understands."""

from __future__ import annotations

from typing import Any, NamedTuple

from .facts import day_of, joined
from .provenance import THREAD


class Sentence(NamedTuple):
    """
    One event as the page shows it.

    Attributes:
        kind: ``read``, ``written``, ``forgotten``, ``conversation`` or ``model``: a colour and a
            word of its own.
    """

    kind: str
    text: str


KINDS = {
    "read": "Looked up",
    "written": "Remembered",
    "forgotten": "Deleted",
    "conversation": "Conversation",
    "model": "Model",
    "other": "Other",
}

# The page's filter has fewer kinds than there are classes: a person tells read from written, not
# resume from checkpoint.
_KIND_OF = {
    "recall": "read",
    "remember": "written",
    "forget": "forgotten",
    "resume": "conversation",
    "checkpoint": "conversation",
    "model": "model",
}

_WENT_WELL = {
    "recall": "looked up something to answer you",
    "remember": "was given something to remember",
    "forget": "deleted something that was remembered",
    "resume": "picked up the conversation where it was left",
    "checkpoint": "saved the conversation",
    "model": "asked a language model",
}

_WENT_WRONG = {
    "partial": "a part of it was left out",
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

_TOTALS = {
    "recall": ("looked up once", "looked up {} times"),
    "remember": ("remembered something once", "remembered something {} times"),
    "forget": ("deleted something once", "deleted something {} times"),
    "resume": ("the conversation was picked up once", "the conversation was picked up {} times"),
    "checkpoint": ("the conversation was saved once", "the conversation was saved {} times"),
    "model": ("a language model was asked once", "a language model was asked {} times"),
}


def sentence(document: dict[str, Any]) -> Sentence:
    """Return what to show of one event, as events.jsonl has it, with how many *times* in a row."""
    op_class = document["class"]
    done = _WENT_WELL.get(op_class, document["operation"])
    times = document["times"]
    again = f" {often(times)}" if times > 1 else ""
    text = f"{agent(document['agent'])} {done}{again}{_ending(document)}."
    return Sentence(_KIND_OF.get(op_class, "other"), text)


def agent(name: str | None) -> str:
    """Return an agent as the beginning of a sentence."""
    return f"The agent “{name}”" if name else "An agent"


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


def totals(counts: dict[str, int]) -> str:
    """Return what was done in a conversation, as one sentence."""
    done = [
        one if counts[name] == 1 else many.format(f"{counts[name]:,}")
        for name, (one, many) in _TOTALS.items()
        if counts.get(name)
    ]
    return f"{joined(done).capitalize()}." if done else ""


def story(record: dict[str, Any]) -> str:
    """Return where a memory came from, and how often it was used."""
    if record["kind"] == THREAD:
        return " ".join(filter(None, ("A conversation, as it was last saved.", _changed(record))))
    return " ".join(each for each in (_came_from(record), _changed(record), _used(record)) if each)


def _came_from(record: dict[str, Any]) -> str:
    came_from = record["came_from"]
    if came_from is None:
        since = day_of(record["created"])
        kept = f"Kept since {since}. " if since else ""
        return f"{kept}Where it came from is not recorded."
    who, day = agent(came_from["agent"]), day_of(came_from["occurred_at"])
    purpose = f" (purpose: {came_from['purpose']})" if came_from["purpose"] else ""
    return f"{_origin(record['origin'], came_from['kind'], who, day)}{purpose}."


def _origin(origin: str | None, kind: str | None, who: str, day: str) -> str:
    if origin == "provided":
        return f"You said this on {day}, and {_inside(who)} noted it"
    if origin == "inferred" and kind == "user_message":
        return f"{who} worked this out from what you said on {day}"
    if origin == "inferred":
        return f"{who} wrote this on {day}, in its own words"
    if origin == "observed":
        return f"{who} took this from another system on {day}"
    return f"{who} stored this on {day}; who said it is not recorded"


def _inside(who: str) -> str:
    return who[:1].lower() + who[1:]


def _changed(record: dict[str, Any]) -> str:
    changed = day_of(record["updated"])
    return f"Last changed on {changed}." if changed not in {"", day_of(record["created"])} else ""


def _used(record: dict[str, Any]) -> str:
    used = record["used"]
    if not used["times"]:
        return "Not looked up since." if record["came_from"] else ""
    last = "" if used["times"] == 1 else ", last"
    return f"Looked up {often(used['times'])}{last} on {day_of(used['last'])}."


def often(number: int) -> str:
    """Return how often something was done."""
    return "once" if number == 1 else f"{number:,} times"


def counted(number: int, one: str, many: str) -> str:
    """Return *number* with its noun."""
    return f"{number:,} {one if number == 1 else many}"

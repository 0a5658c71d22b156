"""
Scripted trajectories of agents: some get somewhere, some do not, and their texts do not tell.

The two halves share no words: what was tuned on one is not known to the other. The generator is
seeded, so that both are the same in every run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum
from random import Random
from typing import NamedTuple


class Half(Enum):
    """Which half: thresholds are tuned on the first, figures are told of the second."""

    DEVELOPMENT = 0
    EVALUATION = 1


class Step(NamedTuple):
    """
    One turn of an agent.

    Attributes:
        node: Where.
        text: What the model said there.
        recalled: Ids of the memories that it found.
        tool: The tool call, with its arguments.
        answer: What the tool answered.
        written: What it wrote.
    """

    node: str
    text: str
    recalled: tuple[str, ...] = ()
    tool: str = ""
    answer: str = ""
    written: str = ""


@dataclass(frozen=True, slots=True)
class Trajectory:
    """
    What one agent did.

    Attributes:
        family: ``converging``, ``stagnating`` or ``looping``.
        kind: Which kind of them.
        steps: Its turns.
        is_stuck: Whether it is to be stopped before its last turn has ended.
    """

    family: str
    kind: str
    steps: tuple[Step, ...]
    is_stuck: bool


_SUBJECTS = (
    (
        ("introduction", "opening", "first section"),
        ("table of figures", "numbers in the table", "tabulated values"),
        ("greeting", "salutation", "first line of the letter"),
        ("list of sources", "references", "bibliography"),
        ("chart of sales", "sales diagram", "graph of the revenue"),
        ("summary", "abstract", "overview at the top"),
        ("paragraph on prices", "pricing section", "part about cost"),
        ("last sentence", "closing line", "final words"),
        ("method", "procedure", "way it was measured"),
        ("quote of the customer", "customer's words", "testimonial"),
        ("legal notice", "disclaimer", "small print"),
        ("title", "headline", "heading of the page"),
    ),
    (
        ("login form", "sign-in page", "authentication dialog"),
        ("database index", "index on the table", "lookup structure"),
        ("error message", "failure text", "text of the exception"),
        ("retry loop", "repetition of the request", "code that tries again"),
        ("cache", "stored results", "buffer of earlier answers"),
        ("date parser", "reading of dates", "conversion of timestamps"),
        ("menu", "navigation bar", "list of links"),
        ("upload of files", "file transfer", "sending of attachments"),
        ("colour of the button", "button's shade", "tint of the control"),
        ("unit test", "automatic check", "test of the function"),
        ("config file", "settings file", "file of options"),
        ("memory use", "RAM footprint", "consumption of memory"),
    ),
)
_PROBLEMS = (
    (
        ("is too long", "should be shortened", "needs trimming", "runs on for too many words"),
        ("lacks evidence", "has no proof", "is not supported by anything", "needs a source"),
        ("is hard to follow", "reads confusingly", "is unclear", "would puzzle a reader"),
        ("has the wrong tone", "sounds too casual", "is not formal enough", "feels chatty"),
        ("repeats itself", "says the same twice", "is redundant", "contains a duplicate"),
        ("is out of date", "is no longer current", "was right last year only", "needs refreshing"),
    ),
    (
        ("is too slow", "takes too long", "should be sped up", "has poor performance"),
        (
            "breaks on empty input",
            "fails without data",
            "cannot handle nothing",
            "crashes if blank",
        ),
        ("leaks secrets", "reveals passwords", "exposes credentials", "shows private keys"),
        ("is not documented", "has no explanation", "lacks a description", "needs a comment"),
        ("ignores the time zone", "forgets about UTC", "assumes local time", "mixes up the zones"),
        ("is never closed", "stays open", "is not released", "leaks a handle"),
    ),
)
_FRAMES = (
    (
        "The {subject} {problem}.",
        "Looking at it once more, the {subject} {problem}.",
        "My main point is that the {subject} {problem}, so please revise it.",
        "I still think the {subject} {problem}.",
    ),
    (
        "I found that the {subject} {problem}.",
        "Again: the {subject} {problem}.",
        "What has to change is this: the {subject} {problem}.",
        "On review the {subject} {problem}, which is not acceptable.",
    ),
)
_WAITING = (
    (
        "Nothing conclusive yet, going on with the next part of the list.",
        "Nothing conclusive so far, I go on with the next part of the list.",
    ),
    (
        "This one gives no answer either, checking the following entry.",
        "This one gives no answer, so I am checking the following entry.",
    ),
)


class _Writer:
    """Writes the texts and ids of one half."""

    def __init__(self, half: Half, rng: Random) -> None:
        self._rng = rng
        self._subjects = _SUBJECTS[half.value]
        self._problems = _PROBLEMS[half.value]
        self._frames = _FRAMES[half.value]
        self._waiting = _WAITING[half.value]

    def points(self, count: int) -> list[tuple[int, int]]:
        """Return different points to make, each a subject and a problem."""
        every = [(s, p) for s in range(len(self._subjects)) for p in range(len(self._problems))]
        return self._rng.sample(every, count)

    def verbatim(self, point: tuple[int, int]) -> str:
        """Return the text of a point: always the same."""
        subject, problem = self._subjects[point[0]][0], self._problems[point[1]][0]
        return self._frames[0].format(subject=subject, problem=problem)

    def in_other_words(self, point: tuple[int, int]) -> str:
        """Return a text that makes a point."""
        pick = self._rng.choice
        return pick(self._frames).format(
            subject=pick(self._subjects[point[0]]), problem=pick(self._problems[point[1]])
        )

    def waiting(self) -> str:
        """Return what an agent says while it works through a list."""
        return self._rng.choice(self._waiting)

    def ids(self, count: int = 3) -> tuple[str, ...]:
        """Return ids of memories."""
        return tuple(f"m-{self._rng.randrange(10**6)}" for _ in range(count))


def _converging(w: _Writer, rng: Random) -> tuple[str, list[Step], bool]:
    """Make points until the answer is there, which is then said once more."""
    kind = rng.choice(["text", "tools", "memory"])
    steps = []
    points = w.points(rng.randint(4, 9))
    for number, point in enumerate(points):
        recalled = w.ids() if kind == "memory" else ()
        tool = f"edit:{number}" if kind == "tools" else ""
        steps.append(Step("draft", w.in_other_words(point), recalled, tool))
    for _ in range(rng.randint(1, 2)):
        steps.append(steps[-1]._replace(text=w.in_other_words(points[-1])))
    return kind, steps, False


def _seems_stagnant(w: _Writer, rng: Random) -> tuple[str, list[Step], bool]:
    """Say next to the same each time, while work is done."""
    kind = rng.choice(["pages", "finds", "writes", "retries"])
    steps: list[Step] = []
    for number in range(rng.randint(6, 12)):
        if kind == "pages":
            profile, page = ("m-1", "m-2"), f"page {number}"
            steps.append(Step("search", w.waiting(), profile, f"fetch:{number}", page))
        elif kind == "finds":
            steps.append(Step("search", w.waiting(), w.ids(), f"look:{number}"))
        elif kind == "writes":
            found = ("m-1", "m-2")
            steps.append(Step("note", w.waiting(), found, "list", "", f"note {number}"))
        else:
            step = Step("search", w.in_other_words(w.points(1)[0]), w.ids(), f"call:{number}")
            steps += [step] * rng.randint(1, 3)
    return f"seems:{kind}", steps, False


def _stagnates(w: _Writer, rng: Random) -> tuple[str, list[Step], bool]:
    """Work for a while, then find nothing new any more."""
    kind = rng.choice(["same finds", "same call", "other queries"])
    steps = []
    for number, point in enumerate(w.points(rng.randint(2, 5))):
        steps.append(Step("work", w.in_other_words(point), w.ids(), f"look:{number}"))
    last, point = steps[-1], w.points(1)[0]
    for number in range(rng.randint(9, 12)):
        text, found = w.in_other_words(point), last.recalled
        if kind == "other queries":
            tool = f"reworded:{number}"
            steps.append(Step("work", text, found, tool, answer=" ".join(found)))
        else:
            steps.append(Step("work", text, found, last.tool if kind == "same call" else ""))
    return f"dies:{kind}", steps, True


def _loops(w: _Writer, rng: Random) -> tuple[str, list[Step], bool]:
    """Go through the same nodes again and again, with the same to say."""
    length, words = rng.randint(1, 3), rng.choice(["verbatim", "paraphrase"])
    signals = rng.choice(["text", "tools", "memory", "both"])
    nodes = ["plan", "write", "criticise"][:length]
    points = dict(zip(nodes, w.points(length), strict=True))
    found = {node: w.ids() for node in nodes}
    steps = [
        Step(node, w.in_other_words(w.points(1)[0]), w.ids(), "begin")
        for node in nodes
        if rng.random() < 0.5
    ]
    for _ in range(rng.randint(9, 12)):  # a loop does not end by itself
        for node in nodes:
            say: Callable[[tuple[int, int]], str] = w.verbatim
            if words == "paraphrase":
                say = w.in_other_words
            recalled = found[node] if signals in {"memory", "both"} else ()
            tool = f"call:{node}" if signals in {"tools", "both"} else ""
            steps.append(Step(node, say(points[node]), recalled, tool))
    return f"{words}:{signals}", steps, True


def trajectories(half: Half, count: int = 150) -> Iterator[Trajectory]:
    """Yield *count* trajectories of one half: a third of each family."""
    rng = Random(f"trajectories-{half.name}")  # noqa: S311 - the same in every run
    writer = _Writer(half, rng)
    for number in range(count):
        family = ("converging", "stagnating", "looping")[number % 3]
        make = {"converging": _converging, "looping": _loops}.get(family)
        if make is None:
            make = _stagnates if number % 2 else _seems_stagnant
        kind, steps, is_stuck = make(writer, rng)
        yield Trajectory(family, kind, tuple(steps), is_stuck)

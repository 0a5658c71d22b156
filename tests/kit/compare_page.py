"""The page that compares tools, made of what was seen of each."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

COLUMNS: Final = {
    "mnemoscope": "mnemoscope",
    "openlit": "openlit",
    "traceloop": "Traceloop",
    "openinference": "OpenInference",
    "langfuse": "Langfuse",
    "langsmith": "LangSmith",
}
BY_DEFAULT: Final = {name: "off" if name == "mnemoscope" else "on" for name in COLUMNS}
"""Whether content is on spans where nobody has said anything of it."""

INTRODUCTION: Final = """\
# The same run in six tools, and three guards

One LangGraph agent, run three times under each tool. It recalls from mem0 and from a store, asks
Qdrant twice (one collection is missing), calls a tool and a model, adds to mem0, whose model
extracts a fact, writes to the store, and saves checkpoints. Models are scripted, and what a tool
exports is received as OpenTelemetry spans.

`make compare` builds an environment for each tool, runs all this and writes this page. Nothing in
it is written by hand, but for ours, which runs in the environment of this project's tests. What is
installed and set up for each is in `benchmarks/compare/compare.py` and `scenario.py`. Of Traceloop
it is the instrumentations of LangChain and Qdrant. Whether there is one of mem0 was not looked up.
Of LangSmith it is its tracing of LangChain, exported by OpenTelemetry.

"yes" means that a span has a name like that, by patterns that the authors of mnemoscope wrote, in
`benchmarks/compare/spans.py`, for names that they know. All names that were seen are below, for
you to judge by. Cost is not compared. openlit fetches prices over a network, which there was none
of, and back ends have prices of their own. Nor is time, which needs a quiet machine and equal
settings.

It compares spans alone. What a back end makes of them is not in it, nor are prompt management,
evaluations and datasets, which openlit and Langfuse have and mnemoscope has not. Nor are the audit
trail, budgets and rules, which mnemoscope has.
"""

GUARDS: Final = """\
## What a guard keeps

Questions whose good answer is yes, or all, asked of a store and a checkpointer in memory, by
`benchmarks/compare/guards.py`. They are ours. Others would ask what their authors had in mind. Each
guard is set up as its documentation has it. Ours enforces tenancy, and has the rule Origin with one
purpose that demands trust. "Their" attacks and harmless texts are those that agent-memory-guard is
graded by in its own package.

"""

AGAINST: Final = """\
## What is not in our favour

Where another one has a yes and mnemoscope a no, or more of a number, in the tables above:
"""

Row = Callable[[Mapping[str, Any], str], str]


def page_of(seen: Mapping[str, Any]) -> str:
    """Return the page, in Markdown."""
    tools = {name: seen["tools"][name] for name in COLUMNS if name in seen["tools"]}
    parts = [INTRODUCTION, f"Python {seen['python']}.\n"]
    for title, rows in (
        ("What is seen", _seen(tools)),
        ("What is right", _right()),
        ("What leaves of a person", _personal(tools)),
    ):
        parts.append(f"## {title}\n\n{_table(tools, rows)}")
    parts.append(_guards(seen["guards"]))
    parts.append(_against(tools, seen["guards"]))
    parts.append(_names(tools))
    return "\n".join(parts)


def _table(tools: Mapping[str, Any], rows: Iterable[tuple[str, Row]]) -> str:
    head = ["", *(COLUMNS[name] for name in tools)]
    lines = [head, ["---"] * len(head)]
    lines += ([what, *(row(tools[name], name) for name in tools)] for what, row in rows)
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def _figures(seen: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    return seen[BY_DEFAULT[name]]["figures"]  # type: ignore[no-any-return]


def _truth(seen: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    return seen[BY_DEFAULT[name]]["truth"]  # type: ignore[no-any-return]


def _seen(tools: Mapping[str, Any]) -> Iterator[tuple[str, Row]]:
    yield "version", _version
    yield "spans of three runs", lambda seen, name: str(_figures(seen, name)["spans"])
    yield "traces of three runs", lambda seen, name: str(_figures(seen, name)["traces"])
    yield "spans without their parent", lambda seen, name: str(_figures(seen, name)["orphans"])
    first = next(iter(tools))
    for what in _figures(tools[first], first)["operations"]:
        yield what, lambda seen, name, what=what: _yes(_figures(seen, name)["operations"][what])


def _right() -> Iterator[tuple[str, Row]]:
    yield (
        "tokens, of mem0's model too",
        lambda seen, name: _exact(
            [_figures(seen, name)[each] for each in ("input_tokens", "output_tokens")],
            [_truth(seen, name)[each] for each in ("input_tokens", "output_tokens")],
        ),
    )
    yield (
        "a span of the failed query has the status error",
        lambda seen, name: _yes(
            [each for each in _figures(seen, name)["failed"] if "q" in each.lower()]
        ),
    )
    yield "ids of recalled memories", lambda seen, name: _yes(_figures(seen, name)["memory_ids"])
    yield "scores of recalls", lambda seen, name: _yes(_figures(seen, name)["scores"])


def _personal(tools: Mapping[str, Any]) -> Iterator[tuple[str, Row]]:
    del tools
    yield (
        "prompts and answers are shown by default",
        lambda _seen, name: _yes(BY_DEFAULT[name] == "on"),
    )
    yield "in the clear, content shown", lambda seen, _name: _leaked(seen["on"]["figures"])
    yield "in the clear, content not shown", lambda seen, _name: _leaked(seen["off"]["figures"])
    yield (
        "with content shown, an answer can be read",
        lambda seen, _name: _yes(seen["on"]["figures"]["is_readable"]),
    )


def _version(seen: Mapping[str, Any], name: str) -> str:
    versions = {*_truth(seen, name)["versions"].values()}
    return "this one" if name == "mnemoscope" else ", ".join(sorted(versions))


def _yes(found: Any) -> str:
    return "yes" if found else "no"


def _exact(told: Sequence[float], true: Sequence[float]) -> str:
    if not any(told):
        return "no"
    if all(abs(one - other) < 1e-9 for one, other in zip(told, true, strict=True)):
        return "exact"
    return " + ".join(f"{one:g} of {other:g}" for one, other in zip(told, true, strict=True))


def _leaked(figures: Mapping[str, Any]) -> str:
    places = figures["canaries"]
    return f"{len(places)} of {figures['planted']}" + (f": {', '.join(places)}" if places else "")


def _guards(guards: Mapping[str, Any]) -> str:
    head = ["", *(_guard(name, each) for name, each in guards.items())]
    lines = [head, ["---"] * len(head)]
    for question in guards["none"]["answers"]:
        given = (each["answers"][question] for each in guards.values())
        answers = (each if isinstance(each, str) else _yes(each) for each in given)
        lines.append([question, *answers])
    return GUARDS + "".join(f"| {' | '.join(line)} |\n" for line in lines)


def score_of(answer: bool | str) -> int:
    """Return how good an answer is: yes and no, or how many ``n of m``."""
    return int(answer.partition(" ")[0]) if isinstance(answer, str) else int(answer)


def _guard(name: str, told: Mapping[str, Any]) -> str:
    if name == "none":
        return "no guard, or a tool above"
    return name if name == "mnemoscope" else f"{name} {told['version']}"


def _against(tools: Mapping[str, Any], guards: Mapping[str, Any]) -> str:
    """Return what is not in our favour, as the tables have it."""
    lines = [AGAINST]
    for _title, rows in (("", _seen(tools)), ("", _right())):
        for what, row in rows:
            cells = {COLUMNS[name]: row(tools[name], name) for name in tools}
            better = [name for name, cell in cells.items() if cell in {"yes", "exact"}]
            if cells["mnemoscope"] == "no" and better:
                lines.append(f"* {what}: {', '.join(better)}.")
    for question, answer in guards["mnemoscope"]["answers"].items():
        better = [
            f"{name} {each['answers'][question]}".removesuffix(" True")
            for name, each in guards.items()
            if score_of(each["answers"][question]) > score_of(answer)
        ]
        if better:
            lines.append(f"* {question}: {', '.join(better)}.")
    return "\n".join(lines) + "\n"


def _names(tools: Mapping[str, Any]) -> str:
    lines = ["## Names of all spans\n"]
    for name, seen in tools.items():
        names = ", ".join(f"`{each}`" for each in _figures(seen, name)["names"])
        lines.append(f"* {COLUMNS[name]}: {names}")
    return "\n".join(lines) + "\n"

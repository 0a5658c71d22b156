"""Recorded routes, and what the command that replays them says, as a test reads it."""

from __future__ import annotations

import json
import re
import sys
from contextlib import redirect_stdout
from io import StringIO
from types import ModuleType
from typing import Any, NamedTuple

from mnemoscope.memory import Mnemoscope
from tests.kit.command_line import run
from tests.kit.patience import GIVE_UP_S

MODULE = "replayed_graph"


class Replayed(NamedTuple):
    """
    What a replay of a run says.

    Attributes:
        route: Its supersteps as people read them.
        names: The same, as they are compared.
        findings: Check, answer and text of those that are not well; those of `undecided` left out.
        decided: Supersteps whose successors were found again; 0 where a router differs.
        undecided: Decisions of routers that could not be made again, by why.
        code: The exit code.
    """

    route: list[str]
    names: list[tuple[list[str], list[str]]]
    findings: list[tuple[str, str, str]]
    decided: int
    undecided: dict[str, int]
    code: int


def replayed(scope: Mnemoscope, graph: Any, name: str | None, *options: str) -> Replayed:
    """Return what ``mnemoscope audit replay`` says of a run. None: no graph, or no run by name."""
    assert scope.flush(timeout_s=GIVE_UP_S)
    module: Any = sys.modules.setdefault(MODULE, ModuleType(MODULE))
    module.graph = graph
    arguments = [*options, *(("--run", name) if name else ())]
    arguments += ["--graph", f"{MODULE}:graph"] if graph is not None else []
    with redirect_stdout(StringIO()) as printed:
        code = run(["audit", "replay", "--json", *arguments])
    (found,) = json.loads(printed.getvalue())
    said = [(each["check"], each["answer"], each["said"]) for each in found["findings"]]
    texts = [text for _check, _answer, text in said]
    undecided = [
        each for each in (re.fullmatch(r"(\d+) decisions: (.*)", t) for t in texts) if each
    ]
    decided = re.search(r"(\d+) successors are the same", "\n".join(texts))
    return Replayed(
        [f"{each['step']} {each['text']}" for each in found["route"]],
        [(each["path"], each["nodes"]) for each in found["route"]],
        [each for each in said if each[1] != "ok" and " decisions: " not in each[2]],
        int(decided[1]) if decided else 0,
        {each[2]: int(each[1]) for each in undecided},
        code,
    )

"""
Measures `Origin` against attacks that others have published, and on conversations without any.

    python -m benchmarks.origin [--conversations FOLDER] [--strings N]

The OWASP memory guard's own benchmark (agent-memory-guard) goes through an adapter. The strings of
AgentDojo and of inspect-evals (AgentThreatBench and b3) come in by an external tool, and are
laundered by summary, echo, a second agent, a later run and another process; they are read from the
installed packages, and none is kept. Conversations are LoCoMo's, as a person said them, as the
agent's own reflection, and, for comparison, as an external tool's answer.
"""

from __future__ import annotations

import argparse
import ast
import importlib.util
import json
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from langgraph.store.memory import InMemoryStore
from rich.console import Console

from mnemoscope.memory import Mnemoscope, Origin, Trust, context, load_settings
from mnemoscope.memory.errors import MnemoscopeError
from tests.kit.laundering import PURPOSE, Stores, an_agent, hand_on, told_by_a_person, wash
from tests.kit.patience import GIVE_UP_S

_CONSOLE = Console(highlight=False, soft_wrap=True)
_PLACE = ("facts",)
_SOURCES = {
    "external_tool": Trust.EXTERNAL_TOOL,
    "agent_authored": Trust.OWN_REFLECTION,
    "user_input": Trust.PERSON,
    "system": Trust.INTERNAL_TOOL,
}


def main() -> None:
    """Run what there is data for, and print every figure; end with 1 if a goal is missed."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    parser.add_argument("--conversations", type=Path)
    parser.add_argument("--strings", type=int, help="of each source at most; default: all")
    given = parser.parse_args()
    met = [_guard_benchmark(), _strings(given.strings), _benign(given.conversations)]
    sys.exit(0 if all(met) else 1)


def _origin(hold: Trust | None = None) -> Origin:
    return Origin(demands={PURPOSE: Trust.INTERNAL_TOOL}, hold=hold)


def _scope(folder: str | Path, origin: Origin) -> Mnemoscope:
    settings = load_settings(
        sinks="audit",
        audit_url=f"sqlite:///{folder}/audit.db",
        pii_model="none",
        audit_pseudonym_key="ab" * 32,
    )
    return Mnemoscope(settings, rules=[origin])


# -- OWASP's benchmark -----------------------------------------------------------------------------


def _guard_benchmark() -> bool:
    from agent_memory_guard.bench.adapter import MemorySystemAdapter, RememberOutcome
    from agent_memory_guard.bench.harness import run_suite
    from agent_memory_guard.bench.scoring import score_report

    class Guarded(MemorySystemAdapter):  # type: ignore[misc, unused-ignore]
        """A store of LangGraph's behind an `Origin`; a reset is another process on it."""

        name = "mnemoscope"
        hold: Trust | None = None

        def __init__(self) -> None:
            self._inner, self._runs = InMemoryStore(), 0
            self._folder = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
            self._begin()

        def _begin(self) -> None:
            self._origin = _origin(self.hold)
            self._scope = _scope(self._folder.name, self._origin)
            self._store = self._scope.store(self._inner)

        def remember(self, key: str, value: Any, *, source_class: str = "external_tool") -> Any:
            self._runs += 1
            with (
                context(run=f"r-{id(self)}-{self._runs}"),
                self._origin.reading(_SOURCES.get(source_class, Trust.EXTERNAL_TOOL)),
            ):
                self._store.put(_PLACE, key, {"text": value})
            return RememberOutcome.STORED

        def recall(self, key: str) -> Any:
            with context(run=f"recall-{id(self)}", purpose=PURPOSE):
                found = self._store.get(_PLACE, key)
            return None if found is None else found.value["text"]

        def context_reset(self) -> None:
            self._scope.flush(GIVE_UP_S)
            self._scope.close()
            self._begin()

    class Holding(Guarded):
        """The same, which also holds what is suspicious."""

        name = "mnemoscope, holding"
        hold = Trust.OTHER_AGENT

    met = True
    for system in (Guarded, Holding):
        card = score_report(run_suite(system))
        _CONSOLE.print(
            f"{card.system}: score {card.score:.1f}, {card.defended_total} of "
            f"{card.malicious_total} attacks defended, {card.false_positives} of "
            f"{card.benign_total} benign ones lost"
        )
        met &= card.score >= 95 and not card.false_positives
    return met


# -- attacks, laundered ----------------------------------------------------------------------------


def _strings(most: int | None) -> bool:
    met = True
    for name, read in _SETS.items():
        texts = list(dict.fromkeys(read()))[:most]
        began = time.perf_counter()
        admitted, ways, control = _laundered(texts)
        seconds = time.perf_counter() - began
        _CONSOLE.print(
            f"{name}: {len(texts)} strings, {ways} memories laundered; for {PURPOSE} "
            f"{admitted} were recalled, and {control} of a person's ({seconds:.0f} s); "
            f"{_held(texts, Trust.EXTERNAL_TOOL)} of the strings would be held"
        )
        met &= not admitted and control == len(texts)
    return met


def _laundered(texts: list[str]) -> tuple[int, int, int]:
    """Return how much of *texts* is admitted, of how many memories, and how much of a person's."""
    stores = Stores()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        with an_agent(stores, Path(folder)) as agent:
            washed = [wash(agent, text) for text in texts]
            own = {told_by_a_person(agent, f"number {place}") for place, _ in enumerate(texts)}
            found = {*agent.recalled()}
        with an_agent(stores, Path(folder)) as agent:
            further = [hand_on(agent, keys) for keys in washed]
            found |= {*agent.recalled()}
    stores.qdrant.close()
    keys = {key for each in (*washed, *further) for key in each.values()}
    return len(found & keys), len(keys), len(found & own)


def _package(name: str) -> Path:
    found = importlib.util.find_spec(name)
    if found is None or found.origin is None:
        raise SystemExit(f"{name} is not installed: run make bench-origin")
    return Path(found.origin).parent


def _agentdojo() -> Iterator[str]:
    """Yield the goals of all injection tasks, bare and in each of the attacks' frames."""
    folder = _package("agentdojo")
    goals = [
        goal
        for path in sorted(folder.glob("default_suites/*/*/injection_tasks.py"))
        for goal in _goals(path)
    ]
    frames = [
        text
        for path in sorted(folder.glob("attacks/*.py"))
        for text in _constants(path)
        if "{goal}" in text
    ]
    goals = list(dict.fromkeys(goals))
    yield from goals
    for place, goal in enumerate(goals):
        yield frames[place % len(frames)].replace("{goal}", goal)
    yield from (frame.replace("{goal}", goals[0]) for frame in frames)


def _goals(path: Path) -> Iterator[str]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    known: dict[str, str] = {}
    for node in ast.walk(tree):
        target = _assigned(node)
        if target is None:
            continue
        name, value = target
        text = _text(value, known)
        if text is not None:
            known[name] = text
            if name == "GOAL":
                yield text


def _assigned(node: ast.AST) -> tuple[str, ast.expr] | None:
    if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
        return node.targets[0].id, node.value
    if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.value:
        return node.target.id, node.value
    return None


def _text(value: ast.expr, known: dict[str, str]) -> str | None:
    """Return the text of a literal; what is put in from elsewhere goes by its name."""
    if isinstance(value, ast.Constant) and isinstance(value.value, str):
        return value.value
    if isinstance(value, ast.JoinedStr):
        parts = (
            each.value if isinstance(each, ast.Constant) else _put_in(each, known)
            for each in value.values
        )
        return "".join(map(str, parts))
    return None


def _put_in(part: ast.expr, known: dict[str, str]) -> str:
    source = ast.unparse(part.value) if isinstance(part, ast.FormattedValue) else ""
    return known.get(source, source)


def _constants(path: Path) -> Iterator[str]:
    """Yield the texts in a module; those that stand side by side are one already."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


def _threat_bench() -> Iterator[str]:
    """Yield the memories of AgentThreatBench's poisoned stores."""
    path = _package("inspect_evals") / "agent_threat_bench" / "data" / "memory_poison.json"
    for case in json.loads(path.read_text(encoding="utf-8")):
        yield from case["memory_store"].values()


def _b3() -> Iterator[str]:
    """Yield all texts of b3's threat snapshots that are longer than a label."""
    folder = _package("inspect_evals") / "b3" / "data" / "threat_snapshots"
    for path in sorted(folder.rglob("*.json")):
        yield from (each for each in _leaves(json.loads(path.read_text("utf-8"))) if " " in each)


def _leaves(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for each in value.values():
            yield from _leaves(each)
    elif isinstance(value, list):
        for each in value:
            yield from _leaves(each)


_SETS: dict[str, Callable[[], Iterator[str]]] = {
    "AgentDojo": _agentdojo,
    "AgentThreatBench, memory_poison": _threat_bench,
    "b3, threat snapshots": _b3,
}


# -- no attacks ------------------------------------------------------------------------------------


def _benign(folder: Path | None) -> bool:
    if folder is None:
        _CONSOLE.print("benign: not measured, no --conversations")
        return True
    turns = [text for path in sorted(folder.glob("*.json")) for text in _turns(path)]
    met = True
    for trust in (Trust.PERSON, Trust.OWN_REFLECTION, Trust.EXTERNAL_TOOL):
        held = _held(turns, trust)
        share = held / len(turns)
        _CONSOLE.print(
            f"benign, read from {trust.code}: {held} of {len(turns):,} turns held ({share:.2%})"
        )
        met &= share <= 0.005 or trust is Trust.EXTERNAL_TOOL
    return met


def _turns(path: Path) -> Iterator[str]:
    conversation = json.loads(path.read_text(encoding="utf-8"))
    conversation = conversation.get("conversation", conversation)
    for name, value in conversation.items():
        if name.startswith("session_") and isinstance(value, list):
            yield from (str(each["text"]) for each in value)


def _held(texts: list[str], trust: Trust) -> int:
    """Return how many of *texts* are held, each written by a run of its own that read *trust*."""
    origin, held = _origin(Trust.OTHER_AGENT), 0
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        scope = _scope(folder, origin)
        store = scope.store(InMemoryStore())
        for place, text in enumerate(texts):
            with context(run=f"w-{place}"), origin.reading(trust):
                try:
                    store.put(_PLACE, f"k{place}", {"text": text})
                except MnemoscopeError:
                    held += 1
        scope.close()
    return held


if __name__ == "__main__":
    main()

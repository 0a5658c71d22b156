"""
Processes that take turns: several ways of doing the same, each in a process of its own.

Instrumentation changes a library for its whole process, and another way may need other packages.
The processes take turns, a block of calls each, in an order that is reversed every other round,
while the others wait. So what a busy machine does to one of them it does to all.

A worker says ``{"version": …}`` as JSON on one line, or ``{"missing": …}`` and ends. Then, for each
line on its standard input, it makes a block of calls and answers with what it cost, on one line.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Generator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from operator import sub
from pathlib import Path
from statistics import median
from typing import Any

ROOT = Path(__file__).parents[1]


@dataclass(slots=True)
class Seen:
    """
    What one way costs, by case and round.

    Attributes:
        version: Of the package behind it, or why there are no figures.
        rounds: What each block of calls cost, as the worker has told it.
    """

    version: str
    rounds: dict[str, list[dict[str, Any]]] = field(default_factory=dict[str, list[dict[str, Any]]])

    def us(self, case: str, what: str) -> float:
        """Return the median of the rounds."""
        return median(each[what] for each in self.rounds[case])

    def added_us(self, case: str, bare: Seen, what: str) -> float:
        """Return the median of what each round took above the same of *bare*."""
        return median(map(sub, self._each(case, what), bare._each(case, what)))

    def _each(self, case: str, what: str) -> list[float]:
        return [each[what] for each in self.rounds[case]]


def measured(
    pythons: Mapping[str, Path], worker: str, cases: Mapping[str, str], rounds: int
) -> dict[str, Seen]:
    """
    Measure every way in turns.

    Args:
        pythons: The interpreter that has it, by way.
        worker: Module that is run with the name of a way.
        cases: What the worker is asked for, by case. A way answers ``null`` to what it cannot do.
        rounds: How many count; one before them does not.
    """
    with ExitStack() as running:
        asked = {
            way: running.enter_context(_process(path, worker, way))
            for way, path in pythons.items()
            if path.exists()
        }
        seen = {way: Seen("not installed") for way in pythons}
        seen |= {way: Seen(_first(process)) for way, process in asked.items()}
        ways = [way for way in asked if asked[way].poll() is None]
        for number in range(rounds + 1):
            for case, words in cases.items():
                for way in list(ways if number % 2 else ways[::-1]):
                    line = _answer(asked[way], words)
                    if not line:
                        ways.remove(way)
                        seen[way] = Seen("failed")
                    elif number and (told := json.loads(line)) is not None:
                        seen[way].rounds.setdefault(case, []).append(told)
        return seen


@contextmanager
def _process(python: Path, worker: str, way: str) -> Generator[subprocess.Popen[str]]:
    command = [str(python), "-m", worker, way]
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, cwd=ROOT, stderr=subprocess.DEVNULL, **pipes) as process:
        try:
            yield process
        finally:
            process.kill()


def _first(process: subprocess.Popen[str]) -> str:
    """Return the version of what is measured; where it is missing, the process has ended."""
    assert process.stdout is not None
    line = process.stdout.readline()
    told: dict[str, str] = json.loads(line) if line else {}
    if "version" not in told:
        process.wait()
        return "not installed" if "missing" in told else "failed"
    return told["version"]


def _answer(process: subprocess.Popen[str], asked: str) -> str:
    """Return the line that answers *asked*, empty where the process has failed over it."""
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(f"{asked}\n")
    process.stdin.flush()
    return process.stdout.readline()

"""
Measures how long it takes until mnemoscope is there: ``make bench-start ARGS="--rounds N"``.

Each program runs in a process of its own, in turn with an empty one, which it is compared with; the
best of all rounds counts, since whatever else the machine does only adds to it. CPU time holds on a
busy machine too, as nearly all of a start is work.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from resource import RUSAGE_CHILDREN, getrusage
from typing import NamedTuple

from benchmarks.tables import Section

COMMAND = "import sys; from mnemoscope.adapters.cli.root import run; run({})"
RELAYED = """
import os
from mnemoscope.memory import configure

folder = os.environ["XDG_DATA_HOME"]
configure(pii_model="none", relay="auto", log_file=f"{folder}/events.jsonl")
"""
EMPTY = "an empty program"
PROGRAMS = {
    EMPTY: ("", None),
    "`import mnemoscope.memory`": ("import mnemoscope.memory", 50),
    "`configure()`": ("from mnemoscope.memory import configure; configure(pii_model='none')", 150),
    "`configure(relay='auto')`": (RELAYED, 200),
    "`mnemoscope --help`": (COMMAND.format(["--help"]), 200),
    "`mnemoscope audit export --help`": (COMMAND.format(["audit", "export", "--help"]), None),
}
"""Programs by what they are called, and milliseconds of CPU that they may add to the empty one."""


class Taken(NamedTuple):
    """Milliseconds that a process took."""

    wall_ms: float
    cpu_ms: float


def taken(program: str, environment: dict[str, str]) -> Taken:
    """Run *program* and return what it took."""
    before, started = getrusage(RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run(
        [sys.executable, "-c", program], env=environment, stdout=subprocess.DEVNULL, check=True
    )
    wall, after = time.perf_counter() - started, getrusage(RUSAGE_CHILDREN)
    cpu = after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
    return Taken(wall * 1e3, cpu * 1e3)


def measured(rounds: int) -> dict[str, Taken]:
    """Return the best that each program took in so many rounds."""
    best = dict.fromkeys(PROGRAMS, Taken(float("inf"), float("inf")))
    # A relay that ends is not waited for.
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        environment = {**os.environ, "XDG_DATA_HOME": folder, "MNEMOSCOPE_SINKS": "logs"}
        # What is installed is compiled already; the first round compiles what is not.
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        for _ in range(rounds):
            for name, (program, _goal) in PROGRAMS.items():
                best[name] = Taken(*map(min, best[name], taken(program, environment)))
    return best


def section(rounds: int) -> Section:
    """Return a table of what each program took."""
    best = measured(rounds)
    empty = best[EMPTY]
    rows = [
        [
            name,
            f"{each.cpu_ms:.0f}",
            f"{each.cpu_ms / empty.cpu_ms:.1f}",
            f"{each.cpu_ms - empty.cpu_ms:.0f}",
            f"≤ {PROGRAMS[name][1]}" if PROGRAMS[name][1] else "",
            f"{each.wall_ms:.0f}",
        ]
        for name, each in best.items()
    ]
    about = (
        f"`make bench-start`: milliseconds of whole processes, the best of {rounds} each, one "
        "sink. Wanted is what may be added to the empty program."
    )
    header = ("", "CPU", "÷ empty", "added", "wanted", "wall")
    return Section("Start-up, whole programs", about, header, rows)


def main() -> None:
    """Measure, and print a line for each program."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=15)
    print(section(parser.parse_args().rounds).markdown())  # noqa: T201 - the answer


if __name__ == "__main__":
    main()

"""
Measures how long it takes until mnemoscope is there: ``make bench-start ARGS="--rounds N"``.

Each program runs in a process of its own, in turn with an empty one, whose time the ratios are to;
the fastest of all rounds counts, since whatever else the machine does only adds to it.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time

COMMAND = "import sys; from mnemoscope.adapters.cli.root import run; run({})"
PROGRAMS = {
    "an empty program": ("", None),
    "import mnemoscope.memory": ("import mnemoscope.memory", 50),
    "configure()": ("from mnemoscope.memory import configure; configure(pii_model='none')", 150),
    "mnemoscope --help": (COMMAND.format(["--help"]), 200),
    "mnemoscope audit export --help": (COMMAND.format(["audit", "export", "--help"]), None),
}
"""Programs by what they are called, and milliseconds that they may take beyond the empty one."""


def took_ms(program: str, environment: dict[str, str]) -> float:
    """Run *program* and return its wall time."""
    started = time.perf_counter()
    subprocess.run(
        [sys.executable, "-c", program], env=environment, stdout=subprocess.DEVNULL, check=True
    )
    return (time.perf_counter() - started) * 1e3


def main() -> None:
    """Measure, and print a line for each program."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=15)
    rounds = parser.parse_args().rounds
    best = dict.fromkeys(PROGRAMS, float("inf"))
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "XDG_DATA_HOME": folder, "MNEMOSCOPE_SINKS": "logs"}
        for _ in range(rounds):
            for name, (program, _goal) in PROGRAMS.items():
                best[name] = min(best[name], took_ms(program, environment))
    empty = best["an empty program"]
    for name, (_program, goal) in PROGRAMS.items():
        ratio, more = best[name] / empty, best[name] - empty
        wanted = f", wanted: {goal} ms" if goal else ""
        print(  # noqa: T201 - the answer
            f"{name:<32} {best[name]:6.0f} ms, {ratio:4.1f} times, {more:5.0f} ms more{wanted}"
        )


if __name__ == "__main__":
    main()

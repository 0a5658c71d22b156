"""
Run mypy and pyright over a right and a wrong program, and compare what they find with the marks.

Usage: python tests/typing/check.py, from the root of the repository.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
PROGRAMS = [HERE / "right.py", HERE / "wrong.py"]
MARK = "# wrong"
FOUND = re.compile(r"^(?P<file>[^:\n]+):(?P<line>\d+)(?::\d+)?: error: (?P<text>.*)$", re.MULTILINE)


def main() -> int:
    """Print each difference. Return 0 where both checkers find what is marked and nothing else."""
    marked = {
        (program.name, number)
        for program in PROGRAMS
        for number, line in enumerate(program.read_text().splitlines(), start=1)
        if line.endswith(MARK)
    }
    differences = 0
    for checker, found in (("mypy", found_by_mypy()), ("pyright", found_by_pyright())):
        for file, line in sorted(marked - found.keys()):
            report(f"{checker}: {file}:{line}: a mistake that is not found")
        for file, line in sorted(found.keys() - marked):
            report(f"{checker}: {file}:{line}: {found[file, line]}")
        differences += len(marked ^ found.keys())
        report(f"{checker}: {len(marked & found.keys())} of {len(marked)} mistakes found")
    return 1 if differences or not marked else 0


def report(line: str) -> None:
    """Print *line*."""
    sys.stdout.write(f"{line}\n")


def found_by_mypy() -> dict[tuple[str, int], str]:
    """Return what mypy says of the programs, by file and line."""
    said = output("mypy", "--no-error-summary", "--no-pretty", *map(str, PROGRAMS))
    return {
        (Path(each["file"]).name, int(each["line"])): each["text"] for each in FOUND.finditer(said)
    }


def found_by_pyright() -> dict[tuple[str, int], str]:
    """Return what pyright says of the programs, by file and line."""
    said = output("pyright", "--pythonpath", sys.executable, "--outputjson", *map(str, PROGRAMS))
    return {
        (Path(each["file"]).name, each["range"]["start"]["line"] + 1): each["message"]
        for each in json.loads(said)["generalDiagnostics"]
        if each["severity"] == "error"
    }


def output(program: str, *arguments: str) -> str:
    """Return what a program beside this Python prints. It fails where it finds something."""
    command = [str(Path(sys.executable).parent / program), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout


if __name__ == "__main__":
    sys.exit(main())

"""
Follows the README and the demo's page word by word, in a clone: ``make readme-check``.

Each command of their blocks, and each that their sentences name, is run as it stands there, in
order, in an empty home. What a reader is to bring is brought: an application of their own, a file
of objectives, a conversation. Needs a package registry, and takes some minutes.

    python -m benchmarks.install.readme --tests
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.kit.empty_environments import ROOT, copy_sources, variables
from tests.kit.printed_pages import blocks_of

INLINE = re.compile(r"`((?:make|mnemoscope|opentelemetry-instrument) [^`]+)`")
SLOW = {
    "make test": "some nine minutes: --tests runs them",
    "make faults": "half an hour: continuous integration injects every fault at a small size",
}
"""Commands that are only looked at, with `make --dry-run`."""

ENDS_WITH = {
    "mnemoscope doctor": {0, 1},  # 1: it warns of what a laptop lacks, and says which
    # Nobody has stated what only the operator knows (--notice).
    "mnemoscope audit export --customer c-42 --scope app:scope": {3},
}
"""Exit codes of those that may end with another than 0."""


def bring(clone: Path, readme: str) -> None:
    """Save the files that the README prints, and make those that its commands name."""
    for block in blocks_of(readme):
        if block.file:
            (clone / block.file).write_text(block.text, encoding="utf-8")
    (clone / "your_app.py").write_text("import qdrant_client\n", encoding="utf-8")
    shutil.copyfile(clone / "examples/demo/conversation.json", clone / "FILE")


def commands_of(readme: str) -> list[str]:
    """Return the commands of blocks and sentences, each once, in the order in which they stand."""
    told: list[str] = []
    for part in re.split(r"(^```console\n.*?^```$)", readme, flags=re.DOTALL | re.MULTILINE):
        blocks = blocks_of(part)
        told += (each for block in blocks for each in block.commands)
        told += [] if part.startswith("```") else INLINE.findall(part)
    return list(dict.fromkeys(told))


def follow(command: str, clone: Path, environment: dict[str, str]) -> str | None:
    """Run a command, and say what came of it; return what is wrong with it."""
    wanted = ENDS_WITH.get(command, {0})
    run = command.replace("make ", "make --dry-run ") if command in SLOW else command
    # Ours is not on the registry under this version yet.
    run = run.replace("'mnemoscope[", f"'{clone}[")
    if "audit erase" in command:  # it asks, and only somebody at a terminal
        run = f"script --quiet --return --command '{run}' /dev/null"
    if "relay" in command:  # it works until it is told to end
        run = f"timeout --preserve-status 5 {run}"
    shutil.rmtree(clone / "DIR", ignore_errors=True)  # each command's own
    started = time.monotonic()
    done = subprocess.run(
        ["bash", "-c", run],  # noqa: S607 - the one on the PATH
        cwd=clone,
        env=environment,
        input="y\n" * 4,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        check=False,
        text=True,
    )
    took = f"{time.monotonic() - started:.1f} s"
    last = next((line for line in reversed(done.stdout.splitlines()) if line.strip(" ─╰╯")), "")
    note = f"dry: {SLOW[command]}" if command in SLOW else last.strip()[:80]
    sys.stdout.write(f"{done.returncode}  {command}  ({took})  {note}\n")
    sys.stdout.flush()
    if done.returncode in wanted:
        return None
    return f"{command}: exit code {done.returncode}\n{done.stdout[-3_000:]}"


def main() -> int:
    """Run from the command line; 0 if every command does what it should."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[1])
    parser.add_argument("--tests", action="store_true", help="run the tests, too")
    if parser.parse_args().tests:
        del SLOW["make test"]
    pages = (ROOT / "README.md", ROOT / "docs/demo.md")
    readme = "\n".join(page.read_text(encoding="utf-8") for page in pages)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        clone = copy_sources(folder / "clone")
        bring(clone, readme)
        environment = variables(folder / "home", clone / ".venv/bin")
        environment["PYTHON"] = str(Path(sys.executable).resolve())
        environment["MNEMOSCOPE_JOURNAL"] = str(folder / "journal.db")
        faults = []
        for command in commands_of(readme):
            if "rules install" in command:
                follow("mnemoscope rules objectives > objectives.yaml", clone, environment)
            faults += filter(None, [follow(command, clone, environment)])
    sys.stdout.write("\n\n".join(faults or ["the README can be followed"]) + "\n")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())

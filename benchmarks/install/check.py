"""
Installs into empty environments, by pip and by uv, without constraints: ``make install-check``.

Once with all that an application has beside us, to see how many versions a resolver must try; then
each quick start in an environment of its own, with the commands and the code that its page tells.
LangGraph's own command looks at the configuration for its platform.
Needs a package registry, and takes some minutes.

    python -m benchmarks.install.check --uv .venv-uv/bin/uv
"""

from __future__ import annotations

import argparse
import re
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from tests.kit.empty_environments import ROOT, Environment, build_wheel
from tests.kit.printed_pages import blocks_of, sections_of

EXTRAS = "mem0,qdrant,langgraph,langsmith,instrument,rules"
BESIDE = ("fastapi", "openai", "anthropic", "httpx")
MOST_TRIED = 2.0
"""Versions that a resolver may try for each package that it installs: one, without conflicts."""

TRIED = {
    "pip": re.compile(r"Reporter\.(?:pinning|rejecting_candidate)\("),
    "uv": re.compile(r"DEBUG Selecting: "),
}
IMPORT = (
    "import time; t = time.perf_counter(); import mnemoscope.memory; print(time.perf_counter() - t)"
)


def say(line: str) -> None:
    """Write a line at once: the next one may take minutes."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def installer(name: str, uv: Path, environment: Environment) -> str:
    """Return the command by which pip or uv installs, saying each version that it tries."""
    if name == "pip":
        return "PIP_RESOLVER_DEBUG=1 pip install"
    return f"{uv.absolute()} pip install -v --python {environment.python}"


def beside_others(name: str, uv: Path, wheel: Path, folder: Path) -> Iterator[str]:
    """Yield what is wrong with installing everything at once."""
    environment = Environment(folder / name)
    wanted = " ".join((f"'{wheel}[{EXTRAS}]'", *BESIDE))
    started = time.monotonic()
    done = environment.run(f"{installer(name, uv, environment)} {wanted}")
    seconds = time.monotonic() - started
    if done.returncode:
        yield f"{name} does not install it beside {', '.join(BESIDE)}:\n{done.stdout[-2_000:]}"
        return
    tried = len(TRIED[name].findall(done.stdout))
    packages = len(list((folder / name).glob("venv/lib/*/site-packages/*.dist-info")))
    say(f"{name}: {packages} packages in {seconds:.0f} s, {tried} versions tried")
    if tried > MOST_TRIED * packages:
        yield f"{name} tried {tried} versions for {packages} packages"
    imported = environment.run(f'python -c "{IMPORT}"')
    if imported.returncode:
        yield f"{name}: import mnemoscope.memory fails:\n{imported.stdout[-2_000:]}"


def quick_start(title: str, section: str, environment: Environment) -> Iterator[str]:
    """Yield what is wrong with one quick start: its commands, and its code as a program."""
    code = []
    for block in blocks_of(section):
        if block.file:
            (environment.folder / block.file).write_text(block.text, encoding="utf-8")
        elif block.language == "python":
            code.append(block.text)
    (environment.folder / "quick_start.py").write_text("\n".join(code), encoding="utf-8")
    commands = [each for block in blocks_of(section) for each in block.commands]
    installs = [each for each in commands if "pip install " in each]
    # What a page tells to run uses the files that its code has made.
    for command in (*installs, "python quick_start.py", *(set(commands) - set(installs))):
        done = environment.run(command)
        if done.returncode:
            yield f"{title}: {command}: exit code {done.returncode}\n{done.stdout[-2_000:]}"
            return


def quick_starts(uv: Path, wheel: Path, folder: Path) -> Iterator[str]:
    """Yield what is wrong with the quick starts."""
    sections = sections_of((ROOT / "docs/quickstarts.md").read_text(encoding="utf-8"))
    for number, (title, section) in enumerate(sections.items()):
        environment = Environment(folder / f"quick-start-{number}")
        # As the page has it, but for where we come from, and by uv, which is quicker.
        told = re.sub(r"'mnemoscope\[", f"'{wheel}[", section)
        told = told.replace("$ pip install", f"$ {uv.absolute()} pip install -q")
        started = time.monotonic()
        found = list(quick_start(title, told, environment))
        said = "fails" if found else "runs"
        say(f"{title}: {said}, in an environment of its own ({time.monotonic() - started:.0f} s)")
        yield from found


def platform(uv: Path, folder: Path) -> Iterator[str]:
    """Yield what LangGraph's own command finds wrong with our configuration for it."""
    page = (ROOT / "docs/platforms.md").read_text(encoding="utf-8")
    environment = Environment(folder / "platform")
    (told,) = re.findall(r"^```json\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)
    (environment.folder / "langgraph.json").write_text(told, encoding="utf-8")
    (agent,) = (block.text for block in blocks_of(page) if block.file == "agent.py")
    (environment.folder / "agent.py").write_text(agent, encoding="utf-8")
    (environment.folder / "pyproject.toml").write_text("[project]\nname = 'agent'\nversion = '1'\n")
    environment.run(f"{uv.absolute()} pip install -q --python {environment.python} langgraph-cli")
    for command in ("langgraph validate", "langgraph dockerfile Dockerfile"):
        done = environment.run(command)
        said = "fails" if done.returncode else "takes"
        say(f"{command}: {said} the langgraph.json of docs/platforms.md")
        if done.returncode:
            yield f"{command}: exit code {done.returncode}\n{done.stdout[-2_000:]}"


def main() -> int:
    """Run from the command line; 0 if everything installs and runs."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[1])
    parser.add_argument("--uv", type=Path, required=True, help="uv's own command")
    uv = parser.parse_args().uv
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        wheel = build_wheel(folder)
        faults = [
            *beside_others("uv", uv, wheel, folder),
            *beside_others("pip", uv, wheel, folder),
            *quick_starts(uv, wheel, folder),
            *platform(uv, folder),
        ]
    say("\n".join(faults or ["everything installs and runs"]))
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())

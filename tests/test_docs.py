"""What the README and the docs print runs as it is printed: block by block, with nothing added."""

from __future__ import annotations

import ast
import os
import re
import shlex
import sys
from collections.abc import Iterator
from functools import cache
from importlib.metadata import (
    PackageNotFoundError,
    distribution,
    entry_points,
    packages_distributions,
)
from pathlib import Path
from typing import Any

import click
import pytest
from packaging.requirements import Requirement
from typer.main import get_command

from mnemoscope.adapters.cli.root import app
from tests.kit.desk import Desk, Read
from tests.kit.patience import UNHURRIED
from tests.kit.printed_pages import Block, blocks_of, hidden_in, installs_of, sections_of

ROOT = Path(__file__).parents[1]
PAGES = {
    str(page.relative_to(ROOT)): page.read_text(encoding="utf-8")
    for page in sorted((ROOT / "README.md", *(ROOT / "docs").rglob("*.md")))
}
BY_SECTION = ("docs/migrating.md", "docs/quickstarts.md")
"""Pages each of whose sections is a program of its own."""

PROGRAMS = {
    name: blocks
    for name, blocks in (
        (f"{name}: {title}" if title else name, blocks_of(text))
        for name, page in PAGES.items()
        for title, text in (sections_of(page) if name in BY_SECTION else {"": page}).items()
    )
    if any(block.language == "python" or block.commands for block in blocks)
}
COMMANDS = [each for blocks in PROGRAMS.values() for block in blocks for each in block.commands]

NOT_RUN = {
    "apt-get": "changes the machine",
    "docker": "needs a Docker daemon; the stack is rehearsed by make dashboard-pictures",
    "export": "is the reader's own address or key",
    "helm": "needs a cluster; make test-deploy renders the chart",
    "kubectl": "needs a cluster; what it applies is checked against its schemas",
    "make": "builds an environment and takes minutes: make readme-check runs these",
    "pip": "needs a package registry: make install-check runs the quick starts' own",
    "promtool": "is Prometheus's own; tests/grafana runs it where it is installed",
}
"""Programs whose commands are not run here, and why."""

LOOKED_AT = {
    "a path of the machine's own": re.compile(r" /"),
    "a word in capitals, for what the reader has": re.compile(r"\b(?!APPROVAL)[A-Z]{2,}\b"),
    "works until it is stopped": re.compile(
        r"^mnemoscope (relay$|redact --serve|serve|audit stream .*--follow)"
    ),
    "is the reader's own program": re.compile(r"\byour_app\b"),
    "works in the shells that typer knows, whichever the reader has": re.compile(r"-completion"),
    "is the suite itself": re.compile(r"^python -m pytest tests/"),
    "of a file that the reader has written": re.compile(r"--objectives"),
}
"""Of our own commands those whose words are looked at, and which are not run, and why."""

FOUND, INCOMPLETE = 1, 3
ENDS_WITH = {
    # Something is found, as the page has just made it.
    "mnemoscope memory doctor --customer c-42": FOUND,
    "mnemoscope memory doctor --all --json": FOUND,
    # A trail of one run has nothing to compare it with: the page says so.
    "mnemoscope audit deviations": INCOMPLETE,
    # The page has changed a router, and shows that this is found.
    "mnemoscope audit replay --run t-1 --graph app:changed": FOUND,
    # Nobody has stated what only the operator knows (--notice): the page says so.
    "mnemoscope audit export --customer c-42 --scope app:scope": INCOMPLETE,
    "mnemoscope audit export --customer c-42 --scope app:scope --out export.zip": INCOMPLETE,
    "mnemoscope audit verify --bundle export.zip": INCOMPLETE,
}
"""Exit codes of those that end with another than 0, as their page says."""


@pytest.fixture(scope="session")
def desk() -> Iterator[Desk]:
    """Where pages are read, one after the other."""
    made = Desk({"PATH": os.environ["PATH"]})
    yield made
    made.leave()


def variables_of(folder: Path) -> dict[str, str]:
    """Return a reader's variables, whose home is *folder*."""
    return {
        **UNHURRIED,
        "PATH": os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"])),
        "HOME": str(folder),
        "XDG_DATA_HOME": str(folder / "data"),
        "MNEMOSCOPE_PII_MODEL": "none",  # three seconds a process; pages rely on no model's finds
        "MEM0_TELEMETRY": "False",  # nothing that a test does leaves the machine
        "COLUMNS": "100",
        "TERM": "dumb",
    }


def steps_of(blocks: list[Block]) -> Iterator[dict[str, Any]]:
    """Yield what a reader does: saves a file, pastes code, or types a command."""
    for block in blocks:
        if block.file:
            yield {"file": block.file, "text": block.text}
        elif block.language == "python":
            yield {"line": block.line, "text": block.text}
        for command in block.commands:
            if command.split()[0] not in NOT_RUN and not is_looked_at(command):
                yield {"command": command}


def is_looked_at(command: str) -> bool:
    """Return whether the words of a command are looked at in place of running it."""
    return any(found.search(command) for found in LOOKED_AT.values())


@pytest.mark.parametrize("page", PAGES)
def test_no_page_hides_code_from_its_reader(page):
    """Its comments are remarks of a line: what it prints is all that there is."""
    assert hidden_in(PAGES[page]) == []


@pytest.mark.long_but("README.md", "docs/index.md")
@pytest.mark.parametrize("program", PROGRAMS)
def test_a_page_runs_as_it_is_printed(program, desk, tmp_path):
    """Its files are saved, its code is pasted and its commands are typed, in their order."""
    blocks = PROGRAMS[program]

    read = desk.read([*steps_of(blocks)], tmp_path, variables_of(tmp_path))

    assert not read.code, read.said
    wrong = {
        command: (code, read.answered[command])
        for command, code in read.ended.items()
        if code != ENDS_WITH.get(command, 0)
    }
    assert wrong == {}
    assert unused(blocks, read) == []
    assert unlike(blocks, read) == []


def unused(blocks: list[Block], read: Read) -> list[str]:
    """Return the Python files that a page has a reader save, and neither imports nor runs."""
    files = [block.file for block in blocks if block.file and block.language == "python"]
    texts = "".join(block.text for block in blocks if block.language == "python")
    imported = set(re.findall(r"^from (\w+) import", texts, re.MULTILINE))
    named = {*imported, *re.split(r"[\s:]", " ".join(read.ended))}  # `--gate gates:refunds` too
    return [each for each in files if not {each, each.removesuffix(".py")} & named]


def unlike(blocks: list[Block], read: Read) -> list[str]:
    """Return the lines that a page says a command prints, and that it does not print."""
    return [
        f"{command}: {line}"
        for block in blocks
        for command, lines in block.answers.items()
        if command in read.answered
        for line in lines
        if not any(is_like(line, each) for each in read.answered[command].splitlines())
    ]


def is_like(told: str, line: str) -> bool:
    """Return whether a line is what a page tells, which may leave its end out with three dots."""
    if told.endswith("…"):
        return shape(line).startswith(shape(told.removesuffix("…")))
    return shape(line) == shape(told)


def shape(line: str) -> str:
    """Return a line without what is another one each time: numbers, keys, times, space."""
    return re.sub(r"[─\s]+", " ", re.sub(r"[\w+/]*\d[\w+/=.:-]*", "#", line)).strip()


LEFT_OUT = [
    number
    for number, line in enumerate(PROGRAMS["docs/index.md"][1].text.splitlines())
    if line.startswith("from ")
]


@pytest.mark.parametrize("number", LEFT_OUT)
def test_a_line_that_a_page_leaves_out_is_missed(number, desk, tmp_path):
    """Whatever import of the first page's code is not printed, its reader does not have it."""
    install, first, *rest = PROGRAMS["docs/index.md"]
    lines = first.text.splitlines()
    del lines[number]
    blocks = [install, first._replace(text="\n".join(lines)), *rest]

    read = desk.read([*steps_of(blocks)], tmp_path, variables_of(tmp_path))

    assert read.code
    assert "NameError" in read.said


@pytest.mark.parametrize("page", PAGES)
def test_the_commands_that_a_page_names_are_commands(page):
    """In blocks and in sentences, whether they are run or not: with subcommands and options."""
    block = r"^\$ (?:\w+=\S+ )?(mnemoscope [^#|>\n]+)"
    told = re.findall(rf"{block}|`(mnemoscope [^`]+)`", PAGES[page], re.MULTILINE)

    wrong = {line: unknown_in(line) for pair in told for line in pair if line}

    assert {line: words for line, words in wrong.items() if words} == {}


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("mnemoscope rules install DIR --objectives FILE", []),
        ("mnemoscope rules uninstall DIR", ["uninstall"]),
        ("mnemoscope rules install DIR --objective FILE", ["--objective"]),
    ],
)
def test_a_command_that_is_not_there_is_seen(line, words):
    """Its name, or its option, is what a reader would stumble over."""
    assert unknown_in(line) == words


def unknown_in(line: str) -> list[str]:
    """Return the words of a command line that are neither a command nor an option of it."""
    command: Any = get_command(app)
    _program, *words = shlex.split(line)
    while words and hasattr(command, "get_command") and words[0][:1].islower():
        name = words.pop(0)
        found = command.get_command(click.Context(command), name)
        if found is None:
            return [name]
        command = found
    known = {each for of in command.params for each in (*of.opts, *of.secondary_opts)}
    options = (word.partition("=")[0] for word in words if word.startswith("-"))
    return [option for option in options if option not in {*known, "--help"}]


def test_nothing_is_left_out_that_is_not_there():
    """Each reason for leaving a command out is that of a command on a page."""
    assert set(NOT_RUN) <= {each.split()[0] for each in COMMANDS}
    assert [why for why, of in LOOKED_AT.items() if not any(map(of.search, COMMANDS))] == []
    assert set(ENDS_WITH) <= set(COMMANDS)


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_page_installs_what_it_imports(program):
    """What its code imports comes with what it has a reader install, or what the README has."""
    blocks = PROGRAMS[program]
    told = installs_of(blocks) or installs_of(PROGRAMS["README.md"])
    files = {block.file.removesuffix(".py") for block in blocks if block.file}
    imported = {
        name.partition(".")[0]
        for block in blocks
        if block.language == "python"
        for node in ast.walk(ast.parse(block.text))
        for name in imports_of(node)
    } - {*sys.stdlib_module_names, *files}

    there = closure_of(frozenset(told))
    missing = [
        name for name in imported if not there & {norm(each) for each in providers().get(name, ())}
    ]
    assert missing == []


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_page_installs_the_programs_that_it_runs(program):
    """What a command begins with comes with what the page has a reader install, or the README."""
    blocks = [*PROGRAMS[program], *inline_of(PAGES.get(program, ""))]
    told = installs_of(blocks) or installs_of(PROGRAMS["README.md"])
    programs = {each.split()[0] for block in blocks for each in block.commands}

    there = closure_of(frozenset(told))
    missing = [
        script.name
        for script in entry_points(group="console_scripts")
        if script.name in programs - {"pip"} and script.dist and norm(script.dist.name) not in there
    ]
    assert missing == []


def inline_of(page: str) -> list[Block]:
    """Return the commands in the sentences of a page: a word and what it is given."""
    return [Block("console", f"$ {each}", 0) for each in re.findall(r"`([\w-]+ [^`\n]+)`", page)]


def imports_of(node: ast.AST) -> list[str]:
    """Return the modules that a statement imports."""
    if isinstance(node, ast.ImportFrom):
        return [node.module or ""]
    return [each.name for each in node.names] if isinstance(node, ast.Import) else []


@cache
def providers() -> dict[str, list[str]]:
    """Return which distributions each module comes with."""
    return dict(packages_distributions())


@cache
def closure_of(requirements: frozenset[str]) -> set[str]:
    """Return the distributions that come with *requirements*, as they are installed here."""
    found: dict[str, set[str]] = {}
    waiting = [Requirement(each) for each in requirements]
    while waiting:
        wanted = waiting.pop()
        extras = wanted.extras or {""}
        fresh = extras - found.setdefault(norm(wanted.name), set())
        if not fresh and found[norm(wanted.name)]:
            continue
        found[norm(wanted.name)] |= {*extras, ""}
        waiting += (
            needed
            for needed in requirements_of(wanted.name)
            if not needed.marker
            or any(needed.marker.evaluate({"extra": extra}) for extra in {*extras, ""})
        )
    return set(found)


def requirements_of(name: str) -> list[Requirement]:
    """Return what a distribution requires."""
    try:
        return [Requirement(each) for each in distribution(name).requires or ()]
    except PackageNotFoundError:  # of another platform or Python
        return []


def norm(name: str) -> str:
    """Return a distribution's name in the form in which names are compared."""
    return re.sub(r"[-_.]+", "-", name).lower()

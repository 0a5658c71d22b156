"""
A reader's desk: an interpreter into which a page's Python is pasted, and a terminal beside it.

Pages and commands run in processes of their own, as they do for a reader, in the reader's folder
and with the reader's variables. They are forked from one that has imported what most pages import,
so that it is imported once. A program that works at such a desk is this file.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import pty
import re
import runpy
import shlex
import subprocess
import sys
import threading
import traceback
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import IO, Any, NamedTuple

IMPORTED = (
    "fastapi",
    "langchain.agents",
    "langchain_core.language_models.fake_chat_models",
    "langgraph.graph",
    "langgraph.store.memory",
    "mnemoscope.adapters.cli.root",
    "mnemoscope.memory",
    "openai",
    "qdrant_client",
    "sqlalchemy",
)
"""Not mem0 and wordllama, which read variables or change logging as they are imported."""

YES = b"y\n" * 4
"""What the reader answers to a command that asks."""


class Read(NamedTuple):
    """
    What came of a page.

    Attributes:
        code: The exit code of its Python.
        said: What that wrote, its traceback at the end.
        ended: The exit code of each command.
        answered: What each command wrote.
    """

    code: int
    said: str
    ended: dict[str, int]
    answered: dict[str, str]


class Desk:
    """A place to read pages at, one after the other."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._server = subprocess.Popen(
            [sys.executable, "-P", __file__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=dict(environment),
            text=True,
        )

    def read(self, steps: list[dict[str, Any]], folder: Path, variables: Mapping[str, str]) -> Read:
        """Do the *steps* of a page in *folder*: ``file``, ``code`` and ``command``."""
        request = {"steps": steps, "folder": str(folder), "variables": dict(variables)}
        requests, replies = self._server.stdin, self._server.stdout
        assert requests
        assert replies
        requests.write(json.dumps(request) + "\n")
        requests.flush()
        return Read(**json.loads(replies.readline()))

    def leave(self) -> None:
        """End the process."""
        self._server.communicate()


def _serve() -> None:
    for name in IMPORTED:
        importlib.import_module(name)
    if threading.active_count() > 1:
        raise RuntimeError("an import has begun a thread, which a fork would not have")
    gc.freeze()  # what is shared with every fork is not looked at again as one ends
    for line in sys.stdin:
        request = json.loads(line)
        folder = Path(request["folder"])
        asking, asked = os.pipe()
        answer, answering = os.pipe()
        page = os.fork()
        if page == 0:
            os.close(asking)
            os.close(answering)
            _sit_down(request, folder / ".said")
            _paste(request["steps"], os.fdopen(asked, "w"), os.fdopen(answer))
            return
        os.close(asked)
        os.close(answer)
        found: dict[str, Any] = {"ended": {}, "answered": {}}
        with os.fdopen(asking) as commands, os.fdopen(answering, "w") as answers:
            for told in commands:
                command = json.loads(told)
                code, said = _at_the_terminal(command, request)
                found["ended"][command], found["answered"][command] = code, said
                answers.write(f"{code}\n")
                answers.flush()
        code = os.waitstatus_to_exitcode(os.waitpid(page, 0)[1])
        said = (folder / ".said").read_text(encoding="utf-8")
        sys.stdout.write(json.dumps({"code": code, "said": said, **found}) + "\n")
        sys.stdout.flush()


def _sit_down(request: Mapping[str, Any], said: Path | None) -> None:
    os.environ.clear()
    os.environ.update(request["variables"])
    os.chdir(request["folder"])
    sys.path.insert(0, request["folder"])
    if said:
        sys.stdin = Path(os.devnull).open(encoding="utf-8")  # noqa: SIM115 - until the process ends
        written = os.open(said, os.O_WRONLY | os.O_CREAT)
        os.dup2(written, 1)
        os.dup2(written, 2)
    else:
        sys.stdin = os.fdopen(0)
    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]


def _paste(steps: list[dict[str, Any]], commands: IO[str], answers: IO[str]) -> None:
    sys.modules["__main__"] = main = ModuleType("__main__")
    for step in steps:
        if "file" in step:
            Path(step["file"]).write_text(step["text"], encoding="utf-8")
        elif "command" in step:
            command = _filled_in(step["command"], main.__dict__)
            commands.write(json.dumps(command) + "\n")
            commands.flush()
            answers.readline()
        else:
            try:
                # With its lines where the page has them.
                text = "\n" * (step["line"] - 1) + step["text"]
                exec(compile(text, "page", "exec"), main.__dict__)  # noqa: S102 - to see it run
            except BaseException:  # noqa: BLE001 - whatever it is, it ends the page
                traceback.print_exc()
                sys.exit(1)


def _filled_in(command: str, known: Mapping[str, Any]) -> str:
    """Return a command with each word in capitals replaced by what the page's Python calls so."""
    return re.sub(r"\b[A-Z]{2,}\b", lambda word: str(known.get(word[0].lower(), word[0])), command)


def _at_the_terminal(command: str, request: Mapping[str, Any]) -> tuple[int, str]:
    process, terminal = pty.fork()
    if process == 0:
        _sit_down(request, None)
        _begin(command)
        sys.exit(0)
    os.write(terminal, YES)
    said = b""
    while True:
        try:
            said += (more := os.read(terminal, 1 << 16))
        except OSError:  # the other end is closed
            break
        if not more:
            break
    os.close(terminal)
    code = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
    return code, said.decode(errors="replace").replace("\r\n", "\n")


def _begin(command: str) -> None:
    program, *arguments = shlex.split(command)
    if program == "mnemoscope" and not {"|", ">"} & set(arguments):
        from mnemoscope.adapters.cli.root import main

        sys.argv = [program, *arguments]
        main()
    elif program == "python" and not arguments[0].startswith("-"):
        sys.argv = arguments
        runpy.run_path(arguments[0], run_name="__main__")
    else:
        os.execvp("bash", ["bash", "-c", command])  # noqa: S606, S607 - as the reader's terminal


if __name__ == "__main__":
    _serve()

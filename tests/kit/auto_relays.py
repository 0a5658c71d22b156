"""Applications with ``relay="auto"``, each in a process of its own, and their relays."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import orjson

from tests.kit.patience import GIVE_UP_S, UNHURRIED, until

_PROGRAM = """
import os, sys
from mnemoscope.memory import configure, context

scope = configure()
guarded = scope.observe(store="crm", operation="search_memory", neutral=list, inline=True)
recall = guarded(lambda: [1])

def call(count):
    with context(tenant="acme", customer="ada"):
        for _ in range(count):
            recall()

print("ready", flush=True)
for line in sys.stdin:
    order, _, count = line.strip().partition(" ")
    if order == "fork":
        if os.fork() == 0:
            call(int(count))
            sys.stdin.read()
            os._exit(0)
    elif order == "close":
        scope.close()
    else:
        call(int(count))
    print("done", flush=True)
scope.close()
"""


class Application:
    """A process that is configured, and makes calls when it is told to."""

    def __init__(self, variables: dict[str, str], folder: Path, *inherited: int) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", _PROGRAM],
            env=variables,
            cwd=folder,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            pass_fds=inherited,
        )

    def ready(self) -> Application:
        """Wait until it is configured, and return it."""
        assert self.process.stdout.readline() == "ready\n", self.process.stderr.read()
        return self

    def order(self, what: str, count: int = 0) -> None:
        """Have it ``call`` so often, ``fork`` a child that does and stays, or ``close``."""
        self.process.stdin.write(f"{what} {count}\n")
        self.process.stdin.flush()
        assert self.process.stdout.readline() == "done\n", self.process.stderr.read()

    def kill(self) -> None:
        """Kill it, and wait for its end."""
        self.process.kill()
        self.process.communicate()

    def end(self) -> str:
        """Have it end in order, and return what it has logged."""
        return self.process.communicate(timeout=GIVE_UP_S)[1]


class World:
    """A user's home, with the applications and relays in it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.log = folder / "events.jsonl"
        self.relays = folder / "data" / "mnemoscope" / "relay"
        self.variables = {
            "PATH": os.environ["PATH"],
            "HOME": str(folder),
            "XDG_DATA_HOME": str(folder / "data"),
            "MNEMOSCOPE_RELAY": "auto",
            "MNEMOSCOPE_SINKS": "logs,audit",
            "MNEMOSCOPE_LOG_FILE": str(self.log),
            "MNEMOSCOPE_PII_MODEL": "none",
            "MNEMOSCOPE_AUDIT_PSEUDONYM_KEY": "ab" * 32,
            **UNHURRIED,
        }
        self.applications: list[Application] = []

    def start(self, *inherited: int, **variables: str) -> Application:
        """Start an application, which inherits those descriptors."""
        self.applications.append(Application(self.variables | variables, self.folder, *inherited))
        return self.applications[-1]

    def processes(self) -> set[int]:
        """Return the relays that there are, those included that are starting."""
        numbers = (each.name for each in Path("/proc").iterdir() if each.name.isdecimal())
        return {int(each) for each in numbers if self._is(each)}

    def relay(self) -> int:
        """Wait for the one relay that there is, and return its process."""
        assert until(lambda: self.folders() and all(map(beat_of, self.folders())))
        (found,) = {beat_of(each) for each in self.folders()}
        return found

    def folders(self) -> list[Path]:
        """Return the folders of relays."""
        return sorted(self.relays.glob("*")) if self.relays.is_dir() else []

    def logged(self) -> int:
        """Return how many different events the log file has."""
        if not self.log.exists():
            return 0
        lines = self.log.read_bytes().splitlines(keepends=True)
        events = (orjson.loads(line) for line in lines if line.endswith(b"\n"))
        return len({each["event_id"] for each in events if each["store"] == "crm"})

    def close(self) -> None:
        """Kill what is left."""
        for each in self.applications:
            each.kill()
        for pid in self.processes():
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def _is(self, pid: str) -> bool:
        with suppress(OSError):
            said = Path(f"/proc/{pid}/cmdline").read_bytes()
            return b"relay_process" in said and str(self.relays).encode() in said
        return False


def beat_of(folder: Path) -> int | None:
    """Return the process that gave the latest sign of life in *folder*."""
    with suppress(OSError, ValueError):
        return json.loads((folder / "beat.json").read_text())["pid"]
    return None

"""
Ways to serve, each with writes from many clients while the store breaks and comes back.

gunicorn with and without preload, told to load anew in the middle, with threads and with gevent;
uvicorn with one and two workers. Each answered write has to be in the store once the servers are
gone, and has to be one event in the audit trail and in the log. What `verify` says of the trail is
what happened: nothing is missing, however the server ends its processes. Exit code 1: it is not so.

    python -m benchmarks.faults.servers --writes 400
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import signal
import socket
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

APP = '''
import asyncio
import os
import sqlite3
import threading
from langgraph.store.sqlite import SqliteStore
from mnemoscope.memory import configure, context

scope = configure()


class Breaking(SqliteStore):
    """A store whose disk fails while a file is there."""

    def batch(self, ops):
        if os.path.exists("broken"):
            raise sqlite3.OperationalError("disk I/O error")
        return super().batch(ops)


opened, opening = {}, threading.Lock()


def store():
    """Return the store of this process, which opens it when it first needs it."""
    with opening:
        if os.getpid() not in opened:
            connection = sqlite3.connect("store.db", check_same_thread=False, isolation_level=None)
            connection.execute("PRAGMA busy_timeout=60000")
            made = Breaking(connection)
            made.setup()
            opened[os.getpid()] = scope.store(made)
        return opened[os.getpid()]


def put(number):
    """Remember a number."""
    with context(customer="c-" + number):
        store().put(("numbers",), number, {"number": int(number)})
    return b"remembered"


def app(environ, start_response):
    """Answer as WSGI has it."""
    body = put(environ["QUERY_STRING"])
    start_response("200 OK", [("content-type", "text/plain")])
    return [body]


async def asgi(scope_, receive, send):
    """Answer as ASGI has it."""
    if scope_["type"] == "lifespan":
        return
    body = await asyncio.to_thread(put, scope_["query_string"].decode())
    headers = [(b"content-type", b"text/plain")]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": body})
'''

_GUNICORN = ("-m", "gunicorn", "--no-control-socket", "--graceful-timeout", "60", "app:app")
_UVICORN = ("-m", "uvicorn", "--lifespan", "off", "--log-level", "warning", "app:asgi")

SERVERS: dict[str, tuple[str, ...]] = {
    "gunicorn": (*_GUNICORN, "--workers", "2"),
    "gunicorn --preload": (*_GUNICORN, "--workers", "2", "--preload"),
    "gunicorn, loaded anew": (*_GUNICORN, "--workers", "2"),
    "gunicorn, threads": (*_GUNICORN, "--workers", "2", "--threads", "4"),
    "gunicorn, gevent": (*_GUNICORN, "--workers", "2", "--worker-class", "gevent"),
    "uvicorn": _UVICORN,
    "uvicorn, two workers": (*_UVICORN, "--workers", "2"),
}
CLIENTS = 8
_PATIENCE_S = 300
_NUMBERS = "SELECT key FROM store WHERE prefix = 'numbers'"


@dataclass(frozen=True)
class Outcome:
    """
    What was answered by one server, and what is there of it.

    Attributes:
        answered: Writes that were answered with 200.
        refused: Those that were not.
        waited: Of those answered, the ones that were not in the store when it came back.
        not_stored: Answered, and never in the store.
        events: Events of writes in the audit trail, and lines in the log.
        not_told: Answered, and without an event of their customer in the audit trail.
        findings: Of `verify`, as soon as the servers were gone.
    """

    answered: int
    refused: int
    waited: int
    not_stored: int
    events: tuple[int, int]
    not_told: int
    findings: list[str]

    @property
    def is_whole(self) -> bool:
        """Whether all that was answered is in the store and in both sinks, as `verify` says."""
        is_there = min(self.events) >= self.answered
        return is_there and not (self.not_stored or self.not_told or self.findings)


def tried(name: str, writes: int) -> Outcome:
    """Return how a server that is called *name* in `SERVERS` did."""
    with tempfile.TemporaryDirectory() as held:
        folder = Path(held)
        (folder / "app.py").write_text(APP, encoding="utf-8")
        environment = _environment(folder)
        answers: dict[int, bool] = {}
        third = writes // 3
        with _served(SERVERS[name], folder, environment) as (server, ask):
            answers |= _asked(ask, range(third))
            (folder / "broken").touch()
            answers |= _asked(ask, range(third, 2 * third))
            waited = {n for n in answers if answers[n]} - _stored(folder)
            if name == "gunicorn, loaded anew":
                server.send_signal(signal.SIGHUP)
            (folder / "broken").unlink()
            answers |= _asked(ask, range(2 * third, writes))
            answered = {number for number, is_answered in answers.items() if is_answered}
            # A worker that was loaded anew opens the store when it is first asked for it.
            _until(lambda: ask(writes) and answered <= _stored(folder))
        told, events, findings = _told(folder, environment, answered)
        return Outcome(
            len(answered),
            len(answers) - len(answered),
            len(waited),
            len(answered - _stored(folder)),
            events,
            len(answered - told),
            findings,
        )


def _environment(folder: Path) -> dict[str, str]:
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("MNEMOSCOPE_", "OTEL_", "LANGSMITH_", "LANGCHAIN_"))
    }
    return kept | {
        "HOME": str(folder),
        "XDG_DATA_HOME": str(folder),
        "MNEMOSCOPE_AUDIT_PSEUDONYM_KEY": "bW5lbW9zY29wZSB0ZXN0cyBvbmx5",
        "MNEMOSCOPE_AUDIT_URL": f"sqlite:///{folder / 'audit.db'}",
        "MNEMOSCOPE_LOG_FILE": str(folder / "events.jsonl"),
        "MNEMOSCOPE_JOURNAL": str(folder / "journal.db"),
        "MNEMOSCOPE_PII_MODEL": "none",
        "MNEMOSCOPE_PII_OPERATORS": "*=keep",
        "MNEMOSCOPE_SINKS": "logs,audit",
        "MNEMOSCOPE_DEADLINE_REMEMBER_S": "60",
        "PYTHONWARNINGS": "ignore",
    }


Ask = Callable[[int], bool]


@contextmanager
def _served(
    command: tuple[str, ...], folder: Path, environment: dict[str, str]
) -> Iterator[tuple[subprocess.Popen[bytes], Ask]]:
    """Serve, and end in order."""
    listening = socket.create_server(("127.0.0.1", 0))
    host, port = listening.getsockname()
    descriptor = str(listening.fileno())
    bound = ("--bind", f"fd://{descriptor}") if "gunicorn" in command else ("--fd", descriptor)
    with (folder / "said.txt").open("wb") as said:
        server = subprocess.Popen(
            [sys.executable, *command, *bound],
            cwd=folder,
            env=environment,
            pass_fds=[listening.fileno()],
            stdout=said,
            stderr=said,
        )
    listening.close()

    def ask(number: int) -> bool:
        connection = http.client.HTTPConnection(host, port, timeout=_PATIENCE_S)
        with closing(connection), suppress(OSError, http.client.HTTPException):
            connection.request("GET", f"/?{number}")
            answer = connection.getresponse()
            return answer.status == 200 and answer.read() == b"remembered"
        return False

    try:
        yield server, ask
    finally:
        server.send_signal(signal.SIGTERM)
        code = server.wait(_PATIENCE_S)
    if code not in {0, -signal.SIGTERM}:
        raise RuntimeError(f"the server ended with {code}: {(folder / 'said.txt').read_text()}")


def _asked(ask: Ask, numbers: range) -> dict[int, bool]:
    with ThreadPoolExecutor(CLIENTS) as clients:
        return dict(zip(numbers, clients.map(ask, numbers), strict=True))


def _stored(folder: Path) -> set[int]:
    with closing(sqlite3.connect(folder / "store.db", timeout=_PATIENCE_S)) as connection:
        return {int(key) for (key,) in connection.execute(_NUMBERS)}


def _until(holds: Callable[[], bool]) -> None:
    """Wait until something holds, or patience ends: whether it holds is looked at afterwards."""
    ends = time.monotonic() + _PATIENCE_S
    while not holds() and time.monotonic() < ends:
        time.sleep(0.05)


_LOOK = """
import json, sys
from mnemoscope.audit.verification.whole import verify
from mnemoscope.memory.scope import open_audit

numbers = json.load(sys.stdin)
log = open_audit()
found = verify(log)
told = [n for n in numbers if any(row.method == "put" for row in log.history(f"c-{n}"))]
puts = sum(row.method == "put" for row in log.rows())
print(json.dumps([told, puts, [each for kind in found.findings.values() for each in kind]]))
"""


def _told(
    folder: Path, environment: dict[str, str], answered: set[int]
) -> tuple[set[int], tuple[int, int], list[str]]:
    """Return whose writes the trail has, the events of writes in trail and log, and findings."""
    looked = subprocess.run(
        [sys.executable, "-c", _LOOK],
        input=json.dumps(sorted(answered)),
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=_PATIENCE_S,
        check=False,
    )
    if looked.returncode:
        raise RuntimeError(f"the audit trail was not read: {looked.stderr}")
    told, rows, findings = json.loads(looked.stdout)
    lines = Counter(
        json.loads(line).get("method") for line in (folder / "events.jsonl").open(encoding="utf-8")
    )
    return set(told), (rows, lines["put"]), findings


def main() -> None:
    """Try them all, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.strip().partition("\n")[0])
    parser.add_argument("--writes", type=int, default=400, help="of each server; default 400")
    parser.add_argument("--server", choices=list(SERVERS), action="append")
    parser.add_argument("--json", action="store_true", help="print JSON")
    given = parser.parse_args()
    out = sys.stderr if given.json else sys.stdout
    heads = ("answered", "refused", "waited", "not stored", "not told", "trail", "log")
    out.write(f"{'':24}" + "".join(f"{each:>11}" for each in heads) + "\n")
    outcomes: dict[str, Outcome] = {}
    for name in given.server or SERVERS:
        it = outcomes[name] = tried(name, given.writes)
        figures = (it.answered, it.refused, it.waited, it.not_stored, it.not_told, *it.events)
        out.write(f"{name:24}" + "".join(f"{each:11,}" for each in figures) + "\n")
        out.flush()
    if given.json:
        sys.stdout.write(json.dumps({name: vars(each) for name, each in outcomes.items()}))
    sys.exit(not all(each.is_whole for each in outcomes.values()))


if __name__ == "__main__":
    main()
